/* shlex.c: reads words of a shell line the way bash does, without running anything.
 *
 * Called by shwords.c only. The whole line is written by an agent that may want to slip a
 * command past the allow-list, so the rule is: never believe in a reading that another shell,
 * or another version of bash, would not share. Quotes inside "${...}", in arithmetic, in array
 * subscripts, odd here-documents and the like end in csn_shlex_fail, which the policy turns
 * into a refusal. What must hold: every command substitution that the shell would run is handed
 * to csn_shwords_commands; the cursor never passes the end of the text; nesting and memory are
 * bounded.
 */
#include "policy/shlex.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "base/strv.h"

#define SHOWN_BYTES 80u

/* Where an expansion stands decides what quotes in it mean. */
typedef enum { PLAIN, IN_QUOTES, IN_HEREDOC } context;

static bool read_dollar(csn_shcur *s, csn_shword *w, context ctx);

void csn_shword_release(csn_shword *w)
{
    csn_buf_release(&w->text);
}

bool csn_shword_known(const csn_shword *w)
{
    return !w->expands || (w->raw == 1 && w->start[0] == '[');
}

/* Finds are copied: their texts may live in a backquote that is gone when they are told. */
bool csn_shlex_found(csn_shcur *s, const char *word, const char *text, size_t len,
                     bool function)
{
    csn_shscan *scan = s->scan;

    if (scan->count == scan->cap) {
        size_t cap = scan->cap ? scan->cap * 2 : 8;
        csn_shfind *grown = reallocarray(scan->finds, cap, sizeof(*grown));
        if (!grown)
            return csn_shlex_nomem(s);
        scan->finds = grown;
        scan->cap = cap;
    }
    csn_shfind *f = &scan->finds[scan->count];
    *f = (csn_shfind){.text = strndup(text, len), .function = function};
    if (word)
        f->word = strdup(word);
    if (!f->text || (word && !f->word)) {
        free(f->text);
        free(f->word);
        return csn_shlex_nomem(s);
    }
    scan->count++;
    return true;
}

/* Running out of memory is not "uncertain": the caller must not turn it into a verdict. */
bool csn_shlex_nomem(csn_shcur *s)
{
    s->scan->nomem = true;
    s->scan->failed = true;
    return false;
}

/* Once is enough: the first place where reading stopped is the one to show, and every caller
 * above unwinds without reporting again. */
bool csn_shlex_fail(csn_shcur *s)
{
    if (!s->scan->failed) {
        s->scan->failed = true;
        csn_shlex_found(s, NULL, s->cur, strnlen(s->cur, SHOWN_BYTES), false);
    }
    return false;
}

/* The only bound on recursion. Everything that can nest passes here, whatever it is made of. */
bool csn_shlex_enter(csn_shcur *s)
{
    if (s->scan->depth >= CSN_SH_DEPTH_MAX)
        return csn_shlex_fail(s);
    s->scan->depth++;
    return true;
}

void csn_shlex_leave(csn_shcur *s)
{
    s->scan->depth--;
}

/* A backslash before a newline is nothing at all, except in single quotes and comments, whose
 * readers do not come here. */
static const char *past_continuation(const char *p)
{
    while (p[0] == '\\' && p[1] == '\n')
        p += 2;
    return p;
}

char csn_shlex_look(csn_shcur *s)
{
    s->cur = past_continuation(s->cur);
    return *s->cur;
}

char csn_shlex_look2(const csn_shcur *s)
{
    const char *p = past_continuation(s->cur);

    return *p ? *past_continuation(p + 1) : '\0';
}

bool csn_shlex_eat(csn_shcur *s, char c)
{
    if (csn_shlex_look(s) != c || c == '\0')
        return false;
    s->cur++;
    return true;
}

/* A # begins a comment only where a word could begin, so only callers between words call this.
 * In a comment a backslash at the end of the line does not go on. */
void csn_shlex_blanks(csn_shcur *s)
{
    while (csn_shlex_look(s) == ' ' || *s->cur == '\t')
        s->cur++;
    if (*s->cur == '#')
        s->cur += strcspn(s->cur, "\n");
}

bool csn_shlex_is_meta(char c)
{
    return c == '\0' || strchr(" \t\n;&|()<>", c) != NULL;
}

/* What the shell takes for the name of a variable; ASCII only, whatever the locale. */
static bool is_name(const char *s, size_t len)
{
    if (len == 0 || isdigit((unsigned char)s[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (s[i] != '_' && !(isascii(s[i]) && isalnum((unsigned char)s[i])))
            return false;
    return true;
}

/* NULL words: the bytes are read for what is in them, not for themselves. */
static bool put(csn_shcur *s, csn_shword *w, const char *p, size_t len)
{
    if (!w || len == 0)
        return true;
    int rc = csn_buf_append(&w->text, p, len);
    if (rc == ENOMEM)
        return csn_shlex_nomem(s);
    return rc == 0 || csn_shlex_fail(s);
}

static void mark_expands(csn_shword *w)
{
    if (w)
        w->expands = true;
}

/* Literal text: could it carry a substitution into something that evaluates it later? */
static void note_literal(csn_shcur *s, const char *p, size_t len)
{
    if (memchr(p, '`', len) || memmem(p, len, "$(", 2) || memmem(p, len, "${", 2))
        s->scan->hidden = true;
}

/* At a quote ': up to the closing one. */
static bool read_single(csn_shcur *s, csn_shword *w)
{
    const char *start = s->cur + 1;
    const char *end = strchr(start, '\'');

    if (!end)
        return csn_shlex_fail(s);
    if (w)
        w->quoted = true;
    note_literal(s, start, (size_t)(end - start));
    if (!put(s, w, start, (size_t)(end - start)))
        return false;
    s->cur = end + 1;
    return true;
}

/* At the quote of $'...'. A shell without this form ends it at the first quote whatever is
 * before, so \' inside is refused; escapes could spell anything, so the text is not known. */
static bool read_ansi(csn_shcur *s, csn_shword *w)
{
    const char *start = s->cur + 1;
    const char *end = strchr(start, '\'');

    if (!end || (end > start && end[-1] == '\\'))
        return csn_shlex_fail(s);
    note_literal(s, start, (size_t)(end - start));
    if (memchr(start, '\\', (size_t)(end - start)))
        s->scan->hidden = true;
    if (w)
        w->quoted = true;
    mark_expands(w);
    s->cur = end + 1;
    return true;
}

/* At a backquote. The text between is a command line of its own once \` \\ \$ are undone. */
static bool read_backquote(csn_shcur *s, csn_shword *w, context ctx)
{
    csn_autobuf text;
    const char *p = s->cur + 1;

    csn_buf_init(&text, CSN_ARGV_BYTES_MAX);
    mark_expands(w);
    for (; *p != '`'; p++) {
        if (*p == '\0')
            return csn_shlex_fail(s);
        if (p[0] == '\\' && p[1] != '\0' &&
            (strchr("`\\$", p[1]) || (ctx == IN_QUOTES && p[1] == '"')))
            p++;
        if (csn_buf_putc(&text, *p) != 0)
            return csn_shlex_nomem(s);
    }
    if (!csn_shwords_text(s, text.data ? text.data : ""))
        return false;
    s->cur = p + 1;
    return true;
}

/* After $( or <( or >(. */
static bool read_comsub(csn_shcur *s)
{
    csn_shcur inner = {.scan = s->scan, .cur = s->cur, .in_comsub = true};
    bool ok = csn_shlex_enter(s);

    if (!ok)
        return false;
    inner.outer_heredoc = s->outer_heredoc || s->heredoc_count > 0;
    ok = csn_shwords_commands(&inner);
    /* Where the body of a here-document is that is still open here, shells disagree about. */
    if (ok && (inner.heredoc_count > 0 || !csn_shlex_eat(&inner, ')')))
        ok = csn_shlex_fail(&inner);
    csn_shlex_heredocs_release(&inner);
    csn_shlex_leave(s);
    s->cur = inner.cur;
    return ok;
}

/* At a double quote. */
static bool read_double(csn_shcur *s, csn_shword *w)
{
    s->cur++;
    if (w)
        w->quoted = true;
    for (;;) {
        switch (csn_shlex_look(s)) {
        case '\0':
            return csn_shlex_fail(s);
        case '"':
            s->cur++;
            return true;
        case '\\':
            if (s->cur[1] != '\0' && strchr("$`\"\\", s->cur[1])) {
                if (s->cur[1] == '`' || (s->cur[1] == '$' && s->cur[2] != ' '))
                    s->scan->hidden = true;
                s->cur++;
            }
            break;
        case '$':
            if (!read_dollar(s, w, IN_QUOTES))
                return false;
            continue;
        case '`':
            if (!read_backquote(s, w, IN_QUOTES))
                return false;
            continue;
        default:
            break;
        }
        if (!put(s, w, s->cur, 1))
            return false;
        s->cur++;
    }
}

/* ${a[x]}, ${a:x}, ${!a}: the shell reads a value as an expression there. */
static void note_param(csn_shcur *s, char c, bool first)
{
    if ((c == '[' && s->cur[1] != '@' && s->cur[1] != '*') || (c == '!' && first) ||
        (c == ':' && s->cur[1] != '\0' && !strchr("-+=?", s->cur[1])))
        s->scan->evaluates = true;
}

/* After ${ : up to the first closing brace that is not quoted. */
static bool read_param(csn_shcur *s, context ctx)
{
    char before = '\0', c = csn_shlex_look(s);
    bool ok = true;

    /* ${ command; } and ${| command; } of newer shells */
    if (c == '}' || c == '|' || c == ' ' || c == '\t' || c == '\n' || c == '(')
        return csn_shlex_fail(s);
    for (bool first = true; ok; first = false) {
        c = csn_shlex_look(s);
        note_param(s, c, first);
        if (c == '}') {
            s->cur++;
            return true;
        }
        if (c == '\0' || (c == '\'' && ctx != PLAIN) || (c == '"' && ctx == IN_HEREDOC) ||
            (ctx == PLAIN && (c == '<' || c == '>') && csn_shlex_look2(s) == '(') ||
            (before == '@' && c == 'P')) /* ${x@P} expands the value once more */
            return csn_shlex_fail(s);
        before = c;
        if (c == '\\')
            s->cur += s->cur[1] ? 2 : 1;
        else if (c == '\'')
            ok = read_single(s, NULL);
        else if (c == '"')
            ok = read_double(s, NULL);
        else if (c == '`')
            ok = read_backquote(s, NULL, ctx);
        else if (c == '$')
            ok = read_dollar(s, NULL, ctx);
        else
            s->cur++;
    }
    return false;
}

/* The closing parenthesis that matches the one before p, by count alone; NULL when the text has
 * anything that would make counting a guess. */
static const char *matching_paren(const char *p)
{
    unsigned depth = 1;

    for (; *p; p++) {
        if (strchr("'\"\\`", *p) || (*p == '#' && strchr(" \t\n;&|()", p[-1])))
            return NULL;
        if (*p == '(')
            depth++;
        else if (*p == ')' && --depth == 0)
            return p;
    }
    return NULL;
}

/* Both readings are possible until the closing parentheses are found: `((` may also open two
 * subshells. Adjacent `))` decide, exactly as in bash. */
bool csn_shlex_arithmetic(csn_shcur *s, bool *ret)
{
    if (s->cur[0] != '(' || s->cur[1] != '(')
        return csn_shlex_fail(s);
    const char *end = matching_paren(s->cur + 2);
    if (!end)
        return csn_shlex_fail(s);
    *ret = end[1] == ')';
    if (!*ret)
        return true;
    s->scan->evaluates = true;
    s->cur += 2;
    while (s->cur < end) {
        if (*s->cur != '$')
            s->cur++;
        else if (!read_dollar(s, NULL, IN_QUOTES))
            return false;
    }
    if (s->cur != end) /* a substitution inside ends elsewhere than counting says */
        return csn_shlex_fail(s);
    s->cur = end + 2;
    return true;
}

/* At $( */
static bool read_dollar_paren(csn_shcur *s)
{
    if (csn_shlex_look2(s) == '(') {
        bool arithmetic = false;
        if (!csn_shlex_enter(s))
            return false;
        bool ok = csn_shlex_arithmetic(s, &arithmetic);
        csn_shlex_leave(s);
        if (!ok || arithmetic)
            return ok;
    }
    s->cur++;
    return read_comsub(s);
}

/* At a $. */
static bool read_dollar(csn_shcur *s, csn_shword *w, context ctx)
{
    s->cur++;
    char c = csn_shlex_look(s);
    bool ok = true;

    mark_expands(w); /* a lone $ is itself, but no command has that name */
    if (c == '(') {
        ok = read_dollar_paren(s);
    } else if (c == '{') {
        s->cur++;
        ok = csn_shlex_enter(s);
        if (ok) {
            ok = read_param(s, ctx);
            csn_shlex_leave(s);
        }
    } else if (c == '[') {
        ok = csn_shlex_fail(s); /* $[ ]: old arithmetic, or nothing */
    } else if (c == '\'' && ctx == PLAIN) {
        ok = read_ansi(s, w);
    } else if (c == '$') {
        s->cur++;
        c = csn_shlex_look(s);
        if (c == '(' || c == '{' || c == '[' || c == '\'') /* $$( is read in two ways */
            ok = csn_shlex_fail(s);
    } else if (c != '\0' && strchr("@*#?!-", c)) {
        s->cur++;
    } else {
        while ((c = csn_shlex_look(s)) == '_' || (isascii(c) && isalnum((unsigned char)c)))
            s->cur++;
    }
    return ok;
}

/* NAME=( ... ): words up to the closing parenthesis, over any number of lines. */
static bool read_array(csn_shcur *s)
{
    s->cur++;
    if (!csn_shlex_enter(s))
        return false;
    for (bool ok = true; ok;) {
        csn_autoshword w = {0};
        csn_shlex_blanks(s);
        char c = csn_shlex_look(s);
        if (c == ')') {
            s->cur++;
            csn_shlex_leave(s);
            return true;
        }
        if (c == '\n')
            ok = csn_shlex_newline(s);
        else if (csn_shlex_is_meta(c) && !((c == '<' || c == '>') && csn_shlex_look2(s) == '('))
            ok = csn_shlex_fail(s);
        else
            ok = csn_shlex_word(s, &w, CSN_SHWORD_ELEMENT);
    }
    csn_shlex_leave(s);
    return false;
}

/* One unquoted byte that is not the start of anything longer. */
static bool read_plain(csn_shcur *s, csn_shword *w, unsigned *subscript, unsigned flags)
{
    char c = *s->cur;
    size_t len = w->text.len;

    if (c == '[' && *subscript > 0) {
        ++*subscript;
    } else if (c == '[' && !w->assign && !w->indexed && !w->quoted && !w->expands &&
               (((flags & CSN_SHWORD_COMMAND) != 0 && is_name(w->text.data, len)) ||
                ((flags & CSN_SHWORD_ELEMENT) != 0 && len == 0))) {
        ++*subscript;
        w->indexed = true;
        s->scan->evaluates = true; /* the index is an expression */
    } else if (c == ']' && *subscript > 0) {
        --*subscript;
    } else if (c == '=' && !w->assign && *subscript == 0) {
        /* By the raw bytes: a$x=1 and "a"=1 are commands. */
        const char *before = len > 1 && s->cur[-1] == '+' ? s->cur - 1 : s->cur;
        if (w->indexed)
            w->assign = before[-1] == ']';
        else
            w->assign = !w->quoted && !w->expands && len > 0 &&
                        is_name(w->text.data, len - (size_t)(s->cur - before));
    }
    if (strchr("*?[{", c) || (c == '~' && (len == 0 || strchr(":=", w->text.data[len - 1]))))
        w->expands = true;
    s->cur++;
    return put(s, w, &c, 1);
}

/* A backslash at the very end is literal in some shells and waits for more in others. */
static bool read_escape(csn_shcur *s, csn_shword *w)
{
    if (s->cur[1] == '\0')
        return csn_shlex_fail(s);
    if (s->cur[1] == '`' || s->cur[1] == '$')
        s->scan->hidden = true;
    w->quoted = true;
    s->cur += 2;
    return put(s, w, s->cur - 1, 1);
}

/* The word ends at the first unquoted metacharacter. Everything it is made of is read for the
 * commands in it, whether or not anybody wants its text. */
bool csn_shlex_word(csn_shcur *s, csn_shword *w, unsigned flags)
{
    unsigned subscript = 0;
    bool ok = true;

    csn_shlex_look(s);
    *w = (csn_shword){.start = s->cur};
    csn_buf_init(&w->text, CSN_ARGV_BYTES_MAX);
    while (ok) {
        char c = csn_shlex_look(s);
        if (c == '(' && w->assign && s->cur > w->start && s->cur[-1] == '=') {
            ok = read_array(s);
        } else if ((c == '<' || c == '>') && csn_shlex_look2(s) == '(') {
            s->cur++;
            csn_shlex_look(s);
            s->cur++;
            w->expands = true;
            ok = read_comsub(s);
        } else if (csn_shlex_is_meta(c)) {
            break;
        } else if (c == '\\') {
            ok = read_escape(s, w);
        } else if (c == '\'') {
            ok = read_single(s, w);
        } else if (c == '"') {
            ok = read_double(s, w);
        } else if (c == '`') {
            ok = read_backquote(s, w, PLAIN);
        } else if (c == '$') {
            ok = read_dollar(s, w, PLAIN);
        } else {
            ok = read_plain(s, w, &subscript, flags);
        }
    }
    w->raw = (size_t)(s->cur - w->start);
    /* a[1 + 2]=x: for bash the blank does not end the word */
    if (ok && subscript > 0)
        ok = csn_shlex_fail(s);
    return ok;
}

void csn_shlex_heredocs_release(csn_shcur *s)
{
    for (size_t i = 0; i < s->heredoc_count; i++)
        free(s->heredocs[i].delimiter);
    s->heredoc_count = 0;
}

/* The body comes later, after the next newline that is not inside something else. */
bool csn_shlex_heredoc_begin(csn_shcur *s, bool strip_tabs)
{
    csn_autoshword w = {0};

    csn_shlex_blanks(s);
    if (!csn_shlex_word(s, &w, 0))
        return false;
    const char *text = w.text.data ? w.text.data : "";
    const char *raw = w.start;
    /* A delimiter with an expansion in it, or over two lines, is nobody's honest work. */
    if (s->cur == raw || memchr(raw, '$', (size_t)(s->cur - raw)) ||
        memchr(raw, '`', (size_t)(s->cur - raw)) || strchr(text, '\n') || strchr(text, '\\') ||
        s->heredoc_count == CSN_SH_HEREDOC_MAX)
        return csn_shlex_fail(s);
    char *copy = strdup(text);
    if (!copy)
        return csn_shlex_nomem(s);
    s->heredocs[s->heredoc_count++] =
        (csn_shdoc){.delimiter = copy, .quoted = w.quoted, .strip_tabs = strip_tabs};
    return true;
}

/* One logical line of a here-document (continuations joined unless it is quoted). */
static bool heredoc_line(csn_shcur *s, bool quoted, csn_buf *line)
{
    line->len = 0;
    for (; *s->cur && *s->cur != '\n'; s->cur++) {
        if (!quoted && s->cur[0] == '\\' && s->cur[1] == '\n') {
            s->cur++;
            continue;
        }
        if (csn_buf_putc(line, *s->cur) != 0)
            return csn_shlex_nomem(s);
        if (!quoted && s->cur[0] == '\\' && s->cur[1] != '\0') {
            s->cur++;
            if (csn_buf_putc(line, *s->cur) != 0)
                return csn_shlex_nomem(s);
        }
    }
    if (*s->cur == '\n')
        s->cur++;
    return true;
}

/* Runs over the text of an unquoted here-document: only $ ` and \ mean something. */
static bool expand_body(csn_shcur *s, const char *body)
{
    csn_shcur inner = {.scan = s->scan, .cur = body};
    bool ok = csn_shlex_enter(s);

    if (!ok)
        return false;
    while (ok && *inner.cur) {
        if (*inner.cur == '\\' && inner.cur[1] != '\0')
            inner.cur += 2;
        else if (*inner.cur == '$')
            ok = read_dollar(&inner, NULL, IN_HEREDOC);
        else if (*inner.cur == '`')
            ok = read_backquote(&inner, NULL, IN_HEREDOC);
        else
            inner.cur++;
    }
    csn_shlex_leave(s);
    return ok;
}

/* Up to the delimiter on a line of its own, or the end of the text, as the shells do it. */
static bool heredoc_body(csn_shcur *s, const csn_shdoc *h)
{
    csn_autobuf line, body;
    size_t want = strlen(h->delimiter);

    csn_buf_init(&line, CSN_ARGV_BYTES_MAX);
    csn_buf_init(&body, CSN_ARGV_BYTES_MAX);
    while (*s->cur) {
        if (!heredoc_line(s, h->quoted, &line))
            return false;
        const char *p = line.data ? line.data : "";
        size_t len = line.len;
        while (h->strip_tabs && len > 0 && *p == '\t') {
            p++;
            len--;
        }
        if (len == want && memcmp(p, h->delimiter, want) == 0)
            break;
        /* $(cat <<E ... E) closes in some shells, and an empty delimiter matches too well */
        if (s->in_comsub && len > want && memcmp(p, h->delimiter, want) == 0)
            return csn_shlex_fail(s);
        if (csn_buf_append(&body, p, len) != 0 || csn_buf_putc(&body, '\n') != 0)
            return csn_shlex_nomem(s);
    }
    return h->quoted || expand_body(s, body.data ? body.data : "");
}

/* An outer here-document would have its body here in one shell and after the substitution in
 * another, so that is not guessed at. */
bool csn_shlex_newline(csn_shcur *s)
{
    size_t count = s->heredoc_count;
    bool ok = true;

    s->cur++;
    if (s->outer_heredoc)
        return csn_shlex_fail(s);
    s->heredoc_count = 0;
    for (size_t i = 0; i < count; i++) {
        ok = ok && heredoc_body(s, &s->heredocs[i]);
        free(s->heredocs[i].delimiter);
    }
    return ok;
}
