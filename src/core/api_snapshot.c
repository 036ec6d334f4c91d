/* api_snapshot.c: the state of a sandbox as a whole: kept, gone back to, forked; paused and
 * resumed.
 *
 * Called by programs and the CLI. Only backends that have such a thing are asked for it;
 * nothing is derived, because a copy of the workspace would not be the sandbox. What names a
 * snapshot is the backend's and is not interpreted here. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/internal.h"
#include "core/open.h"
#include "core/result.h"

static csn_status lacks(const csn_sandbox *sb, const char *what, csn_error **err)
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
             : lacks(sb, strcmp(op, "fork") == 0 ? "fork a sandbox" : "make snapshots", err);
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
        st = lacks(sb, "go back to a snapshot", err);
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

csn_status csn_pause(csn_sandbox *sb, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "pause", NULL, err);

    if (st < 0)
        return st;
    st = sb->ops->pause ? sb->ops->pause(sb->state, err) : lacks(sb, "pause a sandbox", err);
    return csn_call_end(&c, st, err);
}

csn_status csn_resume(csn_sandbox *sb, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "resume", NULL, err);

    if (st < 0)
        return st;
    st = sb->ops->resume ? sb->ops->resume(sb->state, err) : lacks(sb, "resume a sandbox", err);
    return csn_call_end(&c, st, err);
}
