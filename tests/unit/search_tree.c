/* search_tree.c: trees are searched on several threads with the result of one, and a tree that
 * changes, loops or is very deep does no harm. */
/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/tree.h"
#include "search/tree_grep.h"

static char root[] = "/tmp/csn-grep.XXXXXX";
static int root_fd = -1;
static unsigned seed = 1;

static unsigned pick(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

static int setup(void **state)
{
    (void)state;
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
    assert_non_null(mkdtemp(root));
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root_fd >= 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)csn_tree_empty(root_fd);
    close(root_fd);
    return rmdir(root);
}

/* Appends to a string in a buffer of `size` bytes. */
static void append(char *s, size_t size, const char *more)
{
    size_t n = strlen(s);

    snprintf(s + n, size - n, "%s", more);
}

static void put(const char *path, const char *text)
{
    char dir[PATH_MAX];

    snprintf(dir, sizeof(dir), "%s", path);
    for (char *p = strchr(dir, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdirat(root_fd, dir, 0755);
        *p = '/';
    }
    int fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return; /* a directory has this name */
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* ---- a search as text: path:line, each with a blank ---- */

typedef struct found {
    csn_arena *arena;
    csn_hits hits;
    char *text;
} found;

static void found_start(found *f, const char *pattern, uint64_t max)
{
    *f = (found){.arena = csn_arena_new(), .hits = {.max = max}};
    f->hits.arena = f->arena;
    assert_int_equal(csn_matcher_new(pattern, 0, &f->hits.matcher, NULL), CSN_OK);
}

static const char *found_text(found *f)
{
    csn_buf b;

    csn_buf_init(&b, SIZE_MAX / 2);
    for (size_t i = 0; i < f->hits.count; i++)
        csn_buf_printf(&b, "%s:%u ", f->hits.items[i].path, (unsigned)f->hits.items[i].line);
    free(f->text);
    return f->text = csn_buf_take(&b);
}

static void found_end(found *f)
{
    csn_matcher_free(f->hits.matcher);
    free(f->hits.items);
    free(f->text);
    csn_arena_free(f->arena);
}

static void finds(const csn_tree_grep *g, const char *want)
{
    csn_tree_grep own = *g;
    found f;

    own.dir = root_fd;
    found_start(&f, "needle", 1000);
    csn_tree_grep_run(&own, &f.hits);
    assert_int_equal(f.hits.st, CSN_OK);
    assert_string_equal(found_text(&f), want);
    found_end(&f);
}

#define FINDS(want) finds(&(csn_tree_grep){.threads = 2}, want)

/* ---- the simple way ---- */

typedef struct paths {
    char *v[4096];
    size_t count;
} paths;

static int note(void *ctx, const char *path, const struct stat *st, const char *target)
{
    paths *p = ctx;

    (void)target;
    if (S_ISREG(st->st_mode))
        p->v[p->count++] = strdup(path);
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void grep_simply(csn_hits *h)
{
    static char text[1 << 16];
    paths p = {.count = 0};
    csn_line_scan sc;

    csn_matcher_force_simple(h->matcher);
    csn_line_scan_init(&sc, h);
    assert_int_equal(csn_tree_walk(root_fd, note, &p), 0);
    qsort(p.v, p.count, sizeof(p.v[0]), by_bytes);
    for (size_t i = 0; i < p.count; i++) {
        int fd = openat(root_fd, p.v[i], O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, text, sizeof(text));
        close(fd);
        csn_line_scan_start(&sc, p.v[i]);
        if (!h->truncated && csn_line_scan_feed(&sc, text, (size_t)n))
            csn_line_scan_end(&sc);
        free(p.v[i]);
    }
    csn_line_scan_release(&sc);
}

/* Names that sort differently with and without the slash of a directory. */
static void random_tree(unsigned files)
{
    static const char *const names[] = {"a", "a-b", "a.c", "a0", "b", "B", "a b", "ab", "_"};

    for (unsigned i = 0; i < files; i++) {
        char path[256] = "", text[256] = "";
        for (unsigned depth = 1 + pick(4); depth > 0; depth--)
            snprintf(path + strlen(path), sizeof(path) - strlen(path), "%s%s", names[pick(9)],
                     depth > 1 ? "/" : "");
        for (unsigned lines = pick(6); lines > 0; lines--)
            append(text, sizeof(text),
                   pick(3)   ? "hay\n"
                   : pick(2) ? "a needle\n"
                             : "needle, needle\r\n");
        put(path, pick(10) ? text : "needle without an end");
    }
}

static void many_threads_find_what_one_finds(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 12; round++) {
        random_tree(round < 6 ? 40 : 1500);
        uint64_t max = round % 2 ? 1 + pick(400) : 100000;
        uint32_t context = round % 3 ? 0 : 1;
        found simple;
        found_start(&simple, "needle", max);
        simple.hits.context = context;
        grep_simply(&simple.hits);
        assert_true(simple.hits.count > 0);
        for (unsigned threads = 1; threads <= 8; threads *= 2) {
            found f;
            found_start(&f, "needle", max);
            f.hits.context = context;
            csn_tree_grep_run(&(csn_tree_grep){.dir = root_fd, .threads = threads}, &f.hits);
            assert_int_equal(f.hits.st, CSN_OK);
            assert_string_equal(found_text(&f), found_text(&simple));
            assert_int_equal(f.hits.truncated, simple.hits.truncated);
            found_end(&f);
        }
        found_end(&simple);
        assert_int_equal(csn_tree_empty(root_fd), 0);
    }
}

/* ---- hostile trees ---- */

static void links_are_not_followed(void **state)
{
    (void)state;
    put("d/file", "needle\n");
    assert_int_equal(symlinkat("d", root_fd, "link"), 0);
    assert_int_equal(symlinkat("..", root_fd, "d/up"), 0);
    assert_int_equal(symlinkat("d/file", root_fd, "to-file"), 0);
    assert_int_equal(mkfifoat(root_fd, "pipe", 0644), 0);
    FINDS("d/file:1 ");
}

static void a_deep_tree_is_searched_with_few_descriptors(void **state)
{
    char path[PATH_MAX] = "", want[32768] = "", after[32768] = "";
    size_t n = 0;
    struct rlimit before, few;

    (void)state;
    for (unsigned depth = 0; depth < 90; depth++) {
        char one[PATH_MAX + 16], line[PATH_MAX + 32];
        snprintf(one, sizeof(one), "%sa", path);
        put(one, "needle");
        n += (size_t)snprintf(want + n, sizeof(want) - n, "%s:1 ", one);
        snprintf(one, sizeof(one), "%sz", path); /* after the sub-directory */
        put(one, "needle");
        snprintf(line, sizeof(line), "%s:1 ", one);
        memmove(after + strlen(line), after, strlen(after) + 1);
        memcpy(after, line, strlen(line));
        append(path, sizeof(path), "m/");
    }
    snprintf(want + n, sizeof(want) - n, "%s", after);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)root_fd + 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    FINDS(want);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* The filter is called between finding an entry and opening it. */
static bool remove_it(void *ctx, const char *path)
{
    unlinkat(root_fd, path, *(int *)ctx);
    return true;
}

static void files_and_directories_may_vanish(void **state)
{
    int flags = 0;

    (void)state;
    put("a", "needle");
    put("b", "needle");
    assert_int_equal(mkdirat(root_fd, "empty", 0755), 0);
    finds(&(csn_tree_grep){.filter = {.file = remove_it, .ctx = &flags}}, "");
    put("c", "needle");
    flags = AT_REMOVEDIR;
    finds(&(csn_tree_grep){.filter = {.dir = remove_it, .ctx = &flags}}, "c:1 ");
}

static bool swap_it(void *ctx, const char *path)
{
    unlinkat(root_fd, path, 0);
    assert_int_equal(symlinkat(ctx, root_fd, path), 0);
    return true;
}

static void a_file_that_becomes_a_link_is_not_read(void **state)
{
    char outside[] = "/tmp/csn-grep-outside.XXXXXX";
    int fd = mkstemp(outside);

    (void)state;
    assert_int_equal(write(fd, "needle\n", 7), 7);
    put("a", "hay");
    finds(&(csn_tree_grep){.filter = {.file = swap_it, .ctx = outside}}, "");
    close(fd);
    unlink(outside);
}

static bool make_pipe(void *ctx, const char *path)
{
    (void)ctx;
    unlinkat(root_fd, path, 0);
    assert_int_equal(mkfifoat(root_fd, path, 0644), 0);
    return true;
}

static void a_file_that_becomes_a_pipe_does_not_block(void **state)
{
    (void)state;
    put("a", "needle");
    finds(&(csn_tree_grep){.filter = {.file = make_pipe}}, "");
}

static void a_lack_of_descriptors_is_an_error(void **state)
{
    struct rlimit before, few;
    found f;

    (void)state;
    put("d/e/f", "needle");
    found_start(&f, "needle", 10);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)root_fd + 3; /* enough for the start and one more */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    csn_tree_grep_run(&(csn_tree_grep){.dir = root_fd}, &f.hits);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(f.hits.st, CSN_UNAVAILABLE);
    found_end(&f);
}

/* ---- ends ---- */

static bool at_the_third(void *ctx)
{
    return atomic_fetch_add((atomic_int *)ctx, 1) >= 2;
}

static void a_cancel_ends_the_search(void **state)
{
    atomic_int calls = 0;
    found f;

    (void)state;
    for (unsigned i = 0; i < 400; i++) {
        char path[32];
        snprintf(path, sizeof(path), "f%u", i);
        put(path, "hay\n");
    }
    found_start(&f, "needle", 10);
    csn_tree_grep_run(
        &(csn_tree_grep){
            .dir = root_fd, .cancelled = at_the_third, .ctx = &calls, .threads = 4},
        &f.hits);
    assert_int_equal(f.hits.st, CSN_CANCELLED);
    found_end(&f);
}

static void a_cancel_ends_a_large_file(void **state)
{
    atomic_int calls = 0;
    found f;

    (void)state;
    int fd = openat(root_fd, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    for (off_t at = 0; at < 1 << 20; at += 4096)
        assert_int_equal(pwrite(fd, "text\n", 5, at), 5);
    char head[8192];
    memset(head, 'x', sizeof(head));
    assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
    close(fd);
    found_start(&f, "needle", 10);
    csn_tree_grep_run(
        &(csn_tree_grep){.dir = root_fd, .cancelled = at_the_third, .ctx = &calls}, &f.hits);
    assert_int_equal(f.hits.st, CSN_CANCELLED);
    found_end(&f);
}

/* Matches across the pieces in which a file is read, and a line number behind them. */
static void matches_are_found_where_reads_meet(void **state)
{
    static char text[3 * 131072];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t i = 99; i < sizeof(text); i += 100)
        text[i] = '\n';
    for (size_t k = 1; k < 3; k++)
        memcpy(text + k * 131072 - 3, "needle", 6);
    text[sizeof(text) - 1] = '\0';
    put("big", text);
    FINDS("big:1311 big:2622 ");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(many_threads_find_what_one_finds),
        T(links_are_not_followed),
        T(a_deep_tree_is_searched_with_few_descriptors),
        T(files_and_directories_may_vanish),
        T(a_file_that_becomes_a_link_is_not_read),
        T(a_file_that_becomes_a_pipe_does_not_block),
        T(a_lack_of_descriptors_is_an_error),
        T(a_cancel_ends_the_search),
        T(a_cancel_ends_a_large_file),
        T(matches_are_found_where_reads_meet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
