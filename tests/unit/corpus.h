/* corpus.h: the tree that tests/data/paths.txt speaks of, and the table itself.
 *
 *   TOP/outside      the canary: a file that nothing may read, change, or link to
 *   TOP/outdir/      likewise a directory with one file
 *   TOP/ROOT/...     the root, with every trap of the table
 *
 * corpus_load reads the table once; corpus_build makes the tree, corpus_wipe removes it. */
#pragma once
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/tree.h"
#include "skip.h"

#define CANARY     "outside canary\n"
#define CORPUS_MAX 128

typedef struct corpus_case {
    char id[8];
    char *path; /* NULL: it has a NUL byte and cannot be asked in C */
    char beneath[16], inroot[16];
} corpus_case;

typedef struct corpus {
    char top[64], root[80];
    int top_fd, fd; /* of the root */
    bool chardev, deep;
    struct stat canary;
} corpus;

static corpus_case corpus_cases[CORPUS_MAX];
static size_t corpus_count;

__attribute__((unused)) static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fixture: %s: %s\n", what, strerrordesc_np(errno));
    abort();
}

__attribute__((unused)) static void put_file(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), name);
    close(fd);
}

__attribute__((unused)) static void put_link(int dir, const char *target, const char *name)
{
    must(symlinkat(target, dir, name) == 0, name);
}

__attribute__((unused)) static void put_dir(int dir, const char *name)
{
    must(mkdirat(dir, name, 0755) == 0, name);
}

/* Undoes the table's escapes: \n \t \\ \0 \xHH, {X*n}, $ROOT. */
static char *corpus_unescape(const char *s, const char *root)
{
    char *out = calloc(1, 16384);
    size_t n = 0;

    must(out != NULL, "memory");
    if (strcmp(s, "(empty)") == 0)
        return out;
    while (*s) {
        const char *star = *s == '{' ? strrchr(s, '*') : NULL;
        if (star) {
            const char *end = strchr(s, '}');
            long times = strtol(star + 1, NULL, 10);
            size_t len = (size_t)(star - s - 1);
            for (long i = 0; i < times; i++, n += len)
                memcpy(out + n, s + 1, len);
            s = end + 1;
        } else if (strncmp(s, "$ROOT", 5) == 0) {
            n += (size_t)snprintf(out + n, 200, "%s", root);
            s += 5;
        } else if (s[0] == '\\' && s[1] == 'x') {
            const char hex[3] = {s[2], s[3], 0};
            out[n++] = (char)strtol(hex, NULL, 16);
            s += 4;
        } else if (s[0] == '\\' && s[1] == '0') {
            free(out);
            return NULL;
        } else if (s[0] == '\\') {
            out[n++] = s[1] == 'n' ? '\n' : s[1] == 't' ? '\t' : s[1];
            s += 2;
        } else {
            out[n++] = *s++;
        }
    }
    return out;
}

__attribute__((unused)) static void corpus_load(const char *source_file, const char *root)
{
    char file[PATH_MAX], line[1024];
    const char *slash = strrchr(source_file, '/');

    snprintf(file, sizeof(file), "%.*s/../data/paths.txt",
             slash ? (int)(slash - source_file) : 1, slash ? source_file : ".");
    FILE *f = fopen(getenv("CSN_PATHS_TXT") ?: file, "re");
    must(f != NULL, file);
    while (fgets(line, sizeof(line), f)) {
        char *save = line, *col[4];
        if (line[0] != 'P')
            continue;
        for (int i = 0; i < 4; i++)
            col[i] = strsep(&save, "\t");
        corpus_case *c = &corpus_cases[corpus_count++];
        assert(corpus_count < CORPUS_MAX && col[3]);
        snprintf(c->id, sizeof(c->id), "%s", col[0]);
        c->path = corpus_unescape(col[1], root);
        snprintf(c->beneath, sizeof(c->beneath), "%s", col[2]);
        snprintf(c->inroot, sizeof(c->inroot), "%s", col[3]);
    }
    fclose(f);
    must(corpus_count == 102, "the table has 102 cases");
}

__attribute__((unused)) static void corpus_unload(void)
{
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus_cases[i].path);
    corpus_count = 0;
}

static void corpus_links(const corpus *c)
{
    static const char *const links[][2] = {
        {"target", "link"},
        {"/target", "link_abs_in"},
        {"..", "link_up"},
        {"../outside", "link_out"},
        {"/etc", "link_etc"},
        {"/etc/passwd", "link_passwd"},
        {"../..", "dir/link_up2"},
        {"../target", "dir/link_up_ok"},
        {"chain2", "chain1"},
        {"dir/chain3", "chain2"},
        {"../../outside", "dir/chain3"},
        {"c2", "clink"},
        {"a/../c3", "c2"},
        {"a/b/c4", "c3"},
        {"../../target", "a/b/c4"},
        {"esc2", "esc"},
        {"b/d", "alink"},
        {"a/b/c/.", "enddot"},
        {"dir/", "dirlink"},
        {"nope_in", "dangling"},
        {"nope1/nope2/x", "dangling_deep"},
        {"../nope", "dangling_out"},
        {"loop", "loop"},
        {"loopb", "loopa"},
        {"loopa", "loopb"},
        {"/looproot", "looproot"},
        {"../../../../../../../../../../etc/passwd", "ddd"},
        {"/../../../etc/passwd", "absdd"},
        {"target/", "linkempty_slash"},
        {"/proc/self/root/etc/passwd", "m_procroot"},
        {"/proc/self/cwd/target", "m_cwd"},
        {"/dev/fd/0", "m_fd"},
        {"/proc/self/fd/0", "m_procfd"},
        {"fifo", "link_fifo"},
        {"/dev/null", "link_null"},
        {"/dev/tty", "link_tty"},
        {"..", "dd"},
    };
    char text[200], name[16], next[16];
    const char *base = strrchr(c->root, '/') + 1;

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        put_link(c->fd, links[i][0], links[i][1]);
    snprintf(text, sizeof(text), "%s/target", c->root);
    put_link(c->fd, text, "link_abs");
    snprintf(text, sizeof(text), "%s/outside", c->top);
    put_link(c->fd, text, "link_out_abs");
    snprintf(text, sizeof(text), "../%s/target", base);
    put_link(c->fd, text, "esc2");
    snprintf(text, sizeof(text), "../%s/dir/", base);
    put_link(c->fd, text, "dirlink_out");
    for (int i = 0; i < 42; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        snprintf(next, sizeof(next), "s%d", i + 1);
        put_link(c->fd, i == 41 ? "target" : next, name);
    }
}

static void corpus_specials(corpus *c)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    must(mkfifoat(c->fd, "fifo", 0644) == 0, "fifo");
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", c->root);
    must(s >= 0 && bind(s, (struct sockaddr *)&addr, sizeof(addr)) == 0, "sock");
    close(s);
    c->chardev = mknodat(c->fd, "chardev", S_IFCHR | 0666, makedev(1, 5)) == 0;
    must(linkat(c->top_fd, "hardcanary", c->fd, "hard", 0) == 0, "hard");
    int fd = openat(c->fd, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    must(fd >= 0 && ftruncate(fd, (off_t)10 << 30) == 0, "sparse");
    close(fd);
}

static void corpus_deep(corpus *c)
{
    int at = dup(c->fd);

    for (int i = 0; i < 600; i++) {
        put_dir(at, "n");
        int next = openat(at, "n", O_PATH | O_DIRECTORY | O_CLOEXEC);
        must(next >= 0, "n");
        close(at);
        at = next;
    }
    put_file(at, "leaf", "leaf\n");
    close(at);
}

/* The tree inside the root; the root itself and what is outside exist. */
__attribute__((unused)) static void corpus_fill(corpus *c)
{
    static const char *const files[] = {"target",
                                        "a/b/c/target",
                                        "b/target",
                                        "b/d/target",
                                        "dir/file",
                                        "etc/passwd",
                                        "...",
                                        "..foo",
                                        "foo..",
                                        "%2e%2e",
                                        "back\\slash",
                                        "new\nline",
                                        "tab\tname",
                                        "non\xffutf8",
                                        " lead",
                                        "trail ",
                                        "-dash",
                                        "~",
                                        "*",
                                        "caf\xc3\xa9",
                                        "cafe\xcc\x81",
                                        "\xe2\x80\xaegnp.exe"};
    static const char *const dirs[] = {"a", "a/b", "a/b/c", "b", "b/d", "dir", "etc"};
    char longest[256];

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        put_dir(c->fd, dirs[i]);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        put_file(c->fd, files[i], "inside\n");
    memset(longest, 'a', 255);
    longest[255] = '\0';
    put_file(c->fd, longest, "inside\n");
    put_file(c->fd, "empty", "");
    corpus_links(c);
    corpus_specials(c);
    if (c->deep)
        corpus_deep(c);
}

__attribute__((unused)) static void corpus_build(corpus *c, bool deep)
{
    const char *tmp = getenv("TMPDIR");

    *c = (corpus){.deep = deep};
    snprintf(c->top, sizeof(c->top), "%.30s/csn-XXXXXX", tmp ? tmp : "/tmp");
    must(mkdtemp(c->top) != NULL, c->top);
    c->top_fd = open(c->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put_file(c->top_fd, "outside", CANARY);
    put_file(c->top_fd, "hardcanary", CANARY);
    put_dir(c->top_fd, "outdir");
    int out = openat(c->top_fd, "outdir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put_file(out, "file", CANARY);
    close(out);
    put_dir(c->top_fd, "root");
    snprintf(c->root, sizeof(c->root), "%s/root", c->top);
    c->fd = open(c->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(c->fd >= 0, c->root);
    must(fstatat(c->top_fd, "outside", &c->canary, 0) == 0, "outside");
    corpus_fill(c);
}

__attribute__((unused)) static void corpus_wipe(corpus *c)
{
    int above = openat(c->top_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

    close(c->fd);
    close(c->top_fd);
    must(csn_tree_remove(above, strrchr(c->top, '/') + 1) == 0, c->top);
    close(above);
}

static bool corpus_is_canary(const corpus *c, const char *name)
{
    char text[64];
    int fd = openat(c->top_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(CANARY) && memcmp(text, CANARY, (size_t)n) == 0;
}

static int corpus_count_entry(void *ctx, const char *path, const struct stat *st,
                              const char *target)
{
    (void)path;
    (void)st;
    (void)target;
    ++*(int *)ctx;
    return 0;
}

/* Is everything outside the root as it was? */
__attribute__((unused)) static bool corpus_outside_intact(const corpus *c)
{
    struct stat st;
    int count = 0;
    int fd = openat(c->top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    csn_tree_list(fd, corpus_count_entry, &count);
    close(fd);
    return count == 4 && corpus_is_canary(c, "outside") && corpus_is_canary(c, "hardcanary") &&
           corpus_is_canary(c, "outdir/file") &&
           fstatat(c->top_fd, "outside", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_mode == c->canary.st_mode && st.st_nlink == c->canary.st_nlink &&
           st.st_ino == c->canary.st_ino &&
           memcmp(&st.st_mtim, &c->canary.st_mtim, sizeof(st.st_mtim)) == 0;
}
