/* api_snapshot.c: csn_snapshot, csn_rollback, csn_fork, csn_pause, csn_resume.
 *
 * They need support of the backend and are never derived: a copy of the workspace is not the
 * state of a sandbox. The name of a snapshot belongs to the backend and is not interpreted. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/internal.h"
#include "core/result.h"

static csn_status unsupported(const csn_sandbox *sb, const char *what, csn_error **err)
{
    return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' cannot %s", sb->ops->name, what);
}

static csn_status take(csn_sandbox *sb, const char *op, bool can, char **ret, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, op, NULL, err);

    if (st < 0)
        return st;
    st = can ? sb->ops->snapshots->take(sb->state, ret, err)
             : unsupported(sb, strcmp(op, "fork") == 0 ? "fork a sandbox" : "make snapshots",
                           err);
    return csn_call_end(&c, st, err);
}

csn_status csn_snapshot(csn_sandbox *sb, csn_snapshot_result **ret, csn_error **err)
{
    csn_autofree char *text = NULL;

    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID,
                        "snapshot: no sandbox or no place for the result given");
    csn_status st = take(sb, "snapshot", sb->ops->snapshots != NULL, &text, err);
    if (st < 0)
        return st;
    csn_snapshot_result *r = csn_result_new(sizeof(*r));
    if (!r)
        return csn_fail(err, CSN_NOMEM, "snapshot");
    r->size = sizeof(*r);
    r->snapshot = csn_arena_strdup(csn_result_arena(r), text);
    if (!r->snapshot) {
        csn_snapshot_result_free(r);
        return csn_fail(err, CSN_NOMEM, "snapshot");
    }
    *ret = r;
    return CSN_OK;
}

void csn_snapshot_result_free(csn_snapshot_result *r)
{
    csn_result_free(r);
}

csn_status csn_rollback(csn_sandbox *sb, const char *snapshot, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "rollback", snapshot, err);

    if (st < 0)
        return st;
    if (!sb->ops->snapshots || !sb->ops->snapshots->rollback)
        st = unsupported(sb, "go back to a snapshot", err);
    else if (!snapshot || !*snapshot)
        st = csn_fail(err, CSN_INVALID, "rollback: no snapshot given");
    else
        st = sb->ops->snapshots->rollback(sb->state, snapshot, err);
    return csn_call_end(&c, st, err);
}

csn_status csn_fork(csn_sandbox *sb, const char *name, csn_sandbox **ret, csn_error **err)
{
    csn_autofree char *text = NULL;

    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID, "fork: no sandbox or no place for the other given");
    bool can = sb->ops->snapshots && (sb->ops->caps & CSN_CAP_FORK);
    csn_status st = take(sb, "fork", can, &text, err);
    if (st < 0)
        return st;
    csn_autofree char *workdir = csn_sandbox_workdir(sb);
    csn_config config = *sb->config;
    config.name = name;
    config.image = text;
    config.workdir = workdir;
    return csn_open(&config, ret, err);
}

static csn_status state_call(csn_sandbox *sb, const char *op, const char *what,
                             csn_status (*fn)(void *state, csn_error **err), csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, op, NULL, err);

    if (st < 0)
        return st;
    return csn_call_end(&c, fn ? fn(sb->state, err) : unsupported(sb, what, err), err);
}

csn_status csn_pause(csn_sandbox *sb, csn_error **err)
{
    return state_call(sb, "pause", "pause a sandbox", sb ? sb->ops->pause : NULL, err);
}

csn_status csn_resume(csn_sandbox *sb, csn_error **err)
{
    return state_call(sb, "resume", "resume a sandbox", sb ? sb->ops->resume : NULL, err);
}
