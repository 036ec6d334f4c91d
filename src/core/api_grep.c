/* api_grep.c: csn_grep: finds matching lines in a file or a tree.
 *
 * A backend on this machine opens the directory, and search/tree_grep searches it on several
 * threads. For other backends, and for a single file, the backend walks and reads: the files
 * go to search/line_scan in sorted order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/limits.h"
#include "base/path.h"
#include "core/cancel.h"
#include "core/entries.h"
#include "core/ignore_files.h"
#include "core/internal.h"
#include "core/result.h"
#include "search/tree_grep.h"

/* One file of a derived search. */
typedef struct reading {
    csn_line_scan scan;
    const csn_cancel *cancel;
} reading;

static int reading_write(void *ctx, int stream, const void *data, size_t len)
{
    reading *r = ctx;

    (void)stream;
    if (csn_cancel_fired(r->cancel)) {
        r->scan.hits->st = CSN_CANCELLED;
        return CSN_SINK_STOP;
    }
    return csn_line_scan_feed(&r->scan, data, len) ? CSN_SINK_MORE : CSN_SINK_STOP;
}

/* Returns false to stop the search. Files that cannot be read are skipped. */
static bool grep_file(csn_call *c, reading *r, const char *joined, const char *shown)
{
    csn_file_stat fst;
    csn_sink sink = {.write = reading_write, .ctx = r};
    const csn_hits *h = r->scan.hits;

    csn_line_scan_start(&r->scan, shown);
    csn_status st = csn_fs_read(&c->fs, joined, 0, 0, CSN_GREP_FILE_MAX, &sink, &fst, NULL);
    if (st == CSN_OK)
        csn_line_scan_end(&r->scan);
    return h->st == CSN_OK && !h->truncated;
}

/* ---- which files ---- */

typedef struct chosen {
    csn_glob_set *glob; /* or NULL: all */
    bool by_name;       /* the glob has no slash and matches names at any depth */
    csn_ignore *ignore; /* or NULL */
    const csn_search_root *root;
} chosen;

static bool is_chosen(const chosen *ch, const char *path)
{
    return !ch->glob || csn_glob_match(ch->glob, ch->by_name ? csn_path_base(path) : path);
}

/* ---- by walk and read ---- */

typedef struct finder {
    csn_entries entries;
    csn_ignore_files ignores;
    const chosen *chosen;
} finder;

static int find_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    finder *f = ctx;

    if (f->chosen->ignore && csn_ignore_files_note(&f->ignores, path, st) != 0) {
        f->entries.err = ENOMEM;
        return 1;
    }
    if (!S_ISREG(st->mode) || (*path && !is_chosen(f->chosen, path)))
        return 0;
    return csn_entries_add(&f->entries, path, st, target);
}

static csn_status grep_derived(csn_call *c, csn_hits *h, const csn_grep_opts *o,
                               const chosen *ch, const char *joined, csn_error **err)
{
    finder f = {.entries = {.arena = h->arena, .max = CSN_GLOB_MAX}, .chosen = ch};
    csn_status st = csn_fs_walk(&c->fs, joined, 0, find_entry, &f, err);
    reading r = {.cancel = o->cancel};

    csn_line_scan_init(&r.scan, h);
    csn_entries_sort(&f.entries);
    if (st == CSN_OK && ch->ignore)
        st = csn_ignore_files_load(&f.ignores, &c->fs, joined, ch->ignore, err);
    bool more = f.entries.err == 0;
    for (size_t i = 0; st == CSN_OK && more && i < f.entries.count; i++) {
        csn_autofree char *full = NULL;
        const char *rel = f.entries.items[i].path;
        if (*rel && ch->ignore && csn_ignore_hides(ch->ignore, rel, false))
            continue; /* a file that the caller named is searched */
        if (asprintf(&full, "%s%s%s", joined, *rel ? "/" : "", rel) < 0) {
            full = NULL;
            f.entries.err = ENOMEM;
            break;
        }
        more = grep_file(c, &r, full, *rel ? rel : o->path ? o->path : ".");
    }
    csn_line_scan_release(&r.scan);
    if (st == CSN_OK && f.entries.err != 0)
        st = csn_fail(err, CSN_NOMEM, "grep");
    free(f.entries.items);
    csn_ignore_files_release(&f.ignores);
    return st;
}

/* ---- in a directory of this machine ---- */

typedef struct tree {
    csn_hits *hits;
    const csn_cancel *cancel;
    chosen chosen;
} tree;

static bool tree_may_read(void *ctx, const char *path)
{
    const csn_search_root *root = ((const tree *)ctx)->chosen.root;

    return !root->may_read || root->may_read(root->ctx, path);
}

static bool tree_file(void *ctx, const char *path)
{
    return is_chosen(&((const tree *)ctx)->chosen, path) && tree_may_read(ctx, path);
}

/* Enters also directories that may not be read: a more specific rule may allow entries. */
static bool tree_dir(void *ctx, const char *path)
{
    const tree *t = ctx;

    return !t->chosen.glob || t->chosen.by_name || csn_glob_may_descend(t->chosen.glob, path);
}

static bool tree_cancelled(void *ctx)
{
    return csn_cancel_fired(((const tree *)ctx)->cancel);
}

static void tree_run(void *ctx, const csn_search_root *root)
{
    tree *t = ctx;
    const csn_tree_grep g = {.dir = root->dir,
                             .filter = {.file = tree_file,
                                        .dir = tree_dir,
                                        .ctx = t,
                                        .ignore = t->chosen.ignore,
                                        .may_read = tree_may_read},
                             .cancelled = t->cancel ? tree_cancelled : NULL,
                             .ctx = t};

    t->chosen.root = root;
    csn_tree_grep_run(&g, t->hits);
}

static csn_status grep_tree(csn_call *c, csn_hits *h, const csn_grep_opts *o,
                            const char *joined, csn_error **err)
{
    const csn_file_ops *files = csn_fs_files(&c->fs);
    tree t = {.hits = h, .cancel = o->cancel};
    csn_status st = o->glob ? csn_glob_compile(o->glob, &t.chosen.glob, err) : CSN_OK;

    if (st < 0)
        return st;
    t.chosen.by_name = o->glob && !strchr(o->glob, '/');
    if (o->flags & CSN_GREP_GITIGNORE)
        st = csn_ignore_files_above(&c->fs, joined, &t.chosen.ignore, err);
    if (st == CSN_OK)
        st = files->search ? files->search(c->fs.state, joined, tree_run, &t, err)
                           : CSN_UNSUPPORTED;
    if (st == CSN_UNSUPPORTED)
        st = grep_derived(c, h, o, &t.chosen, joined, err);
    csn_glob_free(t.chosen.glob);
    csn_ignore_free(t.chosen.ignore);
    return st;
}

static csn_status grep_inner(csn_call *c, const char *pattern, const csn_grep_opts *o,
                             csn_grep_result *r, csn_error **err)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *m = NULL;
    const char *joined = NULL;

    csn_status st = csn_matcher_new(pattern, o->flags, &m, err);
    if (st == CSN_OK)
        st = csn_call_path(c, o->path ? o->path : ".", &joined, err);
    if (st < 0)
        return st;
    csn_hits s = {.arena = csn_result_arena(r),
                  .matcher = m,
                  .context = o->context,
                  .max = o->max ? o->max : CSN_GREP_MATCHES_DEFAULT};
    st = grep_tree(c, &s, o, joined, err);
    if (st == CSN_OK && s.st == CSN_UNAVAILABLE) /* no more descriptors */
        st = csn_fail_errno(err, EMFILE, "grep '%s'", pattern);
    if (st == CSN_OK && s.st < 0)
        st = csn_fail(err, s.st, "grep '%s': %s", pattern,
                      s.st == CSN_TOO_LARGE ? "the pattern takes too many steps"
                                            : csn_status_text(s.st));
    csn_grep_match *items =
        st == CSN_OK ? csn_arena_array(s.arena, s.count + 1, sizeof(*items)) : NULL;
    if (items && s.count > 0)
        memcpy(items, s.items, s.count * sizeof(*items));
    free(s.items);
    if (st == CSN_OK && !items)
        st = csn_fail(err, CSN_NOMEM, "grep");
    *r = (csn_grep_result){.items = items, .count = s.count, .truncated = s.truncated};
    return st;
}

csn_status csn_grep(csn_sandbox *sb, const char *pattern, const csn_grep_opts *opts,
                    csn_grep_result **ret, csn_error **err)
{
    csn_call c;
    csn_grep_opts o;
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "grep options", err);

    if (st == CSN_OK)
        st = csn_flags_check(
            o.flags, CSN_GREP_REGEX | CSN_GREP_IGNORE_CASE | CSN_GREP_GITIGNORE, "grep", err);
    if (st == CSN_OK && (!ret || !pattern || !*pattern))
        st = csn_fail(err, CSN_INVALID, "grep: no pattern given");
    if (st == CSN_OK && o.context > CSN_SCAN_CONTEXT_MAX)
        st = csn_fail(err, CSN_TOO_LARGE, "grep: at most %u lines of context",
                      CSN_SCAN_CONTEXT_MAX);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "grep", pattern, err);
    if (st < 0)
        return csn_error_note(st, err, "grep", opts ? o.path : NULL);
    csn_grep_result *r = csn_result_new(sizeof(*r));
    st = r ? grep_inner(&c, pattern, &o, r, err) : csn_fail(err, CSN_NOMEM, "grep");
    return csn_call_return(&c, st, r, ret, err);
}

void csn_grep_result_free(csn_grep_result *r)
{
    csn_result_free(r);
}
