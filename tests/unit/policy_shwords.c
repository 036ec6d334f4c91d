/* Command words of shell lines: by table, and against bash itself. */
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

#include "base/clock.h"
#include "policy/shwords.h"

/* Words in the order of finding, each with a space after it; `?` is one that cannot be known.
 */
typedef struct words {
    char text[4096];
} words;

static int collect(void *ctx, const char *word, const char *text)
{
    words *w = ctx;
    size_t len = strlen(w->text);

    assert_non_null(text);
    snprintf(w->text + len, sizeof(w->text) - len, "%s ", word ? word : "?");
    return 0;
}

static void check(const char *line, const char *want)
{
    words w = {""};

    assert_int_equal(csn_shwords(line, collect, &w), 0);
    if (strcmp(w.text, want) != 0)
        fail_msg("%s\n  found: %s\n  want:  %s", line, w.text, want);
}

/* Something in the line must be refused as unknown. */
static void check_uncertain(const char *line)
{
    words w = {""};

    assert_int_equal(csn_shwords(line, collect, &w), 0);
    if (!strstr(w.text, "? ") && strcmp(w.text, "?") != 0)
        fail_msg("%s\n  believed to be: %s", line, w.text);
}

static void finds_the_first_word_of_every_command(void **state)
{
    (void)state;
    check("", "");
    check("  \n\t ", "");
    check("ls -l /tmp", "ls ");
    check("a; b && c || d | e & f\ng", "a b c d e f g ");
    check("a|&b&c", "a b c ");
    check("(a; b) && { c; d; }", "a b c d ");
    check("! a && ! ! b", "a b ");
    check("/usr/bin/git status; ./x", "/usr/bin/git ./x ");
    check("\xc3\xa9t\xc3\xa9 x; b", "\xc3\xa9t\xc3\xa9 b ");
}

static void skips_assignments_and_redirections(void **state)
{
    (void)state;
    check("A=1 B=2 cmd C=3", "cmd ");
    check("A=1", "");
    check("A+=x cmd", "cmd ");
    check("2>f cmd", "cmd ");
    check(">f <g cmd a >>h 2>&1 >|i <>j >&k <&-", "cmd ");
    check("{fd}>f cmd", "cmd ");
    check("cmd <<< word; b", "cmd b ");
    check("a=(x y 'z w') cmd", "cmd ");
    check("a=(x\n y # c\n z)\nb", "b ");
    check("a[1]=2 cmd", "cmd ");
    check("declare -A m=([\"a b\"]=1); b", "declare b ");
    check("a &>f; b", "a b ");
    /* another shell would run b in the first line */
    check("a &> f b", "b a ");
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
}

static void goes_into_substitutions(void **state)
{
    (void)state;
    check("echo $(a) `b` \"$(c) `d`\"", "a b c d echo ");
    check("echo \"x $(a \"y $(b)\") z\"", "b a echo ");
    check("echo `a \\`b\\``", "b a echo ");
    check("x=$(a) y=`b`", "a b ");
    check("diff <(a) >(b)", "a b diff ");
    check("c > >(a) 2> >(b)", "a b c ");
    check("echo ${x:-$(a)} \"${y:-`b`}\" ${z//$(c)/d}", "a b c echo ");
    check("echo $((1 + $(a))) $(( x[$(b)] ))", "a b echo ");
    check("echo $( (a); b )", "a b echo ");
    check("echo $(case x in a) b;; esac)", "b echo ");
    check("echo $(a # )\n)", "a echo ");
    check("echo '$(a)' \"\\$(b)\" \\$\\(c\\)", "echo ");
    check("for x in $(a); do b; done", "a b ");
    check("[[ $(a) == b && -n `c` ]] || d", "a c d ");
    check("arr=($(a) <(b))", "a b ");
    check("a <<< $(b)", "b a ");
    check("echo $(<f)", "echo ");
    check("a[$(b)]=1", "b ");
}

static void knows_compound_commands(void **state)
{
    (void)state;
    check("if a; then b; elif c; then d; else e; fi; f", "a b c d e f ");
    check("while a; do b; done < f; until c; do d; done", "a b c d ");
    check("for x in a b; do c; done; for x; do d; done; for x do e; done", "c d e ");
    check("for ((i=0; i<3; i++)); do a; done; for ((;;)) { b; }", "a b ");
    check("select x in a; do b; done", "b ");
    check("case $x in a) b;; (c|d) e;& *) f;;& g) h; esac; i", "b e f h i ");
    check("case x in\n # c\n a)\n b\n ;;\n esac", "b ");
    check("{ (a) }; if (b) then c; fi; { { d; } }", "a b c d ");
    check("((i++)); a; ((b); c)", "a b c ");
    check("[[ a =~ (b|c) && ( d < e ) ]]; f", "f ");
    check("time -p a | b; time c; time", "a b c ");
    check("a | time b", "a time ");
    check("coproc a x; coproc N { b; }; coproc { c; }", "a b c ");
    check("echo if then do done fi { } ! time; a", "echo a ");
    check("x=1 if", "if ");
    check("'if' a; \\while", "if while ");
}

static void reads_here_documents(void **state)
{
    (void)state;
    check("cat <<EOF\n$(a) `b` ${x:-$(c)} \\$(d)\nEOF\ne", "cat a b c e ");
    check("cat <<'EOF'\n$(a)\nEOF\nb", "cat b ");
    check("cat <<\"EOF\"\n$(a)\nEOF\nb", "cat b ");
    check("cat <<\\EOF\n$(a)\nEOF\nb", "cat b ");
    check("cat <<-EOF | b\n\tx $(a)\n\tEOF\nc", "cat b a c ");
    check("cat <<A <<B; x\n$(a)\nA\n$(b)\nB\nc", "cat x a b c ");
    check("cat <<EOF\nit's \"x\nEOF\na", "cat a ");
    check("cat <<EOF\na \\\nEOF\nEOF\nb", "cat b ");
    check("cat <<EOF\n EOF\nEOFx\nEOF\na", "cat a ");
    check("cat <<EOF", "cat ");
    check("cat <<EOF\n$(a)", "cat a ");
    check("x=$(cat <<EOF\n$(a)\nEOF\n)\nb", "cat a b ");
    check("if a <<E; then b; fi\ntext\nE\nc", "a b c ");
}

static void follows_words_that_run_other_words(void **state)
{
    (void)state;
    check("exec rm x", "exec rm ");
    check("exec 2>&1", "exec ");
    check("exec -a n rm", "exec rm ");
    check("exec -aa rm", "exec rm ");
    check("exec -cla n rm", "exec rm ");
    check("command -p rm; builtin eval 'a b'", "command rm builtin eval a ");
    check("command -v git", "command ");
    check("command - a", "command - ");
    check("command exec -- rm", "command exec rm ");
    check("eval 'a; b' '| c'", "eval a b c ");
    check("trap 'rm x; a' EXIT; trap - EXIT; trap '' INT; trap EXIT; trap -p",
          "trap rm a trap "
          "trap trap trap ");
    check_uncertain("eval \"$x\"");
    check_uncertain("eval $(a)");
    check_uncertain("trap \"$x\" EXIT");
    check_uncertain("exec $x");
    check_uncertain("command \"$@\"");
    check_uncertain("exec {rm,x}");
    check_uncertain("set -H");
    check_uncertain("set -o history");
    check_uncertain("set $x");
    check("set -euo pipefail; set -- $x", "set set ");
}

static void functions_of_the_line_may_be_called_after_it_surely_defined_them(void **state)
{
    (void)state;
    check("f() { a; }; f x; b", "a b ");
    check("function f { a; }\nf", "a ");
    check("function f () (a); f", "a ");
    check("f() { a; }; (f); x=$(f); { f; }", "a ");
    check("f() { a; } && f; f", "a f ");
    /* not yet, not surely, not in this shell, not any more */
    check("f; f() { a; }", "f a ");
    check("if x; then f() { a; }; fi; f", "x a f ");
    check("false && f() { a; }; f", "false a f ");
    check("(f() { a; }); f", "a f ");
    check("f() { a; } | b; f", "a b f ");
    check("f() { a; } & f", "a f ");
    check("f() { a; } && b & f", "a b f ");
    check("f() { a; }; unset -f f; f", "a unset f ");
    check("g() { f; }; f() { a; }; g", "f a ");
    check("f() { a; }; exec f; command f", "a exec f command f ");
    check("exec() { a; }; exec b", "a exec b ");
    check("/bin/x() { a; }; /bin/x", "a /bin/x ");
    check("{ f() { a; }; }; f", "a f ");
}

static void says_so_when_it_cannot_know(void **state)
{
    static const char *const lines[] = {"$x",
                                        "[$x a",
                                        "[$ a",
                                        "\"$x\" a",
                                        "`a`",
                                        "$(a) b",
                                        "{rm,x}",
                                        "{rm,x}>f",
                                        "r*",
                                        "r?",
                                        "[r]m",
                                        "~/x",
                                        "$'rm'",
                                        "r$'m'",
                                        "$\"rm\"",
                                        "a$x=1",
                                        "\"a\"[1]=2",
                                        "a 'b",
                                        "a \"b",
                                        "a `b",
                                        "a $(b",
                                        "a ${b",
                                        "(a",
                                        "{ a;",
                                        "a)",
                                        "}",
                                        "fi",
                                        "if a",
                                        "case x in a) b",
                                        "a <<",
                                        "a >",
                                        "a \\",
                                        "$$(a)",
                                        "a $[1]",
                                        "a ${ b; }",
                                        "a ${| b; }",
                                        "a ${x@P}",
                                        "a \"${x:-'b'}\"",
                                        "a $((1'2))",
                                        "a ${x:-<(b)}",
                                        "a $'\\'; b #'",
                                        "a[1 + 2]=3 b",
                                        "a=([1 #]=2\n)",
                                        "[[ a # ]]\n]]",
                                        "[[ a ; b ]]",
                                        "a <<$x\n$x\n",
                                        "a $(b <<E)\nE\n",
                                        "x=$(cat <<E\nE)\n",
                                        "cat <<E $(a\n)\nE\n",
                                        "( a ) b",
                                        "{ a; } b",
                                        "a (b)",
                                        "a; ; b",
                                        "a && ; b",
                                        "| a",
                                        "coproc 'x y' { a; }",
                                        "a | ! b",
                                        "PS4='$(a)' b",
                                        "export PS4='$(a)'; set -x",
                                        "x='a[$(b)]'; echo $((x))",
                                        "x='a[$(b)]'; echo ${!x}",
                                        "x='a[$(b)]'; y[x]=1",
                                        "let 'a[$(b)]=1'",
                                        "test -v 'a[$(b)]'",
                                        "printf -v 'a[`b`]' x",
                                        "[[ 'a[$(b)]' -eq 1 ]]",
                                        "read 'a[$(b)]'",
                                        "unset 'a[$(b)]'",
                                        "declare -i 'x=a[$(b)]'"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        check_uncertain(lines[i]);
}

/* What agents really write must pass. */
static void ordinary_lines_are_certain(void **state)
{
    (void)state;
    check("git commit -m 'use `foo` and $(bar)'", "git ");
    check("[[ -n $x ]] && git commit -m 'fix `foo`'", "git ");
    check("awk -F: '{print $1 \" \" $(NF-1)}' f | sort -u", "awk sort ");
    check("for f in *.c; do gcc -c \"$f\" -o \"${f%.c}.o\"; done", "gcc ");
    check("find . -name '*.py' -exec grep -l foo {} \\; | xargs -r sed -i 's/a/b/g'",
          "find xargs ");
    check("cd x && make -j$(nproc) 2>&1 | tail -5", "cd nproc make tail ");
    check("i=0; while [ $i -lt 10 ]; do i=$((i+1)); done", "[ ");
    check("echo \"${x:-y}\" \"${a[@]}\" \"${#a[@]}\" ${x//a/b} $? $# $$ $!", "echo ");
    check("grep -rn TODO src/ --include=*.{c,h} | sort -t$'\\t' -k1", "grep sort ");
    check("exec > >(tee log) 2>&1", "tee exec ");
    check("python3 - <<'PY'\nprint(\"it's $(x)\")\nPY\n", "python3 ");
    check("cat > Dockerfile <<EOF\nRUN a && \\\n    b\nEOF\ndocker build .", "cat docker ");
}

static int stop_at_second(void *ctx, const char *word, const char *text)
{
    int *n = ctx;

    (void)word;
    (void)text;
    return ++*n == 2 ? 42 : 0;
}

static void a_callback_can_stop_it(void **state)
{
    int n = 0;

    (void)state;
    assert_int_equal(csn_shwords("a; b; c", stop_at_second, &n), 42);
    assert_int_equal(n, 2);
}

static int count_words(void *ctx, const char *word, const char *text)
{
    (void)word;
    (void)text;
    ++*(size_t *)ctx;
    return 0;
}

static void deep_and_long_lines_end_soon(void **state)
{
    static const char *const parts[] = {
        "$(", "`",     "(",      "((",  "$((", "{ ",   "\"$(",          "${x:-",
        "<(", "if ",   "\\`",    "[[ ", "x=(", "f() ", "case x in a) ", "$(cat <<E\n",
        "! ", "time ", "eval '", "a;",  "a\n", "'"};
    char *line = malloc(200000 + 32);
    uint64_t start = csn_now_ns();

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t part = strlen(parts[i]), len = 0, found = 0;
        for (; len + part < 200000; len += part)
            memcpy(line + len, parts[i], part);
        line[len] = '\0';
        assert_int_equal(csn_shwords(line, count_words, &found), 0);
    }
    free(line);
    assert_true(csn_now_ns() - start < 30000000000ull);
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

static void check_against_bash(const tracer *t, const char *line)
{
    char ran[1024], *save = NULL;
    words w = {" "};

    assert_int_equal(csn_shwords(line, collect, &w), 0);
    run_line(t, line, ran, sizeof(ran));
    if (strstr(w.text, " ? "))
        return;
    for (char *p = strtok_r(ran, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
        char want[64];
        snprintf(want, sizeof(want), " %s ", p);
        if (!strstr(w.text, want))
            fail_msg("%s\n  bash ran %s, found:%s", line, p, w.text);
    }
}

static void everything_bash_runs_was_found(void **state)
{
    static const char *const lines[] = {
        "c1; c2 && c3 || c4 | c5 & c6; wait",
        "if c1; then c2; else c3; fi; while c4; do c5; break; done",
        "case x in y) c1;; x|z) c2;; esac; case x in x) c3;& y) c4;; *) c5; esac",
        "echo \"$(c1 \"$(c2)\")\" `c3 \\`c4\\`` ${x:-$(c5)}; c6",
        "x=$(c1) y=`c2` c3; a=($(c4) x); a[$(c5; echo 1)]=2",
        "cat < <(c1) > >(c2); c3 <<< $(c4); wait; read x < <(c5)",
        "c1 <<E\n$(c2) `c3` ${x:-$(c4)} \\$(c5)\nE\nc6",
        "c1 <<'E'\n$(c2)\nE\nc3 <<-E\n\t$(c4)\n\tE\nc5",
        "f() { c1; }; f; function g { c2; }; g; (f); (c3) ; { c4; }",
        "c1() { :; }; c1; c2; (c3() { :; }); c3; c4() { :; } | c5; c4",
        "c1() { :; }; unset -f c1; c1",
        "exec -aa c1",
        "(exec -a x c1); command c2; builtin eval 'c3'; eval \"c4; c5\"",
        "trap 'c1; c2' EXIT; c3",
        "trap c1 0",
        "time c1; time -p c2; ! c3; ! ! c4; c5 | c6",
        "[[ -n $(c1) || $(c2) ]]; [[ a =~ (a|b) ]] && c3; ((1)) && c4; ((c5); c6)",
        "for x in $(c1; echo 1); do c2; done; for ((i=0;i<1;i++)); do c3; done",
        "coproc c1; wait; coproc N { c2; }; wait; c3 &>f; c4 |& c5",
        "A=1 c1; 2>f c2; {fd}>f c3; >f c4 x <f; A=1 B=2 >f c5",
        "c\\\n1; \"c2\"; 'c'3; \\c4; c''5",
        "echo '#' # c1\nc2 #c3\nc4#x; c5",
        "if (c1) then c2; fi; { (c3) }; { { c4; } }; until c5; do :; done",
        "c1 && # x\nc2; c3 |\n\n c4",
        "x=$((1 + $(c1; echo 1))); echo $(( (1) + 2 )); c2",
        "while read x; do c1; done <<E\na\nE\nc2",
        "echo $(case x in x) c1;; esac); c2",
        "x=$(c1 <<E\n$(c2)\nE\n); c3",
        "select x in a; do c1; break; done <<< 1; c2",
        "echo {c1,c2}; {c3,x}; $'c4'; c*; x=c5; $x",
        "exec 3< <(c1); c2 <&3; wait"};
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
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        check_against_bash(&t, lines[i]);
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
        cmocka_unit_test(goes_into_substitutions),
        cmocka_unit_test(knows_compound_commands),
        cmocka_unit_test(reads_here_documents),
        cmocka_unit_test(follows_words_that_run_other_words),
        cmocka_unit_test(functions_of_the_line_may_be_called_after_it_surely_defined_them),
        cmocka_unit_test(says_so_when_it_cannot_know),
        cmocka_unit_test(ordinary_lines_are_certain),
        cmocka_unit_test(a_callback_can_stop_it),
        cmocka_unit_test(deep_and_long_lines_end_soon),
        cmocka_unit_test(everything_bash_runs_was_found),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
