/* watch.c: the watch operations: change events of a directory, without paths the agent may not
 * read.
 *
 * A watch is used by one thread at a time. It holds its own descriptors, so it stays valid when
 * the directory is moved. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "os/watch.h"
#include "runtime/files.h"

typedef struct watch {
    const csn_runtime *rt;
    csn_notify *notify;
    char *start; /* path of the directory for the rules; NULL: report every event */
} watch;

csn_status csn_runtime_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                             csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_READ, path, flags);
    csn_autofd int fd = -1;

    csn_status st = csn_target_open(&t, O_PATH | O_DIRECTORY, &fd, err);
    if (st < 0)
        return st;
    watch *w = calloc(1, sizeof(*w));
    if (!w)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    w->rt = state;
    int rc = csn_notify_new(fd, flags & CSN_FILE_RECURSIVE, &w->notify);
    /* Without a path the rules cannot be checked, so the watch is refused. */
    if (rc == 0 && csn_target_checked(&t) && !(w->start = csn_target_path(&t, fd, "")))
        rc = -EIO;
    if (rc < 0) {
        csn_runtime_watch_free(w);
        return csn_target_fail(&t, -rc, err);
    }
    *ret_watch = w;
    return CSN_OK;
}

/* An overflow has no path and is always reported. */
static bool hidden(const watch *w, const csn_notify_event *n)
{
    csn_autofree char *full = NULL;

    if (!w->start || n->kind == CSN_NOTIFY_OVERFLOW)
        return false;
    const char *base = strcmp(w->start, "/") == 0 ? "" : w->start;
    if (asprintf(&full, "%s/%s", base, n->path) < 0) {
        full = NULL;
        return true;
    }
    return !csn_rules_check(w->rt->rules, CSN_OP_READ, full).allowed;
}

csn_status csn_runtime_watch_next(void *handle, uint64_t timeout_ms, csn_event *ret,
                                  csn_error **err)
{
    watch *w = handle;
    csn_notify_event n;
    uint64_t deadline = csn_deadline_in(timeout_ms);

    do {
        int rc = csn_notify_next(w->notify, deadline, &n);
        if (rc < 0)
            return csn_fail_errno(err, -rc, "watch");
        if (rc == 0)
            return csn_fail(err, CSN_TIMEOUT, "nothing changed");
    } while (hidden(w, &n));
    ret->kind = n.kind; /* both enums have the same values */
    ret->is_dir = n.is_dir;
    snprintf(ret->path, sizeof(ret->path), "%s", n.path);
    return CSN_OK;
}

void csn_runtime_watch_free(void *handle)
{
    watch *w = handle;

    if (!w)
        return;
    csn_notify_free(w->notify);
    free(w->start);
    free(w);
}
