/* core_options.c: the table of sandbox options, and what is made from it.
 *
 * `core_options --print` prints the table of caisson-policy(5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/agent_presets.h"
#include "base/buf.h"
#include "base/options.h"
#include "core/internal.h"

#define TABLE_BEGIN                                                                            \
    ".Bl -column \"network.host_ports\" \"--allow-command\" \"jail, local, e2b\"\n"

static void put_backends(csn_buf *to, uint64_t bit)
{
    const char *names[CSN_BUILT_IN_MAX];
    const char *all[CSN_BUILT_IN_MAX];
    size_t n = csn_registry_honouring(bit, names);

    if (n == csn_registry_honouring(0, all)) {
        csn_buf_puts(to, "all");
        return;
    }
    for (size_t i = 0; i < n; i++)
        csn_buf_printf(to, "%s%s", i ? ", " : "", names[i]);
}

static void put_table(csn_buf *to)
{
    csn_buf_puts(to, TABLE_BEGIN ".It Sy Key Ta Sy Option Ta Sy Backends\n");
    for (const csn_option *o = csn_options; o->name; o++) {
        csn_buf_printf(to, ".It Va %s Ta ", o->name);
        if (o->flag)
            csn_buf_printf(to, "Fl Fl %s ", o->flag);
        csn_buf_puts(to, "Ta ");
        put_backends(to, o->bit);
        csn_buf_putc(to, '\n');
    }
    csn_buf_puts(to, ".El\n");
}

static void the_manual_has_the_same_rows(void **state)
{
    csn_autobuf table;
    char text[65536];
    FILE *f = fopen(getenv("CSN_TEST_MANUAL"), "re");

    (void)state;
    csn_buf_init(&table, 65536);
    put_table(&table);
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    if (!strstr(text, table.data))
        fail_msg("caisson-policy.5 does not have the table that --print prints");
}

static void names_flags_and_bits_are_unique(void **state)
{
    (void)state;
    for (const csn_option *o = csn_options; o->name; o++) {
        assert_true((o->bit & (o->bit - 1)) == 0);
        for (const csn_option *p = csn_options; p < o; p++) {
            assert_string_not_equal(o->name, p->name);
            if (o->help && p->help)
                assert_string_not_equal(o->flag, p->flag);
            assert_true(o->bit == 0 || o->bit != p->bit);
        }
    }
}

/* A field that is added to csn_config needs a row. */
static void every_field_has_a_row(void **state)
{
    (void)state;
    for (size_t at = offsetof(csn_config, backend); at < sizeof(csn_config); at += 8) {
        bool found = at == offsetof(csn_config, rule_count);
        for (const csn_option *o = csn_options; o->name; o++)
            found = found || o->at == at;
        if (!found)
            fail_msg("no row for the field at offset %zu", at);
    }
}

/* Rows of one agent with that option. */
static size_t rows_of(const char *agent, const char *option)
{
    size_t n = 0;

    for (const csn_agent_row *r = csn_agent_rows; r->agent; r++)
        n += strcmp(r->agent, agent) == 0 && strcmp(r->option, option) == 0;
    return n;
}

/* core/agent.c adds lists, variables and the home; another type would need code there. */
static void every_row_of_an_agent_is_an_option_and_has_a_reason(void **state)
{
    (void)state;
    for (const csn_agent_row *r = csn_agent_rows; r->agent; r++) {
        const csn_option *found = NULL;
        for (const csn_option *o = csn_options; o->name; o++)
            found = strcmp(o->name, r->option) == 0 ? o : found;
        if (strcmp(r->option, CSN_AGENT_LOGIN) != 0)
            assert_true(found && (found->type == CSN_TYPE_LIST || found->type == CSN_TYPE_ENV ||
                                  strcmp(found->name, "home") == 0));
        assert_true(r->why && r->why[0] && r->value[0] && r->value[0] != '/');
        if (strcmp(r->option, "network.allow") == 0) /* one host each, encrypted */
            assert_true(strstr(r->value, ":443") && !strchr(r->value, '*'));
        assert_int_equal(rows_of(r->agent, "home"), 1);
        assert_int_equal(rows_of(r->agent, CSN_AGENT_LOGIN), 1);
        assert_non_null(strstr("|" CSN_AGENT_NAMES "|", r->agent));
    }
    assert_true(csn_agent_known("claude") && csn_agent_known("codex") &&
                csn_agent_known("gemini"));
    assert_false(csn_agent_known("claud"));
}

static csn_status never(void *state, const csn_exec_req *req, const csn_sink *sink,
                        csn_exec_end *ret, csn_error **err)
{
    (void)state;
    (void)req;
    (void)sink;
    (void)ret;
    return csn_error_set(err, CSN_INTERNAL, "was called");
}

/* Sets one option to a value that passes all other checks. */
static void set(const csn_option *o, csn_config *c)
{
    static const char *const ports[] = {"8080", NULL}, *const hosts[] = {"a.test", NULL},
                             *const presets[] = {"npm", NULL};
    static const csn_rule rule = {.ops = CSN_OP_READ, .path = "/x"};

    if (o->type == CSN_TYPE_STRING)
        *csn_option_string(o, c) = strcmp(o->name, "agent") == 0 ? "claude" : "all";
    else if (o->type == CSN_TYPE_FLAG)
        c->flags |= o->open_flag;
    else if (o->type == CSN_TYPE_RULES)
        c->rules = &rule, c->rule_count = 1;
    else if (o->type != CSN_TYPE_LIST)
        *csn_option_number(o, c) = 1;
    else if (strcmp(o->name, "network.packages") == 0)
        *csn_option_list(o, c) = presets;
    else
        *csn_option_list(o, c) =
            strstr(o->name, "port") || strstr(o->name, "publish") ? ports : hosts;
}

static void a_backend_without_options_refuses_each_by_name(void **state)
{
    static const csn_backend_ops bare = {
        .size = sizeof(bare), .name = "bare", .isolation = "none", .exec = never};
    const char *names[CSN_BUILT_IN_MAX];
    char message[128];

    (void)state;
    assert_int_equal(csn_register_backend(&bare, NULL, NULL), CSN_OK);
    for (const csn_option *o = csn_options; o->name; o++) {
        csn_config c = {.size = sizeof(c), .backend = "bare"};
        csn_sandbox *sb = NULL;
        csn_error *err = NULL;
        if (o->bit == 0)
            continue;
        set(o, &c);
        assert_int_equal(csn_open(&c, &sb, &err), CSN_UNSUPPORTED);
        snprintf(message, sizeof(message), "%s: backend 'bare' does not support this option",
                 o->name);
        assert_string_equal(csn_error_message(err), message);
        size_t n = csn_registry_honouring(o->bit, names);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++)
            assert_non_null(strstr(csn_error_hint(err), names[i]));
        csn_error_free(err);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_flags_and_bits_are_unique),
        cmocka_unit_test(every_field_has_a_row),
        cmocka_unit_test(the_manual_has_the_same_rows),
        cmocka_unit_test(every_row_of_an_agent_is_an_option_and_has_a_reason),
        cmocka_unit_test(a_backend_without_options_refuses_each_by_name),
    };

    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        csn_autobuf table;
        csn_buf_init(&table, 65536);
        put_table(&table);
        return fputs(table.data, stdout) < 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("core_options", tests, NULL, NULL);
}
