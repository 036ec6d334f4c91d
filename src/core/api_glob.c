/* api_glob.c: csn_glob: finds paths below a directory that match a pattern.
 *
 * The backend walks the tree and base/glob matches. The walk does not follow symlinks, so it
 * terminates and stays inside the sandbox. */

#include <errno.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "base/limits.h"
#include "core/entries.h"
#include "core/ignore_files.h"
#include "core/internal.h"
#include "core/result.h"

typedef struct globber {
    csn_entries entries;
    const csn_glob_set *set;
    csn_ignore *ignore; /* or NULL */
    csn_ignore_files ignores;
} globber;

static int glob_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    globber *g = ctx;

    if (g->ignore && csn_ignore_files_note(&g->ignores, path, st) != 0) {
        g->entries.err = ENOMEM;
        return 1;
    }
    if (!*path || !csn_glob_match(g->set, path))
        return 0;
    return csn_entries_add(&g->entries, path, st, target);
}

/* Removes the entries that the ignore files name. */
static csn_status drop_ignored(csn_call *c, globber *g, const char *joined, csn_error **err)
{
    csn_status st = csn_ignore_files_load(&g->ignores, &c->fs, joined, g->ignore, err);
    size_t kept = 0;

    for (size_t i = 0; st == CSN_OK && i < g->entries.count; i++) {
        const csn_file_info *e = &g->entries.items[i];
        if (!csn_ignore_hides(g->ignore, e->path, S_ISDIR(e->mode)))
            g->entries.items[kept++] = *e;
    }
    if (st == CSN_OK)
        g->entries.count = kept;
    return st;
}

static csn_status glob_inner(csn_call *c, const char *pattern, const char *path, uint32_t flags,
                             csn_file_list *l, csn_error **err)
{
    const char *joined = NULL;
    csn_glob_set *set = NULL;
    uint32_t nofollow = flags & CSN_FILE_NOFOLLOW;

    csn_status st = csn_glob_compile(pattern, &set, err);
    if (st < 0)
        return st;
    globber g = {.entries = {.arena = csn_result_arena(l), .max = CSN_GLOB_MAX}, .set = set};
    st = csn_call_path(c, path, &joined, err);
    if (st == CSN_OK)
        st = csn_fs_check_dir(&c->fs, joined, nofollow, path, err);
    if (st == CSN_OK && (flags & CSN_FILE_GITIGNORE))
        st = csn_ignore_files_above(&c->fs, joined, &g.ignore, err);
    if (st == CSN_OK)
        st = csn_fs_walk(&c->fs, joined, nofollow, glob_entry, &g, err);
    if (st == CSN_OK && g.ignore)
        st = drop_ignored(c, &g, joined, err);
    csn_ignore_free(g.ignore);
    csn_ignore_files_release(&g.ignores);
    csn_glob_free(set);
    return csn_entries_finish(&g.entries, st, l, err);
}

csn_status csn_glob(csn_sandbox *sb, const char *pattern, const char *path, uint32_t flags,
                    csn_file_list **ret, csn_error **err)
{
    csn_call c;
    csn_status st = csn_flags_check(flags, CSN_FILE_NOFOLLOW | CSN_FILE_GITIGNORE, "glob", err);

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
