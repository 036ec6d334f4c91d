/* tool_find.c: the tools `ls`, `glob` and `grep`.
 *
 * A workspace can hold a million names; the first ones in order are shown, with a note on how
 * to get the others. Names and lines are untrusted and passed on as strings. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "mcp/tool.h"
#include "wire/result_json.h"

CSN_DEFINE_CLEANUP(csn_file_list, csn_file_list_free)
CSN_DEFINE_CLEANUP(csn_grep_result, csn_grep_result_free)

/* Returns NULL if nothing was left out. */
static const char *cut_note(csn_buf *to, const char *what, uint64_t shown, uint64_t all,
                            const char *advice)
{
    if (shown >= all)
        return NULL;
    int e = csn_buf_printf(to, "%" PRIu64 " of %" PRIu64 " %s are shown; %s", shown, all, what,
                           advice);
    return e == 0 ? to->data : NULL;
}

/* Appends the notes and stores the text as content. */
static csn_status finish(csn_tool_call *c, csn_buf *text, const char *note, csn_error **err)
{
    if (note)
        csn_buf_printf(text, "\n[%s]", note);
    if (c->note)
        csn_buf_printf(text, "\n[note: %s]", c->note);
    if (text->err != 0)
        return csn_fail_errno(err, text->err, "reply");
    csn_tool_result_text(c->out, text->data ? text->data : "", text->len);
    return CSN_OK;
}

/* ---- ls --------------------------------------------------------------------------------- */

static void put_entry(csn_buf *to, const csn_file_info *f)
{
    const char *line = to->len ? "\n" : "";

    if (f->is_symlink)
        csn_buf_printf(to, "%s%s -> %s", line, f->path, f->target ? f->target : "?");
    else if (f->is_dir)
        csn_buf_printf(to, "%s%s/", line, f->path);
    else
        csn_buf_printf(to, "%s%s  %" PRIu64, line, f->path, f->file_size);
}

csn_status csn_tool_ls(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_file_list_freep) csn_file_list *l = NULL;
    csn_autobuf text, note;
    const char *path = ".";

    csn_buf_init(&text, CSN_MCP_ANSWER_MAX);
    csn_buf_init(&note, 1024);
    csn_status st = csn_jget_str(c->args, "path", &path, err);
    if (st == CSN_OK)
        st = csn_list(c->sb, path, 0, &l, err);
    if (st < 0)
        return st;
    size_t n = l->count < CSN_MCP_LIST_MAX ? l->count : CSN_MCP_LIST_MAX;
    csn_file_list shown = {.items = l->items, .count = n};
    for (size_t i = 0; i < n; i++)
        put_entry(&text, &l->items[i]);
    if (n == 0)
        csn_buf_puts(&text, "(empty directory)");
    const char *cut = cut_note(&note, "entries", n, l->count, "use glob to choose among them");
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    csn_json_key(j, "entries");
    csn_wire_files(j, &shown);
    csn_json_kbool(j, "truncated", l->truncated || cut);
    csn_json_kstr(j, "note", cut ? cut : c->note);
    csn_json_object_end(j);
    return finish(c, &text, cut, err);
}

/* ---- glob ------------------------------------------------------------------------------- */

csn_status csn_tool_glob(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_file_list_freep) csn_file_list *l = NULL;
    csn_autobuf text, note;
    const char *pattern = NULL, *path = NULL;
    bool gitignore = false;

    csn_buf_init(&text, CSN_MCP_ANSWER_MAX);
    csn_buf_init(&note, 1024);
    csn_status st = csn_tool_args(c,
                                  (csn_tool_arg[]){{"pattern", .text = &pattern},
                                                   {"path", .text = &path},
                                                   {"gitignore", .flag = &gitignore},
                                                   {0}},
                                  err);
    if (st == CSN_OK)
        st = csn_glob(c->sb, pattern, path, gitignore ? CSN_FILE_GITIGNORE : 0, &l, err);
    if (st < 0)
        return st;
    size_t n = l->count < CSN_MCP_LIST_MAX ? l->count : CSN_MCP_LIST_MAX;
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    csn_json_key(j, "files");
    csn_json_array(j);
    for (size_t i = 0; i < n; i++) {
        csn_buf_printf(&text, "%s%s", i ? "\n" : "", l->items[i].path);
        csn_json_str(j, l->items[i].path);
    }
    csn_json_array_end(j);
    if (n == 0)
        csn_buf_puts(&text, "No file matches.");
    const char *cut = cut_note(&note, "paths", n, l->count, "use a narrower pattern or path");
    csn_json_kbool(j, "truncated", l->truncated || cut);
    csn_json_kstr(j, "note", cut ? cut : c->note);
    csn_json_object_end(j);
    return finish(c, &text, cut, err);
}

/* ---- grep ------------------------------------------------------------------------------- */

typedef enum grep_mode { MODE_FILES, MODE_CONTENT, MODE_COUNT } grep_mode;

typedef struct grep_args {
    const char *pattern;
    csn_grep_opts opts;
    grep_mode mode;
    uint64_t limit;
} grep_args;

static csn_status parse_args(csn_tool_call *c, grep_args *q, csn_error **err)
{
    const char *mode = "files_with_matches";
    bool ignore_case = false, gitignore = false;
    uint64_t context = 0;

    csn_status st = csn_tool_args(c,
                                  (csn_tool_arg[]){{"pattern", .text = &q->pattern},
                                                   {"path", .text = &q->opts.path},
                                                   {"glob", .text = &q->opts.glob},
                                                   {"output_mode", .text = &mode},
                                                   {"-i", .flag = &ignore_case},
                                                   {"gitignore", .flag = &gitignore},
                                                   {"-C", .number = &context},
                                                   {"head_limit", .number = &q->limit},
                                                   {0}},
                                  err);
    q->mode = mode[0] == 'f' ? MODE_FILES : mode[2] == 'n' ? MODE_CONTENT : MODE_COUNT;
    q->opts.flags = CSN_GREP_REGEX | (ignore_case ? CSN_GREP_IGNORE_CASE : 0) |
                    (gitignore ? CSN_GREP_GITIGNORE : 0);
    q->opts.context = q->mode == MODE_CONTENT ? (uint32_t)context : 0;
    return st;
}

/* The format of grep -n: PATH:12:text, and PATH-13-text for context. */
static void put_lines(csn_buf *to, csn_json *j, const csn_grep_result *r, size_t n)
{
    csn_grep_result shown = {.items = r->items, .count = n};

    for (size_t i = 0; i < n; i++) {
        const csn_grep_match *m = &r->items[i];
        char mark = m->is_context ? '-' : ':';
        csn_buf_printf(to, "%s%s%c%" PRIu64 "%c", i ? "\n" : "", m->path, mark, m->line, mark);
        csn_buf_append(to, m->text, m->text_len);
    }
    csn_json_key(j, "matches");
    csn_wire_grep(j, &shown);
}

/* One line per file. Matches are sorted by path. */
static void put_files(csn_buf *to, csn_json *j, const csn_grep_result *r, const grep_args *q,
                      size_t *ret_shown, size_t *ret_all)
{
    csn_json_key(j, q->mode == MODE_FILES ? "files" : "counts");
    csn_json_array(j);
    for (size_t i = 0, next; i < r->count; i = next) {
        for (next = i + 1; next < r->count; next++)
            if (strcmp(r->items[next].path, r->items[i].path) != 0)
                break;
        if ((*ret_all)++ >= q->limit)
            continue;
        (*ret_shown)++;
        csn_buf_printf(to, "%s%s", to->len ? "\n" : "", r->items[i].path);
        if (q->mode == MODE_FILES) {
            csn_json_str(j, r->items[i].path);
            continue;
        }
        csn_buf_printf(to, ":%zu", next - i);
        csn_json_object(j);
        csn_json_kstr(j, "path", r->items[i].path);
        csn_json_kuint(j, "count", next - i);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

static csn_status put_grep(csn_tool_call *c, const grep_args *q, const csn_grep_result *r,
                           csn_error **err)
{
    csn_autobuf text, note;
    size_t shown = r->count < q->limit ? r->count : (size_t)q->limit, all = r->count;

    csn_buf_init(&text, CSN_MCP_ANSWER_MAX);
    csn_buf_init(&note, 1024);
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    if (q->mode == MODE_CONTENT) {
        put_lines(&text, j, r, shown);
    } else {
        shown = all = 0;
        put_files(&text, j, r, q, &shown, &all);
    }
    if (r->count == 0)
        csn_buf_puts(&text, "No match.");
    const char *cut = cut_note(&note, q->mode == MODE_CONTENT ? "lines" : "files", shown, all,
                               "narrow it with path or glob, or raise head_limit");
    if (!cut && r->truncated)
        cut = "the search stopped early; narrow it with path or glob";
    csn_json_kbool(j, "truncated", cut != NULL);
    csn_json_kstr(j, "note", cut ? cut : c->note);
    csn_json_object_end(j);
    return finish(c, &text, cut, err);
}

csn_status csn_tool_grep(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_grep_result_freep) csn_grep_result *r = NULL;
    grep_args q = {.opts = {.size = sizeof(q.opts), .cancel = c->cancel},
                   .limit = CSN_MCP_GREP_MAX};

    csn_status st = parse_args(c, &q, err);
    if (st == CSN_OK)
        st = csn_grep(c->sb, q.pattern, &q.opts, &r, err);
    if (st < 0)
        return st;
    return put_grep(c, &q, r, err);
}
