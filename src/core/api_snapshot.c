/* api_snapshot.c: csn_snapshot, csn_rollback, csn_undo, csn_discard, csn_fork, csn_pause,
 * csn_resume.
 *
 * They need support of the backend and are never derived: a copy of the workspace is not the
 * state of a sandbox. The name of a snapshot belongs to the backend and is not interpreted. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "core/internal.h"
#include "core/open.h"
#include "core/result.h"

static csn_status unsupported(const csn_sandbox *sb, const char *what, csn_error **err)
{
    return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' cannot %s", sb->ops->name, what);
}

/* The snapshot that a callback of the backend reports, with copies of its texts. */
typedef struct taken {
    csn_arena *arena;
    csn_snapshot_entry entry;
    bool failed;
} taken;

static csn_snapshot_entry copy_entry(csn_arena *a, const csn_snapshot_entry *e)
{
    csn_snapshot_entry to = *e;

    to.name = csn_arena_strdup(a, e->name);
    to.snapshot = csn_arena_strdup(a, e->snapshot);
    to.how = csn_arena_strdup(a, e->how);
    return to;
}

static int note_taken(void *ctx, const csn_snapshot_entry *e)
{
    taken *t = ctx;

    t->entry = copy_entry(t->arena, e);
    t->failed = !t->entry.name || !t->entry.snapshot;
    return 0;
}

static csn_status take_workspace(csn_sandbox *sb, const char *name, uint32_t flags, taken *t,
                                 csn_error **err)
{
    csn_status st = sb->ops->workspace->snapshot(sb->state, name, flags, note_taken, t, err);

    return st == CSN_OK && (t->failed || !t->entry.snapshot)
               ? csn_fail(err, CSN_NOMEM, "snapshot")
               : st;
}

static csn_status take_backend(csn_sandbox *sb, taken *t, csn_error **err)
{
    csn_autofree char *text = NULL;
    csn_status st = sb->ops->snapshots->take(sb->state, &text, err);

    if (st == CSN_OK && !(t->entry.snapshot = csn_arena_strdup(t->arena, text)))
        st = csn_fail(err, CSN_NOMEM, "snapshot");
    return st;
}

static csn_status not_cow(const csn_sandbox *sb, const char *what, csn_error **err)
{
    if (!sb->ops->workspace)
        return unsupported(sb, what, err);
    csn_status st =
        csn_fail(err, CSN_UNSUPPORTED, "cannot %s: the workspace is not copy-on-write", what);
    return csn_error_advise(st, err, "open the sandbox with --cow, or --workspace DIR:cow");
}

static csn_status snapshot_inner(csn_sandbox *sb, const char *name, taken *t, csn_error **err)
{
    if (csn_sandbox_is_cow(sb))
        return take_workspace(sb, name, 0, t, err);
    if (name)
        return not_cow(sb, "name snapshots", err);
    return sb->ops->snapshots ? take_backend(sb, t, err) : not_cow(sb, "make snapshots", err);
}

csn_status csn_snapshot_as(csn_sandbox *sb, const char *name, csn_snapshot_result **ret,
                           csn_error **err)
{
    csn_call c;

    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID,
                        "snapshot: no sandbox or no place for the result given");
    if (name && !*name)
        return csn_fail(err, CSN_INVALID, "snapshot: the name is empty");
    csn_status st = csn_call_begin(&c, sb, "snapshot", name, err);
    if (st < 0)
        return st;
    csn_snapshot_result *r = csn_result_new(sizeof(*r));
    if (!r)
        return csn_call_end(&c, csn_fail(err, CSN_NOMEM, "snapshot"), err);
    taken t = {.arena = csn_result_arena(r)};
    st = snapshot_inner(sb, name, &t, err);
    *r = (csn_snapshot_result){.size = sizeof(*r),
                               .snapshot = t.entry.snapshot,
                               .name = t.entry.name,
                               .how = t.entry.how};
    return csn_call_return(&c, st, r, ret, err);
}

csn_status csn_snapshot(csn_sandbox *sb, csn_snapshot_result **ret, csn_error **err)
{
    return csn_snapshot_as(sb, NULL, ret, err);
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
    if (snapshot && !*snapshot)
        st = csn_fail(err, CSN_INVALID, "rollback: the name of the snapshot is empty");
    else if (csn_sandbox_is_cow(sb))
        st = sb->ops->workspace->rollback(sb->state, snapshot, 0, err);
    else if (!sb->ops->snapshots || !sb->ops->snapshots->rollback)
        st = not_cow(sb, "go back to a snapshot", err);
    else if (!snapshot)
        st = csn_fail(err, CSN_INVALID, "rollback: no snapshot given");
    else
        st = sb->ops->snapshots->rollback(sb->state, snapshot, err);
    return csn_call_end(&c, st, err);
}

/* ---- the snapshots of a copy-on-write workspace ---- */

typedef struct listing {
    csn_arena *arena;
    csn_snapshot_entry *v;
    size_t count, room;
    bool failed;
} listing;

static int note_listed(void *ctx, const csn_snapshot_entry *e)
{
    listing *l = ctx;

    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 16;
        csn_snapshot_entry *v = csn_arena_array(l->arena, room, sizeof(*v));
        for (size_t i = 0; v && i < l->count; i++)
            v[i] = l->v[i];
        l->failed |= !v;
        if (!v)
            return 1;
        l->v = v;
        l->room = room;
    }
    l->v[l->count] = copy_entry(l->arena, e);
    l->failed |= !l->v[l->count++].name;
    return l->failed;
}

static csn_status list_all(csn_sandbox *sb, listing *l, csn_error **err)
{
    if (!csn_sandbox_is_cow(sb))
        return not_cow(sb, "list snapshots", err);
    csn_status st = sb->ops->workspace->snapshots(sb->state, note_listed, l, err);
    return st == CSN_OK && l->failed ? csn_fail(err, CSN_NOMEM, "list snapshots") : st;
}

csn_status csn_snapshots(csn_sandbox *sb, csn_snapshot_list **ret, csn_error **err)
{
    csn_call c;

    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID,
                        "snapshots: no sandbox or no place for the result given");
    csn_status st = csn_call_begin(&c, sb, "snapshots", NULL, err);
    if (st < 0)
        return st;
    c.quiet = true;
    csn_snapshot_list *r = csn_result_new(sizeof(*r));
    if (!r)
        return csn_call_end(&c, csn_fail(err, CSN_NOMEM, "list snapshots"), err);
    listing l = {.arena = csn_result_arena(r)};
    st = list_all(sb, &l, err);
    *r = (csn_snapshot_list){.items = l.v, .count = l.count};
    return csn_call_return(&c, st, r, ret, err);
}

void csn_snapshot_list_free(csn_snapshot_list *l)
{
    csn_result_free(l);
}

static csn_status undo_inner(csn_sandbox *sb, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    listing l = {.arena = a};

    if (!a)
        return csn_fail(err, CSN_NOMEM, "undo");
    csn_status st = list_all(sb, &l, err);
    if (st < 0)
        return st;
    for (size_t i = l.count; i > 0; i--)
        if (l.v[i - 1].automatic)
            return sb->ops->workspace->rollback(sb->state, l.v[i - 1].name, 1, err);
    st = csn_fail(err, CSN_NOT_FOUND, "no command to undo");
    return sb->config->flags & CSN_OPEN_UNDO
               ? st
               : csn_error_advise(st, err,
                                  "open the sandbox with --undo: it then saves the files "
                                  "before each command");
}

csn_status csn_undo(csn_sandbox *sb, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "undo", NULL, err);

    return st < 0 ? st : csn_call_end(&c, undo_inner(sb, err), err);
}

csn_status csn_discard(csn_sandbox *sb, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "discard", NULL, err);

    if (st < 0)
        return st;
    st = csn_sandbox_is_cow(sb) ? sb->ops->workspace->discard(sb->state, err)
                                : not_cow(sb, "discard changes", err);
    return csn_call_end(&c, st, err);
}

/* ---- forks ---- */

static csn_status fork_inner(csn_sandbox *sb, taken *t, csn_error **err)
{
    if (csn_sandbox_is_cow(sb))
        return take_workspace(sb, NULL, CSN_SNAPSHOT_FORK, t, err);
    if (sb->ops->snapshots && (sb->ops->caps & CSN_CAP_FORK))
        return take_backend(sb, t, err);
    return not_cow(sb, "fork a sandbox", err);
}

/* The workspace of a fork may have another path, if it is a copy. */
static const char *below_workspace(const csn_sandbox *sb, const char *workdir)
{
    csn_info_result info = {.size = sizeof(info)};
    bool known = workdir && csn_sandbox_is_cow(sb) && sb->ops->info &&
                 sb->ops->info(sb->state, &info, NULL) == CSN_OK && info.workspace;
    const char *below = known ? csn_path_below(workdir, info.workspace) : NULL;

    return below ? (*below ? below : NULL) : workdir;
}

csn_status csn_fork(csn_sandbox *sb, const char *name, csn_sandbox **ret, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    taken t = {.arena = a};
    csn_call c;

    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID, "fork: no sandbox or no place for the other given");
    csn_status st = csn_call_begin(&c, sb, "fork", NULL, err);
    if (st < 0)
        return st;
    st = a ? fork_inner(sb, &t, err) : csn_fail(err, CSN_NOMEM, "fork");
    st = csn_call_end(&c, st, err);
    if (st < 0)
        return st;
    csn_autofree char *workdir = csn_sandbox_workdir(sb);
    csn_config config = *sb->config;
    config.name = name;
    config.image = t.entry.snapshot;
    config.workdir = below_workspace(sb, workdir);
    config.flags &= ~CSN_OPEN_CREATE;
    return csn_sandbox_open(&config, sb->id, ret, err);
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
