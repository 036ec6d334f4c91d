/* The command allow-list and exec rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/command_policy.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static csn_policy *policy(const char *const *commands, const csn_rule *rules, size_t count)
{
    csn_config c = {
        .size = sizeof(c), .commands = commands, .rules = rules, .rule_count = count};
    csn_policy *p = NULL;
    csn_error *err = NULL;

    if (csn_policy_new(&c, &p, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    return p;
}

static void allow_line(const csn_policy *p, const char *line)
{
    csn_error *err = NULL;

    if (csn_policy_command(p, line, NULL, NULL, &err) != CSN_OK)
        fail_msg("%s: %s", line, csn_error_message(err));
}

static void deny_line(const csn_policy *p, const char *line, const char *target)
{
    csn_error *err = NULL;

    if (csn_policy_command(p, line, NULL, NULL, &err) != CSN_DENIED)
        fail_msg("'%s' was allowed", line);
    const csn_denial *d = csn_error_denial(err);
    assert_non_null(d);
    assert_string_equal(d->op, "exec");
    assert_non_null(d->rule);
    assert_non_null(d->source);
    if (target && strcmp(d->target, target) != 0)
        fail_msg("'%s': target is %s", line, d->target);
    csn_error_free(err);
}

static void without_rules_everything_runs_unread(void **state)
{
    csn_policy *p = policy(NULL, NULL, 0);

    (void)state;
    allow_line(p, "rm -rf x; $anything 'unbalanced");
    assert_int_equal(csn_policy_command(p, NULL, LIST("x"), NULL, NULL), CSN_OK);
    assert_int_equal(csn_policy_command(p, NULL, (const char *const[]){NULL}, NULL, NULL),
                     CSN_INVALID);
    assert_int_equal(csn_policy_command(p, NULL, NULL, NULL, NULL), CSN_INVALID);
    assert_int_equal(csn_policy_command(NULL, "x", NULL, NULL, NULL), CSN_OK);
    csn_policy_free(p);
    csn_policy_free(NULL);
}

static void only_listed_words_run(void **state)
{
    csn_policy *p = policy(LIST("git", "/opt/tool", "["), NULL, 0);

    (void)state;
    allow_line(p, "git status");
    allow_line(p, "cd x && git log | git shortlog; echo done");
    allow_line(p, "/opt/tool");
    deny_line(p, "tool", "tool");
    deny_line(p, "rm x", "rm");
    deny_line(p, "git log; rm x", "rm");
    deny_line(p, "git $(rm x)", "$(rm x)");
    deny_line(p, "if git; then git; fi", NULL);
    deny_line(p, "git-rm x", "git-rm");
    deny_line(p, "gi", "gi");
    deny_line(p, "git/rm", "git/rm");
    deny_line(p, "$x", NULL);
    deny_line(p, "git 'x", NULL);
    csn_policy_free(p);
}

static void an_empty_line_and_an_empty_list_are_what_they_say(void **state)
{
    csn_policy *p = policy((const char *const[]){NULL}, NULL, 0);

    (void)state;
    allow_line(p, "");
    allow_line(p, "echo x > f; cd /");
    deny_line(p, "ls", "ls");
    assert_int_equal(csn_policy_command(p, NULL, LIST("ls"), NULL, NULL), CSN_DENIED);
    csn_policy_free(p);
}

static void builtins_that_run_nothing_need_no_listing(void **state)
{
    csn_policy *p = policy(LIST("git"), NULL, 0);
    static const char *const free_words[] = {
        "cd /",   "echo x",   "export A=b", "test -f x", "[ -f x ]", "true",  "false",
        "set -e", "exit 1",   "return",     "break",     "continue", "shift", "wait",
        ":",      "printf x", "pwd",        "umask 022", "type git", "times"};
    static const char *const must_list[] = {
        "eval git",      "exec git",    "command git",  "builtin git", "source f",
        ". f",           "env git",     "xargs git",    "sudo git",    "alias git=rm",
        "hash -p x git", "enable -f",   "mapfile -C x", "shopt -s x",  "compgen -C rm x",
        "nohup git",     "bash -c git", "read x",       "unset x",     "declare x",
        "trap '' 2",     "jobs -x git", "let x=1"};

    (void)state;
    for (size_t i = 0; i < sizeof(free_words) / sizeof(free_words[0]); i++)
        allow_line(p, free_words[i]);
    for (size_t i = 0; i < sizeof(must_list) / sizeof(must_list[0]); i++)
        deny_line(p, must_list[i], NULL);
    /* as programs, without a shell, they are words like any other */
    assert_int_equal(csn_policy_command(p, NULL, LIST("echo", "x"), NULL, NULL), CSN_DENIED);
    deny_line(p, "/bin/echo x", "/bin/echo");
    deny_line(p, "trap 'rm x' EXIT", "trap");
    deny_line(p, "test -v 'a[$(rm x)]'", "test");
    csn_policy_free(p);
}

static void an_open_builtin_runs_only_when_it_is_listed(void **state)
{
    csn_policy *p = policy(LIST("git", "eval"), NULL, 0);
    csn_rule deny = {CSN_OP_EXEC, 0, "rm"};
    csn_error *err = NULL;

    (void)state;
    allow_line(p, "eval 'git x; cd y'");
    deny_line(p, "exec git", "exec");
    assert_int_equal(csn_policy_command(p, "command git", NULL, NULL, &err), CSN_DENIED);
    assert_string_equal(csn_error_hint(err), "--allow-command command");
    csn_error_free(err);
    csn_policy_free(p);

    p = policy(NULL, &deny, 1); /* also past a rule that only denies */
    deny_line(p, "eval 'rm x'", "eval");
    deny_line(p, "command rm x", "command");
    csn_policy_free(p);
}

/* A listed name is a file that PATH finds, not every file of that name. */
static void a_name_does_not_allow_a_path(void **state)
{
    csn_policy *p = policy(LIST("ls", "/opt/tool", "./own", "/usr/lib/x/*"), NULL, 0);

    (void)state;
    allow_line(p, "ls");
    allow_line(p, "/opt/tool; ./own");
    allow_line(p, "/usr/lib/x/a");
    deny_line(p, "./ls", "./ls");
    deny_line(p, "/tmp/ls", "/tmp/ls");
    deny_line(p, "/bin/ls", "/bin/ls");
    deny_line(p, "opt/tool", "opt/tool");
    deny_line(p, "tool", "tool");
    deny_line(p, "own", "own");
    deny_line(p, "usr/lib/x/a", "usr/lib/x/a");
    deny_line(p, "/usr/lib/x/..", "/usr/lib/x/..");
    assert_int_equal(csn_policy_command(p, NULL, LIST("./ls"), NULL, NULL), CSN_DENIED);
    assert_int_equal(csn_policy_command(p, NULL, LIST("./own"), NULL, NULL), CSN_OK);
    csn_policy_free(p);

    p = policy(LIST("l*"), NULL, 0);
    allow_line(p, "ls; less");
    deny_line(p, "./ls", "./ls");
    deny_line(p, "/ls", "/ls");
    csn_policy_free(p);

    p = policy(LIST("**"), NULL, 0);
    allow_line(p, "ls; ./ls; /a/../b");
    csn_policy_free(p);
}

static void no_call_changes_path(void **state)
{
    csn_policy *p = policy(LIST("ls", "env"), NULL, 0);
    csn_error *err = NULL;

    (void)state;
    allow_line(p, "A=1 ls; export B=2 PATH; echo PATH=; env A=1 ls");
    deny_line(p, "PATH=. ls", "PATH=.");
    deny_line(p, "A=1 PATH=. ls", "PATH=.");
    deny_line(p, "PATH=.; ls", "PATH=.");
    deny_line(p, "env PATH=. ls", "PATH=.");
    deny_line(p, "export PATH=.", "PATH=.");
    deny_line(p, "export A=1 'PATH'=.", "PATH=.");
    deny_line(p, "LD_PRELOAD=./x.so ls", NULL);
    deny_line(p, "RANDOM='a[$(rm x)]'", NULL);
    assert_int_equal(csn_policy_command(p, NULL, LIST("env", "PATH=.", "ls"), NULL, NULL),
                     CSN_DENIED);
    assert_int_equal(csn_policy_command(p, NULL, LIST("ls", "PATH=."), NULL, NULL), CSN_OK);
    assert_int_equal(csn_policy_command(p, "ls", NULL, LIST("A=1"), NULL), CSN_OK);
    assert_int_equal(csn_policy_command(p, "ls", NULL, LIST("A=1", "BASH_ENV=f"), NULL),
                     CSN_DENIED);
    assert_int_equal(csn_policy_command(p, NULL, LIST("ls"), LIST("PATH=."), &err), CSN_DENIED);
    assert_non_null(strstr(csn_error_message(err), "PATH"));
    assert_non_null(strstr(csn_error_hint(err), "--env"));
    csn_error_free(err);
    csn_policy_free(p);
}

static void a_refused_construct_is_named(void **state)
{
    csn_policy *p = policy(LIST("git"), NULL, 0);
    csn_error *err = NULL;

    (void)state;
    assert_int_equal(csn_policy_command(p, "git $(x)", NULL, NULL, &err), CSN_DENIED);
    assert_non_null(strstr(csn_error_message(err), "$(...) is a command substitution"));
    assert_non_null(strstr(csn_error_hint(err), "without a shell"));
    assert_string_equal(csn_error_denial(err)->source, "config.commands");
    csn_error_free(err);
    csn_policy_free(p);
}

static void rules_allow_and_deny_words_and_globs(void **state)
{
    csn_rule rules[] = {{CSN_OP_EXEC, 0, "*"},        {CSN_OP_EXEC, 1, "git*"},
                        {CSN_OP_EXEC, 0, "git-evil"}, {CSN_OP_EXEC, 1, "ls"},
                        {CSN_OP_READ, 0, "cat"},      {CSN_OP_EXEC, 0, "/bin/dd"}};
    csn_policy *p = policy(NULL, rules, 6);

    (void)state;
    allow_line(p, "git x; git-lfs y; ls");
    deny_line(p, "git-evil", "git-evil");
    deny_line(p, "cat x", "cat");
    deny_line(p, "cd x", "cd");
    deny_line(p, "/usr/bin/cat x", "/usr/bin/cat");
    deny_line(p, "dd", "dd");
    csn_policy_free(p);

    csn_rule deny[] = {{CSN_OP_EXEC, 0, "rm"}, {CSN_OP_EXEC, 0, "/bin/dd"}};
    p = policy(NULL, deny, 2);
    allow_line(p, "anything else; cd x");
    deny_line(p, "rm x", "rm");
    deny_line(p, "/bin/rm x", "/bin/rm");
    deny_line(p, "'r'm x", "rm");
    deny_line(p, "dd", "dd");
    deny_line(p, "$x", NULL);
    csn_policy_free(p);

    p = policy(LIST("rm", "ls"), deny, 1);
    allow_line(p, "ls");
    deny_line(p, "rm x", "rm"); /* deny wins ties */
    csn_policy_free(p);
}

static void argv_is_checked_by_its_first_word(void **state)
{
    csn_policy *p = policy(LIST("git", "/opt/x/run"), NULL, 0);

    (void)state;
    assert_int_equal(csn_policy_command(p, NULL, LIST("git", "; rm"), NULL, NULL), CSN_OK);
    assert_int_equal(csn_policy_command(p, NULL, LIST("/bin/git"), NULL, NULL), CSN_DENIED);
    assert_int_equal(csn_policy_command(p, NULL, LIST("/opt/x/run"), NULL, NULL), CSN_OK);
    assert_int_equal(csn_policy_command(p, NULL, LIST("run"), NULL, NULL), CSN_DENIED);
    assert_int_equal(csn_policy_command(p, NULL, LIST("/other/run"), NULL, NULL), CSN_DENIED);
    assert_int_equal(csn_policy_command(p, NULL, LIST("git x"), NULL, NULL), CSN_DENIED);
    assert_int_equal(csn_policy_command(p, NULL, LIST("rm", "git"), NULL, NULL), CSN_DENIED);
    csn_policy_free(p);
}

static void a_refusal_says_what_would_allow_it(void **state)
{
    csn_policy *p = policy(LIST("git"), NULL, 0);
    csn_error *err = NULL;

    (void)state;
    assert_int_equal(csn_policy_command(p, "npm ci", NULL, NULL, &err), CSN_DENIED);
    const csn_denial *d = csn_error_denial(err);
    assert_string_equal(d->target, "npm");
    assert_string_equal(d->source, "config.commands");
    assert_string_equal(d->hint, "--allow-command npm");
    assert_string_equal(csn_error_hint(err), "--allow-command npm");
    assert_non_null(strstr(csn_error_message(err), "npm"));
    csn_error_free(err);
    csn_policy_free(p);

    csn_rule rule = {CSN_OP_EXEC, 0, "npm"};
    p = policy(NULL, &rule, 1);
    err = NULL;
    assert_int_equal(csn_policy_command(p, "npm ci", NULL, NULL, &err), CSN_DENIED);
    d = csn_error_denial(err);
    assert_string_equal(d->rule, "deny exec npm");
    assert_string_equal(d->source, "config.rules[0]");
    csn_error_free(err);
    csn_policy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_everything_runs_unread),
        cmocka_unit_test(only_listed_words_run),
        cmocka_unit_test(an_empty_line_and_an_empty_list_are_what_they_say),
        cmocka_unit_test(builtins_that_run_nothing_need_no_listing),
        cmocka_unit_test(an_open_builtin_runs_only_when_it_is_listed),
        cmocka_unit_test(a_name_does_not_allow_a_path),
        cmocka_unit_test(no_call_changes_path),
        cmocka_unit_test(a_refused_construct_is_named),
        cmocka_unit_test(rules_allow_and_deny_words_and_globs),
        cmocka_unit_test(argv_is_checked_by_its_first_word),
        cmocka_unit_test(a_refusal_says_what_would_allow_it),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
