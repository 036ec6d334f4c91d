/* required.c: finds out which strings a regular expression cannot match without.
 *
 * Reads the common part of PCRE2's syntax: characters, classes, groups, alternatives,
 * quantifiers, ^ $ \b. Anything else (look-around, back references, options, verbs, bytes
 * outside of ASCII) ends the reading with no strings. The expression is untrusted: depth,
 * number and length of strings are limited.
 *
 * Each part has a set of strings: `exact` if it matches those and nothing else, otherwise
 * strings of which a match contains one. A sequence joins exact neighbours to longer strings
 * and keeps the best set. */
#include "search/required.h"

#include <string.h>

#define DEPTH_MAX  32u
#define STRING_MAX 64u
#define SHORT      2u /* shorter strings are too frequent to save work */

typedef struct string {
    char bytes[STRING_MAX];
    unsigned char len;
} string;

typedef struct strings {
    string v[CSN_REQUIRED_MAX];
    size_t count; /* 0: none is known */
} strings;

typedef struct part {
    strings set;
    bool exact;
} part;

typedef struct reader {
    const char *p, *end;
    unsigned depth;
    bool failed, newline;
} reader;

static void read_alternatives(reader *r, part *ret);

/* ---- sets ---- */

static const strings empty_string = {.count = 1};

static size_t shortest(const strings *s)
{
    size_t least = s->count ? STRING_MAX : 0;

    for (size_t i = 0; i < s->count; i++)
        least = s->v[i].len < least ? s->v[i].len : least;
    return least;
}

/* Longer is better; of the same length, fewer. */
static bool is_better(const strings *a, const strings *b)
{
    size_t la = shortest(a), lb = shortest(b);

    return la != lb ? la > lb : la > 0 && a->count < b->count;
}

/* Appends each string of `more` to each of `s`. False: too many or too long. */
static bool join(strings *s, const strings *more)
{
    strings out = {.count = s->count * more->count};

    if (out.count > CSN_REQUIRED_MAX)
        return false;
    for (size_t i = 0; i < out.count; i++) {
        const string *a = &s->v[i / more->count], *b = &more->v[i % more->count];
        if (a->len + b->len > STRING_MAX)
            return false;
        memcpy(out.v[i].bytes, a->bytes, a->len);
        memcpy(out.v[i].bytes + a->len, b->bytes, b->len);
        out.v[i].len = (unsigned char)(a->len + b->len);
    }
    *s = out;
    return true;
}

static bool add_all(strings *s, const strings *more)
{
    if (s->count + more->count > CSN_REQUIRED_MAX)
        return false;
    memcpy(s->v + s->count, more->v, more->count * sizeof(more->v[0]));
    s->count += more->count;
    return true;
}

/* ---- characters and classes ---- */

static void set_char(part *ret, char c)
{
    *ret = (part){.exact = true, .set = {.count = 1}};
    ret->set.v[0].bytes[0] = c;
    ret->set.v[0].len = 1;
}

/* A backslash and one character. Outside of a class, \b and \B match no character. */
static void read_escape(reader *r, bool in_class, part *ret)
{
    char c = r->p < r->end ? *r->p++ : '\0';
    bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');

    *ret = (part){0};
    if (c != '\0' && !alnum)
        set_char(ret, c);
    else if (c == 't')
        set_char(ret, '\t');
    else if (!in_class && (c == 'b' || c == 'B'))
        *ret = (part){.exact = true, .set = empty_string};
    else if (c == 's' || c == 'W' || c == 'D')
        r->newline = true;
    else if (c == '\0' || !strchr("wdSh", c))
        r->failed = true;
}

/* After `[`. Only a range or escape that may hold a newline matters. */
static void read_class(reader *r, part *ret)
{
    part ignored;
    bool first = true;

    *ret = (part){0};
    if (r->p < r->end && *r->p == '^') {
        r->newline = true;
        r->p++;
    }
    for (; r->p < r->end && (first || *r->p != ']') && !r->failed; first = false) {
        char c = *r->p++;
        if (c == '[' && r->p < r->end && strchr(":.=", *r->p))
            r->failed = true; /* [:space:] and its kind */
        else if (c == '\\')
            read_escape(r, true, &ignored);
        else if ((unsigned char)c < ' ' || (unsigned char)c > '~')
            r->failed = true;
    }
    if (r->p >= r->end)
        r->failed = true;
    else
        r->p++;
}

/* After `(`. Of the special groups only (?: is known. */
static void read_group(reader *r, part *ret)
{
    *ret = (part){0};
    if (r->p < r->end && (*r->p == '?' || *r->p == '*')) {
        r->failed = r->end - r->p < 2 || r->p[0] != '?' || r->p[1] != ':';
        r->p += r->failed ? 0 : 2;
    }
    if (r->failed || ++r->depth > DEPTH_MAX) {
        r->failed = true;
        return;
    }
    read_alternatives(r, ret);
    r->depth--;
    if (r->p >= r->end || *r->p != ')')
        r->failed = true;
    else
        r->p++;
}

/* The length of the text between braces, if it may be a quantifier, else 0. */
static size_t braces_len(const char *p)
{
    size_t n = strspn(p, "0123456789, \t");

    return p[n] == '}' ? n : 0;
}

static void read_atom(reader *r, part *ret)
{
    char c = *r->p++;

    *ret = (part){0};
    if (c == '\\')
        read_escape(r, false, ret);
    else if (c == '[')
        read_class(r, ret);
    else if (c == '(')
        read_group(r, ret);
    else if (c == '^' || c == '$')
        *ret = (part){.exact = true, .set = empty_string};
    else if (c != '.' && (strchr("*+?", c) || (c == '{' && braces_len(r->p) > 0) ||
                          ((unsigned char)c < ' ' && c != '\t') || (unsigned char)c > '~'))
        r->failed = true;
    else if (c != '.')
        set_char(ret, c);
}

/* ---- quantifiers ---- */

/* At `{`. Text such as {x} is no quantifier; one with odd spelling fails. */
static bool read_braces(reader *r, bool *ret_none)
{
    const char *p = r->p + 1;
    size_t inner = braces_len(p), zeros = strspn(p, "0");

    if (inner == 0)
        return false;
    if (*p == ',' || memchr(p, ' ', inner) || memchr(p, '\t', inner))
        r->failed = true;
    *ret_none = zeros == inner || p[zeros] == ',';
    r->p = p + inner + 1;
    return true;
}

/* True if a quantifier follows; *ret_none: it allows that the atom is absent. */
static bool read_quantifier(reader *r, bool *ret_none)
{
    if (r->p >= r->end)
        return false;
    char c = *r->p;
    if (c == '{' ? !read_braces(r, ret_none) : !strchr("*+?", c))
        return false;
    if (c != '{') {
        *ret_none = c != '+';
        r->p++;
    }
    if (r->p < r->end && (*r->p == '?' || *r->p == '+'))
        r->p++; /* lazy or possessive */
    return true;
}

/* ---- sequences ---- */

typedef struct sequence {
    strings run;  /* what the last exact parts joined to */
    strings best; /* so far */
    bool exact;   /* `run` is all of it */
} sequence;

/* Ends the current run. */
static void break_run(sequence *s)
{
    if (is_better(&s->run, &s->best))
        s->best = s->run;
    s->run = empty_string;
    s->exact = false;
}

static void add_part(sequence *s, const part *a, bool repeated)
{
    if (!a->exact) {
        break_run(s);
        if (is_better(&a->set, &s->best))
            s->best = a->set;
        return;
    }
    if (!join(&s->run, &a->set)) {
        break_run(s);
        s->run = a->set;
    }
    if (repeated)
        break_run(s);
}

static void read_sequence(reader *r, part *ret)
{
    sequence s = {.run = empty_string, .exact = true};

    while (!r->failed && r->p < r->end && *r->p != '|' && *r->p != ')') {
        part a;
        bool none = false;
        read_atom(r, &a);
        bool repeated = !r->failed && read_quantifier(r, &none);
        if (repeated && none)
            break_run(&s);
        else if (!r->failed)
            add_part(&s, &a, repeated);
    }
    bool exact = s.exact;
    if (!exact)
        break_run(&s);
    *ret = (part){.exact = exact, .set = exact ? s.run : s.best};
}

static void read_alternatives(reader *r, part *ret)
{
    read_sequence(r, ret);
    while (!r->failed && r->p < r->end && *r->p == '|') {
        part next;
        r->p++;
        read_sequence(r, &next);
        bool known = ret->set.count > 0 && next.set.count > 0 && add_all(&ret->set, &next.set);
        ret->exact = ret->exact && next.exact && known;
        if (!known)
            ret->set.count = 0;
    }
}

/* ---- result ---- */

/* The Kelvin sign and the long s are k and s to Unicode: a string that must be there in text
 * of any kind has neither. Keeps the longest piece. */
static void cut_folding(string *s)
{
    size_t from = 0, best = 0, best_len = 0;

    for (size_t i = 0; i <= s->len; i++) {
        if (i < s->len && !strchr("kKsS", s->bytes[i]))
            continue;
        if (i - from > best_len) {
            best = from;
            best_len = i - from;
        }
        from = i + 1;
    }
    memmove(s->bytes, s->bytes + best, best_len);
    s->len = (unsigned char)best_len;
}

static void keep(strings *s, bool nocase, csn_required *ret)
{
    for (size_t i = 0; nocase && i < s->count; i++)
        cut_folding(&s->v[i]);
    if (shortest(s) < SHORT)
        return;
    ret->count = s->count;
    for (size_t i = 0; i < s->count; i++)
        csn_literal_init(&ret->items[i], s->v[i].bytes, s->v[i].len, nocase);
}

void csn_required_text(const char *text, size_t len, bool nocase, csn_required *ret)
{
    strings s = {.count = 1};

    *ret = (csn_required){.one_line = !memchr(text, '\n', len)};
    s.v[0].len = len < STRING_MAX ? (unsigned char)len : STRING_MAX;
    memcpy(s.v[0].bytes, text, s.v[0].len);
    if (ret->one_line)
        keep(&s, nocase, ret);
}

void csn_required_find(const char *pattern, size_t len, bool nocase, csn_required *ret)
{
    reader r = {.p = pattern, .end = pattern + len};
    part all;

    *ret = (csn_required){0};
    read_alternatives(&r, &all);
    if (r.failed || r.p != r.end)
        return;
    ret->one_line = !r.newline;
    keep(&all.set, nocase, ret);
}
