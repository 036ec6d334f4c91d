/* protected_cache.c: stores the result of the last scan of a workspace between sandboxes.
 *
 * One sandbox may prepare a directory of hooks under a harmless name, and the next one rename
 * it to its effective name. The files in it are unchanged, so a scan for changes does not find
 * them; comparing with the directories that the last scan saw does. The record is written after
 * each scan and read before the first command. It is in the state directory, which only the
 * user can write. The number of files is fixed; if another workspace overwrites a record, it is
 * missing, and the workspace is surveyed before the next command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/protected.h"
#include "base/buf.h"
#include "os/atomic.h"
#include "os/statedir.h"
#include "policy/protected_names.h"

#define DIRECTORY "scans"
#define FORMAT    "3:" /* before the path of the workspace */
#define SLOTS     4096u
#define BYTES_MAX (8u << 20)
#define KNOWN_MAX (64u << 10)

int csn_protected_store(csn_protected *g)
{
    if (g->store < 0)
        g->store = csn_statedir_open(CSN_DIR_STATE, DIRECTORY, NULL);
    return g->store;
}

static void slot_name(const csn_protected_tree *t, char name[16])
{
    uint32_t h = 2166136261u;

    for (const char *p = t->host; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    snprintf(name, 16, "%u", h % SLOTS);
}

/* After the path of the workspace with its NUL. The places of directories and the
 * targets of links follow, then the directories without protected names, which are left out if
 * they are many. */
typedef struct head {
    uint64_t ino;     /* of the workspace */
    uint64_t version; /* of the names */
    uint64_t places;
} head;

static int put_set(csn_buf *b, const csn_scan_cache *set)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < set->room; i++)
        if (set->slots[i].used)
            rc = csn_buf_append(b, &set->slots[i], sizeof(set->slots[i]));
    return rc;
}

static int put_all(const csn_protected_tree *t, csn_buf *b)
{
    struct stat st;
    int rc = fstat(t->fd, &st) < 0 ? errno : 0;
    const head h = {.ino = st.st_ino,
                    .version = csn_protected_name_version(),
                    .places = t->cache.were.count};

    if (rc == 0)
        rc = csn_buf_puts(b, FORMAT);
    if (rc == 0)
        rc = csn_buf_append(b, t->host, strlen(t->host) + 1);
    if (rc == 0)
        rc = csn_buf_append(b, &h, sizeof(h));
    if (rc == 0)
        rc = put_set(b, &t->cache.were);
    if (rc == 0 && t->cache.known.count <= KNOWN_MAX)
        rc = put_set(b, &t->cache.known);
    return rc;
}

/* The modification time of the file is the time of the scan. A record that is too large is
 * removed: an old one would be wrong. */
static int write_record(int store, csn_protected_tree *t, const char *name)
{
    const struct timespec times[2] = {t->cached_at, t->cached_at};
    struct stat st;
    csn_temp temp;
    csn_autobuf b;

    csn_buf_init(&b, BYTES_MAX);
    int rc = -put_all(t, &b);
    if (rc == 0)
        rc = csn_temp_create(&temp, store, 0600);
    if (rc < 0)
        return rc;
    rc = csn_write_full(temp.fd, b.data, b.len, NULL);
    if (rc == 0)
        rc = futimens(temp.fd, times) < 0 || fstat(temp.fd, &st) < 0 ? -errno : 0;
    if (rc == 0)
        rc = csn_temp_publish(&temp, store, name, 0);
    if (rc == 0) {
        t->record_ino = st.st_ino;
        t->recorded = t->cache.known.added;
    }
    csn_temp_drop(&temp, store);
    return rc;
}

void csn_protected_cache_save(csn_protected *g, csn_protected_tree *t, bool same)
{
    const struct timespec times[2] = {t->cached_at, t->cached_at};
    int store = csn_protected_store(g);
    struct stat st;
    char name[16];

    if (store < 0)
        return;
    slot_name(t, name);
    /* The same places as in the record, which is still ours: only the time changes. A few
     * directories more that have no protected names are not worth a new file. */
    size_t more = t->cache.known.added - t->recorded;
    if (same && t->record_ino != 0 && more <= 64 + t->cache.known.count / 16 &&
        fstatat(store, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == t->record_ino &&
        utimensat(store, name, times, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    if (write_record(store, t, name) < 0) {
        t->record_ino = 0;
        (void)unlinkat(store, name, 0);
    }
}

static bool load_all(csn_protected_tree *t, const char *data, size_t len)
{
    const size_t format = strlen(FORMAT), path = strlen(t->host) + 1;
    size_t at = format + path;
    csn_scan_cache_dir one;
    struct stat st;
    head h;

    if (len < at + sizeof(h) || memcmp(data, FORMAT, format) != 0 ||
        memcmp(data + format, t->host, path) != 0 || fstat(t->fd, &st) < 0)
        return false;
    memcpy(&h, data + at, sizeof(h));
    if (h.ino != st.st_ino || h.version != csn_protected_name_version())
        return false;
    csn_scan_cache_release(&t->cache.were);
    at += sizeof(h);
    for (uint64_t i = 0; at + sizeof(one) <= len; i++, at += sizeof(one)) {
        memcpy(&one, data + at, sizeof(one));
        csn_scan_cache_add(i < h.places ? &t->cache.were : &t->cache.known, &one);
    }
    t->recorded = t->cache.known.added;
    return true;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

void csn_protected_cache_load(csn_protected *g, csn_protected_tree *t)
{
    char name[16];
    int store = csn_protected_store(g);
    struct stat st;

    slot_name(t, name);
    csn_autofd int fd = store < 0 ? -1 : openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > BYTES_MAX ||
        (t->has_cache && !is_later(&st.st_mtim, &t->cached_at)))
        return;
    csn_autofree char *data = malloc((size_t)st.st_size);
    ssize_t n = data ? read(fd, data, (size_t)st.st_size) : -1;
    if (n != st.st_size || !load_all(t, data, (size_t)n))
        return;
    t->cached_at = st.st_mtim;
    t->has_cache = true;
    t->record_ino = st.st_ino;
}
