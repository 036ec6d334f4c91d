/* shell_line.c: split a shell line into simple commands without running it.
 *
 * An agent wrote the line and may want to run a program that is not on the allow-list, so
 * nothing is guessed: a construct outside the small grammar of shell_line.h stops the reading,
 * and the caller refuses the line. Invariants: every command word that bash or a POSIX sh would
 * run is reported before csn_shell_line returns success; a command word contains no expansion;
 * there is no recursion, and time and memory are linear in the line. */
#include "policy/shell_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/strv.h"

typedef struct reader {
    const char *p;
    csn_arena *arena; /* texts of the words */
    csn_buf text;     /* of the word that is being read */
    csn_shell_word *words;
    size_t count, cap, assignments;
    bool quoted, dollar; /* of the last word */
    bool redirected;     /* the command has a redirection */
    int rc;
    csn_shell_stop *stop;
} reader;

static const char *const reserved[] = {
    "if",   "then",   "else",     "elif", "fi", "for", "while", "until", "do", "done",   "case",
    "esac", "select", "function", "time", "in", "{",   "}",     "[[",    "]]", "coproc", NULL};

static bool stop(reader *r, const char *construct)
{
    r->rc = CSN_SHELL_STOPPED;
    *r->stop = (csn_shell_stop){construct, r->p};
    return false;
}

static bool nomem(reader *r)
{
    r->rc = CSN_SHELL_NOMEM;
    return false;
}

static bool put(reader *r, char c)
{
    return csn_buf_putc(&r->text, c) == 0 || nomem(r);
}

/* The shell removes a backslash before a newline before it splits the line into tokens. */
static const char *past_continuation(const char *p)
{
    while (p[0] == '\\' && p[1] == '\n')
        p += 2;
    return p;
}

/* ---- words ---- */

size_t csn_shell_name_length(const char *s)
{
    size_t n = 0;

    while (s[n] == '_' || (isascii(s[n]) && isalnum((unsigned char)s[n])))
        n++;
    return isdigit((unsigned char)s[0]) ? 0 : n;
}

static void mark_expansion(reader *r, csn_shell_word *w, bool splits)
{
    if (w->literal)
        w->known = r->text.len;
    w->literal = false;
    w->splits |= splits;
}

/* At a $. In double quotes $' and $" open no quote. */
static bool read_dollar(reader *r, csn_shell_word *w, bool in_quotes)
{
    char c = r->p[1];
    size_t len = 0;

    if (c == '(')
        return stop(r, r->p[2] == '(' ? "$((...)) is arithmetic"
                                      : "$(...) is a command substitution");
    if (c == '[')
        return stop(r, "$[...] is arithmetic");
    if (!in_quotes && (c == '\'' || c == '"'))
        return stop(r, "$'...' is not read the same way by every shell");
    if (past_continuation(r->p + 1) != r->p + 1)
        return stop(r, "a line is continued after $");
    r->dollar = true;
    if (c != '\0' && strchr("?#$!", c)) { /* expands to a number, or to nothing */
        r->p += 2;
        return put(r, '0');
    }
    if (c == '{') {
        len = csn_shell_name_length(r->p + 2);
        if (len == 0 || r->p[2 + len] != '}')
            return stop(r, "${...} with an operator");
        len += 2;
    } else if (c != '\0' && strchr("@*-0123456789", c)) {
        len = 1;
    } else {
        len = csn_shell_name_length(r->p + 1);
    }
    if (len == 0) {
        r->p++;
        return put(r, '$');
    }
    mark_expansion(r, w, !in_quotes || c == '@');
    r->p += 1 + len;
    return true;
}

static bool read_single_quotes(reader *r)
{
    const char *end = strchr(r->p + 1, '\'');

    if (!end)
        return stop(r, "a single quote is not closed");
    if (csn_buf_append(&r->text, r->p + 1, (size_t)(end - r->p - 1)) != 0)
        return nomem(r);
    r->p = end + 1;
    return true;
}

static bool read_double_quotes(reader *r, csn_shell_word *w)
{
    const char *start = r->p++;

    while (*r->p != '"') {
        if (*r->p == '\0') {
            r->p = start;
            return stop(r, "a double quote is not closed");
        }
        if (*r->p == '`')
            return stop(r, "`...` is a command substitution");
        if (*r->p == '$') {
            if (!read_dollar(r, w, true))
                return false;
            continue;
        }
        if (past_continuation(r->p) != r->p) {
            r->p = past_continuation(r->p);
            continue;
        }
        if (*r->p == '\\' && r->p[1] != '\0' && strchr("$`\"\\", r->p[1]))
            r->p++;
        if (!put(r, *r->p++))
            return false;
    }
    r->p++;
    return true;
}

static bool read_backslash(reader *r)
{
    if (r->p[1] == '\n') {
        r->p += 2;
        return true;
    }
    if (r->p[1] == '\0')
        return stop(r, "the line ends in a backslash");
    r->quoted = true;
    r->p += 2;
    return put(r, r->p[-1]);
}

/* One byte outside quotes. */
static bool read_plain(reader *r, csn_shell_word *w)
{
    if (strchr("*?[{", *r->p) || (*r->p == '~' && r->text.len == 0))
        mark_expansion(r, w, true);
    if (*r->p == '=' && w->literal && !r->quoted && !w->assigns)
        w->assigns = r->text.len > 0 && csn_shell_name_length(r->text.data) == r->text.len;
    return put(r, *r->p++);
}

static bool ends_word(char c)
{
    return c == '\0' || strchr(" \t\n;&|()<>", c);
}

static bool read_word(reader *r, csn_shell_word *w)
{
    bool ok = true;

    *w = (csn_shell_word){.literal = true};
    r->quoted = r->dollar = false;
    r->text.len = 0;
    while (ok && !ends_word(*r->p)) {
        if (*r->p == '`')
            return stop(r, "`...` is a command substitution");
        if (*r->p == '\\') {
            ok = read_backslash(r);
        } else if (*r->p == '$') {
            ok = read_dollar(r, w, false);
        } else if (*r->p == '\'' || *r->p == '"') {
            r->quoted = true;
            ok = *r->p == '"' ? read_double_quotes(r, w) : read_single_quotes(r);
        } else {
            ok = read_plain(r, w);
        }
    }
    if (w->literal)
        w->known = r->text.len;
    w->text =
        ok ? csn_arena_memdup(r->arena, r->text.data ? r->text.data : "", r->text.len) : NULL;
    return ok && (w->text || nomem(r));
}

/* ---- commands ---- */

/* A # begins a comment where a word could begin. */
static void skip_blanks(reader *r)
{
    for (;; r->p++) {
        r->p = past_continuation(r->p);
        if (*r->p != ' ' && *r->p != '\t')
            break;
    }
    if (*r->p == '#')
        r->p += strcspn(r->p, "\n");
}

static bool read_redirection(reader *r)
{
    csn_shell_word target;
    const char *next = past_continuation(r->p + 1);

    if (*r->p == '<' && *next == '<')
        return stop(r, "<< is a here-document");
    if (*next == '&' || *next == '>' || (*next == '|' && *r->p == '>'))
        next++;
    r->p = next;
    r->redirected = true;
    skip_blanks(r);
    const char *start = r->p;
    if (!read_word(r, &target))
        return false;
    return r->p != start || stop(r, "a redirection has no target");
}

/* Is the word that ends here the descriptor of a redirection, as in 2>f? */
static bool check_descriptor(reader *r, const csn_shell_word *w, bool *ret)
{
    size_t len = strlen(w->text);

    *ret = false;
    if ((*r->p != '<' && *r->p != '>') || r->quoted || len == 0)
        return true;
    if (w->text[len - 1] == '}')
        return stop(r, "{name}> sets a variable");
    *ret = w->literal && strspn(w->text, "0123456789") == len;
    return !*ret || len == 1 || stop(r, "a descriptor above 9");
}

/* Decides what a word in command position is. */
static bool check_command_word(reader *r, const char *start, const csn_shell_word *w,
                               bool *ret_skip)
{
    bool first = r->count == 0 && !r->redirected && !r->quoted;
    const char *end = r->p;

    *ret_skip = first && strcmp(w->text, "!") == 0;
    if (w->assigns) {
        r->assignments++;
        return true;
    }
    r->p = start;
    if (first && csn_strv_has(reserved, w->text))
        return stop(r, "compound commands, functions and time");
    if (r->dollar || (!w->literal && strcmp(w->text, "[") != 0))
        return stop(r, "a variable or pattern stands where a command name is expected");
    size_t len = csn_shell_name_length(w->text);
    if (len > 0 && csn_str_starts(w->text + len, "+="))
        return stop(r, "+= is not read the same way by every shell");
    r->p = end;
    return true;
}

static bool push(reader *r, const csn_shell_word *w)
{
    if (r->count == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 16;
        csn_shell_word *grown = reallocarray(r->words, cap, sizeof(*grown));
        if (!grown)
            return nomem(r);
        r->words = grown;
        r->cap = cap;
    }
    r->words[r->count++] = *w;
    return true;
}

static bool read_argument(reader *r)
{
    const char *start = r->p;
    csn_shell_word w;
    bool descriptor, skip = false;

    if (!read_word(r, &w) || !check_descriptor(r, &w, &descriptor))
        return false;
    if (descriptor)
        return true;
    if (r->count == r->assignments && !check_command_word(r, start, &w, &skip))
        return false;
    return skip || push(r, &w);
}

/* Up to the operator or newline that ends the command. */
static bool read_command(reader *r, csn_shell_command_fn fn, void *ctx)
{
    r->count = r->assignments = 0;
    r->redirected = false;
    for (;;) {
        skip_blanks(r);
        if (*r->p == '(' || *r->p == ')')
            return stop(r, "( ) make a subshell, a function, an array or a substitution");
        if (*r->p == '\0' || strchr("\n;&|", *r->p))
            break;
        bool redirection = *r->p == '<' || *r->p == '>';
        if (!(redirection ? read_redirection(r) : read_argument(r)))
            return false;
    }
    csn_shell_command c = {r->words, r->count, r->assignments};
    r->rc = r->count > 0 ? fn(ctx, &c) : 0;
    return r->rc == 0;
}

/* At the byte that ended a command; *need: a command must follow. */
static bool read_operator(reader *r, bool *need)
{
    bool empty = r->count == 0 && !r->redirected;
    char c = *r->p;
    const char *next = c ? past_continuation(r->p + 1) : r->p;

    if (empty && ((c != '\n' && c != '\0') || (c == '\0' && *need)))
        return stop(r, "a command is missing");
    if (c == '&' && *next == '>')
        return stop(r, "&> is not read the same way by every shell; write >file 2>&1");
    if (!empty)
        *need = false;
    if (c == '|' || (c == '&' && *next == '&'))
        *need = true;
    r->p = next;
    if ((c == '|' && (*next == '|' || *next == '&')) || (c == '&' && *next == '&'))
        r->p++;
    return true;
}

int csn_shell_line(const char *line, csn_shell_command_fn fn, void *ctx,
                   csn_shell_stop *ret_stop)
{
    reader r = {.p = line, .arena = csn_arena_new(), .stop = ret_stop};
    bool need = false, more = true;

    if (!r.arena)
        return CSN_SHELL_NOMEM;
    csn_buf_init(&r.text, strlen(line) + 1);
    while (more && read_command(&r, fn, ctx)) {
        more = *r.p != '\0';
        more = read_operator(&r, &need) && more;
    }
    csn_buf_release(&r.text);
    free(r.words);
    csn_arena_free(r.arena);
    return r.rc;
}
