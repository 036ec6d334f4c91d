/* cli_args.c: the option parser of the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"
#include "base/strv.h"
#include "caisson/caisson.h"
#include "cli/args.h"

typedef struct fields {
    bool flag, other;
    const char *text, *choice;
    char **list;
    uint64_t number, count, size, time, cpus;
} fields;

#define AT(f) offsetof(fields, f)

static const csn_opt table[] = {
    {CSN_OPT_FLAG, 'f', "flag", AT(flag), NULL, "a flag", NULL},
    {CSN_OPT_FLAG, 'o', "other", AT(other), NULL, "another", NULL},
    {CSN_OPT_STR, 't', "text", AT(text), "TEXT", "a text", NULL},
    {CSN_OPT_STR, 0, "choice", AT(choice), "a|bc", "a choice", "a|bc"},
    {CSN_OPT_LIST, 'l', "list", AT(list), "ITEM", "a list", NULL},
    {CSN_OPT_U64, 0, "number", AT(number), "N", "a number", NULL},
    {CSN_OPT_COUNT, 0, "count", AT(count), "N", "a count", NULL},
    {CSN_OPT_SIZE, 0, "size", AT(size), "SIZE", "a size", NULL},
    {CSN_OPT_DURATION, 0, "time", AT(time), "DURATION", "a time", NULL},
    {CSN_OPT_CPUS, 0, "cpus", AT(cpus), "N", "cpus", NULL},
    {CSN_OPT_END},
};
static const csn_opt_group groups[] = {{"Options", table, 0}, {NULL, NULL, 0}};

typedef struct parsed {
    fields f;
    csn_args a;
    csn_usage why;
    bool ok;
} parsed;

static void parse(parsed *p, bool rest_ok, const char *const *argv)
{
    memset(p, 0, sizeof(*p));
    p->a = (csn_args){.groups = groups, .into = &p->f, .rest_ok = rest_ok};
    p->ok = csn_args_parse(&p->a, (int)csn_strv_len(argv), (char **)(uintptr_t)argv, &p->why);
}

#define PARSE(p, rest, ...) parse(p, rest, (const char *const[]){__VA_ARGS__, NULL})

static void takes_every_form_of_an_option(void **state)
{
    parsed p;

    (void)state;
    PARSE(&p, false, "--text", "a", "-lx", "-l", "y", "--list=z=1", "-fo", "--time=500ms");
    assert_true(p.ok);
    assert_string_equal(p.f.text, "a");
    assert_int_equal(csn_strv_len((const char *const *)p.f.list), 3);
    assert_string_equal(p.f.list[2], "z=1");
    assert_true(p.f.flag && p.f.other);
    assert_int_equal(p.f.time, 500);
    csn_args_release(&p.a);
}

static void a_bundle_may_end_in_an_option_with_value(void **state)
{
    parsed p;

    (void)state;
    PARSE(&p, false, "-fthello", "-");
    assert_true(p.ok);
    assert_true(p.f.flag);
    assert_string_equal(p.f.text, "hello");
    assert_int_equal(p.a.npos, 1);
    assert_string_equal(p.a.pos[0], "-");
    csn_args_release(&p.a);
}

static void options_and_arguments_mix_until_the_dashes(void **state)
{
    parsed p;

    (void)state;
    PARSE(&p, false, "one", "--flag", "two", "--", "--text", "-x");
    assert_true(p.ok);
    assert_int_equal(p.a.npos, 4);
    assert_string_equal(p.a.pos[2], "--text");
    assert_null(p.f.text);
    assert_null(p.a.rest);
    csn_args_release(&p.a);
}

static void the_dashes_start_a_command_where_one_is_taken(void **state)
{
    parsed p;

    (void)state;
    PARSE(&p, true, "id", "--", "ls", "--json", "--");
    assert_true(p.ok);
    assert_false(p.a.json);
    assert_int_equal(p.a.npos, 1);
    assert_string_equal(p.a.rest[1], "--json");
    assert_string_equal(p.a.rest[2], "--");
    assert_null(p.a.rest[3]);
    csn_args_release(&p.a);
    PARSE(&p, true, "id", "--");
    assert_non_null(p.a.rest);
    assert_null(p.a.rest[0]);
    csn_args_release(&p.a);
}

static void json_and_help_are_understood_everywhere(void **state)
{
    parsed p;

    (void)state;
    PARSE(&p, false, "--json", "-h");
    assert_true(p.ok && p.a.json && p.a.help);
    csn_args_release(&p.a);
}

static void refused(const char *const *argv, const char *what)
{
    parsed p;

    parse(&p, false, argv);
    if (p.ok || !strstr(p.why.message, what))
        fail_msg("'%s': ok=%d message='%s', want '%s'", argv[0], p.ok, p.why.message, what);
    csn_args_release(&p.a);
}

#define REFUSED(what, ...) refused((const char *const[]){__VA_ARGS__, NULL}, what)

static void refuses_what_it_does_not_know_by_name(void **state)
{
    (void)state;
    REFUSED("unknown option '--nope'", "--nope");
    REFUSED("unknown option '--nope'", "--nope=3");
    REFUSED("unknown option '-z'", "-fz");
    REFUSED("unknown option '--fla'", "--fla");
    REFUSED("unknown option '--'", "--=x");
    REFUSED("\\x1b", "--\x1b[2J");
    REFUSED("--flag takes no value", "--flag=1");
    REFUSED("--json takes no value", "--json=1");
    REFUSED("--text needs a value: TEXT", "--text");
    REFUSED("--text needs a value: TEXT", "-t");
}

static void refuses_values_that_do_not_parse(void **state)
{
    (void)state;
    REFUSED("--number takes", "--number=");
    REFUSED("--number takes", "--number=-1");
    REFUSED("--number takes", "--number=99999999999999999999");
    REFUSED("--count takes", "--count=0");
    REFUSED("--size takes", "--size=0");
    REFUSED("--size takes", "--size=1X");
    REFUSED("--time takes", "--time=soon");
    REFUSED("--cpus takes", "--cpus=0");
    REFUSED("--cpus takes", "--cpus=1.");
    REFUSED("--cpus takes", "--cpus=1.2345");
    REFUSED("--cpus takes", "--cpus=.5x");
    REFUSED("--choice takes a|bc", "--choice=b");
    REFUSED("--choice takes a|bc", "--choice=");
}

static void reads_numbers_of_each_kind(void **state)
{
    parsed p;

    (void)state;
    PARSE(&p, false, "--number=0", "--count=3", "--size=2K", "--time=0", "--cpus=1.5",
          "--choice=bc");
    assert_true(p.ok);
    assert_int_equal(p.f.number, 0);
    assert_int_equal(p.f.count, 3);
    assert_int_equal(p.f.size, 2048);
    assert_true(p.f.time == CSN_NO_LIMIT);
    assert_int_equal(p.f.cpus, 1500);
    assert_string_equal(p.f.choice, "bc");
    csn_args_release(&p.a);
    PARSE(&p, false, "--time", "none", "--cpus", "2");
    assert_true(p.f.time == CSN_NO_LIMIT);
    assert_int_equal(p.f.cpus, 2000);
    csn_args_release(&p.a);
}

static void suggests_only_what_is_near(void **state)
{
    static const char *const words[] = {"timeout", "time", "read", NULL};
    char found[CSN_NEAREST_MAX];

    (void)state;
    assert_string_equal(csn_nearest("tiemout", words), "timeout");
    assert_string_equal(csn_nearest("reed", words), "read");
    assert_null(csn_nearest("workspace", words));
    assert_null(csn_nearest("", words));
    assert_string_equal(csn_nearest("READ", words), "read");
    assert_string_equal(csn_nearest_in("nmp", "npm, pip|uv", found), "npm");
    assert_string_equal(csn_nearest_in("vu", "npm, pip|uv", found), "uv");
    assert_null(csn_nearest_in("spaceship", "npm, pip|uv", found));
    assert_null(csn_nearest_in("x", "", found));
}

static void quoting_escapes_and_cuts(void **state)
{
    char small[16];

    (void)state;
    csn_args_quote("a\nb", small, sizeof(small));
    assert_string_equal(small, "a\\x0ab");
    csn_args_quote("\x01\x02\x03\x04\x05\x06\x07", small, sizeof(small));
    assert_true(strlen(small) < sizeof(small));
    assert_non_null(strstr(small, "..."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_every_form_of_an_option),
        cmocka_unit_test(a_bundle_may_end_in_an_option_with_value),
        cmocka_unit_test(options_and_arguments_mix_until_the_dashes),
        cmocka_unit_test(the_dashes_start_a_command_where_one_is_taken),
        cmocka_unit_test(json_and_help_are_understood_everywhere),
        cmocka_unit_test(refuses_what_it_does_not_know_by_name),
        cmocka_unit_test(refuses_values_that_do_not_parse),
        cmocka_unit_test(reads_numbers_of_each_kind),
        cmocka_unit_test(suggests_only_what_is_near),
        cmocka_unit_test(quoting_escapes_and_cuts),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
