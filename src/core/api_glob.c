/* api_glob.c: csn_glob: finds paths below a directory that match a pattern.
 *
 * The backend walks the tree and base/glob matches. The walk does not follow symlinks, so it
 * terminates and stays inside the sandbox. */

#include "base/glob.h"
#include "base/limits.h"
#include "core/entries.h"
#include "core/internal.h"
#include "core/result.h"

typedef struct globber {
    csn_entries entries;
    const csn_glob_set *set;
} globber;

static int glob_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    globber *g = ctx;

    if (!*path || !csn_glob_match(g->set, path))
        return 0;
    return csn_entries_add(&g->entries, path, st, target);
}

static csn_status glob_inner(csn_call *c, const char *pattern, const char *path, uint32_t flags,
                             csn_file_list *l, csn_error **err)
{
    const char *joined = NULL;
    csn_glob_set *set = NULL;

    csn_status st = csn_glob_compile(pattern, &set, err);
    if (st < 0)
        return st;
    globber g = {.entries = {.arena = csn_result_arena(l), .max = CSN_GLOB_MAX}, .set = set};
    st = csn_call_path(c, path, &joined, err);
    if (st == CSN_OK)
        st = csn_fs_check_dir(&c->fs, joined, flags, path, err);
    if (st == CSN_OK)
        st = csn_fs_walk(&c->fs, joined, flags, glob_entry, &g, err);
    csn_glob_free(set);
    return csn_entries_finish(&g.entries, st, l, err);
}

csn_status csn_glob(csn_sandbox *sb, const char *pattern, const char *path, uint32_t flags,
                    csn_file_list **ret, csn_error **err)
{
    csn_call c;
    csn_status st = csn_flags_check(flags, CSN_FILE_NOFOLLOW, "glob", err);

    if (st == CSN_OK && (!ret || !pattern || !*pattern))
        st = csn_fail(err, CSN_INVALID, "glob: no pattern given");
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "glob", pattern, err);
    if (st < 0)
        return csn_error_note(st, err, "glob", path);
    csn_file_list *l = csn_result_new(sizeof(*l));
    st = l ? glob_inner(&c, pattern, path ? path : ".", flags, l, err)
           : csn_fail(err, CSN_NOMEM, "glob");
    return csn_call_return(&c, st, l, ret, err);
}
