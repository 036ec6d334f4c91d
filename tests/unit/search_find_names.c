/* search_find_names.c: what is found by name, and which directories are read for it. */
#include "search/find_names.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/tree.h"

static char root[] = "/tmp/csn-find.XXXXXX";
static int root_fd = -1;
static csn_find_cache cache;

typedef struct seen {
    char text[4096]; /* the paths, each with a space */
    const char *skip;
    int stop, refuse;
    char unreadable[256];
} seen;

static int setup(void **state)
{
    (void)state;
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
    assert_non_null(mkdtemp(root));
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root_fd >= 0);
    csn_find_cache_init(&cache);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    csn_find_cache_release(&cache);
    (void)csn_tree_empty(root_fd);
    close(root_fd);
    return rmdir(root);
}

static void put(const char *path)
{
    char dir[256];

    snprintf(dir, sizeof(dir), "%s", path);
    for (char *p = strchr(dir, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdirat(root_fd, dir, 0755);
        *p = '/';
    }
    int fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
}

/* Until the clock of the file system has passed the present: what changed later is read
 * again. */
static void next_tick(void)
{
    struct timespec a, b;

    clock_gettime(CLOCK_REALTIME, &a);
    do {
        usleep(1000);
        clock_gettime(CLOCK_REALTIME_COARSE, &b);
    } while (b.tv_sec < a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec <= a.tv_nsec));
}

static bool wanted(void *ctx, const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    (void)ctx;
    return strncmp(name, "key", 3) == 0;
}

static bool enters(void *ctx, const char *path)
{
    (void)ctx;
    return strcmp(path, "closed") != 0;
}

static int found(void *ctx, const char *path)
{
    seen *s = ctx;
    size_t len = strlen(s->text);

    assert_true(len + strlen(path) + 2 < sizeof(s->text));
    snprintf(s->text + len, sizeof(s->text) - len, "%s ", path);
    if (s->stop)
        return s->stop;
    return s->skip && strcmp(path, s->skip) == 0 ? CSN_FIND_SKIP : 0;
}

static int unreadable(void *ctx, const char *path, int error)
{
    seen *s = ctx;

    snprintf(s->unreadable, sizeof(s->unreadable), "%s", path);
    return s->refuse ? error : 0;
}

static csn_find search(seen *s, csn_find_cache *c, int want)
{
    csn_find f = {.root = root_fd,
                  .ctx = s,
                  .cache = c,
                  .wanted = wanted,
                  .enters = enters,
                  .found = found,
                  .unreadable = unreadable};

    s->text[0] = '\0';
    assert_int_equal(csn_find_names(&f), want);
    return f;
}

static void names_are_found_and_links_not_followed(void **state)
{
    seen s = {0};

    (void)state;
    put("key1");
    put("a/b/key2");
    put("a/other");
    put("closed/key3");
    assert_int_equal(symlinkat("a", root_fd, "link"), 0);
    assert_int_equal(symlinkat("a", root_fd, "keylink"), 0);
    search(&s, NULL, 0);
    assert_non_null(strstr(s.text, "key1 "));
    assert_non_null(strstr(s.text, "a/b/key2 "));
    assert_non_null(strstr(s.text, "keylink "));
    assert_null(strstr(s.text, "key3"));
    assert_null(strstr(s.text, "link/"));
}

static void directory_that_is_wanted_is_entered_unless_skipped(void **state)
{
    seen s = {0};

    (void)state;
    put("keys/key1");
    search(&s, NULL, 0);
    assert_non_null(strstr(s.text, "keys/key1 "));
    s.skip = "keys";
    search(&s, NULL, 0);
    assert_string_equal(s.text, "keys ");
}

static void failure_of_the_caller_stops_the_search(void **state)
{
    seen s = {.stop = -ECANCELED};

    (void)state;
    put("key1");
    search(&s, NULL, -ECANCELED);
}

static void unchanged_directories_are_not_read_again(void **state)
{
    seen s = {0};

    (void)state;
    put("a/b/key1");
    put("c/d/x");
    next_tick();
    assert_int_equal(search(&s, &cache, 0).dirs_read, 5);
    csn_find f = search(&s, &cache, 0);
    assert_int_equal(f.dirs_read, 0);
    assert_int_equal(f.dirs_known, 5);
    assert_string_equal(s.text, "a/b/key1 "); /* from the cache */
    put("c/d/key2");
    next_tick();
    assert_int_equal(search(&s, &cache, 0).dirs_read, 1);
    assert_non_null(strstr(s.text, "c/d/key2 "));
    assert_non_null(strstr(s.text, "a/b/key1 "));
    assert_int_equal(renameat(root_fd, "c/d", root_fd, "a/e"), 0);
    next_tick();
    search(&s, &cache, 0);
    assert_non_null(strstr(s.text, "a/e/key2 "));
    assert_null(strstr(s.text, "c/d"));
    assert_int_equal(unlinkat(root_fd, "a/b/key1", 0), 0);
    next_tick();
    search(&s, &cache, 0);
    assert_string_equal(s.text, "a/e/key2 ");
}

static void directory_that_just_changed_is_read_again(void **state)
{
    seen s = {0};

    (void)state;
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof(name), "d/key%d", i);
        search(&s, &cache, 0);
        put(name);
        search(&s, &cache, 0);
        assert_non_null(strstr(s.text, name));
        assert_int_equal(unlinkat(root_fd, name, 0), 0);
    }
}

static void directory_exchanged_for_another_is_read(void **state)
{
    seen s = {0};

    (void)state;
    put("a/x");
    put("other/key");
    next_tick();
    search(&s, &cache, 0);
    assert_int_equal(renameat(root_fd, "a", root_fd, "old"), 0);
    assert_int_equal(renameat(root_fd, "other", root_fd, "a"), 0);
    search(&s, &cache, 0);
    assert_string_equal(s.text, "a/key ");
    assert_int_equal(renameat(root_fd, "a", root_fd, "other"), 0);
    assert_int_equal(symlinkat("other", root_fd, "a"), 0);
    search(&s, &cache, 0);
    assert_string_equal(s.text, "other/key ");
}

static void cache_survives_storing_and_damage_is_noticed(void **state)
{
    seen s = {0};
    csn_find_cache other;

    (void)state;
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof(name), "d%d/key", i);
        put(name);
    }
    next_tick();
    search(&s, &cache, 0);
    csn_find_cache_init(&other);
    assert_true(csn_find_cache_load(&other, cache.bytes.data, cache.bytes.len));
    assert_int_equal(search(&s, &other, 0).dirs_read, 0);
    assert_non_null(strstr(s.text, "d199/key "));
    for (size_t len = 1; len < cache.bytes.len; len++) {
        csn_find_cache cut;
        csn_find_cache_init(&cut);
        if (!csn_find_cache_load(&cut, cache.bytes.data, len))
            assert_int_equal(cut.count, 0);
        csn_find_cache_release(&cut);
    }
    /* each byte changed: refused, or a valid cache of other directories */
    for (size_t i = 0; i < cache.bytes.len && i < 1000; i++) {
        csn_find_cache bad;
        char *copy = malloc(cache.bytes.len);
        assert_non_null(copy);
        memcpy(copy, cache.bytes.data, cache.bytes.len);
        copy[i] = (char)~copy[i];
        csn_find_cache_init(&bad);
        (void)csn_find_cache_load(&bad, copy, cache.bytes.len);
        csn_find_cache_release(&bad);
        free(copy);
    }
    csn_find_cache_release(&other);
}

static void directory_that_cannot_be_read_is_reported(void **state)
{
    seen s = {.refuse = 1};

    (void)state;
    put("shut/key");
    put("key");
    assert_int_equal(fchmodat(root_fd, "shut", 0, 0), 0);
    if (geteuid() == 0) {
        /* root reads it; a path that is too long cannot be read by anyone */
        int dir = dup(root_fd);
        char name[201];
        memset(name, 'd', 200);
        name[200] = '\0';
        for (int i = 0; i < 25; i++) {
            assert_int_equal(mkdirat(dir, name, 0755), 0);
            int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            close(dir);
            dir = next;
        }
        close(dir);
        search(&s, NULL, -ENAMETOOLONG);
    } else {
        search(&s, NULL, -EACCES);
        assert_string_equal(s.unreadable, "shut");
    }
    assert_int_equal(fchmodat(root_fd, "shut", 0755, 0), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(names_are_found_and_links_not_followed),
        T(directory_that_is_wanted_is_entered_unless_skipped),
        T(failure_of_the_caller_stops_the_search),
        T(unchanged_directories_are_not_read_again),
        T(directory_that_just_changed_is_read_again),
        T(directory_exchanged_for_another_is_read),
        T(cache_survives_storing_and_damage_is_noticed),
        T(directory_that_cannot_be_read_is_reported),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("search_find_names", tests, NULL, NULL);
}
