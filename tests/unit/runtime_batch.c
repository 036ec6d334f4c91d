/* runtime_batch.c: many files in one call: all or nothing. */
#include "fixture.h"

#include <sys/resource.h>

#include "base/hash.h"

#define MANY 400

static room rm;

typedef struct item {
    const char *path, *text;
    uint32_t flags;
    const char *if_hash;
} item;

static csn_status write_many(const item *items, size_t count, csn_error **err)
{
    room_text *texts = calloc(count, sizeof(*texts));
    csn_write_req *reqs = calloc(count, sizeof(*reqs));
    csn_written *rets = calloc(count, sizeof(*rets));

    for (size_t i = 0; i < count; i++) {
        texts[i] = (room_text){items[i].text, strlen(items[i].text)};
        reqs[i] = (csn_write_req){.path = items[i].path,
                                  .source = {room_source, &texts[i]},
                                  .flags = items[i].flags,
                                  .if_hash = items[i].if_hash};
    }
    csn_status st = csn_runtime_write(&rm.l, reqs, count, rets, err);
    for (size_t i = 0; i < count; i++) {
        assert_true(st == CSN_OK ? rets[i].resolved_path != NULL : rets[i].bytes == 0);
        free(rets[i].resolved_path);
    }
    free(texts);
    free(reqs);
    free(rets);
    return st;
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void all_are_written(void **state)
{
    const item items[] = {{"/target", "one", CSN_FILE_SYNC, NULL},
                          {"/fresh/x/y", "two", CSN_FILE_SYNC, NULL},
                          {"/dirlink/file", "three", 0, NULL},
                          {"/hard", "four", 0, NULL}};

    (void)state;
    assert_int_equal(write_many(items, COUNT(items), NULL), CSN_OK);
    assert_true(room_holds(&rm, "target", "one") && room_holds(&rm, "fresh/x/y", "two") &&
                room_holds(&rm, "dir/file", "three") && room_holds(&rm, "hard", "four"));
    assert_int_equal(room_fingerprint(&rm).temps, 0);
    assert_true(corpus_outside_intact(&rm.fx));
    assert_int_equal(write_many(items, 0, NULL), CSN_OK);
}

static void refuse(const item *items, size_t count, csn_status want)
{
    room_print before = room_fingerprint(&rm);
    csn_error *err = NULL;

    assert_int_equal(write_many(items, count, &err), want);
    assert_non_null(err);
    csn_error_free(err);
    assert_true(before.sum == room_fingerprint(&rm).sum);
    assert_true(corpus_outside_intact(&rm.fx));
}

static void one_refusal_undoes_all(void **state)
{
    char hex[CSN_HASH_HEX];
    const item outside[] = {
        {"/target", "1", 0, NULL}, {"/m/n", "2", 0, NULL}, {"/link_out", "3", 0, NULL}};
    const item type[] = {
        {"/target", "1", 0, NULL}, {"/m/n", "2", 0, NULL}, {"/fifo", "3", 0, NULL}};
    const item there[] = {{"/m/o", "1", CSN_FILE_CREATE, NULL},
                          {"/target", "2", CSN_FILE_CREATE, NULL}};
    const item stale[] = {
        {"/target", "1", 0, NULL}, {"/m/n", "1", 0, NULL}, {"/b/target", "2", 0, hex}};
    const item append[] = {{"/target", "1", 0, NULL},
                           {"/dir/file", "2", CSN_FILE_APPEND, NULL}};

    (void)state;
    csn_hash_bytes("other", 5, hex);
    refuse(outside, COUNT(outside), CSN_OUTSIDE);
    refuse(type, COUNT(type), CSN_WRONG_TYPE);
    refuse(there, COUNT(there), CSN_EXISTS);
    refuse(stale, COUNT(stale), CSN_CONFLICT);
    refuse(append, COUNT(append), CSN_INVALID);
}

/* Found only when the names are taken: the first becomes a file, the second wants a directory.
 */
static void failure_half_way_is_exchanged_back(void **state)
{
    const item items[] = {{"/target", "1", 0, NULL},
                          {"/b/target", "1", 0, NULL},
                          {"/new1", "1", 0, NULL},
                          {"/x", "file", 0, NULL},
                          {"/x/y", "below it", 0, NULL}};

    (void)state;
    refuse(items, COUNT(items), CSN_WRONG_TYPE);
    assert_true(room_holds(&rm, "target", "inside\n"));
    assert_false(room_has(&rm, "x"));
    assert_false(room_has(&rm, "new1"));
}

static void same_place_twice_is_refused_by_any_name(void **state)
{
    const item plain[] = {{"/m/f", "1", 0, NULL}, {"/m/f", "2", 0, NULL}};
    const item dots[] = {{"/target", "1", 0, NULL}, {"/a/../target", "2", 0, NULL}};
    const item link[] = {{"/target", "1", 0, NULL}, {"/link", "2", 0, NULL}};

    (void)state;
    refuse(plain, COUNT(plain), CSN_INVALID);
    refuse(dots, COUNT(dots), CSN_INVALID);
    refuse(link, COUNT(link), CSN_INVALID);
}

static void descriptors_do_not_grow_with_the_batch(void **state)
{
    static char paths[MANY + 1][32];
    static item items[MANY + 1];
    struct rlimit old, few;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(paths[i], sizeof(paths[i]), "/many/%d/file", i);
        items[i] = (item){paths[i], "text", 0, NULL};
    }
    items[MANY] = (item){"/fifo", "x", 0, NULL};
    getrlimit(RLIMIT_NOFILE, &old);
    few = (struct rlimit){180, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    refuse(items, MANY + 1, CSN_WRONG_TYPE);
    assert_false(room_has(&rm, "many"));
    assert_int_equal(write_many(items, MANY, NULL), CSN_OK);
    for (int i = 0; i < MANY; i++)
        items[i].text = "again";
    assert_int_equal(write_many(items, MANY, NULL), CSN_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_true(room_holds(&rm, "many/0/file", "again") &&
                room_holds(&rm, "many/399/file", "again"));
    assert_int_equal(room_fingerprint(&rm).temps, 0);
}

static int setup(void **state)
{
    (void)state;
    room_make(&rm);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    room_clean(&rm);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(all_are_written),
        T(one_refusal_undoes_all),
        T(failure_half_way_is_exchanged_back),
        T(same_place_twice_is_refused_by_any_name),
        T(descriptors_do_not_grow_with_the_batch),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
