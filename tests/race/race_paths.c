/* race_paths.c: somebody swaps directories for links to the outside while files are used.
 *
 *   race_paths [N]     N attempts of each operation (default 2000)
 *
 * The racer exchanges ROOT/x (a directory) with ROOT/y (a symlink out of the root) as fast as
 * the kernel lets it (renameat2 RENAME_EXCHANGE), and in a second part moves a directory out of
 * the root and back while `..` is walked (D01-D05, D07). The outside holds canaries; an escape
 * is any byte read from there or any change there. Both resolvers are tried. Exit status 1:
 * escaped. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/beneath.h"
#include "os/tree.h"
#include "runtime/runtime.h"

#define OUTSIDE "outside bytes"
#define INSIDE  "inside bytes"

static char top[64], root[80], outside[80];
static int top_fd, root_fd, out_fd;
static csn_config config = {.size = sizeof(config)};
static csn_runtime l;
static _Atomic bool stop;
static _Atomic long swaps;
static int tests_done, failures;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    printf("Bail out! %s: %s\n", what, strerrordesc_np(errno));
    exit(2);
}

static void put(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), name);
    close(fd);
}

/* ROOT/x/{secret,sub/secret}: inside; OUTSIDE/{secret,sub/secret}: outside; ROOT/y -> OUTSIDE
 */
static void build(void)
{
    /* In memory a racer is a hundred times faster; TMPDIR chooses a disk. */
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(top, sizeof(top), "%.30s/csn-race-XXXXXX", getenv("TMPDIR") ?: where);
    must(mkdtemp(top) != NULL, top);
    snprintf(root, sizeof(root), "%s/root", top);
    snprintf(outside, sizeof(outside), "%s/out", top);
    must(mkdir(root, 0755) == 0 && mkdir(outside, 0755) == 0, root);
    top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    out_fd = open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(top_fd >= 0 && root_fd >= 0 && out_fd >= 0, "open");
    must(mkdirat(out_fd, "sub", 0755) == 0, "sub");
    put(out_fd, "secret", OUTSIDE);
    put(out_fd, "sub/secret", OUTSIDE);
    must(symlinkat("../out", root_fd, "y") == 0, "y");
    config.workspace = config.home = root;
    l.config = &config;
    l.run_fd = l.base.fd = l.home.fd = -1;
    pthread_mutex_init(&l.commit_lock, NULL);
    l.backend = "race";
    l.commit_fd = -1;
    l.file_uid = geteuid();
    must(csn_runtime_grants_open(&l, NULL) == CSN_OK, "grants");
}

/* What is in the tree that is swapped, made again since operations remove it. */
static void refill(const char *name)
{
    char path[64];

    mkdirat(root_fd, name, 0755);
    int fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return; /* the link has this name just now */
    mkdirat(fd, "sub", 0755);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%ssecret", i ? "sub/" : "");
        int f = openat(fd, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (f >= 0 && write(f, INSIDE, strlen(INSIDE)) < 0)
            must(false, path);
        if (f >= 0)
            close(f);
    }
    close(fd);
}

static int count_entry(void *ctx, const char *path, const struct stat *st, const char *target)
{
    (void)path;
    (void)st;
    (void)target;
    ++*(int *)ctx;
    return 0;
}

static bool holds(int dir, const char *name, const char *text)
{
    char buf[64];
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

/* Three entries with their content, no more. */
static bool outside_intact(void)
{
    int n = 0;

    return csn_tree_walk(out_fd, count_entry, &n) == 0 && n == 3 &&
           holds(out_fd, "secret", OUTSIDE) && holds(out_fd, "sub/secret", OUTSIDE);
}

static void *swapper(void *arg)
{
    (void)arg;
    while (!stop) {
        if (renameat2(root_fd, "x", root_fd, "y", RENAME_EXCHANGE) == 0)
            swaps++;
    }
    return NULL;
}

/* Inside a tree that is being removed: CVE-2022-21658's shape. */
static void *inner_swapper(void *arg)
{
    (void)arg;
    while (!stop) {
        if (renameat2(root_fd, "d/x", root_fd, "d/y", RENAME_EXCHANGE) == 0)
            swaps++;
    }
    return NULL;
}

/* D05: ROOT/m/a goes to TOP/a and back. */
static void *mover(void *arg)
{
    (void)arg;
    while (!stop) {
        if (renameat(root_fd, "m/a", top_fd, "a") == 0)
            swaps++;
        renameat(top_fd, "a", root_fd, "m/a");
    }
    return NULL;
}

/* ---- one attempt of each; true: escaped ---- */

static int sink_write(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    if (data && len >= 7 && memcmp(data, "outside", 7) == 0)
        *(bool *)ctx = true;
    return CSN_SINK_MORE;
}

static bool try_read_at(const char *path)
{
    bool escaped = false;
    csn_file_stat st;
    csn_sink sink = {sink_write, &escaped};

    (void)csn_runtime_read(&l, path, 0, 0, CSN_NO_LIMIT, &sink, &st, NULL);
    return escaped;
}

static bool try_read(long i)
{
    return try_read_at(i % 2 ? "/x/secret" : "/x/sub/secret");
}

static int64_t short_text(void *ctx, void *buf, size_t len)
{
    (void)len;
    if (*(bool *)ctx)
        return 0;
    *(bool *)ctx = true;
    memcpy(buf, "written", 7);
    return 7;
}

static bool write_at(const char *path, uint32_t flags)
{
    bool done = false;
    csn_written w = {0};
    csn_write_req req = {.path = path, .source = {short_text, &done}, .flags = flags};

    (void)csn_runtime_write(&l, &req, 1, &w, NULL);
    free(w.resolved_path);
    return false;
}

static bool try_write(long i)
{
    static const char *const paths[] = {"/x/secret", "/x/new", "/x/sub/secret", "/y/secret"};

    return write_at(paths[i % 4], i % 8 < 4 ? 0 : CSN_FILE_APPEND);
}

static bool try_mkdir(long i)
{
    (void)csn_runtime_mkdir(&l, i % 2 ? "/x/made/deep/er" : "/y/made/deep/er", 0, NULL);
    if (i % 16 == 15) {
        (void)csn_runtime_remove(&l, "/x/made", CSN_FILE_RECURSIVE, NULL);
        (void)csn_runtime_remove(&l, "/y/made", CSN_FILE_RECURSIVE, NULL);
    }
    return false;
}

static bool try_delete(long i)
{
    (void)csn_runtime_remove(&l, i % 2 ? "/x/sub" : "/x/secret", CSN_FILE_RECURSIVE, NULL);
    if (i % 4 == 3) {
        refill("x");
        refill("y");
    }
    return false;
}

static bool try_delete_inner(long i)
{
    (void)i;
    mkdirat(root_fd, "d", 0755);
    (void)!symlinkat("../../out", root_fd, "d/y");
    refill("d/x");
    refill("d/y");
    (void)csn_runtime_remove(&l, "/d", CSN_FILE_RECURSIVE, NULL);
    return false;
}

static bool try_rename(long i)
{
    switch (i % 4) {
    case 0:
        (void)csn_runtime_rename(&l, "/x/secret", "/x/sub/moved", 0, NULL);
        break;
    case 1:
        (void)csn_runtime_rename(&l, "/x/sub/moved", "/x/secret", 0, NULL);
        break;
    case 2:
        (void)csn_runtime_rename(&l, "/keep", "/x/keep", 0, NULL);
        break;
    default:
        (void)csn_runtime_rename(&l, "/x/keep", "/keep", 0, NULL);
        (void)csn_runtime_rename(&l, "/y/keep", "/keep", 0, NULL);
    }
    return false;
}

static int walk_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    (void)path;
    (void)target;
    /* sizes tell the two contents apart */
    if (S_ISREG(st->mode) && st->file_size == strlen(OUTSIDE))
        *(bool *)ctx = true;
    return 0;
}

static bool try_walk(long i)
{
    bool escaped = false;

    (void)csn_runtime_walk(&l, i % 2 ? "/x" : "/", 0, walk_entry, &escaped, NULL);
    return escaped;
}

static bool try_dots(long i)
{
    static const char *const paths[] = {"/m/a/b/../../../secret", "/m/a/../../../out/secret",
                                        "/m/a/b/../../../../out/secret",
                                        "/m/a/b/../../out/secret"};

    if (i % 8 == 7)
        return write_at(paths[i / 8 % 4], 0);
    return try_read_at(paths[i % 4]);
}

typedef struct part {
    const char *name;
    bool (*attempt)(long i);
    void *(*racer)(void *);
} part;

static const part parts[] = {
    {"read", try_read, swapper},
    {"write", try_write, swapper},
    {"mkdir", try_mkdir, swapper},
    {"delete", try_delete, swapper},
    {"delete inside", try_delete_inner, inner_swapper},
    {"rename", try_rename, swapper},
    {"walk", try_walk, swapper},
    {"dots", try_dots, mover},
};

static void run(const part *p, long attempts, bool walk)
{
    const long patience = 100 * attempts; /* the racer may get no processor for a while */
    pthread_t racer;
    long escapes = 0, i = 0;

    csn_beneath_force_walk(walk);
    refill("x");
    refill("y");
    put(root_fd, "keep", INSIDE);
    mkdirat(root_fd, "m", 0755);
    mkdirat(root_fd, "m/a", 0755);
    mkdirat(root_fd, "m/a/b", 0755);
    stop = false;
    swaps = 0;
    must(pthread_create(&racer, NULL, p->racer, NULL) == 0, "thread");
    for (; i < attempts || (swaps < 100 && i < patience); i++) {
        escapes += p->attempt(i);
        if (i % 64 == 63 && !outside_intact()) {
            escapes++;
            break;
        }
    }
    stop = true;
    pthread_join(racer, NULL);
    escapes += !outside_intact();
    failures += escapes > 0 || swaps == 0;
    printf("%sok %d - %s, %s: %ld attempts, %ld swaps, %ld escapes\n",
           escapes || !swaps ? "not " : "", ++tests_done, p->name, walk ? "walk" : "openat2", i,
           (long)swaps, escapes);
    fflush(stdout);
    csn_beneath_force_walk(false);
}

int main(int argc, char **argv)
{
    long attempts = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    const size_t count = sizeof(parts) / sizeof(parts[0]);

    build();
    printf("1..%zu\n", 2 * count);
    for (int walk = 0; walk < 2; walk++)
        for (size_t i = 0; i < count; i++)
            run(&parts[i], attempts, walk);
    csn_runtime_grants_close(&l);
    int above = openat(top_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    must(csn_tree_remove(above, strrchr(top, '/') + 1) == 0, top);
    return failures ? 1 : 0;
}
