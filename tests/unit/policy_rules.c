/* Path rules: who wins, what is outside, what a hint says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "child.h"
#include "policy/rules.h"

static const char *const none[] = {NULL};

static csn_rules *compiled(const csn_rules_input *in)
{
    csn_rules *r = NULL;
    csn_error *err = NULL;

    if (csn_rules_new(in, &r, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    return r;
}

/* want: '+' allowed, '-' denied, 'o' outside */
static void judge(const csn_rules *r, uint32_t op, const char *path, char want)
{
    csn_rule_hit hit = csn_rules_check(r, op, path);
    char got = hit.outside ? 'o' : hit.allowed ? '+' : '-';

    if (got != want)
        fail_msg("%u %s: got %c, want %c (%s)", op, path, got, want, hit.rule ? hit.rule : "-");
    assert_true(hit.outside == (hit.rule == NULL));
    assert_true(hit.outside == (hit.source == NULL));
}

static void directories_cover_whole_components_only(void **state)
{
    csn_rules *r = compiled(&(csn_rules_input){
        .base = "/base", .home = "/home/a/", .read = (const char *const[]){"/etc", NULL}});

    (void)state;
    judge(r, CSN_OP_READ, "/base", '+');
    judge(r, CSN_OP_WRITE, "/base/x/y", '+');
    judge(r, CSN_OP_DELETE, "/base/x", '+');
    judge(r, CSN_OP_READ, "/base-evil/x", 'o');
    judge(r, CSN_OP_READ, "/bas", 'o');
    judge(r, CSN_OP_READ, "/", 'o');
    judge(r, CSN_OP_WRITE, "/home/a/x", '+');
    judge(r, CSN_OP_WRITE, "/home/ab", 'o');
    judge(r, CSN_OP_READ, "/etc/passwd", '+');
    judge(r, CSN_OP_WRITE, "/etc/passwd", 'o');
    judge(r, CSN_OP_DELETE, "/etc/passwd", 'o');
    judge(r, CSN_OP_EXEC, "/base/x", 'o');
    judge(r, CSN_OP_READ | CSN_OP_WRITE, "/etc/passwd", 'o');
    judge(r, CSN_OP_READ | CSN_OP_WRITE, "/base/x", '+');
    assert_false(csn_rules_has_carveouts(r));
    csn_rules_free(r);
}

static void the_root_as_a_directory_covers_everything(void **state)
{
    csn_rules *r = compiled(&(csn_rules_input){.read = (const char *const[]){"/", NULL}});

    (void)state;
    judge(r, CSN_OP_READ, "/", '+');
    judge(r, CSN_OP_READ, "/any/thing", '+');
    judge(r, CSN_OP_WRITE, "/any/thing", 'o');
    csn_rules_free(r);
}

static void denied_paths_keep_their_source(void **state)
{
    const csn_denied denied[] = {
        {"/w/.env", CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE, "deny", "config.deny", 3},
        {"/w/**/*.lock", CSN_OP_WRITE, "deny write", "config.rules", 0},
        {"/proc/1", CSN_OP_READ, "deny", "jail", -1}};
    csn_rules *r = compiled(&(csn_rules_input){.base = "/w",
                                               .read = (const char *const[]){"/proc", NULL},
                                               .denied = denied,
                                               .denied_count = 3});

    (void)state;
    judge(r, CSN_OP_READ, "/w/.env", '-');
    assert_string_equal(csn_rules_check(r, CSN_OP_READ, "/w/.env").source, "config.deny[3]");
    judge(r, CSN_OP_DELETE, "/w/.env/below", '-');
    judge(r, CSN_OP_READ, "/w/a/x.lock", '+');
    judge(r, CSN_OP_WRITE, "/w/a/x.lock", '-');
    assert_string_equal(csn_rules_check(r, CSN_OP_WRITE, "/w/a/x.lock").rule,
                        "deny write /w/**/*.lock");
    judge(r, CSN_OP_DELETE, "/w/a/x.lock", '+');
    assert_string_equal(csn_rules_check(r, CSN_OP_READ, "/proc/1/environ").source, "jail");
    assert_true(csn_rules_has_carveouts(r));
    csn_rules_free(r);
}

static void the_longest_rule_wins_and_deny_wins_ties(void **state)
{
    csn_rule rules[] = {{CSN_OP_READ, 1, "/w/secret/public"},
                        {CSN_OP_WRITE, 0, "/w/ro"},
                        {CSN_OP_READ | CSN_OP_WRITE, 1, "/w/tie"}};
    csn_rules *r =
        compiled(&(csn_rules_input){.base = "/w",
                                    .deny = (const char *const[]){"/w/secret", "/w/tie", NULL},
                                    .rules = rules,
                                    .rule_count = 3});

    (void)state;
    judge(r, CSN_OP_READ, "/w/a", '+');
    judge(r, CSN_OP_READ, "/w/secret", '-');
    judge(r, CSN_OP_READ, "/w/secret/x", '-');
    judge(r, CSN_OP_READ, "/w/secretive", '+');
    judge(r, CSN_OP_READ, "/w/secret/public/x", '+');
    judge(r, CSN_OP_WRITE, "/w/secret/public/x", '-');
    judge(r, CSN_OP_READ, "/w/ro/x", '+');
    judge(r, CSN_OP_WRITE, "/w/ro/x", '-');
    judge(r, CSN_OP_DELETE, "/w/ro/x", '+');
    judge(r, CSN_OP_READ, "/w/tie/x", '-');
    assert_true(csn_rules_has_carveouts(r));
    csn_rules_free(r);
}

static void a_base_that_is_denied_itself_is_denied(void **state)
{
    csn_rules *r =
        compiled(&(csn_rules_input){.base = "/w", .deny = (const char *const[]){"/w/", NULL}});

    (void)state;
    judge(r, CSN_OP_READ, "/w", '-');
    judge(r, CSN_OP_READ, "/w/x", '-');
    csn_rules_free(r);
}

static void globs_that_deny_cover_what_is_below_and_globs_that_allow_do_not(void **state)
{
    csn_rule rules[] = {{CSN_OP_READ, 1, "/etc/ssl*"}};
    csn_rules *r = compiled(&(csn_rules_input){
        .base = "/w",
        .deny = (const char *const[]){"/w/**/.git", "/w/*.key", "/w/a[1]", NULL},
        .rules = rules,
        .rule_count = 1});

    (void)state;
    judge(r, CSN_OP_READ, "/w/.git", '-');
    judge(r, CSN_OP_WRITE, "/w/.git/config", '-');
    judge(r, CSN_OP_WRITE, "/w/d/e/.git/hooks/pre-commit", '-');
    judge(r, CSN_OP_READ, "/w/.gitignore", '+');
    judge(r, CSN_OP_READ, "/w/my.key", '-');
    judge(r, CSN_OP_READ, "/w/d/my.key", '+');
    judge(r, CSN_OP_READ, "/w/a1", '-');
    judge(r, CSN_OP_READ, "/w/a[1]/x", '-');
    judge(r, CSN_OP_READ, "/etc/ssl.conf", '+');
    judge(r, CSN_OP_READ, "/etc/ssl", '+');
    judge(r, CSN_OP_READ, "/etc/ssl/private", 'o');
    csn_rules_free(r);
}

static void a_whole_path_beats_a_glob_of_the_same_length(void **state)
{
    csn_rule rules[] = {{CSN_OP_READ, 0, "/w/x*"}, {CSN_OP_READ, 1, "/w/x"}};
    csn_rules *r = compiled(&(csn_rules_input){.base = "/w", .rules = rules, .rule_count = 2});

    (void)state;
    judge(r, CSN_OP_READ, "/w/x", '+');
    judge(r, CSN_OP_READ, "/w/xy", '-');
    csn_rules_free(r);
}

static void exec_and_net_rules_are_not_about_paths(void **state)
{
    csn_rule rules[] = {{CSN_OP_EXEC, 0, "rm"}, {CSN_OP_NET, 1, "example.com"}};
    csn_rules *r = compiled(&(csn_rules_input){.base = "/w", .rules = rules, .rule_count = 2});

    (void)state;
    judge(r, CSN_OP_READ, "/w/rm", '+');
    assert_false(csn_rules_has_carveouts(r));
    csn_rules_free(r);
}

static void a_verdict_names_its_rule_and_where_it_comes_from(void **state)
{
    csn_rule rules[] = {{CSN_OP_EXEC, 1, "ls"}, {CSN_OP_READ | CSN_OP_WRITE, 0, "/w/no"}};
    csn_rules *r =
        compiled(&(csn_rules_input){.base = "/w",
                                    .read = (const char *const[]){"/etc", "/usr", NULL},
                                    .write = none,
                                    .deny = (const char *const[]){"/w/a", "/w/b", NULL},
                                    .rules = rules,
                                    .rule_count = 2});

    (void)state;
    csn_rule_hit hit = csn_rules_check(r, CSN_OP_READ, "/w/b/c");
    assert_string_equal(hit.rule, "deny /w/b");
    assert_string_equal(hit.source, "config.deny[1]");
    hit = csn_rules_check(r, CSN_OP_WRITE, "/w/no/c");
    assert_string_equal(hit.rule, "deny read,write /w/no");
    assert_string_equal(hit.source, "config.rules[1]");
    hit = csn_rules_check(r, CSN_OP_READ, "/usr/bin");
    assert_string_equal(hit.rule, "read /usr");
    assert_string_equal(hit.source, "config.read[1]");
    hit = csn_rules_check(r, CSN_OP_READ, "/w/x");
    assert_string_equal(hit.source, "config.workspace");
    csn_rules_free(r);
}

static void relative_paths_and_broken_globs_are_refused(void **state)
{
    csn_rules *r = NULL;
    csn_error *err = NULL;

    (void)state;
    assert_int_equal(
        csn_rules_new(&(csn_rules_input){.deny = (const char *const[]){"x", NULL}}, &r, &err),
        CSN_INVALID);
    assert_non_null(strstr(csn_error_message(err), "config.deny"));
    assert_null(r);
    csn_error_free(err);
    csn_rule missing = {CSN_OP_READ, 1, NULL};
    assert_int_equal(
        csn_rules_new(&(csn_rules_input){.rules = &missing, .rule_count = 1}, &r, NULL),
        CSN_INVALID);
}

static void check_hint(uint32_t op, const char *path, const char *want)
{
    char *hint = csn_rules_hint(op, path);

    assert_string_equal(hint, want);
    free(hint);
}

static void hints_are_the_smallest_option_that_would_allow_it(void **state)
{
    (void)state;
    check_hint(CSN_OP_READ, "/etc/ssl/x", "--read /etc/ssl/x");
    check_hint(CSN_OP_WRITE, "/srv/a", "--write /srv/a");
    check_hint(CSN_OP_DELETE, "/srv/a", "--write /srv/a");
    check_hint(CSN_OP_EXEC, "git", "--allow-command git");
    check_hint(CSN_OP_NET, "example.com:443", "--allow example.com:443");
    check_hint(CSN_OP_READ, "/a b/$x", "--read '/a b/$x'");
    check_hint(CSN_OP_READ, "/it's", "--read '/it'\\''s'");
    check_hint(CSN_OP_WRITE, "/''", "--write '/'\\'''\\'''");
    assert_null(csn_rules_hint(CSN_OP_READ, "/proc/1/status"));
    check_hint(CSN_OP_READ, "/processes", "--read /processes");
    char *hint = csn_rules_hint(CSN_OP_READ, "/a\n\x1b[31m");
    assert_null(strchr(hint, '\n'));
    assert_null(strchr(hint, '\x1b'));
    free(hint);
}

/* 0 when a shell that is given the hint has the option and exactly the name. */
static int ask_shell(void *ctx)
{
    char script[256];
    char *hint = csn_rules_hint(CSN_OP_READ, ctx);

    snprintf(script, sizeof(script), "set -- %s; [ $# = 2 ] && [ \"$1$2\" = \"--read$NAME\" ]",
             hint);
    free(hint);
    setenv("NAME", ctx, 1);
    execl("/bin/sh", "sh", "-c", script, (char *)NULL);
    return 127;
}

static void a_shell_reads_the_very_name_back(void **state)
{
    static const char *const names[] = {
        "/it's", "/'",          "/''",         "/a'b'c",  "/$(x)'`y`",
        "/\\",   "/\xc3\xa9's", "/;&|<>*?[~#", "/a b\\'", "/-- '--read /etc'",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        csn_child_end end = csn_child_run(ask_shell, (void *)(uintptr_t)names[i], -1, 60000);
        if (end.exit_code != 0)
            fail_msg("%s: the shell says %d", names[i], end.exit_code);
    }
}

static void operations_have_names(void **state)
{
    (void)state;
    assert_string_equal(csn_op_name(CSN_OP_READ), "read");
    assert_string_equal(csn_op_name(CSN_OP_NET), "net");
    assert_null(csn_op_name(0));
    assert_null(csn_op_name(CSN_OP_READ | CSN_OP_WRITE));
    assert_int_equal(csn_op_of_name("delete"), CSN_OP_DELETE);
    assert_int_equal(csn_op_of_name("exec"), CSN_OP_EXEC);
    assert_int_equal(csn_op_of_name("Read"), 0);
    assert_int_equal(csn_op_of_name(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_cover_whole_components_only),
        cmocka_unit_test(the_root_as_a_directory_covers_everything),
        cmocka_unit_test(the_longest_rule_wins_and_deny_wins_ties),
        cmocka_unit_test(denied_paths_keep_their_source),
        cmocka_unit_test(a_base_that_is_denied_itself_is_denied),
        cmocka_unit_test(globs_that_deny_cover_what_is_below_and_globs_that_allow_do_not),
        cmocka_unit_test(a_whole_path_beats_a_glob_of_the_same_length),
        cmocka_unit_test(exec_and_net_rules_are_not_about_paths),
        cmocka_unit_test(a_verdict_names_its_rule_and_where_it_comes_from),
        cmocka_unit_test(relative_paths_and_broken_globs_are_refused),
        cmocka_unit_test(hints_are_the_smallest_option_that_would_allow_it),
        cmocka_unit_test(a_shell_reads_the_very_name_back),
        cmocka_unit_test(operations_have_names),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
