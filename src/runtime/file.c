/* file.c: the file operations stat, read, list and walk, and opening a command's cwd.
 *
 * Entries of the ops table, called from many threads at once. An attacker controls the path,
 * the tree and the file types: FIFOs, devices, endless or shrinking files. Only target.c turns
 * paths into descriptors.
 *
 * Invariants:
 *  - Only regular files are read; the type is checked on the open descriptor.
 *  - Nothing blocks (O_NONBLOCK), and a read ends at the size that the file had when it was
 *    opened.
 *  - Files are never mapped: one that shrinks yields fewer bytes, not SIGBUS. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "os/beneath.h"
#include "os/tree.h"
#include "runtime/files.h"

#define CHUNK (128u * 1024u)
/* Limit for files that report size 0 but have content, such as those in /proc. */
#define UNSIZED_MAX (16u * 1024u * 1024u)

static csn_file_stat stat_of(const struct stat *st)
{
    return (csn_file_stat){
        .file_size = st->st_size < 0 ? 0 : (uint64_t)st->st_size,
        .modified_ns = csn_epoch_ns(st->st_mtim.tv_sec, st->st_mtim.tv_nsec),
        .mode = st->st_mode,
        .nlink = st->st_nlink > UINT32_MAX ? UINT32_MAX : (uint32_t)st->st_nlink,
        .dev = st->st_dev,
        .ino = st->st_ino,
    };
}

/* With NOFOLLOW, returns the link itself, also in a sandbox that refuses to follow links. */
csn_status csn_runtime_stat(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                            char **ret_target, csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_READ, path, flags);
    csn_autofd int fd = -1;
    char text[PATH_MAX];
    char *target = NULL;
    struct stat st;

    int own = flags & CSN_FILE_NOFOLLOW ? O_NOFOLLOW : 0;
    csn_status rc = csn_target_open(&t, O_PATH | own, &fd, err);
    if (rc < 0)
        return rc;
    if (fstat(fd, &st) < 0)
        return csn_target_fail(&t, errno, err);
    if (ret_target && S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(fd, "", text, sizeof(text));
        target = n >= 0 ? strndup(text, (size_t)n) : NULL;
    }
    if (ret_target)
        *ret_target = target;
    *ret = stat_of(&st);
    return CSN_OK;
}

/* ---- read ---- */

/* Passes the number of remaining bytes to a sink that only counts. */
static void count_rest(const csn_sink *sink, uint64_t left)
{
    while (left > 0) {
        size_t n = left > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)left;
        if (sink->write(sink->ctx, CSN_STDOUT, NULL, n) == CSN_SINK_STOP)
            return;
        left -= n;
    }
}

/* Copies up to `left` bytes from `offset` on. 0 or errno. */
static int stream(int fd, uint64_t offset, uint64_t left, bool sized, const csn_sink *sink)
{
    size_t room = left < CHUNK ? (size_t)left : CHUNK;
    csn_autofree char *buf = left > 0 ? malloc(room) : NULL;

    if (left > 0 && !buf)
        return ENOMEM;
    while (left > 0) {
        ssize_t n = pread(fd, buf, left < room ? (size_t)left : room, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : 0;
        offset += (uint64_t)n;
        left -= (uint64_t)n;
        int want = sink->write(sink->ctx, CSN_STDOUT, buf, (size_t)n);
        if (want == CSN_SINK_COUNT && sized)
            count_rest(sink, left);
        if (want == CSN_SINK_STOP || (want == CSN_SINK_COUNT && sized))
            return 0;
    }
    return 0;
}

csn_status csn_runtime_read(void *state, const char *path, uint32_t flags, uint64_t offset,
                            uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                            csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_READ, path, flags);
    csn_autofd int fd = -1;
    struct stat st;

    /* csn_target_open adds O_NONBLOCK and O_NOCTTY, so opening a FIFO or a terminal is
     * harmless. The type is checked on the descriptor, which cannot be swapped. */
    csn_status rc = csn_target_open(&t, O_RDONLY, &fd, err);
    if (rc < 0)
        return rc;
    if (fstat(fd, &st) < 0)
        return csn_target_fail(&t, errno, err);
    if (!S_ISREG(st.st_mode))
        return csn_target_fail(&t, S_ISDIR(st.st_mode) ? EISDIR : EMEDIUMTYPE, err);
    bool sized = st.st_size > 0;
    uint64_t end = sized ? (uint64_t)st.st_size : UNSIZED_MAX;
    uint64_t left = offset < end ? end - offset : 0;
    int e = stream(fd, offset, left < length ? left : length, sized, sink);
    if (e != 0)
        return csn_target_fail(&t, e, err);
    *ret = stat_of(&st);
    return CSN_OK;
}

/* ---- list and walk ---- */

typedef struct teller {
    csn_entry_fn fn;
    void *ctx;
    const csn_runtime *rt; /* if `start` is set, unreadable entries are left out */
    char *start;
} teller;

/* Do the rules allow to read `path` below the directory `start`? */
static bool may_read_below(const csn_runtime *rt, const char *start, const char *path)
{
    csn_autofree char *full = NULL;

    if (asprintf(&full, "%s/%s", strcmp(start, "/") == 0 ? "" : start, path) < 0) {
        full = NULL;
        return false;
    }
    return csn_rules_check(rt->rules, CSN_OP_READ, full).allowed;
}

/* A walk leaves out entries that may not be read, since glob and grep would return them. It
 * still enters such directories, because a more specific rule may allow entries below. */
static int tell(void *ctx, const char *path, const struct stat *st, const char *target)
{
    teller *w = ctx;
    csn_file_stat fst = stat_of(st);

    if (w->start && !may_read_below(w->rt, w->start, path))
        return 0;
    return w->fn(w->ctx, path, &fst, target);
}

/* Lists every entry of a readable directory, also those that may not be read. */
csn_status csn_runtime_list(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_READ, path, flags);
    csn_autofd int fd = -1;
    teller w = {.fn = fn, .ctx = ctx};

    csn_status st = csn_target_open(&t, O_RDONLY | O_DIRECTORY, &fd, err);
    if (st < 0)
        return st;
    int rc = csn_tree_list(fd, tell, &w);
    return rc < 0 ? csn_target_fail(&t, -rc, err) : CSN_OK;
}

/* Reports a start that is a file as one entry with an empty path. */
static csn_status walk_file(const csn_target *t, int fd, csn_entry_fn fn, void *ctx,
                            csn_error **err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return csn_target_fail(t, errno, err);
    csn_file_stat fst = stat_of(&st);
    fn(ctx, "", &fst, NULL);
    return CSN_OK;
}

/* Opens with O_PATH first, because the start may be a file that cannot or must not be opened
 * for reading. *ret_dir: -ENOTDIR for such a file. *ret_start: the path for the rules, NULL if
 * they need none. */
static csn_status open_start(const csn_target *t, int *ret_fd, int *ret_dir, char **ret_start,
                             csn_error **err)
{
    csn_autofd int fd = -1;
    csn_autofree char *start = NULL;

    csn_status st = csn_target_open(t, O_PATH, &fd, err);
    if (st < 0)
        return st;
    csn_autofd int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno != ENOTDIR)
        return csn_target_fail(t, errno, err);
    if (dir >= 0 && csn_target_checked(t) && !(start = csn_target_path(t, fd, "")))
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the kernel does not report where the path leads");
    *ret_dir = dir < 0 ? -ENOTDIR : csn_steal_fd(&dir);
    *ret_fd = csn_steal_fd(&fd);
    *ret_start = CSN_STEAL(start);
    return CSN_OK;
}

csn_status csn_runtime_walk(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_READ, path, flags);
    csn_autofd int fd = -1, dir = -1;
    csn_autofree char *start = NULL;
    teller w = {.fn = fn, .ctx = ctx, .rt = t.rt};

    csn_status st = open_start(&t, &fd, &dir, &start, err);
    if (st < 0)
        return st;
    if (dir < 0)
        return walk_file(&t, fd, fn, ctx, err);
    w.start = start;
    int rc = csn_tree_walk(dir, tell, &w);
    return rc < 0 ? csn_target_fail(&t, -rc, err) : CSN_OK;
}

static int may_read(void *ctx, const char *path)
{
    const teller *w = ctx;

    return may_read_below(w->rt, w->start, path);
}

csn_status csn_runtime_search(void *state, const char *path, csn_search_fn fn, void *ctx,
                              csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_READ, path, 0);
    csn_autofd int fd = -1, dir = -1;
    csn_autofree char *start = NULL;

    csn_status st = open_start(&t, &fd, &dir, &start, err);
    if (st < 0)
        return st;
    if (dir < 0)
        return CSN_UNSUPPORTED;
    teller w = {.rt = t.rt, .start = start};
    csn_search_root root = {.dir = dir, .may_read = start ? may_read : NULL, .ctx = &w};
    fn(ctx, &root);
    return CSN_OK;
}

/* The keeper receives a command's working directory as a descriptor, never as a path. */
csn_status csn_runtime_open_cwd(csn_runtime *rt, const char *path, int *ret_fd, char **ret_path,
                                csn_error **err)
{
    csn_target t = csn_target_of(rt, CSN_OP_READ, path, 0);
    csn_autofree char *known = NULL;
    csn_status st = csn_target_open_path(&t, O_PATH | O_DIRECTORY, ret_fd, &known, err);

    if (st < 0)
        return st;
    /* The path from the rules is the real one only below the root; other grants may have been
     * moved. */
    bool real = known && (t.how & CSN_BENEATH_ROOTED);
    *ret_path = real ? CSN_STEAL(known) : csn_runtime_fd_path(*ret_fd);
    return CSN_OK;
}
