/* shwords.c: finds every command word of a shell line.
 *
 * Called by core/command_policy.c for the command allow-list. It is bash's grammar written out
 * as a recursive descent over shlex.c; nothing is run and nothing is looked up. The line is an
 * attacker's. What must hold: a command the shell would run by name is reported, or the line is
 * reported as uncertain; reporting too much is a nuisance, too little is a hole. So it accepts
 * more than bash does (empty lists, odd places for `!`), and gives up at anything it has no
 * rule for. Words that turn later words into commands (exec, command, builtin, eval, trap) are
 * followed as far as their arguments are literal. Finds are collected first and told at the
 * end, because an `unset` further right takes back what a function definition excused. */
#include "policy/shwords.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "base/strv.h"
#include "policy/shlex.h"

#define RESERVED_BYTES 10u
#define SHOWN_BYTES    80u
#define NAME_BYTES     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static const char *const reserved[] = {"!",    "{",      "}",        "[[",    "if",   "then",
                                       "elif", "else",   "fi",       "for",   "in",   "do",
                                       "done", "select", "case",     "while", "esac", "until",
                                       "time", "coproc", "function", NULL};
static const char *const closers[] = {"}",  "then", "elif", "else", "fi",
                                      "do", "done", "esac", NULL};
/* POSIX finds these before functions. */
static const char *const special[] = {".",     ":",       "break",   "continue", "eval",
                                      "exec",  "exit",    "export",  "readonly", "return",
                                      "set",   "shift",   "source",  "times",    "trap",
                                      "unset", "command", "builtin", NULL};

/* What the rules about functions need to know of a command. */
typedef struct shape {
    char *defines; /* name of the function it defined, or NULL */
} shape;

static bool read_list(csn_shcur *s, bool top);
static bool read_command(csn_shcur *s, bool first, shape *ret);

/* ---- tokens ----------------------------------------------------------------------------- */

/* The reserved word at the cursor, or NULL. Looks only. */
static const char *peek_reserved(csn_shcur *s)
{
    char word[RESERVED_BYTES];
    size_t len = 0;
    csn_shcur ahead = {.scan = s->scan, .cur = s->cur};

    for (char c; !csn_shlex_is_meta(c = csn_shlex_look(&ahead)); ahead.cur++) {
        if (len + 1 >= sizeof(word))
            return NULL;
        word[len++] = c;
    }
    word[len] = '\0';
    for (size_t i = 0; reserved[i]; i++)
        if (strcmp(reserved[i], word) == 0)
            return reserved[i];
    return NULL;
}

static bool peek_is(csn_shcur *s, const char *word)
{
    const char *found = peek_reserved(s);

    return found && strcmp(found, word) == 0;
}

static void skip_reserved(csn_shcur *s, const char *word)
{
    for (size_t i = 0; word[i]; i++)
        csn_shlex_eat(s, word[i]);
}

/* A reserved word is one only if it stands bare where a command could begin: callers know. */
static bool take(csn_shcur *s, const char *word)
{
    csn_shlex_blanks(s);
    if (!peek_is(s, word))
        return false;
    skip_reserved(s, word);
    return true;
}

static bool expect(csn_shcur *s, const char *word)
{
    return take(s, word) || csn_shlex_fail(s);
}

/* Lists, then, do, && and | may be followed by any number of empty lines and comments. */
static bool skip_newlines(csn_shcur *s)
{
    for (csn_shlex_blanks(s); csn_shlex_look(s) == '\n'; csn_shlex_blanks(s))
        if (!csn_shlex_newline(s))
            return false;
    return true;
}

/* ---- simple commands -------------------------------------------------------------------- */

/* A redirection at the cursor (the number before it is already read). */
static bool at_redirection(csn_shcur *s)
{
    char c = csn_shlex_look(s), d = csn_shlex_look2(s);

    return ((c == '<' || c == '>') && d != '(') || (c == '&' && d == '>');
}

/* *ret_both: it was &>, which other shells read as the end of a command. */
static bool read_redirection(csn_shcur *s, bool *ret_both)
{
    csn_autoshword w = {0};
    bool both = csn_shlex_eat(s, '&');

    *ret_both = both;
    if (csn_shlex_eat(s, '<')) {
        if (csn_shlex_eat(s, '<')) {
            if (!csn_shlex_eat(s, '<'))
                return csn_shlex_heredoc_begin(s, csn_shlex_eat(s, '-'));
        } else if (!csn_shlex_eat(s, '&')) {
            csn_shlex_eat(s, '>');
        }
    } else if (csn_shlex_eat(s, '>') && !csn_shlex_eat(s, '>') && !csn_shlex_eat(s, '|')) {
        csn_shlex_eat(s, '&');
    }
    csn_shlex_blanks(s);
    if (!csn_shlex_word(s, &w, 0))
        return false;
    return s->cur != w.start || csn_shlex_fail(s);
}

/* 2> and {fd}> : the word belongs to the redirection after it. */
static bool names_descriptor(csn_shcur *s, const csn_shword *w)
{
    char c = csn_shlex_look(s);
    const char *p = w->text.data;
    size_t len = w->text.len;

    if ((c != '<' && c != '>') || w->quoted || len == 0)
        return false;
    if (!w->expands && len < 10 && strspn(p, "0123456789") == len)
        return true;
    /* {a,b} is a brace expansion */
    return p[0] == '{' && p[len - 1] == '}' && !isdigit((unsigned char)p[1]) && len > 2 &&
           strspn(p + 1, NAME_BYTES) == len - 2;
}

/* NAME ( ) body, with the cursor at the parenthesis. */
static bool read_function(csn_shcur *s, const char *name, shape *ret)
{
    shape body = {0};

    s->cur++;
    csn_shlex_blanks(s);
    if (!csn_shlex_eat(s, ')'))
        return csn_shlex_fail(s);
    if (!skip_newlines(s))
        return false;
    bool ok = read_command(s, true, &body);
    free(body.defines);
    if (ok && !(ret->defines = strdup(name)))
        return csn_shlex_nomem(s);
    return ok;
}

typedef struct simple {
    char *word;        /* the command's, when it is literal */
    const char *start; /* of it */
    bool named;        /* a command word was seen */
    bool again;        /* the next word is one too, for another shell */
    bool prefixed;     /* assignments or redirections came first */
    size_t words;
    csn_shargs args;
} simple;

/* Only the first word is a command; the others matter only to words that run their arguments.
 */
static bool add_word(csn_shcur *s, simple *c, const csn_shword *w)
{
    const char *text = w->text.data ? w->text.data : "";
    bool known = csn_shword_known(w);

    if (!c->named && w->assign) {
        c->prefixed = true;
        /* Texts that a shell expands and runs by itself. */
        if (csn_str_starts(text, "PS4=") || csn_str_starts(text, "PS4+=") ||
            csn_str_starts(text, "PROMPT_COMMAND"))
            return csn_shfollow_report(s, NULL, w->start, false);
        return true;
    }
    c->words++;
    if (c->named && !c->again)
        return !c->word || !csn_shfollow_wants(c->word) || csn_shfollow_keep(s, &c->args, w);
    c->again = false;
    if (c->named)
        return csn_shfollow_report(s, known ? text : NULL, w->start, false);
    c->named = true;
    c->start = w->start;
    if (known && !(c->word = strdup(text)))
        return csn_shlex_nomem(s);
    return true;
}

/* Words and redirections up to the end of the command. */
static bool read_words(csn_shcur *s, simple *c, shape *ret)
{
    for (;;) {
        csn_autoshword w = {0};
        bool both = false;
        csn_shlex_blanks(s);
        if (at_redirection(s)) {
            c->prefixed = true;
            if (!read_redirection(s, &both))
                return false;
            c->again = c->again || (both && c->named);
            continue;
        }
        char next = csn_shlex_look(s);
        if (next == '(' && c->words == 1 && !c->prefixed && c->word)
            return read_function(s, c->word, ret);
        if (next == '(')
            return csn_shlex_fail(s);
        if (csn_shlex_is_meta(next) && next != '<' && next != '>')
            return true;
        if (!csn_shlex_word(s, &w, c->named ? 0 : CSN_SHWORD_COMMAND))
            return false;
        if (!names_descriptor(s, &w) && !add_word(s, c, &w))
            return false;
    }
}

static bool read_simple(csn_shcur *s, shape *ret)
{
    simple c = {0};
    const char *from = s->cur;
    bool ok = read_words(s, &c, ret);

    /* Reported after its arguments were read, but it comes first in what it means. */
    if (ok && c.named && !ret->defines) {
        ok = csn_shfollow_report(s, c.word, c.start, true);
        if (ok && c.word && csn_shfollow_wants(c.word))
            ok = csn_shfollow_run(s, c.word, &c.args, 0, c.start);
    }
    if (ok && s->cur == from)
        ok = csn_shlex_fail(s);
    free(c.word);
    csn_shargs_release(&c.args);
    return ok;
}

/* ---- compound commands ------------------------------------------------------------------ */

/* elif is an if of its own, so the loop reads condition and branch alike. */
static bool read_if(csn_shcur *s)
{
    do {
        if (!read_list(s, false) || !expect(s, "then") || !read_list(s, false))
            return false;
    } while (take(s, "elif"));
    if (take(s, "else") && !read_list(s, false))
        return false;
    return expect(s, "fi");
}

/* Loops may also have a body in braces; no manual says so, but bash takes it. */
static bool read_body(csn_shcur *s)
{
    if (take(s, "{"))
        return read_list(s, false) && expect(s, "}");
    return expect(s, "do") && read_list(s, false) && expect(s, "done");
}

static bool read_while(csn_shcur *s)
{
    return read_list(s, false) && expect(s, "do") && read_list(s, false) && expect(s, "done");
}

/* One word that must be there. */
static bool need_word(csn_shcur *s)
{
    csn_autoshword w = {0};

    csn_shlex_blanks(s);
    if (!csn_shlex_word(s, &w, 0))
        return false;
    return s->cur != w.start || csn_shlex_fail(s);
}

static bool at_word(csn_shcur *s)
{
    char c = csn_shlex_look(s);

    return !csn_shlex_is_meta(c) || ((c == '<' || c == '>') && csn_shlex_look2(s) == '(');
}

/* The words of the list are only expanded, never run; `do` among them is a word too. */
static bool read_for(csn_shcur *s)
{
    bool arithmetic = false;

    csn_shlex_blanks(s);
    if (csn_shlex_look(s) == '(') {
        if (!csn_shlex_arithmetic(s, &arithmetic))
            return false;
        if (!arithmetic)
            return csn_shlex_fail(s);
    } else {
        if (!need_word(s) || !skip_newlines(s))
            return false;
        if (take(s, "in"))
            for (csn_shlex_blanks(s); at_word(s); csn_shlex_blanks(s))
                if (!need_word(s))
                    return false;
    }
    csn_shlex_blanks(s);
    csn_shlex_eat(s, ';');
    return skip_newlines(s) && read_body(s);
}

/* The patterns of one branch, up to and with the parenthesis. */
static bool read_patterns(csn_shcur *s)
{
    csn_shlex_eat(s, '(');
    do {
        if (!need_word(s))
            return false;
        csn_shlex_blanks(s);
    } while (csn_shlex_eat(s, '|'));
    return csn_shlex_eat(s, ')') || csn_shlex_fail(s);
}

/* Every branch may be the one that runs, so all are read; fall-through changes nothing. */
static bool read_case(csn_shcur *s)
{
    if (!need_word(s) || !skip_newlines(s) || !expect(s, "in"))
        return false;
    for (;;) {
        if (!skip_newlines(s))
            return false;
        if (take(s, "esac"))
            return true;
        if (!read_patterns(s) || !read_list(s, false))
            return false;
        csn_shlex_blanks(s);
        if (csn_shlex_look(s) != ';') /* the last branch needs no ;; */
            return expect(s, "esac");
        csn_shlex_eat(s, ';');
        bool two = csn_shlex_eat(s, ';'), fall = csn_shlex_eat(s, '&');
        if (!two && !fall)
            return csn_shlex_fail(s);
    }
}

/* [[ ... ]]: only what is expanded matters. Bash alone knows where a regular expression ends,
 * so comments and single & or ; are not guessed at. */
static bool read_test(csn_shcur *s)
{
    for (;;) {
        csn_autoshword w = {0};
        while (csn_shlex_look(s) == ' ' || *s->cur == '\t' || *s->cur == '\n')
            s->cur++;
        char c = *s->cur;
        if (c == '\0' || c == '#' || c == ';' || (c == '&' && csn_shlex_look2(s) != '&') ||
            s->heredoc_count > 0)
            return csn_shlex_fail(s);
        if (!at_word(s)) {
            s->cur += c == '&' ? 2 : 1;
            continue;
        }
        if (!csn_shlex_word(s, &w, 0))
            return false;
        const char *text = w.text.data ? w.text.data : "";
        if (strcmp(text, "]]") == 0 && !w.quoted && !w.expands)
            return true;
        if (text[0] == '-' && (w.text.len == 3 || text[1] == 'v' || text[1] == 'R'))
            s->scan->evaluates = true; /* -eq and its kin, -v */
    }
}

/* `coproc c1 x` runs c1, `coproc NAME { ...; }` does not run NAME. */
static bool read_coproc(csn_shcur *s, shape *ret)
{
    csn_shlex_blanks(s);
    if (!peek_reserved(s) && csn_shlex_look(s) != '(') {
        /* A name only if a compound command comes after it. */
        csn_shcur ahead = {.scan = s->scan, .cur = s->cur};
        while (!csn_shlex_is_meta(csn_shlex_look(&ahead)))
            ahead.cur++;
        const char *end = ahead.cur;
        csn_shlex_blanks(&ahead);
        if (csn_shlex_look(&ahead) == '(' || peek_reserved(&ahead)) {
            if (strcspn(s->cur, "$`'\"\\") < (size_t)(end - s->cur))
                return csn_shlex_fail(s);
            s->cur = ahead.cur;
        }
    }
    return read_command(s, true, ret);
}

/* function NAME [()] body */
static bool read_function_word(csn_shcur *s, shape *ret)
{
    csn_autoshword w = {0};
    shape body = {0};

    csn_shlex_blanks(s);
    if (!csn_shlex_word(s, &w, 0))
        return false;
    if (w.text.len == 0 || w.expands)
        return csn_shlex_fail(s);
    csn_shlex_blanks(s);
    csn_shcur ahead = {.scan = s->scan, .cur = s->cur};
    if (csn_shlex_eat(&ahead, '(')) {
        csn_shlex_blanks(&ahead);
        if (csn_shlex_look(&ahead) == ')')
            return read_function(s, w.text.data, ret);
    }
    if (!skip_newlines(s))
        return false;
    bool ok = read_command(s, true, &body);
    free(body.defines);
    if (ok && !(ret->defines = strdup(w.text.data)))
        return csn_shlex_nomem(s);
    return ok;
}

/* A subshell, unless it turns out to be arithmetic. */
static bool read_parens(csn_shcur *s)
{
    bool arithmetic = false;

    if (csn_shlex_look2(s) == '(' && !csn_shlex_arithmetic(s, &arithmetic))
        return false;
    if (arithmetic)
        return true;
    csn_shlex_eat(s, '(');
    if (!read_list(s, false))
        return false;
    return csn_shlex_eat(s, ')') || csn_shlex_fail(s);
}

/* A reserved word that is not here (then, do, in the wrong place) is an error in any shell, but
 * lines before it have run by then: they were reported already. */
static bool read_compound(csn_shcur *s, const char *word, shape *ret)
{
    if (!word)
        return read_parens(s);
    skip_reserved(s, word);
    if (strcmp(word, "{") == 0)
        return read_list(s, false) && expect(s, "}");
    if (strcmp(word, "if") == 0)
        return read_if(s);
    if (strcmp(word, "while") == 0 || strcmp(word, "until") == 0)
        return read_while(s);
    if (strcmp(word, "for") == 0 || strcmp(word, "select") == 0)
        return read_for(s);
    if (strcmp(word, "case") == 0)
        return read_case(s);
    if (strcmp(word, "[[") == 0)
        return read_test(s);
    if (strcmp(word, "coproc") == 0)
        return read_coproc(s, ret);
    if (strcmp(word, "function") == 0)
        return read_function_word(s, ret);
    return csn_shlex_fail(s);
}

/* { a; } 2>x: what may follow a compound command. */
static bool read_redirections(csn_shcur *s)
{
    bool both = false;

    for (;;) {
        csn_shlex_blanks(s);
        while (isdigit((unsigned char)csn_shlex_look(s)))
            s->cur++;
        if (!at_redirection(s))
            return true;
        if (!read_redirection(s, &both))
            return false;
    }
}

static bool read_command(csn_shcur *s, bool first, shape *ret)
{
    csn_shlex_blanks(s);
    const char *word = peek_reserved(s);
    /* After a pipe `time` is a program, not the reserved word. */
    if (word && ((strcmp(word, "time") == 0 && !first) || strcmp(word, "in") == 0))
        word = NULL;
    if (!csn_shlex_enter(s)) /* also for simple ones: f() f() f() ... */
        return false;
    bool ok;
    if (!word && csn_shlex_look(s) != '(') {
        ok = read_simple(s, ret);
    } else {
        ok = read_compound(s, word, ret) && read_redirections(s);
    }
    csn_shlex_leave(s);
    return ok;
}

/* ---- lists ------------------------------------------------------------------------------ */

/* `!` and `time` only at the start; a function defined in a pipeline lives in a subshell, so it
 * is handed up only when the pipeline is that one command. */
static bool read_pipeline(csn_shcur *s, shape *ret)
{
    shape c = {0};
    bool first = true, alone = true;

    for (;;) {
        csn_shlex_blanks(s);
        if (first && (peek_is(s, "!") || peek_is(s, "time"))) {
            bool timed = peek_is(s, "time");
            skip_reserved(s, timed ? "time" : "!");
            alone = false;
            csn_shlex_blanks(s);
            if (timed && strncmp(s->cur, "-p", 2) == 0 && csn_shlex_is_meta(s->cur[2]))
                s->cur += 2;
            csn_shlex_blanks(s);
            if (timed && strncmp(s->cur, "--", 2) == 0 && csn_shlex_is_meta(s->cur[2]))
                s->cur += 2;
            csn_shlex_blanks(s);
            if (csn_shlex_look(s) == '\0' || *s->cur == '\n' || *s->cur == ';' ||
                *s->cur == ')')
                return true;
            continue;
        }
        bool ok = read_command(s, first, &c);
        csn_shlex_blanks(s);
        bool piped = ok && csn_shlex_look(s) == '|' && csn_shlex_look2(s) != '|';
        if (ok && alone && first && !piped)
            *ret = c;
        else
            free(c.defines);
        if (!ok || !piped)
            return ok;
        csn_shlex_eat(s, '|');
        csn_shlex_eat(s, '&');
        if (!skip_newlines(s))
            return false;
        first = false;
        c = (shape){0};
    }
}

/* A function that is defined here for certain: at the top, alone, in this very shell. */
static bool define(csn_shcur *s, const char *name)
{
    static const char plain[] = NAME_BYTES "-.:+";

    if (name[0] == '\0' || name[strspn(name, plain)] != '\0' || csn_strv_has(special, name))
        return true;
    return csn_strv_push(&s->scan->functions, name) == 0 || csn_shlex_nomem(s);
}

/* What follows && or || may not happen, and a list that ends in & happens elsewhere: only the
 * first pipeline, with nothing of that kind after it, defines a function for certain. */
static bool read_and_or(csn_shcur *s, bool top)
{
    shape c = {0}, other = {0};
    bool ok = read_pipeline(s, &c);

    for (;;) {
        csn_shlex_blanks(s);
        char op = csn_shlex_look(s);
        if (!ok || (op != '&' && op != '|') || csn_shlex_look2(s) != op)
            break;
        csn_shlex_eat(s, op);
        csn_shlex_eat(s, op);
        ok = skip_newlines(s) && read_pipeline(s, &other);
        free(other.defines);
        other = (shape){0};
    }
    if (ok && top && c.defines && csn_shlex_look(s) != '&')
        ok = define(s, c.defines);
    free(c.defines);
    return ok;
}

/* Up to the end, a `)`, a `;;` or a closing reserved word, which stays. */
static bool read_list(csn_shcur *s, bool top)
{
    for (;;) {
        if (!skip_newlines(s))
            return false;
        char c = csn_shlex_look(s), d = csn_shlex_look2(s);
        const char *word = peek_reserved(s);
        if (c == '\0' || c == ')' || (c == ';' && (d == ';' || d == '&')) ||
            (word && csn_strv_has(closers, word)))
            return true;
        if (!read_and_or(s, top))
            return false;
        csn_shlex_blanks(s);
        c = csn_shlex_look(s);
        d = csn_shlex_look2(s);
        word = peek_reserved(s);
        if (c == '\n' || c == '\0' || c == ')' || (word && csn_strv_has(closers, word)))
            continue;
        if (c == ';' && (d == ';' || d == '&'))
            continue;
        if (c != ';' && c != '&')
            return csn_shlex_fail(s);
        s->cur++;
    }
}

bool csn_shwords_commands(csn_shcur *s)
{
    return read_list(s, false);
}

static bool read_text(csn_shcur *s, bool top)
{
    bool ok = read_list(s, top);

    if (ok && csn_shlex_look(s) != '\0')
        ok = csn_shlex_fail(s);
    csn_shlex_heredocs_release(s);
    return ok;
}

/* For backquotes, eval and trap: a text of its own, with quotes and here-documents of its own.
 */
bool csn_shwords_text(csn_shcur *outer, const char *text)
{
    csn_shcur s = {.scan = outer->scan, .cur = text};

    if (!csn_shlex_enter(outer))
        return false;
    bool ok = read_text(&s, false);
    csn_shlex_leave(outer);
    return ok;
}

/* Calls of functions are left out, unless anything in the line could have removed one. */
static int tell(const csn_shscan *scan, csn_shword_fn fn, void *ctx)
{
    int rc = 0;

    for (size_t i = 0; i < scan->count && rc == 0; i++)
        if (!scan->finds[i].function || scan->unsets)
            rc = fn(ctx, scan->finds[i].word, scan->finds[i].text);
    return rc;
}

int csn_shwords(const char *command, csn_shword_fn fn, void *ctx)
{
    csn_shscan scan = {0};
    csn_shcur s = {.scan = &scan, .cur = command};

    read_text(&s, true);
    /* x='a[$(rm y)]'; echo $((x)): the value runs its substitution when it is evaluated. */
    if (!scan.failed && scan.hidden &&
        ((scan.evaluates && strchr(command, '[')) || strstr(command, "PS4")))
        csn_shlex_found(&s, NULL, command, strnlen(command, SHOWN_BYTES), false);
    int rc = scan.nomem ? -1 : tell(&scan, fn, ctx);
    for (size_t i = 0; i < scan.count; i++) {
        free(scan.finds[i].word);
        free(scan.finds[i].text);
    }
    free(scan.finds);
    csn_strv_free(scan.functions);
    return rc;
}
