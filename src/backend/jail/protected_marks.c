/* protected_marks.c: remembers across processes that a workspace has changes to be scanned.
 *
 * A process may be killed between a command and the scan after it, a detached sandbox may reach
 * the end of its life, a scan may fail. Before a command starts, its handle writes a mark with
 * the time from which changes count, and removes it when a scan has seen them all. Any later
 * scan of the workspace, at the latest the one when the next sandbox is opened on it, finds
 * marks whose owner has ended and includes their changes.
 *
 * The marks of all workspaces are in a fixed number of files in the state directory, which
 * sandboxes cannot write. A handle locks its slot while it lives, and writes no other one
 * without its lock. The owner has ended when the slot is not locked and the keeper does not
 * live: a detached sandbox has no handle between commands. Nothing is synchronised to disk,
 * because the changes are not either. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"

#define FILES      256u
#define SLOTS_MAX  65536
#define SLOTS_READ 8

typedef struct text_hash {
    char hex[32]; /* 128 bits, without NUL */
} text_hash;

/* A slot of a file. The part before `workspace` changes with each command. */
typedef struct mark {
    uint64_t dirty;
    int64_t sec, nsec; /* changes from this time on were not scanned */
    text_hash workspace, owner;
    int64_t keeper_pid;
    uint64_t held_count;
    /* Hashes of the paths that were read-only: the owner cannot have changed them. */
    uint32_t held[CSN_PROTECTED_PLACES];
} mark;

static text_hash hash_text(const char *text)
{
    char hex[CSN_HASH_HEX];
    text_hash out;

    csn_hash_bytes(text, strlen(text), hex);
    memcpy(out.hex, hex, sizeof(out.hex));
    return out;
}

static uint32_t hash_path(const char *path)
{
    char hex[CSN_HASH_HEX], part[9];

    csn_hash_bytes(path, strlen(path), hex);
    memcpy(part, hex, 8);
    part[8] = '\0';
    return (uint32_t)strtoul(part, NULL, 16);
}

static bool same(const text_hash *a, const text_hash *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static off_t at(int64_t slot)
{
    return (off_t)slot * (off_t)sizeof(mark);
}

static int lock_slot(int fd, int64_t slot, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at(slot), .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}

static bool read_slot(int fd, int64_t slot, mark *ret)
{
    return pread(fd, ret, sizeof(*ret), at(slot)) == sizeof(*ret);
}

/* Reads the start of a process in seconds after boot; -1: it has ended. As long as the keeper
 * is no zombie, processes of its sandbox may run. */
static int64_t started_at(int64_t pid)
{
    char path[40], text[1024];

    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    csn_autofd int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *p = strrchr(text, ')'); /* the name may contain anything */
    if (!p || strlen(p) < 3 || p[2] == 'Z' || p[2] == 'X')
        return -1;
    for (int i = 2; p && i < 22; i++)
        p = strchr(p + 1, ' ');
    return p ? strtoll(p, NULL, 10) / sysconf(_SC_CLK_TCK) : -1;
}

/* True while the keeper of the sandbox lives. A process that started after the mark was written
 * is another one with the same number. */
static bool is_alive(const mark *m)
{
    struct timespec now, boot;
    int64_t start = started_at(m->keeper_pid);

    if (start < 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return now.tv_sec - boot.tv_sec + start <= m->sec + 2;
}

/* Opens the file of the workspace once. */
static int open_file(csn_protected *g, csn_protected_tree *t)
{
    char name[16];
    int store = t->mark_fd < 0 ? csn_protected_store(g) : -1;

    if (t->mark_fd >= 0)
        return t->mark_fd;
    if (store < 0)
        return store;
    snprintf(name, sizeof(name), "marks-%u", hash_path(t->host) % FILES);
    t->mark_fd = openat(store, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return t->mark_fd < 0 ? -errno : t->mark_fd;
}

/* ---- the own mark ---- */

/* Finds a slot that is free, or the one that an earlier handle of the same sandbox left; locks
 * it. Returns its number or -errno. */
static int64_t claim(int fd, const text_hash *owner)
{
    for (int64_t i = 0; i < SLOTS_MAX; i++) {
        mark m = {0};
        int rc = lock_slot(fd, i, F_WRLCK);
        if (rc == -EAGAIN || rc == -EACCES)
            continue;
        if (rc < 0)
            return rc;
        if (!read_slot(fd, i, &m) || !m.dirty || same(&m.owner, owner))
            return i;
        (void)lock_slot(fd, i, F_UNLCK);
    }
    return -ENOSPC;
}

static void fill(const csn_runtime *rt, const csn_protected_tree *t, mark *m)
{
    m->workspace = hash_text(t->host);
    m->owner = hash_text(rt->id);
    m->keeper_pid = rt->keeper_pid;
    for (size_t i = 0; i < t->place_count; i++)
        if (t->places[i].rule && !t->places[i].absent)
            m->held[m->held_count++] = hash_path(t->places[i].path);
}

static int set_mark(const csn_runtime *rt, csn_protected *g, csn_protected_tree *t)
{
    mark m = {.dirty = 1, .sec = g->since.tv_sec, .nsec = g->since.tv_nsec};
    int fd = open_file(g, t);

    if (fd < 0)
        return fd;
    if (t->mark_slot >= 0) /* only the time changes */
        return pwrite(fd, &m, offsetof(mark, workspace), at(t->mark_slot)) < 0 ? -errno : 0;
    fill(rt, t, &m);
    int64_t slot = claim(fd, &m.owner);
    if (slot < 0)
        return (int)slot;
    t->mark_slot = slot;
    ssize_t n = pwrite(fd, &m, sizeof(m), at(slot));
    return n == sizeof(m) ? 0 : n < 0 ? -errno : -ENOSPC;
}

void csn_protected_marks_set(const csn_runtime *rt, csn_protected *g)
{
    for (size_t i = 0; i < g->tree_count; i++) {
        int rc = set_mark(rt, g, &g->trees[i]);
        if (rc < 0)
            csn_log_debug("workspace %s cannot be marked as changed: %s", g->trees[i].host,
                          csn_errno_text(-rc));
    }
}

static void clear_slot(int fd, int64_t slot)
{
    const uint64_t clean = 0;

    if (pwrite(fd, &clean, sizeof(clean), at(slot)) < 0)
        csn_log_debug("a mark of a scanned workspace cannot be removed: %s",
                      csn_errno_text(errno));
}

void csn_protected_marks_clear(const csn_protected *g)
{
    for (size_t i = 0; i < g->tree_count; i++)
        if (g->trees[i].mark_slot >= 0)
            clear_slot(g->trees[i].mark_fd, g->trees[i].mark_slot);
}

/* ---- marks that others left ---- */

static void add_held(csn_protected_adopted *a, const mark *m)
{
    for (size_t i = 0; i < m->held_count && i < CSN_PROTECTED_PLACES; i++)
        if (a->held_count < CSN_PROTECTED_PLACES)
            a->held[a->held_count++] = m->held[i];
}

/* With two owners, only paths that both had read-only count. */
static void keep_common(csn_protected_adopted *a, const mark *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < a->held_count; i++)
        for (size_t k = 0; k < m->held_count && k < CSN_PROTECTED_PLACES; k++)
            if (a->held[i] == m->held[k]) {
                a->held[kept++] = a->held[i];
                break;
            }
    a->held_count = kept;
}

static void adopt_slot(csn_protected_adopted *a, int64_t slot, const mark *m)
{
    const struct timespec from = {.tv_sec = m->sec, .tv_nsec = (long)m->nsec};

    if (a->count == 0)
        add_held(a, m);
    else
        keep_common(a, m);
    if (a->count == 0 || from.tv_sec < a->since.tv_sec ||
        (from.tv_sec == a->since.tv_sec && from.tv_nsec < a->since.tv_nsec))
        a->since = from;
    a->slots[a->count++] = slot;
}

/* Adopts a mark of this workspace if its owner has ended. */
static void adopt_if_ended(const csn_runtime *rt, const csn_protected_tree *t, int64_t slot,
                           csn_protected_adopted *a)
{
    const text_hash own = hash_text(t->host), me = hash_text(rt->id);
    mark m;

    if (slot == t->mark_slot || !read_slot(t->mark_fd, slot, &m) || !m.dirty ||
        !same(&m.workspace, &own))
        return;
    bool mine = same(&m.owner, &me); /* of another handle of this sandbox */
    bool locked = a->count < CSN_PROTECTED_ADOPTED && lock_slot(t->mark_fd, slot, F_WRLCK) == 0;
    if (locked && read_slot(t->mark_fd, slot, &m) && m.dirty && (mine || !is_alive(&m))) {
        adopt_slot(a, slot, &m);
        return;
    }
    a->others = a->others || !mine;
    if (locked)
        (void)lock_slot(t->mark_fd, slot, F_UNLCK);
}

void csn_protected_marks_adopt(csn_runtime *rt, csn_protected_tree *t,
                               csn_protected_adopted *ret)
{
    int fd = open_file(rt->jail->protected, t);
    mark part[SLOTS_READ];
    int64_t first = 0;

    *ret = (csn_protected_adopted){0};
    for (ssize_t n = sizeof(part); fd >= 0 && n == sizeof(part); first += SLOTS_READ) {
        n = pread(fd, part, sizeof(part), at(first));
        for (int64_t i = 0; (i + 1) * (int64_t)sizeof(mark) <= n; i++)
            if (part[i].dirty)
                adopt_if_ended(rt, t, first + i, ret);
    }
}

void csn_protected_marks_release(const csn_protected_tree *t, const csn_protected_adopted *a,
                                 bool scanned)
{
    for (size_t i = 0; i < a->count; i++) {
        if (scanned)
            clear_slot(t->mark_fd, a->slots[i]);
        (void)lock_slot(t->mark_fd, a->slots[i], F_UNLCK);
    }
}

bool csn_protected_marks_held(const csn_protected_adopted *a, const char *path)
{
    for (size_t len = strlen(path); len > 0;) {
        csn_autofree char *part = strndup(path, len);
        uint32_t h = part ? hash_path(part) : 0;
        for (size_t i = 0; part && i < a->held_count; i++)
            if (a->held[i] == h)
                return true;
        while (len > 0 && path[--len] != '/')
            ;
    }
    return false;
}
