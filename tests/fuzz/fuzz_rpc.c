/* fuzz_rpc.c: any bytes as a message of a client, by themselves and as lines of a stream.
 *
 * A text is a request, a notification or a response, or it is refused with a code of the
 * standard; either way the answer is strict JSON under an id that is a string or a number. Cut
 * into lines at any place it gives the same lines. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/lines.h"
#include "mcp/rpc.h"
#include "wire/tool_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void check_answer(const char *id, int code, const char *message)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;
    csn_autobuf out;

    csn_buf_init(&out, 1 << 16);
    must(csn_rpc_error(&out, id, code, message, NULL) == 0);
    must(csn_json_parse(out.data, out.len, "answer", &v, NULL) == CSN_OK);
    const csn_jval *back = csn_jval_get(v, "id");
    must(id[0] ? csn_jval_is_string(back) || csn_jval_is_integer(back) : !back);
}

static void check_message(const char *text, size_t len)
{
    csn_rpc_msg m;
    csn_rpc_fault why;

    if (!csn_rpc_parse(text, len, &m, &why)) {
        must(why.code <= CSN_RPC_INVALID && why.code >= CSN_RPC_PARSE);
        check_answer(why.id, why.code, why.message);
        return;
    }
    must((m.kind == CSN_RPC_REQUEST) == (m.method && m.id[0]));
    must(!m.params || csn_jval_is_object(m.params));
    check_answer(m.id, CSN_RPC_METHOD, "no");
    for (const csn_tool_schema *t = csn_wire_tools; t->name; t++) {
        csn_error *err = NULL;
        if (csn_wire_tool_check(t, m.params, &err) < 0)
            csn_error_free(err);
    }
    csn_rpc_release(&m);
}

/* All lines, fed in pieces of `step` bytes, one after the other. */
static void take_lines(const char *text, size_t len, size_t step, csn_buf *to)
{
    csn_line_in in;
    const char *line;
    size_t n;

    csn_line_in_init(&in, 256);
    for (size_t at = 0; at < len; at += step) {
        csn_line_state st;
        must(csn_line_in_feed(&in, text + at, len - at < step ? len - at : step) == 0);
        while ((st = csn_line_in_next(&in, &line, &n)) != CSN_LINE_NONE) {
            (void)csn_buf_append(to, st == CSN_LINE_GIVEN ? line : "?",
                                 st == CSN_LINE_GIVEN ? n : 1);
            (void)csn_buf_putc(to, '\n');
        }
    }
    csn_line_in_release(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    csn_autobuf one, three;

    csn_buf_init(&one, 1 << 24);
    csn_buf_init(&three, 1 << 24);
    check_message(text, size);
    take_lines(text, size, 1, &one);
    take_lines(text, size, 3, &three);
    must(one.len == three.len && (one.len == 0 || memcmp(one.data, three.data, one.len) == 0));
    return 0;
}
