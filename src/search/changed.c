/* changed.c: finds files with protected names that changed since a given time.
 *
 * Runs after every command, so it opens only directories and stats little: one open, one statx
 * and two getdents per directory, and a stat per name that the rules want. A directory without
 * such names and without subdirectories is cached and costs one statx the next time. The tree
 * is hostile and may change during the walk: any depth, names and count, entries that vanish or
 * become links.
 *
 * Invariants: every directory is opened by one plain name with O_NOFOLLOW below an open one, so
 * the walk stays inside; at most OPEN_MAX_DIRS descriptors are open, and a closed directory is
 * reopened by `..` and its inode compared; a directory that cannot be read is reported or
 * counted; memory grows with the depth of the tree only (a directory with too many
 * subdirectories is read again in pieces), so that no tree is too large; only a tree that is
 * changed all the time ends the walk early. */
#include "search/changed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "search/place.h"

#define DIR_FLAGS     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define BUFFER_SIZE   32768u
#define OPEN_MAX_DIRS 32u         /* directories open at once, the innermost ones */
#define WAITING_MAX   (4u << 20)  /* bytes of names of directories not yet entered, */
#define WAITING_EACH  (1u << 20)  /* and of those in one directory */
#define PATH_KEPT     (64u << 10) /* bytes of a path; the rest of a longer one is left out */
#define PATH_CUT      ".../"
#define PATIENCE_MS   30000

/* A directory on the path from the root to the current one. */
typedef struct level {
    int fd; /* -1: closed */
    uint32_t at;
    uint64_t dev, ino;
    int64_t born_sec;
    uint32_t born_nsec;
    uint32_t first;  /* `at` before its entries were known */
    size_t waiting;  /* offset of its subdirectories in scan.waiting */
    int64_t next;    /* if `more`: where the entries begin that were not queued yet */
    size_t path_len; /* with a trailing slash, except for the root */
    bool changed;
    bool came;  /* it, or a directory above it, may have been moved since */
    bool moved; /* and it was not seen at this place before */
    bool cut;   /* the path does not contain its name */
    bool more;
    bool uninteresting; /* no subdirectory and no wanted name so far */
    bool wanted;        /* has a wanted name that is not a directory */
} level;

/* Stored after the name of a queued directory and its NUL. */
typedef struct waiting {
    uint32_t at;
    uint32_t len;
} waiting;

typedef struct scan {
    const csn_name_rules *names;
    struct timespec since;
    csn_changed_fn fn;
    void *ctx;
    csn_changed_count count;
    csn_changed_memory *memory; /* or NULL */
    struct timespec start;      /* time when the scan began */
    struct timespec late;       /* a change after this time disturbs the walk, */
    int64_t give_up_ms;         /* which then ends at this time */
    bool disturbed;
    uint64_t mount; /* mount id of the root */
    uid_t user;
    level *levels;
    size_t depth, room;
    csn_buf waiting, path;
    char *dents; /* BUFFER_SIZE bytes, or NULL before the first directory is read */
} scan;

typedef struct dir_facts {
    csn_scan_cache_dir id;
    uint64_t mount;
    int64_t born_sec;
    uint32_t born_nsec;
    bool changed, stable; /* stable: last changed before this scan */
    bool late;            /* changed while this scan runs */
    bool shut;            /* owned by this user, without search permission */
} dir_facts;

void csn_changed_now(struct timespec *ret)
{
    clock_gettime(CLOCK_REALTIME_COARSE, ret);
    ret->tv_nsec -= ret->tv_nsec % 1000; /* some file systems store microseconds */
}

/* Some file systems store whole seconds, FAT every second one: without nanoseconds, the time
 * may have been up to two seconds later. */
static bool not_before(const struct timespec *since, int64_t sec, int64_t nsec)
{
    if (nsec == 0)
        return sec + 2 > since->tv_sec;
    return sec > since->tv_sec || (sec == since->tv_sec && nsec >= since->tv_nsec);
}

/* Stats entry `name` of fd, or fd itself (name ""). Mounts are compared by mount id: subvolumes
 * have device numbers of their own, and any user may create one. */
static int dir_stat(const scan *s, int fd, const char *name, dir_facts *ret)
{
    struct statx st;

    if (statx(fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              (name[0] ? 0 : STATX_BTIME) | STATX_INO | STATX_CTIME | STATX_MNT_ID |
                  STATX_MODE | STATX_UID,
              &st) < 0)
        return -errno;
    ret->id = (csn_scan_cache_dir){.dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
                                   .ino = st.stx_ino,
                                   .sec = st.stx_ctime.tv_sec,
                                   .nsec = st.stx_ctime.tv_nsec};
    ret->changed = not_before(&s->since, ret->id.sec, ret->id.nsec);
    ret->stable = !not_before(&s->start, ret->id.sec, ret->id.nsec);
    ret->late = ret->id.sec > s->late.tv_sec;
    ret->born_sec = (st.stx_mask & STATX_BTIME) != 0 ? st.stx_btime.tv_sec : 0;
    ret->born_nsec = (st.stx_mask & STATX_BTIME) != 0 ? st.stx_btime.tv_nsec : 0;
    ret->shut = !(st.stx_mode & S_IXUSR) && st.stx_uid == s->user && s->user != 0;
    ret->mount = (st.stx_mask & STATX_MNT_ID) != 0 ? st.stx_mnt_id : ret->id.dev;
    return 0;
}

/* ---- detecting moved directories ---- */

static csn_scan_cache_dir place_of(const scan *s, const level *l)
{
    const level *up = l > s->levels ? l - 1 : NULL;
    const csn_place p = {.dev = l->dev,
                         .ino = l->ino,
                         .parent_dev = up ? up->dev : 0,
                         .parent_ino = up ? up->ino : 0,
                         .born_sec = l->born_sec,
                         .born_nsec = l->born_nsec,
                         .state = l->at};

    return csn_place_id(&p, up ? s->path.data + up->path_len : "",
                        up ? l->path_len - up->path_len : 0);
}

/* True if the last scan saw the directory at this place, in the same state. */
static bool was_here(const scan *s, const level *l)
{
    if (!s->memory || s->memory->were.count == 0 || l->cut)
        return false;
    const csn_scan_cache_dir place = place_of(s, l);
    return csn_scan_cache_has(&s->memory->were, &place);
}

static void remember(scan *s, const level *l)
{
    if (!s->memory || l->cut)
        return;
    const csn_scan_cache_dir place = place_of(s, l);
    csn_scan_cache_add(&s->memory->now, &place);
}

void csn_changed_memory_keep(csn_changed_memory *m)
{
    csn_scan_cache_release(&m->were);
    m->were = m->now;
    m->now = (csn_scan_cache){0};
}

void csn_changed_memory_release(csn_changed_memory *m)
{
    csn_scan_cache_release(&m->known);
    csn_scan_cache_release(&m->were);
    csn_scan_cache_release(&m->now);
}

/* ---- one entry ---- */

/* Appends to the current path; undone by path_truncate. */
static int path_append(scan *s, const char *name, size_t len)
{
    return -csn_buf_append(&s->path, name, len);
}

static void path_truncate(scan *s, size_t len)
{
    s->path.len = len;
}

/* Appends the name of a directory, unless the path is too long: no program accepts it, and
 * relative references from such a place are refused. */
static int path_enter(scan *s, const char *name, size_t len, bool *ret_cut)
{
    bool was_cut = s->depth > 0 && s->levels[s->depth - 1].cut;
    int rc = 0;

    *ret_cut = was_cut || s->path.len + len + 1 > PATH_KEPT;
    if (was_cut)
        return 0;
    if (*ret_cut)
        return path_append(s, PATH_CUT, strlen(PATH_CUT));
    rc = path_append(s, name, len);
    return rc < 0 ? rc : path_append(s, "/", 1);
}

static int report(scan *s, const level *l, const char *name, csn_changed *hit)
{
    int rc = path_append(s, name, strlen(name));

    if (rc < 0)
        return rc;
    hit->path = s->path.data;
    hit->dir = l->fd;
    hit->name = name;
    rc = s->fn(s->ctx, hit);
    path_truncate(s, l->path_len);
    return rc;
}

/* Returns 0 if the entry vanished or its directory cannot be searched (see report_unreadable),
 * else -error: the entry could be anything. */
static int ignore_vanished(int error)
{
    return error == ENOENT || error == EACCES ? 0 : -error;
}

/* Reports an entry with a wanted name, unless it is a directory. */
static int check_file(scan *s, level *l, const char *name, csn_name_rules_step step)
{
    struct stat st;

    if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return ignore_vanished(errno);
    if (S_ISDIR(st.st_mode) || (!step.wanted && !S_ISLNK(st.st_mode)))
        return 0;
    bool changed = not_before(&s->since, st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    /* Of the directories in state 0, only those with a wanted name are remembered. */
    if (!l->wanted && l->at == 0)
        l->moved = l->moved && !was_here(s, l);
    l->wanted = true;
    bool old = !changed && !l->moved;
    if (old && !step.refers && !(step.refers_link && S_ISLNK(st.st_mode)))
        return 0;
    csn_changed hit = {.st = &st, .rule = step.rule, .moved = !changed && !old, .old = old};
    return report(s, l, name, &hit);
}

static bool has_room(const scan *s, const level *l, size_t more)
{
    size_t own = s->waiting.len - l->waiting;

    return own == 0 || (own + more <= WAITING_EACH && s->waiting.len + more <= WAITING_MAX);
}

/* 0, -errno, or 1: no room. */
static int queue_dir(scan *s, const level *l, const char *name, size_t len, uint32_t at)
{
    waiting w = {.at = at, .len = (uint32_t)len + 1};

    if (!has_room(s, l, w.len + sizeof(w)))
        return 1;
    int e = csn_buf_reserve(&s->waiting, w.len + sizeof(w));
    if (e == 0)
        e = csn_buf_append(&s->waiting, name, w.len);
    if (e == 0)
        e = csn_buf_append(&s->waiting, &w, sizeof(w));
    return -e;
}

static bool is_dir(int dir, const struct dirent64 *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return ignore_vanished(errno) != 0; /* not known: try to open it */
    return S_ISDIR(st.st_mode);
}

/* One reading of a directory. */
typedef struct reading {
    uint8_t marks;
    bool dirs_only; /* the files were checked before */
    bool full;      /* not all subdirectories were queued */
} reading;

/* In the second reading l->at differs from l->first. It reports only names that the first one
 * did not want, and a subdirectory to which the first one gave a state keeps it: making a
 * directory look like a repository must not remove protection. */
static int entry(scan *s, level *l, const struct dirent64 *d, reading *rd)
{
    size_t len = strlen(d->d_name);
    csn_name_rules_step step = s->names->step(l->first, d->d_name, len);
    bool wanted = step.wanted || step.wanted_link;

    rd->marks |= step.marks;
    if (l->first != l->at && !wanted && (step.at == 0 || step.at == l->first))
        step = s->names->step(l->at, d->d_name, len);
    bool dir = is_dir(l->fd, d);
    l->uninteresting = l->uninteresting && !dir && !wanted && !step.marks;
    if (dir) {
        int rc = rd->full ? 0 : queue_dir(s, l, d->d_name, len, step.at);
        rd->full = rd->full || rc == 1;
        return rc < 0 ? rc : 0;
    }
    if (rd->dirs_only || (!step.wanted && !(step.wanted_link &&
                                            (d->d_type == DT_LNK || d->d_type == DT_UNKNOWN))))
        return 0;
    return wanted && l->first != l->at ? 0 : check_file(s, l, d->d_name, step);
}

/* ---- one directory ---- */

/* A process of the sandbox that is left may add or move directories faster than they are read.
 * Its changes are scanned again when it has ended. */
static int check_patience(const scan *s)
{
    struct timespec now;

    if (!s->disturbed)
        return 0;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000 > s->give_up_ms ? -EAGAIN : 0;
}

/* True for the directory itself and its parent. */
static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Reads from the current position to the end, or until a subdirectory finds no room; then
 * l->next is its position. */
static int read_on(scan *s, level *l, reading *rd)
{
    dir_facts f;

    if (!s->dents && !(s->dents = malloc(BUFFER_SIZE)))
        return -ENOMEM;
    for (unsigned part = 1;; part++) {
        long n = syscall(SYS_getdents64, l->fd, s->dents, BUFFER_SIZE);
        if (n <= 0)
            return n == 0 || errno == ENOENT ? 0
                                             : -errno; /* ENOENT: the directory was removed */
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const void *)(s->dents + at);
            at += d->d_reclen;
            int rc = is_dots(d->d_name) ? 0 : entry(s, l, d, rd);
            if (rc != 0 || (rd->full && rd->dirs_only))
                return rc;
            s->count.entries++;
            l->next = d->d_off;
        }
        if (part % 64 == 0 && !s->disturbed && dir_stat(s, l->fd, "", &f) == 0)
            s->disturbed = f.late;
        int rc = check_patience(s);
        if (rc < 0)
            return rc;
    }
}

/* The first reading in a state. If not all subdirectories find room, they are queued in pieces
 * later: from the start, because removing files may have moved the positions. */
static int read_all(scan *s, level *l, reading *rd)
{
    *rd = (reading){0};
    int rc = read_on(s, l, rd);

    l->more = rd->full;
    if (rd->full) {
        s->waiting.len = l->waiting;
        l->next = 0;
    }
    return rc;
}

static int queue_more(scan *s, level *l)
{
    reading rd = {.dirs_only = true};
    int rc = lseek(l->fd, l->next, SEEK_SET) < 0 ? -errno : read_on(s, l, &rd);

    l->more = rd.full;
    return rc;
}

/* Reports or queues all entries of the innermost directory. */
static int read_dir(scan *s, const dir_facts *f)
{
    level *l = &s->levels[s->depth - 1];
    reading rd;
    int rc = read_all(s, l, &rd);

    if (rc != 0)
        return rc;
    if (l->wanted && l->at == 0)
        remember(s, l);
    /* Cached only in state 0: in another state the same names have another meaning. */
    if (s->memory && l->first == 0 && l->uninteresting && f->stable)
        csn_scan_cache_add(&s->memory->known, &f->id);
    uint32_t state = s->names->classify(l->first, rd.marks);
    if (state == l->first)
        return 0;
    /* The marks changed the state of the directory, and with it the meaning of all its names;
     * one added file is enough for that. Read the directory again. */
    l->at = state;
    l->moved = (l->came || l->changed) && !was_here(s, l);
    remember(s, l);
    s->waiting.len = l->waiting;
    return lseek(l->fd, 0, SEEK_SET) < 0 ? -errno : read_all(s, l, &rd);
}

/* Makes fd the innermost directory. */
static int level_push(scan *s, int fd, const dir_facts *f, uint32_t at, bool cut)
{
    if (s->depth == s->room) {
        size_t room = s->room ? s->room * 2 : 16;
        level *grown = reallocarray(s->levels, room, sizeof(*grown));
        if (!grown) {
            close(fd);
            return -ENOMEM;
        }
        s->levels = grown;
        s->room = room;
    }
    level *up = s->depth > 0 ? &s->levels[s->depth - 1] : NULL;
    if (s->depth >= OPEN_MAX_DIRS) {
        level *old = &s->levels[s->depth - OPEN_MAX_DIRS];
        if (old->fd >= 0)
            close(old->fd);
        old->fd = -1;
    }
    s->levels[s->depth++] = (level){
        .fd = fd,
        .dev = f->id.dev,
        .ino = f->id.ino,
        .born_sec = f->born_sec,
        .born_nsec = f->born_nsec,
        .waiting = s->waiting.len,
        .path_len = s->path.len,
        .at = at,
        .first = at,
        .changed = f->changed,
        .cut = cut,
        .uninteresting = true,
    };
    level *l = &s->levels[s->depth - 1];
    /* A rename changes the ctime of the directory and of its parent. */
    l->came = l->moved = up && (up->moved || (f->changed && up->changed));
    if (at != 0) {
        l->moved = l->moved && !was_here(s, l);
        remember(s, l);
    }
    s->disturbed = s->disturbed || f->late;
    s->count.dirs++;
    return check_patience(s);
}

/* Returns to the parent directory and reopens it if it was closed. */
static int level_pop(scan *s)
{
    level *l = &s->levels[--s->depth], *up = s->depth > 0 ? l - 1 : NULL;
    dir_facts f;
    int rc = 0;

    if (up && up->fd < 0) {
        int fd = openat(l->fd, "..", DIR_FLAGS);
        rc = fd < 0 ? -errno : dir_stat(s, fd, "", &f);
        if (rc == 0 && (f.id.dev != up->dev || f.id.ino != up->ino))
            rc = -EAGAIN;
        up->fd = fd;
    }
    close(l->fd);
    if (up)
        path_truncate(s, up->path_len);
    return rc;
}

/* ---- the walk ---- */

/* Handles a directory that cannot be opened. One that can be searched but not listed is always
 * reported, because git can use it. One without search permission is harmless now, but could be
 * opened later, when its contents look old: it is reported if it changed recently, else
 * counted. */
static int report_unreadable(scan *s, const level *l, const char *name, int error)
{
    struct stat st;

    if (error == -ENOENT || error == -ENOTDIR || error == -ELOOP)
        return 0; /* removed or replaced meanwhile */
    if (error != -EACCES && error != -EPERM)
        return error;
    if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return ignore_vanished(errno);
    if (error == -EACCES && faccessat(l->fd, name, X_OK, AT_EACCESS) < 0 &&
        !not_before(&s->since, st.st_ctim.tv_sec, st.st_ctim.tv_nsec)) {
        s->count.closed++;
        return 0;
    }
    csn_changed hit = {.st = &st, .unlisted = true};
    return report(s, l, name, &hit);
}

/* Removes the last queued subdirectory of the innermost directory. Its name is valid until
 * another one is queued. */
static const char *dequeue_dir(scan *s, waiting *ret)
{
    s->waiting.len -= sizeof(*ret);
    memcpy(ret, s->waiting.data + s->waiting.len, sizeof(*ret));
    s->waiting.len -= ret->len;
    ret->len--;
    return s->waiting.data + s->waiting.len;
}

/* True if the directory was read before without a result and has not changed since. */
static bool is_cached(scan *s, int dir, const char *name, uint32_t at)
{
    dir_facts f;

    if (at != 0 || !s->memory || s->memory->known.count == 0 ||
        dir_stat(s, dir, name, &f) < 0 || !csn_scan_cache_has(&s->memory->known, &f.id))
        return false;
    s->count.known++;
    return true;
}

/* Makes fd the innermost directory and reads it; closes fd on failure. */
static int enter(scan *s, int fd, const char *name, size_t len, uint32_t at)
{
    dir_facts f;
    bool cut = false;
    int rc = dir_stat(s, fd, "", &f);

    if (rc == 0 && f.mount != s->mount) {
        s->count.mounts++;
        close(fd);
        return 0;
    }
    /* its names can be listed, but its entries cannot be accessed */
    if (rc == 0 && f.shut && f.changed && s->depth > 0) {
        rc = report_unreadable(s, &s->levels[s->depth - 1], name, -EACCES);
        rc = rc == CSN_CHANGED_AGAIN ? 0 : rc;
    }
    if (rc == 0)
        rc = path_enter(s, name, len, &cut);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    rc = level_push(s, fd, &f, at, cut);
    return rc < 0 ? rc : read_dir(s, &f);
}

static int enter_next(scan *s)
{
    const level *l = &s->levels[s->depth - 1];
    waiting w;
    const char *name = dequeue_dir(s, &w);

    if (is_cached(s, l->fd, name, w.at))
        return 0;
    int fd = openat(l->fd, name, DIR_FLAGS);
    int rc = fd < 0 ? report_unreadable(s, l, name, -errno) : 0;
    if (fd < 0 && rc == CSN_CHANGED_AGAIN) {
        fd = openat(l->fd, name, DIR_FLAGS);
        s->count.closed += fd < 0;
        rc = 0;
    }
    return fd < 0 ? rc : enter(s, fd, name, w.len, w.at);
}

/* The next step of the walk. */
static int advance(scan *s)
{
    level *l = &s->levels[s->depth - 1];

    if (s->waiting.len > l->waiting)
        return enter_next(s);
    return l->more ? queue_more(s, l) : level_pop(s);
}

static int walk(scan *s, int root_fd)
{
    if (is_cached(s, root_fd, "", 0))
        return 0;
    int fd = openat(root_fd, ".", DIR_FLAGS);
    dir_facts f;
    int rc = fd < 0 ? -errno : dir_stat(s, fd, "", &f);

    if (rc < 0) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    s->mount = f.mount;
    rc = level_push(s, fd, &f, 0, false);
    if (rc == 0)
        rc = read_dir(s, &f);
    while (rc == 0 && s->depth > 0)
        rc = advance(s);
    return rc;
}

static void set_clocks(scan *s)
{
    struct timespec now;

    csn_changed_now(&s->start);
    s->late = s->start;
    s->late.tv_sec++;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    s->give_up_ms =
        now.tv_sec * 1000 + now.tv_nsec / 1000000 +
        (s->memory && s->memory->patience_ms ? s->memory->patience_ms : PATIENCE_MS);
}

int csn_changed_scan(int root_fd, const csn_name_rules *names, const struct timespec *since,
                     csn_changed_fn fn, void *ctx, csn_changed_memory *memory,
                     csn_changed_count *count)
{
    scan one = {.names = names,
                .since = *since,
                .user = geteuid(),
                .fn = fn,
                .ctx = ctx,
                .memory = memory};
    scan *s = &one;

    if (memory)
        csn_scan_cache_release(&memory->now);
    set_clocks(s);
    csn_buf_init(&s->waiting, SIZE_MAX / 2);
    csn_buf_init(&s->path, SIZE_MAX / 2);
    int rc = walk(s, root_fd);
    for (size_t i = 0; i < s->depth; i++)
        if (s->levels[i].fd >= 0)
            close(s->levels[i].fd);
    free(s->levels);
    free(s->dents);
    csn_buf_release(&s->waiting);
    csn_buf_release(&s->path);
    if (count)
        *count = s->count;
    return rc;
}
