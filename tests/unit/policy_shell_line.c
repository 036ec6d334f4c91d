/* Simple commands of shell lines: by table, and against bash itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/shell_line.h"

/* The command words in the order of finding, each with a space after it; then `?` where the
 * reading stopped. */
typedef struct words {
    char text[4096];
} words;

static int collect(void *ctx, const csn_shell_command *c)
{
    words *w = ctx;
    size_t len = strlen(w->text);

    assert_true(c->count >= c->assignments && c->count > 0);
    if (c->count > c->assignments)
        snprintf(w->text + len, sizeof(w->text) - len, "%s ", c->words[c->assignments].text);
    return 0;
}

static void read_line(const char *line, words *w)
{
    csn_shell_stop stop = {0};
    int rc = csn_shell_line(line, collect, w, &stop);

    if (rc == CSN_SHELL_STOPPED) {
        size_t len = strlen(w->text);
        assert_non_null(stop.construct);
        assert_in_range((size_t)(stop.at - line), 0, strlen(line));
        snprintf(w->text + len, sizeof(w->text) - len, "? ");
    } else {
        assert_int_equal(rc, 0);
    }
}

static void check(const char *line, const char *want)
{
    words w = {""};

    read_line(line, &w);
    if (strcmp(w.text, want) != 0)
        fail_msg("%s\n  found: %s\n  want:  %s", line, w.text, want);
}

/* The reading stops at `at`. */
static void check_stop(const char *line, const char *at, const char *construct)
{
    csn_shell_stop stop = {0};
    words w = {""};

    if (csn_shell_line(line, collect, &w, &stop) != CSN_SHELL_STOPPED)
        fail_msg("%s\n  believed to be: %s", line, w.text);
    if (strncmp(stop.at, at, strlen(at)) != 0 || !strstr(stop.construct, construct))
        fail_msg("%s\n  stopped at: %s: %s", line, stop.at, stop.construct);
}

static void finds_the_first_word_of_every_command(void **state)
{
    (void)state;
    check("", "");
    check("  \n\t ", "");
    check("ls -l /tmp", "ls ");
    check("a; b && c || d | e & f\ng", "a b c d e f g ");
    check("a|&b&c", "a b c ");
    check("a &", "a ");
    check("a;", "a ");
    check("a |\n\n b &&\n c", "a b c ");
    check("! a && ! ! b", "a b ");
    check("/usr/bin/git status; ./x", "/usr/bin/git ./x ");
    check("\xc3\xa9t\xc3\xa9 x; b", "\xc3\xa9t\xc3\xa9 b ");
    check("[ -f x ] && a", "[ a ");
    check("echo if then do done fi { } ! time; a", "echo a ");
    check("x=1 if", "if ");
    check("'if' a; \\while", "if while ");
}

static void skips_assignments_and_redirections(void **state)
{
    (void)state;
    check("A=1 B=2 cmd C=3", "cmd ");
    check("A=1", "");
    check("A=", "");
    check("A=1; b", "b ");
    check("2>f cmd", "cmd ");
    check(">f", "");
    check(">f <g cmd a >>h 2>&1 >|i <>j >&k <&-", "cmd ");
    check("cmd 2 >f; b2>f", "cmd b2 ");
    check("\"A\"=1 b", "A=1 ");
    check("A\\=1 b", "A=1 ");
    check("1A=2 b", "1A=2 ");
    check("=1 b", "=1 ");
    check("cmd>f 2>g<h", "cmd ");
}

static void removes_quotes_from_words(void **state)
{
    (void)state;
    check("\"rm\" x", "rm ");
    check("r'm' x", "rm ");
    check("\\rm x", "rm ");
    check("r\\\nm x", "rm ");
    check("''rm\"\" x", "rm ");
    check("'a b' x", "a b ");
    check("'' x", " ");
    check("a \\\n b; c", "a c ");
    check("echo 'it'\\''s; rm' ; b", "echo b ");
    check("echo \"a;b|c&d\\\"e\" 'f;g' h\\;i; j", "echo j ");
    check("\"a\\b\" x", "a\\b ");
    check("\"a\\\\b\\$c\" x", "a\\b$c ");
    check("\"a\\\nb\" x", "ab ");
    check("\"a\\\n\" x", "a ");
    check("echo '$(a)' \"\\$(b) \\`c\\`\" \\$\\(d\\) \"$'x'\"", "echo ");
}

static void ignores_comments_but_not_hashes_in_words(void **state)
{
    (void)state;
    check("a # b; c\nd", "a d ");
    check("a#b; c", "a#b c ");
    check("a '#' b; c", "a c ");
    check("# only", "");
    check("a;#x\nb", "a b ");
    check("a \\\n# b\nc", "a c ");
    check("a # x \\\nb", "a b ");
}

static int copy_words(void *ctx, const csn_shell_command *c)
{
    words *out = ctx;

    for (size_t i = 0; i < c->count; i++) {
        const csn_shell_word *w = &c->words[i];
        size_t len = strlen(out->text);
        snprintf(out->text + len, sizeof(out->text) - len, "%s:%zu%s%s%s%s", w->text, w->known,
                 w->literal ? "l" : "", w->splits ? "s" : "", w->assigns ? "a" : "",
                 i + 1 < c->count ? " " : "");
    }
    return 0;
}

static void words_of(const char *line, const char *want)
{
    csn_shell_stop stop = {0};
    words got = {""};

    assert_int_equal(csn_shell_line(line, copy_words, &got, &stop), 0);
    if (strcmp(got.text, want) != 0)
        fail_msg("%s\n  words: %s\n  want:  %s", line, got.text, want);
}

static void tells_what_is_known_of_an_argument(void **state)
{
    (void)state;
    words_of("a b 'c d' \"\"", "a:1l b:1l c d:3l :0l");
    words_of("a x$y \"x$y\" ${y}z $", "a:1l x:1s x:1 z:0s $:1l");
    words_of("a $? \"$#\" $$ $!", "a:1l 0:1l 0:1l 0:1l 0:1l");
    words_of("a $0 $8 $9 \"$5\"", "a:1l :0s :0s :0s :0");
    words_of("a \"$@\" \"$*\" $1 \"$-\"", "a:1l :0s :0 :0s :0");
    words_of("a *.c x? y[z] {a,b} ~ x~", "a:1l *.c:0s x?:1s y[z]:1s {a,b}:0s ~:0s x~:2l");
    words_of("a '*' \\? \"[\" \"~\"", "a:1l *:1l ?:1l [:1l ~:1l");
    words_of("A=1 B=$x c D=$y \"E\"=1", "A=1:3la B=:2sa c:1l D=:2sa E=1:3l");
    words_of("A=1=2 b", "A=1=2:5la b:1l");
}

/* Which construct, and where: the message to the caller is made of this. */
static void stops_where_it_cannot_know(void **state)
{
    static const struct {
        const char *line, *at, *construct;
    } cases[] = {
        {"a; b $(c)", "$(c)", "command substitution"},
        {"a \"x $(c)\"", "$(c)", "command substitution"},
        {"a `b`", "`b`", "command substitution"},
        {"a \"`b`\"", "`b`", "command substitution"},
        {"x=$(a)", "$(a)", "command substitution"},
        {"a $((1))", "$((1))", "arithmetic"},
        {"a $[1]", "$[1]", "arithmetic"},
        {"a ${x:-y}", "${x:-y}", "operator"},
        {"a \"${x@P}\"", "${x@P}", "operator"},
        {"a ${!x}", "${!x}", "operator"},
        {"a ${x", "${x", "operator"},
        {"a ${1}", "${1}", "operator"},
        {"a $'b'", "$'b'", "every shell"},
        {"a $\"b\"", "$\"b\"", "every shell"},
        {"a $\\\n(b)", "$\\\n(b)", "continued"},
        {"a \"$\\\n(b)\"", "$\\\n(b)", "continued"},
        {"a \"\\\n$(b)\"", "$(b)", "command substitution"},
        {"a \"\\\n`b`\"", "`b`", "command substitution"},
        {"a \"b\\", "\"b", "double quote"},
        {"a 'b", "'b", "single quote"},
        {"a \"b", "\"b", "double quote"},
        {"a \\", "\\", "backslash"},
        {"a <<E\nx\nE", "<<E", "here-document"},
        {"a <<< b", "<<< b", "here-document"},
        {"a <\\\n<E\nx\nE", "<", "here-document"},
        {"a >", "", "no target"},
        {"a > ; b", "; b", "no target"},
        {"a > >(b)", ">(b)", "no target"},
        {"a {x}>f", ">f", "sets a variable"},
        {"10>f rm", ">f rm", "above 9"},
        {"a <(b)", "(b)", "no target"},
        {"(a)", "(a)", "subshell"},
        {"a)", ")", "subshell"},
        {"f() { a; }", "() {", "subshell"},
        {"a=(b)", "(b)", "subshell"},
        {"{ a; }", "{ a", "compound"},
        {"}", "}", "compound"},
        {"if a; then b; fi", "if a", "compound"},
        {"a; then b", "then b", "compound"},
        {"for x in a; do b; done", "for x", "compound"},
        {"a & while b; do c; done", "while b", "compound"},
        {"case x in x) b;; esac", "case x", "compound"},
        {"[[ -n x ]]", "[[ -n", "compound"},
        {"time a", "time a", "compound"},
        {"w\\\nhile a", "w\\", "compound"},
        {"! { a; }", "{ a", "compound"},
        {"function f { a; }", "function f", "compound"},
        {"coproc a", "coproc a", "compound"},
        {"$x", "$x", "command name"},
        {"\"$x\" a", "\"$x\"", "command name"},
        {"l$?", "l$?", "command name"},
        {"A=1 $x", "$x", "command name"},
        {"r*", "r*", "command name"},
        {"r?", "r?", "command name"},
        {"[r]m", "[r]m", "command name"},
        {"[$x a", "[$x", "command name"},
        {"{rm,x}", "{rm,x}", "command name"},
        {"~/x", "~/x", "command name"},
        {"a[1]=2 b", "a[1]=2", "command name"},
        {"a$x=1", "a$x=1", "command name"},
        {"A+=x cmd", "A+=x", "every shell"},
        {"a &>f b", "&>f", "&>"},
        {"a &\\\n>f b", "&\\\n>f", "&>"},
        {"a; ; b", "; b", "missing"},
        {"a;; b", "; b", "missing"},
        {"; a", "; a", "missing"},
        {"| a", "| a", "missing"},
        {"a && ; b", "; b", "missing"},
        {"a &&", "", "missing"},
        {"a |\n\n", "", "missing"},
        {"a || && b", "&& b", "missing"},
        {"! ; a", "; a", "missing"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_stop(cases[i].line, cases[i].at, cases[i].construct);
}

/* What was found before the stop has been reported: it may run before the shell gets there. */
static void reports_what_comes_before_a_stop(void **state)
{
    (void)state;
    check("a; b | c\n$(d)", "a b c ? ");
    check("a; b $(d)", "a ? ");
}

static void ordinary_lines_are_certain(void **state)
{
    (void)state;
    check("git commit -m 'use `foo` and $(bar)'", "git ");
    check("awk -F: '{print $1 \" \" $(NF-1)}' f | sort -u", "awk sort ");
    check("find . -name '*.py' -exec grep -l foo {} \\; | xargs -r sed -i 's/a/b/g'",
          "find xargs ");
    check("cd x && make -j4 2>&1 | tail -5", "cd make tail ");
    check("grep -rn TODO src/ --include=*.{c,h} | sort -k1", "grep sort ");
    check("CFLAGS=\"-O2 $X\" make \\\n  all; echo \"rc=$?\"", "make echo ");
}

static int stop_at_second(void *ctx, const csn_shell_command *c)
{
    int *n = ctx;

    (void)c;
    return ++*n == 2 ? 42 : 0;
}

static void a_callback_can_stop_it(void **state)
{
    csn_shell_stop stop = {0};
    int n = 0;

    (void)state;
    assert_int_equal(csn_shell_line("a; b; c", stop_at_second, &n, &stop), 42);
    assert_int_equal(n, 2);
}

static csn_shell_kind kind_of;
static int keep_kind(void *ctx, const csn_shell_command *c)
{
    const char *why = NULL;

    (void)ctx;
    kind_of = csn_shell_builtin(c->words + c->assignments, c->count - c->assignments, &why);
    assert_true(kind_of < CSN_SHELL_OPEN || why);
    return 0;
}

static void kind(csn_shell_kind want, const char *const *lines)
{
    for (size_t i = 0; lines[i]; i++) {
        csn_shell_stop stop = {0};
        assert_int_equal(csn_shell_line(lines[i], keep_kind, NULL, &stop), 0);
        if (kind_of != want)
            fail_msg("%s: kind %d, not %d", lines[i], kind_of, want);
    }
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void builtins_are_harmless_by_their_arguments(void **state)
{
    (void)state;
    kind(CSN_SHELL_PROGRAM, LINES("ls", "env a", "/bin/echo", "bash -c x", "./test"));
    kind(CSN_SHELL_HARMLESS,
         LINES("cd \"$x\"", "echo $x *", "exit $?", ":", "true", "[ -f x ]", "[ $? -eq 0 ]",
               "test a = b", "printf '%s' \"$x\"", "printf a$x", "printf -- $x", "printf",
               "printf ''", "export A=1 B", "export A=\"$x\"", "export \"A=$x\"", "set -e",
               "set -euo pipefail", "set +x", "set", "wait", "wait $!", "wait %1"));
    kind(CSN_SHELL_REFUSED,
         LINES("[ -v x ]", "[ ! -R x ]", "test $x y", "[ \"$x\" = y ]", "[ * ]",
               "printf -v PATH x", "printf \"$x\" y", "printf $x", "printf *", "export $x",
               "export \"$x\"", "export A=$x", "export {A,B}=1", "set -H", "set -k",
               "set -o history", "set -- x", "set $x", "set -", "wait -p x", "wait $x",
               "wait -n"));
    kind(CSN_SHELL_OPEN,
         LINES("eval x", "exec x", "command x", "builtin x", ". f", "source f", "trap x EXIT",
               "jobs -x rm", "alias a=b", "hash -p a b", "enable -f", "declare -n a=PATH",
               "read x", "unset x", "mapfile -C x", "let x", "local x", "typeset x",
               "readonly x", "getopts a b", "shopt -s x", "fc", "compgen -C x"));
}

static void variables_that_decide_what_runs(void **state)
{
    static const char *const yes[] = {
        "PATH=.",     "PATH",           "PATH+=x",  "LD_PRELOAD=x",
        "BASH_ENV=f", "BASH_FUNC_ls%%", "BASHOPTS", "ENV=f",
        "PS4=x",      "SHELLOPTS=x",    "RANDOM=1", "SRANDOM=1",
        "OPTIND=1",   "HISTCMD=1",      "LD_=",     NULL};
    static const char *const no[] = {"A=1", "MYPATH=x", "PATHS=x", "PAT=1", "LD=1",  "PS1=x",
                                     "BAS", "ENVX",     "path=x",  "",      "=PATH", NULL};

    (void)state;
    for (size_t i = 0; yes[i]; i++)
        assert_true(csn_shell_variable_protected(yes[i]));
    for (size_t i = 0; no[i]; i++)
        assert_false(csn_shell_variable_protected(no[i]));
    assert_true(csn_shell_sets_protected("env", "PATH=."));
    assert_true(csn_shell_sets_protected("/usr/bin/env", "PATH=."));
    assert_true(csn_shell_sets_protected("export", "PATH+=:."));
    assert_false(csn_shell_sets_protected("export", "PATH"));
    assert_false(csn_shell_sets_protected("env", "A=PATH=."));
    assert_false(csn_shell_sets_protected("grep", "PATH=."));
}

static int count_words(void *ctx, const csn_shell_command *c)
{
    *(size_t *)ctx += c->count;
    return 0;
}

static void long_lines_are_read_whole(void **state)
{
    static const char *const parts[] = {"a;", "a\n", "a ", "'a'", "x=1 ", ">f ", "\\\n", "!"};
    char *line = malloc(200000 + 32);

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t part = strlen(parts[i]), len = 0, found = 0;
        csn_shell_stop stop = {0};
        for (; len + part < 200000; len += part)
            memcpy(line + len, parts[i], part);
        line[len] = '\0';
        assert_int_equal(csn_shell_line(line, count_words, &found, &stop), 0);
    }
    free(line);
}

/* ---- against bash ----------------------------------------------------------------------- */

typedef struct tracer {
    char dir[64];
    char log[96];
} tracer;

static void make_stub(const tracer *t, const char *name)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", t->dir, name);
    f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\necho \"${0##*/}\" >> '%s'\n", t->log);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

/* The stubs that bash runs for this line, as "c1 c2 " in `ran`. */
static void run_line(const tracer *t, const char *line, char *ran, size_t size)
{
    char path[80], *env[] = {path, NULL};
    FILE *f = fopen(t->log, "we");
    int status;

    assert_non_null(f);
    fclose(f);
    snprintf(path, sizeof(path), "PATH=%s", t->dir);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        if (chdir(t->dir) < 0 || !freopen("/dev/null", "r", stdin) ||
            !freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(99);
        execle("/bin/bash", "bash", "-c", line, (char *)NULL, env);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 99);
    f = fopen(t->log, "re");
    assert_non_null(f);
    size_t n = fread(ran, 1, size - 1, f);
    ran[n] = '\0';
    fclose(f);
}

/* True when the line was read to its end. */
static bool check_against_bash(const tracer *t, const char *line)
{
    char ran[1024], *save = NULL;
    words w = {" "};

    read_line(line, &w);
    run_line(t, line, ran, sizeof(ran));
    if (strstr(w.text, " ? "))
        return false;
    for (char *p = strtok_r(ran, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
        char want[64];
        snprintf(want, sizeof(want), " %s ", p);
        if (!strstr(w.text, want))
            fail_msg("%s\n  bash ran %s, found:%s", line, p, w.text);
    }
    return true;
}

static void everything_bash_runs_was_found(void **state)
{
    static const char *const accepted[] = {
        "c1; c2 && c3 || c4 | c5 & c6; wait",
        "! c3; ! ! c4; c5 | c6",
        "A=1 c1; 2>f c2; >f c4 x <f; A=1 B=2 >f c5; c6 2>&1 >>f",
        "c\\\n1; \"c2\"; 'c'3; \\c4; c''5",
        "echo '#' # c1\nc2 #c3\nc4#x; c5",
        "c1 && # x\nc2; c3 |\n\n c4; c5 |& c6",
        "x=c5; echo $x \"${x}\" '$(c1)' \"\\$(c2)\" \\`c3\\`; c4 &",
        "echo a &\\\n& c1; c2 \\\n c3; c4 \\\n# c5\nc6",
        "\"A\"=1 c1; A\\=1 c2; x=1; 2 >f; c3",
        "[ -f c1 ] && c2; test a = a && c3; cd . && c4; set -e; c5",
        "echo {c1,c2} c*; printf '%s\\n' c3; export A=\"$x\"; c4",
    };
    static const char *const refused[] = {
        "if c1; then c2; else c3; fi",
        "echo \"$(c1 \"$(c2)\")\" `c3`",
        "x=$(c1) y=`c2` c3",
        "cat < <(c1) > >(c2)",
        "c1 <<E\n$(c2)\nE\nc6",
        "f() { c1; }; f",
        "(c3) ; { c4; }",
        "time c1",
        "10>f c1",
        "c1 &> f c2",
        "x=c5; $x",
        "{c3,x}; $'c4'; c*",
    };
    tracer t = {.dir = "/tmp/csn-shwords-XXXXXX"};
    char name[16], command[128];

    (void)state;
    if (access("/bin/bash", X_OK) < 0) {
        print_message("no bash here\n");
        skip();
    }
    assert_non_null(mkdtemp(t.dir));
    snprintf(t.log, sizeof(t.log), "%s/log", t.dir);
    for (int i = 1; i <= 6; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        make_stub(&t, name);
    }
    /* The tracing itself must work, or nothing here can fail. */
    run_line(&t, "c1; c2", command, sizeof(command));
    assert_string_equal(command, "c1\nc2\n");
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++)
        if (!check_against_bash(&t, accepted[i]))
            fail_msg("refused: %s", accepted[i]);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (check_against_bash(&t, refused[i]))
            fail_msg("accepted: %s", refused[i]);
    for (int i = 1; i <= 6; i++) {
        snprintf(command, sizeof(command), "%s/c%d", t.dir, i);
        unlink(command);
    }
    snprintf(command, sizeof(command), "%s/f", t.dir);
    unlink(command);
    unlink(t.log);
    assert_int_equal(rmdir(t.dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_first_word_of_every_command),
        cmocka_unit_test(skips_assignments_and_redirections),
        cmocka_unit_test(removes_quotes_from_words),
        cmocka_unit_test(ignores_comments_but_not_hashes_in_words),
        cmocka_unit_test(tells_what_is_known_of_an_argument),
        cmocka_unit_test(stops_where_it_cannot_know),
        cmocka_unit_test(reports_what_comes_before_a_stop),
        cmocka_unit_test(ordinary_lines_are_certain),
        cmocka_unit_test(a_callback_can_stop_it),
        cmocka_unit_test(builtins_are_harmless_by_their_arguments),
        cmocka_unit_test(variables_that_decide_what_runs),
        cmocka_unit_test(long_lines_are_read_whole),
        cmocka_unit_test(everything_bash_runs_was_found),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
