/* watch.c: the watch operations: change events of a directory, without paths the agent may not
 * read.
 *
 * A watch is used by one thread at a time. It holds its own descriptors, so it stays valid when
 * the directory is moved. It ends with the keeper: a wait also polls the keeper's pidfd, and
 * the descriptor that the core makes readable when the sandbox is closed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "os/watch.h"
#include "runtime/files.h"
#include "runtime/link.h"

typedef struct watch {
    csn_runtime *rt;
    csn_notify *notify;
    char *start; /* path of the directory for the rules; NULL: report every event */
} watch;

static csn_status no_instance(csn_error **err)
{
    csn_status st = csn_fail(err, CSN_UNAVAILABLE, "this user has no inotify instance left");

    return csn_error_advise(st, err, "raise the limit: sysctl fs.inotify.max_user_instances");
}

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
        return rc == -EUSERS ? no_instance(err) : csn_target_fail(&t, -rc, err);
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

void csn_runtime_set_stop_fd(void *state, int32_t stop_fd)
{
    csn_runtime *rt = state;

    rt->stop_fd = stop_fd;
}

static csn_status fail(watch *w, int rc, csn_error **err)
{
    switch (rc) {
    case 0:
        return csn_fail(err, CSN_TIMEOUT, "nothing changed");
    case -ESHUTDOWN:
        return csn_link_lost(w->rt, err);
    case -ECANCELED:
        return csn_fail(err, CSN_CANCELLED, "sandbox '%s' is being closed", w->rt->id);
    case -ENOENT:
        return csn_fail(err, CSN_NOT_FOUND, "the watched directory was removed");
    default:
        return csn_fail_errno(err, -rc, "watch");
    }
}

/* A thread may start the keeper during the call. */
static int keeper_pidfd(csn_runtime *rt)
{
    pthread_mutex_lock(&rt->keeper_lock);
    int fd = rt->keeper_pidfd;
    pthread_mutex_unlock(&rt->keeper_lock);
    return fd;
}

csn_status csn_runtime_watch_next(void *handle, uint64_t timeout_ms, csn_event *ret,
                                  csn_error **err)
{
    watch *w = handle;
    csn_notify_event n;
    const csn_notify_wait wait = {.deadline_ns = csn_deadline_in(timeout_ms),
                                  .end_fd = keeper_pidfd(w->rt),
                                  .stop_fd = w->rt->stop_fd};

    do {
        int rc = csn_notify_next(w->notify, &wait, &n);
        if (rc <= 0)
            return fail(w, rc, err);
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
