/* tool_workspace.c: the tools diff, commit, discard, snapshot, rollback and undo, which a
 * server offers if its sandboxes have a copy-on-write workspace.
 *
 * A model cannot write protected files to the host: commit holds them back, and only the user
 * has an option for them. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "mcp/tool.h"
#include "wire/workspace_json.h"

#define TEXT_MAX  (64u * 1024u * 1024u)
#define LINES_MAX 200u /* changes in the text of an answer */

CSN_DEFINE_CLEANUP(csn_diff_result, csn_diff_result_free)
CSN_DEFINE_CLEANUP(csn_commit_result, csn_commit_result_free)
CSN_DEFINE_CLEANUP(csn_snapshot_result, csn_snapshot_result_free)

static csn_status finish(csn_tool_call *c, const csn_buf *text, csn_error **err)
{
    if (text->err != 0)
        return csn_fail_errno(err, text->err, "answer");
    csn_tool_result_text(c->out, text->data ? text->data : "", text->len);
    if (c->note)
        csn_tool_result_text(c->out, c->note, strlen(c->note));
    return CSN_OK;
}

/* One line for each change: what it is, or what commit did with it, and why. */
static void put_changes(csn_buf *to, const csn_change *changes, size_t count)
{
    for (size_t i = 0; i < count && i < LINES_MAX; i++) {
        const csn_change *c = &changes[i];
        const char *outcome = csn_wire_outcome_name(c->outcome);
        const char *why = c->why ? c->why : c->held;
        csn_buf_printf(to, "%s %s", outcome ? outcome : csn_wire_change_name(c->kind), c->path);
        if (c->lines_added || c->lines_removed)
            csn_buf_printf(to, " +%" PRIu64 " -%" PRIu64, c->lines_added, c->lines_removed);
        csn_buf_printf(to, why ? " (%s)\n" : "\n", why);
    }
    if (count > LINES_MAX)
        csn_buf_printf(to, "... and %zu more\n", count - LINES_MAX);
}

csn_status csn_tool_diff(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    CSN_CLEANUP(csn_diff_result_freep) csn_diff_result *r = NULL;
    csn_diff_opts o = {.size = sizeof(o), .flags = CSN_DIFF_COUNTS};
    bool patch = true;
    csn_autobuf text;

    csn_buf_init(&text, TEXT_MAX);
    if (!a)
        return csn_fail(err, CSN_NOMEM, "diff");
    csn_status st = csn_tool_args(c, (csn_tool_arg[]){{"patch", .flag = &patch}, {0}}, err);
    if (st == CSN_OK)
        st = csn_jget_strv(c->args, "paths", a, &o.paths, err);
    o.flags |= patch ? CSN_DIFF_PATCH : 0;
    if (st == CSN_OK)
        st = csn_diff(c->sb, &o, &r, err);
    if (st < 0)
        return st;
    put_changes(&text, r->changes, r->count);
    if (r->count == 0)
        csn_buf_puts(&text, "no changes");
    if (r->patch && r->patch_len > c->output_max) {
        csn_buf_printf(&text, "The patch has %zu bytes and is left out: ask for single paths.",
                       r->patch_len);
        r->patch = NULL;
    } else if (r->patch) {
        csn_buf_append(&text, r->patch, r->patch_len);
    }
    csn_wire_diff(csn_tool_result_data(c->out), r);
    return finish(c, &text, err);
}

csn_status csn_tool_commit(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    CSN_CLEANUP(csn_commit_result_freep) csn_commit_result *r = NULL;
    csn_commit_opts o = {.size = sizeof(o)};
    const char *conflicts = NULL;
    bool dry = false;
    csn_autobuf text;

    csn_buf_init(&text, TEXT_MAX);
    if (!a)
        return csn_fail(err, CSN_NOMEM, "commit");
    csn_status st = csn_tool_args(
        c, (csn_tool_arg[]){{"dry_run", .flag = &dry}, {"conflicts", .text = &conflicts}, {0}},
        err);
    if (st == CSN_OK)
        st = csn_jget_strv(c->args, "paths", a, &o.paths, err);
    o.flags = dry ? CSN_COMMIT_DRY_RUN : 0;
    if (conflicts)
        o.flags |= strcmp(conflicts, "theirs") == 0 ? CSN_COMMIT_THEIRS : CSN_COMMIT_MINE;
    if (st == CSN_OK)
        st = csn_commit(c->sb, &o, &r, err);
    if (st < 0)
        return st;
    csn_buf_puts(&text, r->written              ? "The changes are on the host.\n"
                        : r->conflict_count > 0 ? "Conflicts: nothing was written.\n"
                                                : "Dry run: nothing was written.\n");
    put_changes(&text, r->changes, r->count);
    csn_commit_result brief = *r; /* without the contents of conflicts */
    brief.conflict_count = 0;
    csn_wire_commit(csn_tool_result_data(c->out), &brief);
    c->out->is_error = r->conflict_count > 0;
    return finish(c, &text, err);
}

csn_status csn_tool_snapshot(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_snapshot_result_freep) csn_snapshot_result *r = NULL;
    const char *name = NULL;
    csn_autobuf text;

    csn_buf_init(&text, TEXT_MAX);
    csn_status st = csn_tool_args(c, (csn_tool_arg[]){{"name", .text = &name}, {0}}, err);
    if (st == CSN_OK)
        st = csn_snapshot_as(c->sb, name, &r, err);
    if (st < 0)
        return st;
    csn_buf_printf(&text, "Saved as %s", r->name);
    csn_wire_snapshot(csn_tool_result_data(c->out), r);
    return finish(c, &text, err);
}

static csn_status done(csn_tool_call *c, const char *what, csn_error **err)
{
    csn_json *j = csn_tool_result_data(c->out);
    csn_autobuf text;

    csn_buf_init(&text, TEXT_MAX);
    csn_json_object(j);
    csn_json_kbool(j, "ok", true);
    csn_json_object_end(j);
    csn_buf_puts(&text, what);
    return finish(c, &text, err);
}

csn_status csn_tool_rollback(csn_tool_call *c, csn_error **err)
{
    const char *name = NULL;
    csn_status st = csn_tool_args(c, (csn_tool_arg[]){{"name", .text = &name}, {0}}, err);

    if (st == CSN_OK)
        st = csn_rollback(c->sb, name, err);
    return st < 0 ? st : done(c, "The files of the snapshot are restored.", err);
}

csn_status csn_tool_undo(csn_tool_call *c, csn_error **err)
{
    csn_status st = csn_undo(c->sb, err);

    return st < 0 ? st : done(c, "The files are as before the last command.", err);
}

csn_status csn_tool_discard(csn_tool_call *c, csn_error **err)
{
    csn_status st = csn_discard(c->sb, err);

    return st < 0 ? st : done(c, "All changes and snapshots are gone.", err);
}
