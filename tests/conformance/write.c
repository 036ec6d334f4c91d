/* write.c: atomic writes: overwrite, create-only, append, conditional, many at once. A write
 * that is refused leaves nothing: no new directory, no temporary file, the old content whole.
 */
#include "conformance/conformance.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE(...) CSN_OPTS(csn_write_opts, __VA_ARGS__)
#define HASH_ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* S1: TestLocalSandbox_WriteFile; S3: "should write file to sandbox directory" */
static void write_makes_and_overwrites(csn_fx *f)
{
    AUTO(csn_write_result, w);
    AUTO(csn_write_result, again);

    ok(csn_write(f->sb, "f.txt", "abc", 3, NULL, &w, E));
    assert_string_equal(w->path, "f.txt");
    assert_int_equal(w->bytes, 3);
    assert_string_equal(w->hash, HASH_ABC);
    assert_non_null(w->resolved_path);
    has(w->resolved_path, "f.txt");
    csn_fx_holds(f, "f.txt", "abc");
    ok(csn_write(f->sb, "f.txt", "a longer text", 13, NULL, &again, E));
    csn_fx_holds(f, "f.txt", "a longer text");
    csn_fx_put(f, "f.txt", "");
    csn_fx_holds(f, "f.txt", "");
    assert_int_equal(csn_fx_strays(f, NULL), 1);
}

/* S1 nested path; S3 "should create parent directories"; S4 creates parent dirs */
static void write_makes_parents(csn_fx *f)
{
    csn_fx_put(f, "subdir/test.txt", "nested");
    csn_fx_put(f, "a/b/c/d/e", "deep");
    csn_fx_holds(f, "subdir/test.txt", "nested");
    csn_fx_holds(f, "a/b/c/d/e", "deep");
    fails(CSN_NOT_FOUND,
          csn_write(f->sb, "x/y", "1", 1, WRITE(.flags = CSN_FILE_NO_PARENTS), NULL, E));
    assert_false(csn_fx_exists(f, "x"));
    csn_fx_put(f, "plain", "p");
    fails(CSN_WRONG_TYPE, csn_write(f->sb, "plain/below", "1", 1, NULL, NULL, E));
    csn_fx_holds(f, "plain", "p");
}

static void result_is_optional(csn_fx *f)
{
    ok(csn_write(f->sb, "f", "x", 1, NULL, NULL, E));
    ok(csn_write(f->sb, "f", NULL, 0, NULL, NULL, E));
    csn_fx_holds(f, "f", "");
    fails(CSN_INVALID, csn_write(f->sb, "f", NULL, 5, NULL, NULL, E));
    fails(CSN_INVALID, csn_write(f->sb, "", "x", 1, NULL, NULL, E));
    fails(CSN_INVALID, csn_write(f->sb, NULL, "x", 1, NULL, NULL, E));
}

/* S0: new files only; "Cannot write to <p> because it already exists." */
static void create_only_keeps_what_is_there(csn_fx *f)
{
    ok(csn_write(f->sb, "new", "1", 1, WRITE(.flags = CSN_FILE_CREATE), NULL, E));
    fails(CSN_EXISTS,
          csn_write(f->sb, "new", "2", 1, WRITE(.flags = CSN_FILE_CREATE), NULL, E));
    says("Cannot write to new because it already exists.");
    csn_fx_holds(f, "new", "1");
    csn_fx_run(f, "mkdir dir && ln -s nowhere dangling && ln -s new link");
    fails(CSN_WRONG_TYPE,
          csn_write(f->sb, "dir", "2", 1, WRITE(.flags = CSN_FILE_CREATE), NULL, E));
    fails(CSN_EXISTS,
          csn_write(f->sb, "link", "2", 1, WRITE(.flags = CSN_FILE_CREATE), NULL, E));
    csn_fx_holds(f, "new", "1");
    assert_int_equal(csn_fx_strays(f, NULL), 4);
}

/* S4: append mode */
static void append_adds_at_the_end(csn_fx *f)
{
    AUTO(csn_write_result, w);

    ok(csn_write(f->sb, "log", "one\n", 4, WRITE(.flags = CSN_FILE_APPEND), &w, E));
    assert_null(w->hash);
    assert_int_equal(w->bytes, 4);
    ok(csn_write(f->sb, "log", "two\n", 4, WRITE(.flags = CSN_FILE_APPEND), NULL, E));
    csn_fx_holds(f, "log", "one\ntwo\n");
    ok(csn_write(f->sb, "d/e/log", "x", 1, WRITE(.flags = CSN_FILE_APPEND), NULL, E));
    csn_fx_run(f, "mkdir dir");
    fails(CSN_WRONG_TYPE,
          csn_write(f->sb, "dir", "x", 1, WRITE(.flags = CSN_FILE_APPEND), NULL, E));
    fails(CSN_INVALID, csn_write(f->sb, "log", "x", 1,
                                 WRITE(.flags = CSN_FILE_APPEND | CSN_FILE_CREATE), NULL, E));
}

static void if_hash_refuses_what_changed(csn_fx *f)
{
    AUTO(csn_write_result, w);
    AUTO(csn_read_result, r);

    csn_fx_put(f, "f", "abc");
    ok(csn_write(f->sb, "f", "v2", 2, WRITE(.if_hash = HASH_ABC), &w, E));
    fails(CSN_CONFLICT, csn_write(f->sb, "f", "v3", 2, WRITE(.if_hash = HASH_ABC), NULL, E));
    csn_fx_holds(f, "f", "v2");
    ok(csn_read(f->sb, "f", CSN_OPTS(csn_read_opts, .flags = CSN_FILE_HASH), &r, E));
    assert_string_equal(r->hash, w->hash);
    ok(csn_write(f->sb, "f", "v3", 2, WRITE(.if_hash = r->hash), NULL, E));
    fails(CSN_CONFLICT,
          csn_write(f->sb, "missing", "x", 1, WRITE(.if_hash = HASH_ABC), NULL, E));
    assert_false(csn_fx_exists(f, "missing"));
    fails(CSN_INVALID, csn_write(f->sb, "f", "x", 1, WRITE(.if_hash = "nonsense"), NULL, E));
    csn_fx_holds(f, "f", "v3");
}

/* D29 */
static void mode_is_kept_and_set_id_bits_are_not(csn_fx *f)
{
    umask(022);
    csn_fx_put(f, "new", "x");
    assert_int_equal(csn_test_mode(csn_fx_host(f, "new")) & 07777, 0644);
    csn_fx_run(f, "chmod 751 new");
    csn_fx_put(f, "new", "y");
    assert_int_equal(csn_test_mode(csn_fx_host(f, "new")) & 07777, 0751);
    assert_int_equal(chmod(csn_fx_host(f, "new"), 06755), 0);
    csn_fx_put(f, "new", "z");
    assert_int_equal(csn_test_mode(csn_fx_host(f, "new")) & 07777, 0755);
    ok(csn_write(f->sb, "script", "#!/bin/sh\n", 10, WRITE(.mode = 0700), NULL, E));
    assert_int_equal(csn_test_mode(csn_fx_host(f, "script")) & 07777, 0700);
    csn_fx_run(f, "chmod 400 new"); /* what a command may not, a file call may not */
    csn_conf_reset();
    csn_status st = csn_write(f->sb, "new", "over", 4, NULL, NULL, E);
    bool root = geteuid() == 0 && strcmp(f->be->isolation, "none") == 0;
    assert_int_equal(st, root ? CSN_OK : CSN_DENIED);
    assert_int_equal(csn_test_mode(csn_fx_host(f, "new")) & 07777, 0400);
}

static void new_files_obey_the_umask(csn_fx *f)
{
    umask(077);
    csn_fx_open(f, CFG(0));
    csn_fx_put(f, "private", "x");
    assert_int_equal(csn_test_mode(csn_fx_host(f, "private")) & 07777, 0600);
}

/* D30, P95: a hard link to outside is replaced, not written through. */
static void hard_link_is_replaced_not_written_through(csn_fx *f)
{
    char *canary = csn_fx_keep(f, csn_test_join(f->outside, "canary"));

    assert_int_equal(link(canary, csn_fx_host(f, "hard")), 0);
    csn_fx_put(f, "hard", "new");
    csn_fx_holds(f, "hard", "new");
    csn_fx_canary(f);
}

static void write_through_an_inner_link_keeps_the_link(csn_fx *f)
{
    AUTO(csn_file_list, l);

    csn_fx_run(f, "mkdir d && echo old > d/real && ln -s d/real link");
    csn_fx_put(f, "link", "new");
    csn_fx_holds(f, "d/real", "new");
    ok(csn_stat(f->sb, "link", CSN_FILE_NOFOLLOW, &l, E));
    assert_int_equal(l->items[0].is_symlink, 1);
}

/* P53-P55 */
static void write_through_a_dangling_inner_link(csn_fx *f)
{
    csn_fx_run(f, "ln -s target dangling");
    csn_conf_reset();
    csn_status st = csn_write(f->sb, "dangling", "x", 1, NULL, NULL, E);
    /* made where the link points, or the link replaced, or refused: never anything else */
    if (st == CSN_OK)
        csn_fx_holds(f, "dangling", "x");
    assert_true(csn_fx_strays(f, NULL) <= 2);
}

static void write_to_what_is_no_file_is_refused(csn_fx *f)
{
    static const char *const bad[] = {"dir", "pipe", "link-pipe", ".", "dir/", "."};

    csn_fx_run(f, "mkdir dir && mkfifo pipe && ln -s pipe link-pipe && echo x > file");
    for (size_t i = 0; i < 6; i++)
        fails(CSN_WRONG_TYPE, csn_write(f->sb, bad[i], "x", 1, NULL, NULL, E));
    fails(CSN_WRONG_TYPE, csn_write(f->sb, "file/", "y", 1, NULL, NULL, E));
    csn_fx_holds(f, "file", "x\n");
    assert_int_equal(csn_fx_strays(f, NULL), 4);
}

/* P83, D37: the longest name must not get a longer temporary one */
static void longest_name_can_be_written(csn_fx *f)
{
    char *name = csn_fx_fill(f, 255), *more = csn_fx_fill(f, 256);

    csn_fx_put(f, name, "x");
    csn_fx_put(f, name, "y");
    csn_fx_holds(f, name, "y");
    csn_conf_reset();
    assert_int_not_equal(csn_write(f->sb, more, "x", 1, NULL, NULL, E), CSN_OK);
    assert_int_equal(csn_fx_strays(f, NULL), 1);
}

/* Content beyond any argument list, and any byte in it. */
static void large_content_is_exact(csn_fx *f)
{
    size_t len = 5 * 1048576 + 3, got = 0;
    char *data = csn_fx_fill(f, len);

    for (size_t i = 0; i < len; i += 101)
        data[i] = (char)(i / 101);
    csn_fx_putn(f, "big", data, len);
    assert_string_equal(csn_fx_out(f, "wc -c < big | tr -d ' '"), "5242883\n");
    char *have = csn_fx_get(f, "big", &got);
    same_bytes(have, got, data, len);
}

typedef struct source {
    size_t left;
    bool fail;
} source;

static int64_t source_read(void *ctx, void *buf, size_t len)
{
    source *s = ctx;
    size_t n = s->left < len ? s->left : len;

    if (s->left == 0)
        return s->fail ? -1 : 0;
    memset(buf, 's', n);
    s->left -= n;
    return (int64_t)n;
}

static void write_from_a_source(csn_fx *f)
{
    AUTO(csn_write_result, w);
    source good = {.left = 700001}, bad = {.left = 100, .fail = true};

    ok(csn_write_from(f->sb, "streamed", source_read, &good, NULL, &w, E));
    assert_int_equal(w->bytes, 700001);
    csn_fx_put(f, "old", "old");
    csn_conf_reset();
    assert_int_not_equal(csn_write_from(f->sb, "old", source_read, &bad, NULL, NULL, E),
                         CSN_OK);
    csn_fx_holds(f, "old", "old"); /* a source that fails writes nothing */
    assert_int_equal(csn_fx_strays(f, NULL), 2);
    fails(CSN_INVALID, csn_write_from(f->sb, "x", NULL, NULL, NULL, NULL, E));
}

static void sync_is_accepted(csn_fx *f)
{
    ok(csn_write(f->sb, "s", "x", 1, WRITE(.flags = CSN_FILE_SYNC), NULL, E));
    csn_fx_holds(f, "s", "x");
    fails(CSN_INVALID, csn_write(f->sb, "s", "y", 1, WRITE(.flags = 1u << 30), NULL, E));
    fails(CSN_INVALID, csn_write(f->sb, "s", "y", 1, &(csn_write_opts){0}, NULL, E));
    csn_fx_holds(f, "s", "x");
}

/* ---- many ---- */

static csn_file_content file(const char *path, const char *text)
{
    return (csn_file_content){.path = path, .data = text, .len = strlen(text)};
}

/* S1: WriteFiles(map) */
static void write_many_writes_all(csn_fx *f)
{
    csn_file_content files[] = {
        file("a", "1"),
        file("d/b", "2"),
        file("d/e/c", ""),
        {.path = "x.sh", .data = "#!/bin/sh\n", .len = 10, .mode = 0755}};

    csn_fx_put(f, "a", "old");
    ok(csn_write_many(f->sb, files, 4, 0, E));
    csn_fx_holds(f, "a", "1");
    csn_fx_holds(f, "d/b", "2");
    csn_fx_holds(f, "d/e/c", "");
    assert_int_equal(csn_test_mode(csn_fx_host(f, "x.sh")) & 0777, 0755);
    fails(CSN_INVALID, csn_write_many(f->sb, files, 0, 0, E));
}

static void write_many_is_all_or_nothing(csn_fx *f)
{
    csn_file_content files[] = {file("a", "new"), file("fresh/b", "new"), file("dir", "new")};
    csn_file_content exists[] = {file("n1", "x"), file("a", "x")};
    csn_file_content stale[] = {file("n2", "x"), file("a", "x")};

    csn_fx_run(f, "mkdir dir && printf old > a");
    fails(CSN_WRONG_TYPE, csn_write_many(f->sb, files, 3, 0, E));
    csn_fx_holds(f, "a", "old");
    assert_false(csn_fx_exists(f, "fresh/b"));
    fails(CSN_EXISTS, csn_write_many(f->sb, exists, 2, CSN_FILE_CREATE, E));
    assert_false(csn_fx_exists(f, "n1"));
    stale[1].if_hash = HASH_ABC;
    fails(CSN_CONFLICT, csn_write_many(f->sb, stale, 2, 0, E));
    assert_false(csn_fx_exists(f, "n2"));
    csn_fx_holds(f, "a", "old");
    csn_fx_run(f, "rmdir fresh 2>/dev/null; true"); /* an empty parent may stay, nothing else */
    assert_int_equal(csn_fx_strays(f, NULL), 2);
}

static void write_many_refuses_nonsense(csn_fx *f)
{
    csn_file_content twice[] = {file("same", "1"), file("./same", "2")};
    csn_file_content none[] = {{.path = NULL, .data = "x", .len = 1}};

    csn_conf_reset();
    csn_status st = csn_write_many(f->sb, twice, 2, 0, E);
    /* one file twice: refused, or the later one wins; never half */
    if (st == CSN_OK)
        csn_fx_holds(f, "same", "2");
    else
        assert_int_equal(st, CSN_INVALID);
    fails(CSN_INVALID, csn_write_many(f->sb, none, 1, 0, E));
    fails(CSN_INVALID, csn_write_many(f->sb, NULL, 1, 0, E));
    csn_file_content *many = calloc(10001, sizeof(*many));
    assert_non_null(many);
    for (size_t i = 0; i < 10001; i++)
        many[i] = file("too-many", "x");
    fails(CSN_TOO_LARGE, csn_write_many(f->sb, many, 10001, 0, E));
    assert_false(csn_fx_exists(f, "too-many"));
    free(many);
}

/* ---- concurrent ---- */

enum { PATTERN = 65536, WRITERS = 4, READERS = 4 };

typedef struct racer {
    csn_sandbox *sb;
    int id, rounds, bad;
    volatile bool *stop;
} racer;

static void *race_write(void *ctx)
{
    racer *r = ctx;
    char *data = malloc(PATTERN);

    memset(data, 'A' + r->id, PATTERN);
    for (int i = 0; i < r->rounds; i++)
        r->bad += csn_write(r->sb, "shared", data, PATTERN, NULL, NULL, NULL) != CSN_OK;
    free(data);
    return NULL;
}

static void *race_read(void *ctx)
{
    racer *r = ctx;

    while (!*r->stop) {
        csn_read_result *got = NULL;

        if (csn_read(r->sb, "shared", NULL, &got, NULL) != CSN_OK) {
            r->bad++;
            continue;
        }
        bool whole = got->content_len == PATTERN;
        for (size_t i = 1; whole && i < PATTERN; i++)
            whole = got->content[i] == got->content[0];
        r->bad += !whole;
        csn_read_result_free(got);
    }
    return NULL;
}

/* D31, S1: atomic (write to temp, then rename) */
static void readers_never_see_half_a_write(csn_fx *f)
{
    pthread_t t[WRITERS + READERS];
    racer r[WRITERS + READERS];
    volatile bool stop = false;
    char *first = csn_fx_fill(f, PATTERN);
    int rounds = csn_fx_can(f->sb, "files_native") ? 200 : 15;

    memset(first, 'z', PATTERN);
    csn_fx_putn(f, "shared", first, PATTERN);
    for (int i = 0; i < WRITERS + READERS; i++) {
        r[i] = (racer){.sb = f->sb, .id = i, .rounds = rounds, .stop = &stop};
        pthread_create(&t[i], NULL, i < WRITERS ? race_write : race_read, &r[i]);
    }
    for (int i = 0; i < WRITERS + READERS; i++) {
        stop = i >= WRITERS;
        pthread_join(t[i], NULL);
    }
    for (int i = 0; i < WRITERS + READERS; i++)
        assert_int_equal(r[i].bad, 0);
    assert_int_equal(csn_fx_strays(f, NULL), 1);
}

static void *race_append(void *ctx)
{
    racer *r = ctx;
    char line[64];
    int n = snprintf(line, sizeof(line), "writer %d says a whole line\n", r->id);

    for (int i = 0; i < r->rounds; i++)
        r->bad += csn_write(r->sb, "log", line, (size_t)n, WRITE(.flags = CSN_FILE_APPEND),
                            NULL, NULL) != CSN_OK;
    return NULL;
}

/* D32 */
static void appends_do_not_mix(csn_fx *f)
{
    pthread_t t[8];
    racer r[8];
    int rounds = csn_fx_can(f->sb, "files_native") ? 100 : 10;

    for (int i = 0; i < 8; i++) {
        r[i] = (racer){.sb = f->sb, .id = i, .rounds = rounds};
        pthread_create(&t[i], NULL, race_append, &r[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(r[i].bad, 0);
    }
    char *want = csn_fx_keep(f, csn_test_format("%d\n", 8 * rounds));
    assert_string_equal(csn_fx_out(f, "grep -c '^writer [0-7] says a whole line$' log; true"),
                        want);
    assert_string_equal(csn_fx_out(f, "wc -l < log | tr -d ' '"), want);
}

const csn_conf_test csn_conf_write[] = {
    T(write_makes_and_overwrites),
    T(write_makes_parents),
    T(result_is_optional),
    T(create_only_keeps_what_is_there),
    T(append_adds_at_the_end),
    T(if_hash_refuses_what_changed),
    T(mode_is_kept_and_set_id_bits_are_not),
    T_FULL(new_files_obey_the_umask, NULL, CONF_HERE, CONF_CLOSED),
    T(hard_link_is_replaced_not_written_through),
    T(write_through_an_inner_link_keeps_the_link),
    T(write_through_a_dangling_inner_link),
    T(write_to_what_is_no_file_is_refused),
    T(longest_name_can_be_written),
    T(large_content_is_exact),
    T(write_from_a_source),
    T(sync_is_accepted),
    T(write_many_writes_all),
    T(write_many_is_all_or_nothing),
    T(write_many_refuses_nonsense),
    T(readers_never_see_half_a_write),
    T(appends_do_not_mix),
    T_END,
};
