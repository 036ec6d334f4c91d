/* tool_files.c: the tools `read`, `write`, `edit` and `delete`.
 *
 * A model supplies paths and contents; the files are untrusted. The library enforces the
 * policy. Results are bounded to what a model accepts: text cut at the end of a line, images up
 * to a size. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/sniff.h"
#include "base/strv.h"
#include "mcp/tool.h"
#include "wire/result_json.h"

static void put_note(csn_tool_call *c)
{
    if (c->note)
        csn_tool_result_text(c->out, c->note, strlen(c->note));
}

/* ---- read ------------------------------------------------------------------------------- */

typedef struct window {
    size_t bytes;      /* bytes of the content to show */
    uint64_t from, to; /* lines, from 1; to < from: none */
    bool cut_in_line;  /* the last line does not fit */
    bool more_follows;
    bool counts_only; /* limit 0 */
} window;

/* Cuts text at the end of a line, if there is one. */
static window choose_window(const csn_read_result *r, const csn_read_opts *o)
{
    uint64_t offset = o->offset;
    window w = {.bytes = r->content_len,
                .from = offset + 1,
                .to = offset + r->output_lines,
                .counts_only = o->limit == 0,
                .cut_in_line = r->truncated_by && strcmp(r->truncated_by, "bytes") == 0,
                .more_follows = r->truncated != 0};

    if (r->content_len <= CSN_MCP_READ_MAX)
        return w;
    const char *end = memrchr(r->content, '\n', CSN_MCP_READ_MAX);
    w.bytes = end ? (size_t)(end - r->content) + 1 : CSN_MCP_READ_MAX;
    w.cut_in_line = !end;
    w.more_follows = true;
    w.to = offset + !end;
    for (size_t i = 0; i < w.bytes; i++)
        w.to += r->content[i] == '\n';
    return w;
}

static int put_window_note(csn_buf *to, const csn_read_result *r, const window *w)
{
    const char *about = r->total_lines_exact ? "" : "more than ";

    if (w->counts_only)
        return csn_buf_printf(to, "[%s%" PRIu64 " lines, %" PRIu64 " bytes]", about,
                              r->total_lines, r->bytes);
    if (r->bytes > 0 && w->to < w->from)
        return csn_buf_printf(to, "[the file has only %" PRIu64 " lines]", r->total_lines);
    if (w->cut_in_line)
        return csn_buf_printf(to,
                              "\n[line %" PRIu64 " is longer than is shown here; see the rest "
                              "with cut -c or head -c in bash]",
                              w->to);
    if (!w->more_follows || w->to >= r->total_lines)
        return 0;
    return csn_buf_printf(to,
                          "\n[lines %" PRIu64 " to %" PRIu64 " of %s%" PRIu64
                          "; go on with offset %" PRIu64 "]",
                          w->from, w->to, about, r->total_lines, w->to);
}

static csn_status put_lines(csn_tool_call *c, const char *path, const csn_read_result *r,
                            const csn_read_opts *o, csn_error **err)
{
    csn_autobuf text;
    window w = choose_window(r, o);

    csn_buf_init(&text, CSN_MCP_ANSWER_MAX);
    if (csn_sniff_binary(r->content, r->content_len)) {
        csn_status st = csn_fail(err, CSN_WRONG_TYPE,
                                 "'%s' is a binary file of %" PRIu64 " bytes", path, r->bytes);
        return csn_error_advise(st, err, "look at it with file, xxd or strings in bash");
    }
    int e = csn_buf_append(&text, r->content, w.bytes);
    if (e == 0)
        e = put_window_note(&text, r, &w);
    if (e != 0)
        return csn_fail_errno(err, e, "read: reply");
    csn_tool_result_text(c->out, text.data, text.len);
    put_note(c);
    return CSN_OK;
}

static csn_status put_media(csn_tool_call *c, const char *path, const csn_read_result *r)
{
    if (csn_str_starts(r->mime_type, "image/"))
        csn_tool_result_image(c->out, r->mime_type, r->content, r->content_len);
    else
        csn_tool_result_document(c->out, path, r->mime_type, r->content, r->content_len);
    put_note(c);
    return CSN_OK;
}

csn_status csn_tool_read(csn_tool_call *c, csn_error **err)
{
    csn_read_opts o = {.size = sizeof(o),
                       .flags = CSN_FILE_NUMBERS,
                       .limit = CSN_LINES_DEFAULT,
                       .byte_max = CSN_MCP_IMAGE_MAX,
                       .cancel = c->cancel};
    const char *path = NULL;
    csn_read_result *r = NULL;

    csn_status st = csn_tool_args(c,
                                  (csn_tool_arg[]){{"file_path", .text = &path},
                                                   {"offset", .number = &o.offset},
                                                   {"limit", .number = &o.limit},
                                                   {0}},
                                  err);
    if (st == CSN_OK)
        st = csn_read(c->sb, path, &o, &r, err);
    /* A model reads SVG as text. */
    if (st == CSN_OK && r->is_image && strcmp(r->mime_type, "image/svg+xml") == 0) {
        csn_read_result_free(r);
        r = NULL;
        o.flags |= CSN_FILE_TEXT;
        st = csn_read(c->sb, path, &o, &r, err);
    }
    if (st == CSN_TOO_LARGE)
        return csn_error_advise(st, err, "make a smaller one with a tool in bash");
    if (st < 0)
        return st;
    st = r->is_image ? put_media(c, path, r) : put_lines(c, path, r, &o, err);
    csn_read_result_free(r);
    return st;
}

/* ---- write, edit, delete ---------------------------------------------------------------- */

/* "Wrote 12 bytes to PATH". */
static void put_summary(csn_tool_call *c, const char *verb, const char *path)
{
    csn_autobuf text;

    csn_buf_init(&text, 4 * CSN_PATH_MAX);
    if (csn_buf_printf(&text, "%s %s", verb, path) == 0)
        csn_tool_result_text(c->out, text.data, text.len);
    put_note(c);
}

csn_status csn_tool_write(csn_tool_call *c, csn_error **err)
{
    const char *path = NULL, *content = "";
    bool append = false;
    char verb[64];
    csn_write_result *r = NULL;

    csn_status st = csn_tool_args(c,
                                  (csn_tool_arg[]){{"file_path", .text = &path},
                                                   {"content", .text = &content},
                                                   {"append", .flag = &append},
                                                   {0}},
                                  err);
    if (st == CSN_OK)
        st =
            csn_write(c->sb, path, content, strlen(content),
                      CSN_OPTS(csn_write_opts, .flags = append ? CSN_FILE_APPEND : 0), &r, err);
    if (st < 0)
        return st;
    if (append)
        snprintf(verb, sizeof(verb), "Appended %zu bytes to", strlen(content));
    else
        snprintf(verb, sizeof(verb), "Wrote %" PRIu64 " bytes to", r->bytes);
    put_summary(c, verb, path);
    if (r->note)
        csn_tool_result_text(c->out, r->note, strlen(r->note));
    csn_wire_write(csn_tool_result_data(c->out), r);
    csn_write_result_free(r);
    return st;
}

csn_status csn_tool_edit(csn_tool_call *c, csn_error **err)
{
    csn_edit_item item = {0};
    const char *path = NULL;
    bool all = false;
    char verb[64];
    csn_edit_result *r = NULL;

    csn_status st = csn_tool_args(c,
                                  (csn_tool_arg[]){{"file_path", .text = &path},
                                                   {"old_string", .text = &item.old_string},
                                                   {"new_string", .text = &item.new_string},
                                                   {"replace_all", .flag = &all},
                                                   {0}},
                                  err);
    item.replace_all = all;
    if (st == CSN_OK && !item.old_string[0])
        st = csn_error_advise(csn_fail(err, CSN_INVALID, "edit: 'old_string' is empty"), err,
                              "use write to create a file or replace all of it");
    if (st == CSN_OK)
        st = csn_edit(c->sb, path, &item, 1, 0, &r, err);
    if (st < 0)
        return st;
    snprintf(verb, sizeof(verb), "Replaced %" PRIu64 " occurrence%s in", r->occurrences,
             r->occurrences == 1 ? "" : "s");
    put_summary(c, verb, path);
    csn_wire_edit(csn_tool_result_data(c->out), r);
    csn_edit_result_free(r);
    return st;
}

csn_status csn_tool_delete(csn_tool_call *c, csn_error **err)
{
    const char *path = NULL;
    bool recursive = false;

    csn_status st = csn_tool_args(
        c,
        (csn_tool_arg[]){{"file_path", .text = &path}, {"recursive", .flag = &recursive}, {0}},
        err);
    if (st == CSN_OK)
        st = csn_delete(c->sb, path, recursive ? CSN_FILE_RECURSIVE : 0, err);
    if (st < 0)
        return st;
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    csn_json_kstr(j, "path", path);
    csn_json_kbool(j, "deleted", true);
    csn_json_object_end(j);
    put_summary(c, "Deleted", path);
    return CSN_OK;
}
