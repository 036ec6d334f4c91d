/* api_diff.c: csn_diff: what a sandbox changed in its copy-on-write workspace.
 *
 * Commands may run meanwhile and control names and contents; the walk follows no link
 * (layers/changes.h). */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/change_rows.h"
#include "core/result.h"
#include "layers/diff.h"
#include "text/patch.h"

#define DIFF_FLAGS (CSN_DIFF_PATCH | CSN_DIFF_COUNTS | CSN_DIFF_HASHES)

static csn_status fill_patch(const csn_layer_stack *stack, const csn_layer_changes *changes,
                             csn_diff_result *r, csn_error **err)
{
    csn_autobuf patch;

    csn_buf_init(&patch, CSN_PATCH_BYTES_MAX);
    csn_status st = csn_diff_patch_write_all(stack, changes, CSN_PATCH_CONTEXT, &patch, err);
    if (st < 0)
        return st;
    r->patch = csn_arena_memdup(csn_result_arena(r), patch.data ? patch.data : "", patch.len);
    r->patch_len = patch.len;
    return r->patch ? CSN_OK : csn_fail(err, CSN_NOMEM, "diff");
}

static csn_status fill(csn_sandbox *sb, const csn_diff_opts *o, const csn_layer_access *access,
                       csn_layer_changes *changes, csn_diff_result *r, csn_error **err)
{
    csn_commit_guard *guard = NULL;
    csn_change *rows = NULL;
    csn_status st = csn_layer_changes_list(&access->stack, o->paths, changes, err);

    if (st == CSN_OK)
        st = csn_commit_guard_new(sb->config, &access->stack, changes, &guard, err);
    if (st == CSN_OK)
        st = csn_change_rows(csn_result_arena(r), access, changes, guard, o->flags, &rows, err);
    if (st == CSN_OK && (o->flags & CSN_DIFF_PATCH))
        st = fill_patch(&access->stack, changes, r, err);
    csn_commit_guard_free(guard);
    r->changes = rows;
    r->count = changes->count;
    return st;
}

static csn_status diff_inner(csn_sandbox *sb, const csn_diff_opts *o, csn_diff_result *r,
                             csn_error **err)
{
    csn_layer_changes changes = {0};
    csn_layer_access access;
    csn_status st = csn_layer_access_recover(sb, &access, err);

    if (st == CSN_OK)
        st = fill(sb, o, &access, &changes, r, err);
    csn_layer_changes_release(&changes);
    csn_layer_access_close(&access);
    return st;
}

csn_status csn_diff(csn_sandbox *sb, const csn_diff_opts *opts, csn_diff_result **ret,
                    csn_error **err)
{
    csn_diff_opts o;
    csn_call c;

    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID, "diff: no sandbox or no place for the result given");
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "diff", err);
    if (st == CSN_OK)
        st = csn_flags_check(o.flags, DIFF_FLAGS, "diff", err);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "diff", NULL, err);
    if (st < 0)
        return st;
    csn_diff_result *r = csn_result_new(sizeof(*r));
    if (!r)
        return csn_call_end(&c, csn_fail(err, CSN_NOMEM, "diff"), err);
    r->size = sizeof(*r);
    st = diff_inner(sb, &o, r, err);
    c.event.count = st == CSN_OK ? r->count : 0;
    return csn_call_return(&c, st, r, ret, err);
}

void csn_diff_result_free(csn_diff_result *r)
{
    csn_result_free(r);
}
