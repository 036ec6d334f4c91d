/* audit_logs.c: csn_audit_logs and csn_audit_remove: list and remove audit logs at the default
 * place.
 *
 * A log is in use while a process has its sandbox open: the process holds a lock on the head
 * file (audit_in_flight.h). Names that are no ids of sandboxes are skipped. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "caisson/records.h"
#include "core/audit.h"
#include "core/audit_chain.h"
#include "core/audit_in_flight.h"
#include "core/result.h"
#include "core/state.h"
#include "os/statedir.h"

#define SUFFIX ".jsonl"

typedef struct logs {
    csn_arena *arena;
    csn_audit_log *items;
    size_t count, room;
} logs;

static bool in_use(int dir, const char *id)
{
    char head[CSN_AUDIT_NAME_MAX + 8];

    snprintf(head, sizeof(head), "%s.head", id);
    csn_autofd int fd = openat(dir, head, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 && csn_audit_in_use(fd);
}

/* 0 or ENOMEM. */
static int add(logs *l, int dir, const char *name)
{
    size_t len = strlen(name), end = sizeof(SUFFIX) - 1;
    char id[CSN_AUDIT_NAME_MAX];
    struct stat st;

    if (len <= end || len - end >= sizeof(id) || strcmp(name + len - end, SUFFIX) != 0 ||
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    snprintf(id, sizeof(id), "%.*s", (int)(len - end), name);
    if (!csn_name_valid(id))
        return 0;
    if (l->count == l->room) {
        size_t room = l->room ? l->room * 2 : 64;
        csn_audit_log *more = reallocarray(l->items, room, sizeof(*more));
        if (!more)
            return ENOMEM;
        l->items = more;
        l->room = room;
    }
    csn_audit_log one = {.id = csn_arena_strdup(l->arena, id),
                         .bytes = (uint64_t)st.st_blocks * 512,
                         .written_ms =
                             (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
                         .in_use = in_use(dir, id)};
    if (!one.id)
        return ENOMEM;
    l->items[l->count++] = one;
    return 0;
}

/* Ids contain the time of their creation, which decides between logs of one millisecond. */
static int by_time(const void *a, const void *b)
{
    const csn_audit_log *x = a, *y = b;

    if (x->written_ms != y->written_ms)
        return x->written_ms < y->written_ms ? -1 : 1;
    return strcmp(x->id, y->id);
}

/* Takes ownership of the descriptor. 0 or errno. */
static int read_dir(logs *l, int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    int rc = dir ? 0 : errno;

    if (!dir && again >= 0)
        close(again);
    close(fd);
    if (!dir)
        return rc;
    errno = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL; errno = 0)
        rc = add(l, dirfd(dir), e->d_name);
    rc = rc != 0 ? rc : errno;
    closedir(dir);
    return rc;
}

csn_status csn_audit_logs(csn_audit_logs_result **ret, csn_error **err)
{
    csn_audit_logs_result *r = ret ? csn_result_new(sizeof(*r)) : NULL;

    if (!ret)
        return csn_fail(err, CSN_INVALID, "audit: no place for the list");
    if (!r)
        return csn_fail(err, CSN_NOMEM, "audit logs");
    logs l = {.arena = csn_result_arena(r)};
    int fd = csn_statedir_find(CSN_DIR_STATE, "audit", NULL);
    int rc = fd >= 0 ? read_dir(&l, fd) : fd == -ENOENT ? 0 : -fd;
    if (rc == 0 && l.count > 0) {
        qsort(l.items, l.count, sizeof(l.items[0]), by_time);
        csn_audit_log *items = csn_arena_array(l.arena, l.count, sizeof(*items));
        rc = items ? 0 : ENOMEM;
        if (items)
            memcpy(items, l.items, l.count * sizeof(*items));
        r->items = items;
        r->count = l.count;
    }
    free(l.items);
    if (rc != 0) {
        csn_result_free(r);
        return csn_statedir_fail(err, rc, CSN_DIR_STATE, "audit");
    }
    *ret = r;
    return CSN_OK;
}

void csn_audit_logs_free(csn_audit_logs_result *r)
{
    csn_result_free(r);
}

csn_status csn_audit_remove(const char *id, csn_error **err)
{
    char name[CSN_AUDIT_NAME_MAX + 8];

    if (!id || !csn_name_valid(id)) {
        csn_autofree char *shown = csn_path_printable(id ? id : "");
        return csn_fail(err, CSN_INVALID, "%s is not the id of a sandbox",
                        shown ? shown : "it");
    }
    csn_autofd int dir = csn_statedir_find(CSN_DIR_STATE, "audit", NULL);
    if (dir < 0 && dir != -ENOENT)
        return csn_statedir_fail(err, -dir, CSN_DIR_STATE, "audit");
    snprintf(name, sizeof(name), "%s" SUFFIX, id);
    if (dir < 0 || faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return csn_fail(err, CSN_NOT_FOUND, "there is no audit log of '%s'", id);
    if (!csn_audit_remove_in(dir, id))
        return csn_fail(err, CSN_CONFLICT,
                        "the audit log of '%s' stays: its sandbox has not ended", id);
    return CSN_OK;
}
