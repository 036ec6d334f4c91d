/* search_ignore.c: .gitignore rules, compared with `git check-ignore` on generated trees. */
/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/tree.h"
#include "search/ignore.h"

extern char **environ;

static unsigned seed = 7;

static unsigned pick(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

static bool ignores(const char *rules, const char *path, bool is_dir)
{
    CSN_CLEANUP(csn_ignore_freep) csn_ignore *ig = csn_ignore_new("");

    assert_int_equal(csn_ignore_add(ig, "", false, rules, strlen(rules)), 0);
    return csn_ignore_hides(ig, path, is_dir);
}

static void rules_match_as_in_git(void **state)
{
    (void)state;
    assert_true(ignores("*.log", "a/b.log", false));
    assert_false(ignores("*.log\n!b.log", "a/b.log", false));
    assert_true(ignores("build/", "build/x", false));
    assert_false(ignores("build/", "build", false));
    assert_true(ignores("/top", "top", false));
    assert_false(ignores("/top", "a/top", false));
    assert_false(ignores("a/b", "x/a/b", false));
    assert_true(ignores("**/b", "x/a/b", false));
    assert_true(ignores("a/**/b", "a/b", false));
    assert_true(ignores("a/**", "a/x/y", false));
    assert_false(ignores("a/**", "a", true));
    assert_true(ignores("x  \r\n", "x", false));
    assert_true(ignores("x\\ ", "x ", false));
    assert_true(ignores("\\#x", "#x", false));
    assert_true(ignores("{a,b}", "{a,b}", false));
    assert_true(ignores("", ".git", true));
    assert_true(ignores("[[:digit:]]x", "5x", false));
    assert_false(ignores("[", "[", false));
    assert_true(ignores("d/\n!d/keep", "d/keep", false)); /* the directory is ignored */
}

/* Rules above the start count, and those below are relative to where they stand. */
static void a_prefix_is_part_of_the_path(void **state)
{
    CSN_CLEANUP(csn_ignore_freep) csn_ignore *ig = csn_ignore_new("src/");

    (void)state;
    assert_int_equal(csn_ignore_add(ig, "", true, "/src/gen\n*.o\n", 13), 0);
    assert_int_equal(csn_ignore_add(ig, "lib/", false, "!keep.o\n/only\n", 14), 0);
    assert_true(csn_ignore_match(ig, "gen", true));
    assert_false(csn_ignore_match(ig, "lib/gen", true));
    assert_true(csn_ignore_match(ig, "a.o", false));
    assert_false(csn_ignore_match(ig, "lib/keep.o", false));
    assert_true(csn_ignore_match(ig, "lib/only", false));
    csn_ignore_reset(ig, 1);
    assert_int_equal(csn_ignore_mark(ig), 1);
    assert_true(csn_ignore_match(ig, "lib/keep.o", false));
}

/* ---- compared with git ---- */

typedef struct tree {
    char root[32];
    int fd;
    char *paths[1024];
    bool is_dir[1024];
    size_t count;
} tree;

static void write_file(const tree *t, const char *path, const char *text)
{
    int fd = openat(t->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static int note(void *ctx, const char *path, const struct stat *st, const char *target)
{
    tree *t = ctx;

    (void)target;
    if (strncmp(path, ".git", 4) == 0 && (path[4] == '\0' || path[4] == '/'))
        return 0;
    t->is_dir[t->count] = S_ISDIR(st->st_mode);
    t->paths[t->count++] = strdup(path);
    return 0;
}

static void run_git(const tree *t, const char *const *argv, const char *in, char *out,
                    size_t size)
{
    char input[64], output[64];
    posix_spawn_file_actions_t fa;
    int status = 0;
    pid_t pid;

    snprintf(input, sizeof(input), "%s.in", t->root);
    snprintf(output, sizeof(output), "%s.out", t->root);
    int fd = open(input, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, in, strlen(in)), (ssize_t)strlen(in));
    close(fd);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, input, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(posix_spawnp(&pid, "git", &fa, NULL, (char **)argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    posix_spawn_file_actions_destroy(&fa);
    fd = open(output, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, out, size - 1);
    assert_true(n >= 0);
    out[n] = '\0';
    close(fd);
    unlink(input);
    unlink(output);
}

static void random_rules(char *text, size_t size)
{
    static const char *const pieces[] = {
        "a",   "b",    "*",    "**",   "/", "?", "[ab]", "!",   "\n", "\n",   "a/",  "/b",
        "*.c", "**/b", "a/**", "[^a]", "#", " ", "\\b",  "{a}", "c",  "/**/", "\n!", "[!c]x"};
    size_t n = 0;

    text[0] = '\0';
    for (unsigned i = 3 + pick(14); i > 0 && n < size - 8; i--)
        n += (size_t)snprintf(text + n, size - n, "%s", pieces[pick(24)]);
}

static void random_files(const tree *t, const char *dir, unsigned depth)
{
    static const char *const names[] = {"a", "b", "c", "a.c", "b.c", "ab", "bx", "#", "{a}"};

    for (unsigned i = 0; i < 9; i++) {
        char path[256];
        if (pick(2))
            continue;
        snprintf(path, sizeof(path), "%s%s", dir, names[i]);
        if (depth < 3 && pick(2)) {
            assert_int_equal(mkdirat(t->fd, path, 0755), 0);
            snprintf(path, sizeof(path), "%s%s/", dir, names[i]);
            random_files(t, path, depth + 1);
        } else {
            write_file(t, path, "");
        }
    }
}

/* Outer directories first: by length, as the header asks. */
static void add_ignore_files(const tree *t, csn_ignore *ig)
{
    char text[512], path[512];

    for (int pass = 0; pass < 64; pass++)
        for (size_t i = 0; i <= t->count; i++) {
            const char *dir = i < t->count ? t->paths[i] : "";
            if ((i < t->count && !t->is_dir[i]) || (int)strlen(dir) != pass)
                continue;
            snprintf(path, sizeof(path), "%s%s", dir, *dir ? "/" : "");
            if (pick(3) && *dir)
                continue;
            random_rules(text, sizeof(text));
            assert_int_equal(csn_ignore_add(ig, path, false, text, strlen(text)), 0);
            snprintf(path, sizeof(path), "%s%s" CSN_IGNORE_FILE, dir, *dir ? "/" : "");
            write_file(t, path, text);
        }
}

static void same_as_git(unsigned round)
{
    static char in[1 << 16], out[1 << 16];
    tree t = {.root = "/tmp/csn-ignore.XXXXXX"};
    const char *init[] = {"git", "init", "-q", t.root, NULL};
    const char *check[] = {"git",        "-c",      "core.excludesFile=/dev/null",
                           "-C",         t.root,    "check-ignore",
                           "--no-index", "--stdin", NULL};
    CSN_CLEANUP(csn_ignore_freep) csn_ignore *ig = csn_ignore_new("");
    size_t n = 0;

    assert_non_null(mkdtemp(t.root));
    t.fd = open(t.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    run_git(&t, init, "", out, sizeof(out));
    random_files(&t, "", 0);
    assert_int_equal(csn_tree_walk(t.fd, note, &t), 0);
    add_ignore_files(&t, ig);
    for (size_t i = 0; i < t.count; i++)
        n += (size_t)snprintf(in + n, sizeof(in) - n, "%s\n", t.paths[i]);
    run_git(&t, check, in, out, sizeof(out));
    for (size_t i = 0; i < t.count; i++) {
        char line[512];
        snprintf(line, sizeof(line), "\n%s\n", t.paths[i]);
        bool git = strncmp(out, line + 1, strlen(line + 1)) == 0 || strstr(out, line);
        if (csn_ignore_hides(ig, t.paths[i], t.is_dir[i]) != git)
            fail_msg("round %u: %s in %s: git says %d", round, t.paths[i], t.root, git);
        free(t.paths[i]);
    }
    (void)csn_tree_empty(t.fd);
    close(t.fd);
    rmdir(t.root);
}

static void generated_trees_are_seen_as_by_git(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 150; round++)
        same_as_git(round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_match_as_in_git),
        cmocka_unit_test(a_prefix_is_part_of_the_path),
        cmocka_unit_test(generated_trees_are_seen_as_by_git),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
