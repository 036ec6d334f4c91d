/* api_grep.c: csn_grep: finds matching lines in a file or a tree.
 *
 * Files are read in sorted order and streamed to search/line_scan. */
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
#include "core/internal.h"
#include "core/result.h"
#include "search/line_scan.h"

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

/* ---- which files --------------------------------------------------------------------------
 */

typedef struct finder {
    csn_entries entries;
    const csn_glob_set *glob; /* or NULL: all */
    bool by_name;             /* the glob has no slash and matches names at any depth */
} finder;

static int find_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    finder *f = ctx;

    if (!S_ISREG(st->mode))
        return 0;
    if (f->glob && *path && !csn_glob_match(f->glob, f->by_name ? csn_path_base(path) : path))
        return 0;
    return csn_entries_add(&f->entries, path, st, target);
}

static csn_status grep_tree(csn_call *c, csn_hits *h, const csn_grep_opts *o, const char *asked,
                            const char *joined, csn_error **err)
{
    csn_glob_set *set = NULL;
    csn_status st = o->glob ? csn_glob_compile(o->glob, &set, err) : CSN_OK;

    if (st < 0)
        return st;
    finder f = {.entries = {.arena = h->arena, .max = CSN_GLOB_MAX},
                .glob = set,
                .by_name = o->glob && !strchr(o->glob, '/')};
    st = csn_fs_walk(&c->fs, joined, 0, find_entry, &f, err);
    csn_entries_sort(&f.entries);
    bool more = f.entries.err == 0;
    reading r = {.cancel = o->cancel};
    csn_line_scan_init(&r.scan, h);
    for (size_t i = 0; st == CSN_OK && more && i < f.entries.count; i++) {
        csn_autofree char *full = NULL;
        const char *rel = f.entries.items[i].path;
        if (asprintf(&full, "%s%s%s", joined, *rel ? "/" : "", rel) < 0) {
            full = NULL;
            f.entries.err = ENOMEM;
            break;
        }
        more = grep_file(c, &r, full, *rel ? rel : asked);
    }
    csn_line_scan_release(&r.scan);
    if (st == CSN_OK && f.entries.err != 0)
        st = csn_fail(err, CSN_NOMEM, "grep");
    free(f.entries.items);
    csn_glob_free(set);
    return st;
}

static csn_status grep_inner(csn_call *c, const char *pattern, const csn_grep_opts *o,
                             csn_grep_result *r, csn_error **err)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *m = NULL;
    const char *asked = o->path ? o->path : ".";
    const char *joined = NULL;

    csn_status st = csn_matcher_new(pattern, o->flags, &m, err);
    if (st == CSN_OK)
        st = csn_call_path(c, asked, &joined, err);
    if (st < 0)
        return st;
    csn_hits s = {.arena = csn_result_arena(r),
                  .matcher = m,
                  .context = o->context,
                  .max = o->max ? o->max : CSN_GREP_MATCHES_DEFAULT};
    st = grep_tree(c, &s, o, asked, joined, err);
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
        st = csn_flags_check(o.flags, CSN_GREP_REGEX | CSN_GREP_IGNORE_CASE, "grep", err);
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
