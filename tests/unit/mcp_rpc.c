/* mcp_rpc.c: messages of clients: what is one, what is refused, and under which id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mcp/lines.h"
#include "mcp/rpc.h"
#include "wire/tool_schema.h"

static void refused(const char *text, int code, const char *id)
{
    csn_rpc_msg m;
    csn_rpc_fault why;

    if (csn_rpc_parse(text, strlen(text), &m, &why))
        fail_msg("taken: %.200s", text);
    if (why.code != code || strcmp(why.id, id) != 0)
        fail_msg("%.200s: %d under '%s' (%s)", text, why.code, why.id, why.message);
}

static void a_message_is_a_request_a_notification_or_a_response(void **state)
{
    static const struct {
        const char *text, *id;
        csn_rpc_kind kind;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}", "1", CSN_RPC_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"x\"}", "-7", CSN_RPC_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"x\",\"params\":{}}", "\"\"",
         CSN_RPC_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\\n\",\"method\":\"x\"}", "\"a\\\"b\\n\"",
         CSN_RPC_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"other\":[1]}", "", CSN_RPC_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":null}", "", CSN_RPC_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "1", CSN_RPC_RESPONSE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", "1", CSN_RPC_RESPONSE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        csn_rpc_msg m;
        csn_rpc_fault why;
        if (!csn_rpc_parse(cases[i].text, strlen(cases[i].text), &m, &why))
            fail_msg("%s: %s", cases[i].text, why.message);
        assert_int_equal(m.kind, cases[i].kind);
        assert_string_equal(m.id, cases[i].id);
        csn_rpc_release(&m);
    }
}

static void what_is_none_is_refused_by_the_right_code(void **state)
{
    (void)state;
    refused("", CSN_RPC_PARSE, "");
    refused("{", CSN_RPC_PARSE, "");
    refused("\xef\xbb\xbf{}", CSN_RPC_PARSE, "");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"} x", CSN_RPC_PARSE, "1");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":NaN}", CSN_RPC_PARSE, "1");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1e400}", CSN_RPC_PARSE, "1");
    refused("7", CSN_RPC_INVALID, "");
    refused("\"x\"", CSN_RPC_INVALID, "");
    refused("[]", CSN_RPC_INVALID, "");
    refused("{}", CSN_RPC_INVALID, "");
    refused("{\"id\":1,\"method\":\"x\"}", CSN_RPC_INVALID, "1");
    refused("{\"jsonrpc\":2.0,\"id\":1,\"method\":\"x\"}", CSN_RPC_INVALID, "1");
    refused("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", CSN_RPC_INVALID, "1");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1}", CSN_RPC_INVALID, "1");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", CSN_RPC_INVALID, "1");
    refused("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}", CSN_RPC_INVALID, "");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", CSN_RPC_INVALID, "");
    refused("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}", CSN_RPC_INVALID, "");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}", CSN_RPC_PARAMS,
            "1");
}

/* A client waits for its id: a text that is refused as a whole is answered under it. */
static void a_refused_text_is_answered_under_its_id(void **state)
{
    (void)state;
    refused("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"x\",\"params\":{\"a\":\"\\ud800\"}}",
            CSN_RPC_PARSE, "5");
    refused(
        "{\"method\":\"x\",\"params\":{\"a\":\"\\u0000\"},\"jsonrpc\":\"2.0\",\"id\":\"k\"}",
        CSN_RPC_PARSE, "\"k\"");
    refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"x\"}", CSN_RPC_PARSE, "1");
    /* not the id of something inside, and not half of one */
    refused("{\"params\":{\"id\":3},\"x\":\"\\ud800\"}", CSN_RPC_PARSE, "");
    refused("{\"jsonrpc\":\"2.0\",\"x\":\"\\ud800\",\"id\":12", CSN_RPC_PARSE, "");
    refused("{\"id\":\"\\ud800\"}", CSN_RPC_PARSE, "");
    refused("{\"id\":{\"a\":1},\"x\":\"\\ud800\"}", CSN_RPC_PARSE, "");
}

static void every_cut_of_a_request_is_refused(void **state)
{
    static const char text[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"bash\","
        "\"arguments\":{\"command\":\"echo \\\"\\u00e4\\\"\",\"timeout\":10}}}";
    csn_rpc_msg m;
    csn_rpc_fault why;

    (void)state;
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = malloc(n ? n : 1); /* exact: what reads past it is seen */
        memcpy(copy, text, n);
        assert_false(csn_rpc_parse(copy, n, &m, &why));
        assert_int_equal(why.code, CSN_RPC_PARSE);
        free(copy);
    }
    assert_true(csn_rpc_parse(text, sizeof(text) - 1, &m, &why));
    csn_rpc_release(&m);
}

static char *repeat(const char *head, const char *unit, size_t times, const char *tail)
{
    csn_buf b;

    csn_buf_init(&b, 64u << 20);
    assert_int_equal(csn_buf_puts(&b, head), 0);
    for (size_t i = 0; i < times; i++)
        assert_int_equal(csn_buf_puts(&b, unit), 0);
    assert_int_equal(csn_buf_puts(&b, tail), 0);
    return csn_buf_take(&b);
}

static void depth_and_number_of_values_are_bounded(void **state)
{
    static const char head[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":";

    (void)state;
    char *deep = repeat(head, "[", 100000, "");
    char *wide = repeat(head, "0,", CSN_RPC_VALUES_MAX + 1, "0}}");
    char *batch = repeat("[", "{},", 100000, "{}]");
    refused(deep, CSN_RPC_INVALID, "1");
    refused(wide, CSN_RPC_INVALID, "1");
    refused(batch, CSN_RPC_INVALID, "");
    free(deep);
    free(wide);
    free(batch);
}

static void lines_are_the_same_however_they_arrive(void **state)
{
    static const char text[] = "one\n\ntwo\r\nthis line is too long to be taken\nthree\nrest";
    static const char *const want[] = {"one", "", "two", "?", "three"};

    (void)state;
    for (size_t step = 1; step < sizeof(text); step++) {
        csn_line_in in;
        size_t n = 0, len;
        const char *line;
        csn_line_state st;
        csn_line_in_init(&in, 12);
        for (size_t at = 0; at < sizeof(text) - 1; at += step) {
            size_t left = sizeof(text) - 1 - at;
            assert_int_equal(csn_line_in_feed(&in, text + at, left < step ? left : step), 0);
            while ((st = csn_line_in_next(&in, &line, &len)) != CSN_LINE_NONE) {
                assert_true(n < 5);
                if (st == CSN_LINE_TOO_LONG)
                    assert_string_equal(want[n], "?");
                else
                    assert_true(len == strlen(want[n]) && memcmp(line, want[n], len) == 0);
                n++;
            }
        }
        assert_int_equal(n, 5);
        csn_line_in_release(&in);
    }
}

static csn_status check(const char *tool, const char *json, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;

    assert_int_equal(csn_json_parse(json, strlen(json), "args", &v, NULL), CSN_OK);
    return csn_wire_tool_check(csn_wire_tool_find(tool), v, err);
}

static void arguments_are_checked_by_name_type_and_range(void **state)
{
    static const struct {
        const char *tool, *json, *says;
    } cases[] = {
        {"bash", "{}", "'command' is missing"},
        {"bash", "{\"command\":7}", "must be of type string"},
        {"bash", "{\"command\":\"x\",\"timeout\":0}", "must be between 1 and 600000"},
        {"bash", "{\"command\":\"x\",\"timeout\":\"5\"}", "must be of type integer"},
        {"bash", "{\"command\":\"x\",\"cmd\":1}", "unknown key 'cmd'"},
        {"read", "{\"file_path\":\"x\",\"offset\":-1}", "between 0 and"},
        {"grep", "{\"pattern\":\"x\",\"output_mode\":\"all\"}", "must be one of files_with"},
        {"sandbox_info", "{\"x\":1}", "unknown key 'x'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        csn_error *err = NULL;
        assert_int_equal(check(cases[i].tool, cases[i].json, &err), CSN_INVALID);
        if (!strstr(csn_error_message(err), cases[i].says))
            fail_msg("%s: %s", cases[i].json, csn_error_message(err));
        csn_error_free(err);
    }
    assert_int_equal(check("bash", "{\"command\":\"x\",\"timeout\":null}", NULL), CSN_OK);
    assert_int_equal(check("grep", "{\"pattern\":\"x\",\"-i\":true,\"-C\":0}", NULL), CSN_OK);
    assert_int_equal(csn_wire_tool_check(csn_wire_tool_find("ls"), NULL, NULL), CSN_OK);
    assert_null(csn_wire_tool_find("rm"));
}

/* Several clients refuse a list of tools with anything else in it. */
static void schemas_are_plain(void **state)
{
    static const char *const never[] = {"anyOf", "oneOf", "allOf", "$ref", "\"type\":["};
    csn_buf out;
    csn_json j;

    (void)state;
    for (const csn_tool_schema *t = csn_wire_tools; t->name; t++) {
        csn_jval *v = NULL;
        csn_buf_init(&out, 1 << 20);
        csn_json_begin(&j, &out);
        csn_wire_tool(&j, t, "facts", t->hints);
        assert_int_equal(csn_json_end(&j), 0);
        assert_int_equal(csn_json_parse(out.data, out.len, t->name, &v, NULL), CSN_OK);
        for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
            if (strstr(out.data, never[i]))
                fail_msg("%s has %s", t->name, never[i]);
        for (const csn_tool_field *f = t->input; f->kind != CSN_TOOL_END; f++)
            assert_non_null(f->text);
        csn_jval_free(v);
        csn_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_a_request_a_notification_or_a_response),
        cmocka_unit_test(what_is_none_is_refused_by_the_right_code),
        cmocka_unit_test(a_refused_text_is_answered_under_its_id),
        cmocka_unit_test(every_cut_of_a_request_is_refused),
        cmocka_unit_test(depth_and_number_of_values_are_bounded),
        cmocka_unit_test(lines_are_the_same_however_they_arrive),
        cmocka_unit_test(arguments_are_checked_by_name_type_and_range),
        cmocka_unit_test(schemas_are_plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
