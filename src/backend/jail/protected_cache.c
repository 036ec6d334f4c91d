/* protected_cache.c: stores the result of the last scan of a workspace between sandboxes.
 *
 * One sandbox may prepare a directory of hooks under a harmless name, and the next one rename
 * it to its effective name. The files in it are unchanged, so a scan for changes does not find
 * them; comparing with the directories that the last scan saw does. The cache is written when a
 * handle that scanned is closed, and read when a scan finds a directory at a new place. It is
 * in the state directory, which only the user can write. The number of cache files is fixed; if
 * another workspace overwrites an entry, it counts as missing. */
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

#define DIRECTORY  "scans"
#define SLOTS      512u
#define FORMAT     "2\n"
#define FORMAT_LEN (sizeof(FORMAT) - 1)
#define BYTES_MAX  (8u << 20)

static int open_store(void)
{
    return csn_statedir_open(CSN_DIR_STATE, DIRECTORY, NULL);
}

static void slot_name(const csn_protected_tree *t, char name[16])
{
    uint32_t h = 2166136261u;

    for (const char *p = t->host; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    snprintf(name, 16, "%u", h % SLOTS);
}

/* Format: its version, path of the workspace with its NUL, its inode, the directories and the
 * targets of links. */
static int put_all(const csn_protected_tree *t, csn_buf *b)
{
    struct stat st;
    int rc = fstat(t->fd, &st) < 0 ? errno : 0;
    const csn_scan_cache *were = &t->cache.were;

    if (rc == 0)
        rc = csn_buf_append(b, FORMAT, FORMAT_LEN);
    if (rc == 0)
        rc = csn_buf_append(b, t->host, strlen(t->host) + 1);
    if (rc == 0)
        rc = csn_buf_append(b, &st.st_ino, sizeof(st.st_ino));
    for (size_t i = 0; rc == 0 && i < were->room; i++)
        if (were->slots[i].used)
            rc = csn_buf_append(b, &were->slots[i], sizeof(were->slots[i]));
    return rc;
}

/* True if the file has these contents: then only its time is set, which is much cheaper than a
 * new file. */
static bool is_unchanged(int fd, const csn_buf *b)
{
    csn_autofree char *have = fd < 0 ? NULL : malloc(b->len + 1);

    return have && pread(fd, have, b->len + 1, 0) == (ssize_t)b->len &&
           memcmp(have, b->data, b->len) == 0;
}

/* The modification time of the file is the time of the scan. */
static void write_tree(int store, const csn_protected_tree *t)
{
    const struct timespec times[2] = {t->cached_at, t->cached_at};
    csn_temp temp;
    char name[16];
    csn_autobuf b;

    csn_buf_init(&b, BYTES_MAX);
    slot_name(t, name);
    if (put_all(t, &b) != 0)
        return;
    csn_autofd int old = openat(store, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (is_unchanged(old, &b) && futimens(old, times) == 0)
        return;
    if (csn_temp_create(&temp, store, 0600) < 0)
        return;
    if (csn_write_full(temp.fd, b.data, b.len, NULL) == 0 && futimens(temp.fd, times) == 0)
        (void)csn_temp_publish(&temp, store, name, old >= 0 ? CSN_TEMP_REPLACE : 0);
    csn_temp_drop(&temp, store);
}

void csn_protected_cache_save(csn_protected *g)
{
    csn_autofd int store = -1;

    for (size_t i = 0; i < g->tree_count; i++) {
        if (!g->trees[i].scanned)
            continue;
        if (store < 0 && (store = open_store()) < 0)
            return;
        write_tree(store, &g->trees[i]);
    }
}

static bool load_all(csn_protected_tree *t, const char *data, size_t len)
{
    size_t at = FORMAT_LEN + strlen(t->host) + 1;
    csn_scan_cache_dir one;
    struct stat st;
    ino_t ino;

    if (len < at + sizeof(ino) || memcmp(data, FORMAT, FORMAT_LEN) != 0 ||
        memcmp(data + FORMAT_LEN, t->host, at - FORMAT_LEN) != 0 || fstat(t->fd, &st) < 0)
        return false;
    memcpy(&ino, data + at, sizeof(ino));
    if (ino != st.st_ino)
        return false;
    csn_scan_cache_release(&t->cache.were);
    for (at += sizeof(ino); at + sizeof(one) <= len; at += sizeof(one)) {
        memcpy(&one, data + at, sizeof(one));
        csn_scan_cache_add(&t->cache.were, &one);
    }
    return true;
}

void csn_protected_cache_load(csn_protected_tree *t)
{
    char name[16];
    csn_autofd int store = open_store();
    struct stat st;

    slot_name(t, name);
    csn_autofd int fd = store < 0 ? -1 : openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > BYTES_MAX)
        return;
    csn_autofree char *data = malloc((size_t)st.st_size);
    ssize_t n = data ? read(fd, data, (size_t)st.st_size) : -1;
    if (n <= 0 || !load_all(t, data, (size_t)n))
        return;
    t->cached_at = st.st_mtim;
    t->has_cache = true;
}
