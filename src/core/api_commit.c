/* api_commit.c: csn_commit: writes changes of a copy-on-write workspace to the host.
 *
 * Nothing is written while a command runs: it could change a file between the check and the
 * copy. Protected files are held back (commit_guard.h). The base is the user's and may change
 * at any time; csn_commit_apply compares it again. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/change_rows.h"
#include "core/result.h"
#include "layers/commit.h"
#include "layers/originals.h"
#include "text/merge3.h"

#define COMMIT_FLAGS                                                                           \
    (CSN_COMMIT_DRY_RUN | CSN_COMMIT_PROTECTED | CSN_COMMIT_MINE | CSN_COMMIT_THEIRS)
#define VERSION_MAX (1024u * 1024u) /* of one version of a file with a conflict */

/* One call of csn_commit. */
typedef struct commit {
    csn_sandbox *sb;
    csn_commit_opts opts;
    csn_layer_access access;
    csn_layer_changes changes;
    csn_commit_guard *guard;
    csn_commit_request request;
    csn_commit_plan plan;
    csn_change *rows;
} commit;

static const char *protects(void *ctx, const csn_layer_change *change)
{
    const commit *c = ctx;

    return c->opts.flags & CSN_COMMIT_PROTECTED ? NULL
                                                : csn_commit_guard_rule(c->guard, change);
}

static csn_status original(void *ctx, const csn_layer_change *change, csn_original *ret,
                           csn_error **err)
{
    const commit *c = ctx;
    int rc = csn_original_find(c->access.originals, change->path, ret);

    return rc < 0 ? csn_fail_errno(err, -rc, "original of '%s'", change->path) : CSN_OK;
}

/* Where both sides are equal now, that is what later changes are compared with. A merged file
 * keeps its original: the sandbox does not have the host's part. A path whose original cannot
 * be kept is compared by time. */
static void keep_originals(const commit *c)
{
    for (size_t i = 0; c->access.originals >= 0 && i < c->plan.count; i++) {
        const csn_commit_item *item = &c->plan.v[i];
        if (item->verdict == CSN_COMMIT_APPLY)
            (void)csn_original_replace(c->access.originals, c->access.stack.base,
                                       item->change->path);
    }
    if (c->access.originals >= 0)
        csn_originals_intend_end(c->access.originals);
}

static csn_status check_opts(const csn_commit_opts *o, csn_error **err)
{
    csn_status st = csn_flags_check(o->flags, COMMIT_FLAGS, "commit", err);

    if (st == CSN_OK && (o->flags & CSN_COMMIT_MINE) && (o->flags & CSN_COMMIT_THEIRS))
        st = csn_fail(err, CSN_INVALID, "commit: MINE and THEIRS exclude each other");
    for (size_t i = 0; st == CSN_OK && i < o->resolved_count; i++)
        if (!o->resolved || !o->resolved[i].path ||
            (o->resolved[i].size && !o->resolved[i].data))
            st = csn_fail(err, CSN_INVALID, "commit: a resolution has no path or no content");
    return st;
}

/* ---- the versions of a conflict ---- */

/* Reads a descriptor of at most VERSION_MAX bytes. NULL: too large or not readable. */
static const char *read_version(csn_arena *a, int fd, size_t *ret_len)
{
    struct stat st;
    size_t len = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > VERSION_MAX)
        return NULL;
    char *text = csn_arena_alloc(a, (size_t)st.st_size + 1);
    while (text && len < (size_t)st.st_size) {
        ssize_t n = pread(fd, text + len, (size_t)st.st_size - len, (off_t)len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    *ret_len = len;
    return text;
}

static const char *link_version(csn_arena *a, const csn_layer_stack *s,
                                const csn_layer_change *c, bool after, size_t *ret_len)
{
    csn_autofree char *text = csn_layer_readlink(s, c, after);

    *ret_len = text ? strlen(text) : 0;
    return csn_arena_strdup(a, text);
}

static const char *side_version(csn_arena *a, const csn_layer_stack *s,
                                const csn_layer_change *c, bool after, size_t *ret_len)
{
    uint32_t mode = after ? c->after.mode : c->before.mode;

    if (S_ISLNK(mode))
        return link_version(a, s, c, after, ret_len);
    csn_autofd int fd = S_ISREG(mode) ? csn_layer_open(s, c, after) : -1;
    return read_version(a, fd, ret_len);
}

static void fill_base(commit *c, csn_arena *a, const csn_layer_change *change, csn_conflict *to)
{
    csn_original o = {.content = -1};

    if (!c->request.original || c->request.original(c->request.ctx, change, &o, NULL) < 0)
        return;
    to->base = read_version(a, o.content, &to->base_len);
    if (o.content >= 0)
        close(o.content);
}

/* Texts with conflict markers, if all versions are there. */
static void fill_merged(csn_arena *a, csn_conflict *to)
{
    const csn_merge3_opts labels = {.ours = "host", .theirs = "sandbox", .base = "base"};
    csn_merge3_result merged;
    csn_autobuf text;

    csn_buf_init(&text, 4u * VERSION_MAX);
    if (!to->base || !to->host || !to->sandbox ||
        csn_merge3((csn_text){to->base, to->base_len}, (csn_text){to->host, to->host_len},
                   (csn_text){to->sandbox, to->sandbox_len}, &labels, &text, &merged,
                   NULL) < 0 ||
        merged.binary)
        return;
    to->merged = csn_arena_memdup(a, text.data ? text.data : "", text.len);
    to->merged_len = to->merged ? text.len : 0;
}

static csn_status fill_conflicts(commit *c, csn_commit_result *r, csn_error **err)
{
    csn_arena *a = csn_result_arena(r);
    csn_conflict *v = csn_arena_array(a, c->plan.conflicts + 1, sizeof(*v));

    if (!v)
        return csn_fail(err, CSN_NOMEM, "conflicts");
    for (size_t i = 0; i < c->plan.count && r->conflict_count < c->plan.conflicts; i++) {
        const csn_commit_item *item = &c->plan.v[i];
        if (item->verdict != CSN_COMMIT_CONFLICT)
            continue;
        csn_conflict *to = &v[r->conflict_count++];
        *to = (csn_conflict){.path = c->rows[i].path, .why = c->rows[i].why};
        to->host = side_version(a, &c->access.stack, item->change, false, &to->host_len);
        to->sandbox = side_version(a, &c->access.stack, item->change, true, &to->sandbox_len);
        fill_base(c, a, item->change, to);
        fill_merged(a, to);
    }
    r->conflicts = v;
    return CSN_OK;
}

/* ---- the result ---- */

static csn_commit_outcome outcome_of(csn_commit_verdict verdict)
{
    switch (verdict) {
    case CSN_COMMIT_APPLY:
        return CSN_OUTCOME_APPLIED;
    case CSN_COMMIT_MERGE:
        return CSN_OUTCOME_MERGED;
    case CSN_COMMIT_SAME:
        return CSN_OUTCOME_SAME;
    case CSN_COMMIT_CONFLICT:
        return CSN_OUTCOME_CONFLICT;
    case CSN_COMMIT_KEEP:
        return CSN_OUTCOME_KEPT;
    case CSN_COMMIT_HELD:
        return CSN_OUTCOME_HELD;
    }
    return CSN_OUTCOME_NONE;
}

static csn_status fill_result(commit *c, csn_commit_result *r, csn_error **err)
{
    csn_arena *a = csn_result_arena(r);
    csn_status st = csn_change_rows(a, &c->access, &c->changes, c->guard, 0, &c->rows, err);

    for (size_t i = 0; st == CSN_OK && i < c->plan.count; i++) {
        const csn_commit_item *item = &c->plan.v[i];
        c->rows[i].outcome = outcome_of(item->verdict);
        c->rows[i].why = csn_arena_strdup(a, item->why);
        r->applied += item->verdict == CSN_COMMIT_APPLY;
        r->merged += item->verdict == CSN_COMMIT_MERGE;
        r->held += item->verdict == CSN_COMMIT_HELD;
        if (item->why && !c->rows[i].why)
            st = csn_fail(err, CSN_NOMEM, "commit");
    }
    r->changes = c->rows;
    r->count = c->plan.count;
    return st == CSN_OK && c->plan.conflicts > 0 ? fill_conflicts(c, r, err) : st;
}

/* ---- the call ---- */

static csn_status make_plan(commit *c, csn_error **err)
{
    csn_status st = csn_layer_changes_list(&c->access.stack, c->opts.paths, &c->changes, err);

    if (st == CSN_OK)
        st = csn_commit_guard_new(c->sb->config, &c->access.stack, &c->changes, &c->guard, err);
    if (st < 0)
        return st;
    c->request =
        (csn_commit_request){.stack = &c->access.stack,
                             .changes = &c->changes,
                             .since = c->access.since,
                             .rule = c->opts.flags & CSN_COMMIT_MINE     ? CSN_CONFLICT_HOST
                                     : c->opts.flags & CSN_COMMIT_THEIRS ? CSN_CONFLICT_SANDBOX
                                                                         : CSN_CONFLICT_STOP,
                             .resolved = (const csn_commit_resolution *)c->opts.resolved,
                             .resolved_count = c->opts.resolved_count,
                             .original = c->access.originals >= 0 ? original : NULL,
                             .protects = protects,
                             .ctx = c};
    return csn_commit_plan_make(&c->request, &c->plan, err);
}

_Static_assert(sizeof(csn_commit_resolution) == sizeof(csn_resolution) &&
                   offsetof(csn_commit_resolution, data) == offsetof(csn_resolution, data) &&
                   offsetof(csn_commit_resolution, size) == offsetof(csn_resolution, size),
               "the public struct is passed on as it is");

/* The overlay that is mounted has not seen the files that are about to be committed in its
 * base. If they are removed where it thinks that the upper layer alone has them, no trace of
 * that remains, and the next mount would show them again. In a frozen layer it knows them. */
static csn_status freeze(commit *c, csn_error **err)
{
    csn_status st = c->sb->ops->workspace->freeze(c->sb->state, err);

    csn_layer_access_close(&c->access);
    return st < 0 ? st : csn_layer_access_open(c->sb, &c->access, err);
}

static csn_status commit_inner(commit *c, csn_commit_result *r, csn_error **err)
{
    bool dry = (c->opts.flags & CSN_COMMIT_DRY_RUN) != 0;
    csn_status st = csn_layer_access_recover(c->sb, &c->access, err);

    if (st == CSN_OK && c->access.running && !dry) {
        st = csn_fail(err, CSN_CONFLICT, "a command runs and may change the files");
        return csn_error_advise(st, err,
                                "wait for the command or end it; a dry run is possible");
    }
    if (st == CSN_OK && !dry)
        st = freeze(c, err);
    if (st == CSN_OK)
        st = make_plan(c, err);
    if (st == CSN_OK)
        st = fill_result(c, r, err);
    if (st < 0 || dry || c->plan.conflicts > 0)
        return st;
    if (c->access.originals >= 0)
        (void)csn_originals_intend(c->access.originals, &c->plan);
    st = csn_commit_apply(&c->request, &c->plan, c->access.store, err);
    r->written = st == CSN_OK;
    if (st == CSN_OK)
        keep_originals(c);
    return st;
}

static void commit_release(commit *c)
{
    csn_commit_plan_release(&c->plan);
    csn_commit_guard_free(c->guard);
    csn_layer_changes_release(&c->changes);
    csn_layer_access_close(&c->access);
}

csn_status csn_commit(csn_sandbox *sb, const csn_commit_opts *opts, csn_commit_result **ret,
                      csn_error **err)
{
    commit c = {.sb = sb, .access = {.stack = {.base = -1}, .store = -1, .originals = -1}};
    csn_call call;

    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID,
                        "commit: no sandbox or no place for the result given");
    csn_status st = csn_opts_take(opts, &c.opts, sizeof(c.opts), "commit", err);
    if (st == CSN_OK)
        st = check_opts(&c.opts, err);
    if (st == CSN_OK)
        st = csn_call_begin(&call, sb, "commit", NULL, err);
    if (st < 0)
        return st;
    csn_commit_result *r = csn_result_new(sizeof(*r));
    if (!r)
        return csn_call_end(&call, csn_fail(err, CSN_NOMEM, "commit"), err);
    r->size = sizeof(*r);
    st = commit_inner(&c, r, err);
    commit_release(&c);
    call.event.count = st == CSN_OK && r->written ? r->applied + r->merged : 0;
    return csn_call_return(&call, st, r, ret, err);
}

void csn_commit_result_free(csn_commit_result *r)
{
    csn_result_free(r);
}
