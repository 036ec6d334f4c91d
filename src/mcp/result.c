/* result.c: builds the result of a tool call.
 *
 * Content and data are written as separate JSON texts and combined only in the reply, so that a
 * tool that fails half-way can discard both. File contents, command output and names are
 * untrusted and appear only as JSON strings. */
#include "mcp/result.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

static void begin(csn_tool_result *r)
{
    csn_json_begin(&r->items, &r->content);
    csn_json_array(&r->items);
    r->fields = (csn_json){0};
    r->is_error = false;
}

void csn_tool_result_init(csn_tool_result *r)
{
    csn_buf_init(&r->content, CSN_MCP_ANSWER_MAX);
    csn_buf_init(&r->data, CSN_MCP_ANSWER_MAX);
    begin(r);
}

void csn_tool_result_release(csn_tool_result *r)
{
    csn_buf_release(&r->content);
    csn_buf_release(&r->data);
}

void csn_tool_result_clear(csn_tool_result *r)
{
    csn_tool_result_release(r);
    begin(r);
}

void csn_tool_result_text(csn_tool_result *r, const char *text, size_t len)
{
    csn_json_object(&r->items);
    csn_json_kstr(&r->items, "type", "text");
    csn_json_key(&r->items, "text");
    csn_json_strn(&r->items, text, len);
    csn_json_object_end(&r->items);
}

void csn_tool_result_image(csn_tool_result *r, const char *mime, const void *p, size_t len)
{
    csn_json_object(&r->items);
    csn_json_kstr(&r->items, "type", "image");
    csn_json_key(&r->items, "data");
    csn_json_base64(&r->items, p, len);
    csn_json_kstr(&r->items, "mimeType", mime);
    csn_json_object_end(&r->items);
}

static void put_uri(csn_buf *to, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789/-_.~";

    csn_buf_puts(to, path[0] == '/' ? "file://" : "file:///");
    for (; *path; path++)
        csn_buf_printf(to, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
}

void csn_tool_result_document(csn_tool_result *r, const char *path, const char *mime,
                              const void *p, size_t len)
{
    csn_autobuf uri;

    csn_buf_init(&uri, 4 * CSN_PATH_MAX);
    put_uri(&uri, path);
    csn_json_object(&r->items);
    csn_json_kstr(&r->items, "type", "resource");
    csn_json_key(&r->items, "resource");
    csn_json_object(&r->items);
    csn_json_kstr(&r->items, "uri", uri.err == 0 ? uri.data : "file:");
    csn_json_kstr(&r->items, "mimeType", mime);
    csn_json_key(&r->items, "blob");
    csn_json_base64(&r->items, p, len);
    csn_json_object_end(&r->items);
    csn_json_object_end(&r->items);
}

csn_json *csn_tool_result_data(csn_tool_result *r)
{
    csn_json_begin(&r->fields, &r->data);
    r->fields.omit_null = true;
    return &r->fields;
}

void csn_tool_denial_text(csn_buf *to, const csn_denial *d)
{
    csn_buf_printf(to, "denied: %s", d->op);
    if (d->target)
        csn_buf_printf(to, " %s", d->target);
    if (d->resolved && d->target && strcmp(d->resolved, d->target) != 0)
        csn_buf_printf(to, " (%s)", d->resolved);
    if (d->rule)
        csn_buf_printf(to, ", by rule %s", d->rule);
    if (d->source)
        csn_buf_printf(to, " from %s", d->source);
    if (d->hint)
        csn_buf_printf(to, "; hint: %s", d->hint);
}

void csn_tool_result_fail(csn_tool_result *r, const csn_error *err)
{
    const csn_denial *d = csn_error_denial(err);
    const char *hint = csn_error_hint(err);
    csn_autobuf text;

    csn_buf_init(&text, 65536);
    csn_buf_printf(&text, "Error (%s): %s", csn_status_name(csn_error_code(err)),
                   csn_error_message(err));
    if (hint)
        csn_buf_printf(&text, "\nHint: %s", hint);
    if (d) {
        csn_buf_putc(&text, '\n');
        csn_tool_denial_text(&text, d);
    }
    csn_tool_result_clear(r);
    csn_tool_result_text(r, text.data ? text.data : "", text.len);
    r->is_error = true;
}

int csn_tool_result_write(csn_tool_result *r, csn_json *into)
{
    csn_json_array_end(&r->items);
    int e = csn_json_end(&r->items);
    if (e == 0 && r->fields.out)
        e = csn_json_end(&r->fields);
    if (e != 0)
        return e;
    csn_json_key(into, "content");
    csn_json_raw(into, r->content.data, r->content.len);
    if (r->fields.out) {
        csn_json_key(into, "structuredContent");
        csn_json_raw(into, r->data.data, r->data.len);
    }
    csn_json_kbool(into, "isError", r->is_error);
    return into->err;
}
