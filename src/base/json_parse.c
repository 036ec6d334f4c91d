/* json_parse.c: a strict JSON reader (RFC 8259). Requests, policies and stored state come in
 * here, so the text may be hostile.
 *
 * Refused are documents that two readers could understand differently: duplicate keys, bytes
 * after the value, invalid UTF-8, lone surrogates, NUL in strings, integers outside int64_t.
 *
 * Invariants:
 *  - Size and depth are limited before memory is spent.
 *  - Time is at most n log n in the number of values: keys of large objects are sorted.
 *  - No byte at or behind `end` is read. */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/utf8.h"

#define LINEAR_MAX        8u  /* members that are searched one by one */
#define REAL_EXPONENT_MAX 308 /* of a double */

typedef struct parser {
    const char *start, *at, *end;
    csn_arena *arena;
    /* Values whose container is still open. They move to the arena when it closes. */
    csn_jval *pending;
    size_t npending, room;
    const char *error; /* the first; NULL with a false result: out of memory */
} parser;

static bool parse_value(parser *p, unsigned depth, csn_jval *v);

static bool syntax_error(parser *p, const char *message)
{
    p->error = message;
    return false;
}

/* The next byte, or NUL at the end. NUL is no part of any token. */
static char peek(const parser *p)
{
    return p->at < p->end ? *p->at : '\0';
}

static bool take(parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

static void skip_space(parser *p)
{
    while (p->at < p->end && memchr(" \t\n\r", *p->at, 4))
        p->at++;
}

static size_t skip_digits(parser *p)
{
    const char *from = p->at;

    while (peek(p) >= '0' && peek(p) <= '9')
        p->at++;
    return (size_t)(p->at - from);
}

/* ---- numbers ---- */

static bool parse_integer(parser *p, const char *digits, bool negative, csn_jval *v)
{
    uint64_t n = 0;

    for (; digits < p->at; digits++)
        if (__builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*digits - '0'), &n))
            return syntax_error(p, "integer out of range");
    if (n > (uint64_t)INT64_MAX + negative)
        return syntax_error(p, "integer out of range");
    v->type = CSN_JSON_INTEGER;
    v->integer = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

/* The part of a real from '.' or 'e' on. `whole` is the number of digits before it. Reals are
 * passed on as text only, so the value itself is not computed. */
static bool parse_real(parser *p, size_t whole, csn_jval *v)
{
    long exponent = 0;

    if (take(p, '.') && skip_digits(p) == 0)
        return syntax_error(p, "expected a digit after '.'");
    if (take(p, 'e') || take(p, 'E')) {
        bool negative = peek(p) == '-';
        if (!take(p, '-'))
            (void)take(p, '+');
        const char *digits = p->at;
        if (skip_digits(p) == 0)
            return syntax_error(p, "expected a digit in the exponent");
        for (; digits < p->at && exponent < INT_MAX; digits++)
            exponent = exponent * 10 + (*digits - '0');
        exponent = negative ? -exponent : exponent;
    }
    if ((long)whole - 1 + exponent > REAL_EXPONENT_MAX)
        return syntax_error(p, "number out of range");
    v->type = CSN_JSON_REAL;
    return true;
}

static bool parse_number(parser *p, csn_jval *v)
{
    bool negative = take(p, '-');
    const char *digits = p->at;
    size_t whole = skip_digits(p);

    if (whole == 0)
        return syntax_error(p, "expected a value");
    if (whole > 1 && *digits == '0')
        return syntax_error(p, "a number must not begin with 0");
    char next = peek(p);
    if (next == '.' || next == 'e' || next == 'E')
        return parse_real(p, whole, v);
    return parse_integer(p, digits, negative, v);
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits; -1 when they are not. */
static long parse_hex4(parser *p)
{
    long code = 0;

    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(p));
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
        p->at++;
    }
    return code;
}

static size_t encode_utf8(unsigned long code, char *to)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)((0xf00u >> n & 0xf0) | code);
    return n;
}

/* \uXXXX, of which `\u` is read; characters above U+FFFF are two of them. */
static bool parse_unicode(parser *p, char **to)
{
    long code = parse_hex4(p), low;

    if (code < 0)
        return syntax_error(p, "expected four hex digits after \\u");
    if (code == 0)
        return syntax_error(p, "\\u0000 is not allowed");
    if (code >= 0xd800 && code <= 0xdbff) {
        if (!take(p, '\\') || !take(p, 'u') || (low = parse_hex4(p)) < 0xdc00 || low > 0xdfff)
            return syntax_error(p, "a surrogate without its other half");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff) {
        return syntax_error(p, "a surrogate without its other half");
    }
    *to += encode_utf8((unsigned long)code, *to);
    return true;
}

static bool parse_escape(parser *p, char **to)
{
    static const char escapes[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    char c = peek(p);
    const char *known = c ? strchr(escapes, c) : NULL;

    if (take(p, 'u'))
        return parse_unicode(p, to);
    if (!known)
        return syntax_error(p, "unknown escape");
    p->at++;
    *(*to)++ = bytes[known - escapes];
    return true;
}

/* The closing quote, or NULL. */
static const char *string_end(const parser *p)
{
    for (const char *q = p->at; q < p->end; q++) {
        if (*q == '"')
            return q;
        q += *q == '\\';
    }
    return NULL;
}

/* An escape is never shorter than what it stands for, so the text's length is enough room. */
static bool parse_string(parser *p, const char **ret)
{
    if (!take(p, '"'))
        return syntax_error(p, "expected a string");
    const char *end = string_end(p);
    if (!end)
        return syntax_error(p, "a string does not end");
    char *s = csn_arena_alloc(p->arena, (size_t)(end - p->at) + 1), *to = s;
    if (!s)
        return false;
    while (p->at < end) {
        size_t n = csn_utf8_char((const unsigned char *)p->at, (size_t)(end - p->at));
        if (n == 0)
            return syntax_error(p, "invalid UTF-8");
        if ((unsigned char)*p->at < ' ')
            return syntax_error(p, "a control character in a string");
        if (take(p, '\\')) {
            if (!parse_escape(p, &to))
                return false;
            continue;
        }
        memcpy(to, p->at, n);
        to += n;
        p->at += n;
    }
    *ret = s; /* the arena's memory is zeroed */
    p->at = end + 1;
    return true;
}

/* ---- containers ---- */

static bool push(parser *p, const csn_jval *v)
{
    if (p->npending == p->room) {
        size_t room = p->room ? 2 * p->room : 16;
        csn_jval *more = reallocarray(p->pending, room, sizeof(*more));
        if (!more)
            return false;
        p->pending = more;
        p->room = room;
    }
    p->pending[p->npending++] = *v;
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp((*(const csn_jval *const *)a)->key, (*(const csn_jval *const *)b)->key);
}

static bool sort_members(parser *p, csn_jval *v)
{
    v->by_key = csn_arena_array(p->arena, v->count, sizeof(const csn_jval *));
    for (size_t i = 0; v->by_key && i < v->count; i++)
        v->by_key[i] = &v->items[i];
    if (v->by_key)
        qsort(v->by_key, v->count, sizeof(const csn_jval *), compare_keys);
    return v->by_key != NULL;
}

static bool check_unique(parser *p, csn_jval *v)
{
    bool same = false;

    if (v->count > LINEAR_MAX && !sort_members(p, v))
        return false;
    for (size_t i = 1; i < v->count && !same; i++) {
        if (v->by_key)
            same = strcmp(v->by_key[i - 1]->key, v->by_key[i]->key) == 0;
        for (size_t k = 0; !v->by_key && k < i && !same; k++)
            same = strcmp(v->items[k].key, v->items[i].key) == 0;
    }
    return same ? syntax_error(p, "a key is given twice") : true;
}

/* Moves the pending values from `mark` on into v. */
static bool close_container(parser *p, size_t mark, csn_jval *v)
{
    v->count = p->npending - mark;
    if (v->count == 0)
        return true;
    csn_jval *items = csn_arena_array(p->arena, v->count, sizeof(*items));
    if (!items)
        return false;
    memcpy(items, p->pending + mark, v->count * sizeof(*items));
    p->npending = mark;
    v->items = items;
    return v->type == CSN_JSON_OBJECT ? check_unique(p, v) : true;
}

static bool parse_member(parser *p, unsigned depth, bool in_object)
{
    csn_jval item = {0};

    skip_space(p);
    if (in_object) {
        if (!parse_string(p, &item.key))
            return false;
        skip_space(p);
        if (!take(p, ':'))
            return syntax_error(p, "expected ':'");
    }
    return parse_value(p, depth, &item) && push(p, &item);
}

static bool parse_container(parser *p, unsigned depth, csn_jval *v)
{
    bool object = *p->at++ == '{';
    char close = object ? '}' : ']';
    size_t mark = p->npending;

    v->type = object ? CSN_JSON_OBJECT : CSN_JSON_ARRAY;
    if (depth == 0)
        return syntax_error(p, "nested too deeply");
    skip_space(p);
    if (take(p, close))
        return true;
    do {
        if (!parse_member(p, depth - 1, object))
            return false;
        skip_space(p);
    } while (take(p, ','));
    if (!take(p, close))
        return syntax_error(p, object ? "expected ',' or '}'" : "expected ',' or ']'");
    return close_container(p, mark, v);
}

/* ---- documents ---- */

static bool parse_word(parser *p, csn_jval *v)
{
    static const struct {
        const char *word;
        csn_jtype type;
        bool value;
    } words[] = {{"true", CSN_JSON_BOOL, true},
                 {"false", CSN_JSON_BOOL, false},
                 {"null", CSN_JSON_NULL, false}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(p->end - p->at) < n || memcmp(p->at, words[i].word, n) != 0)
            continue;
        p->at += n;
        v->type = words[i].type;
        v->boolean = words[i].value;
        return true;
    }
    return syntax_error(p, p->at < p->end ? "expected a value" : "the text ends too early");
}

/* `depth` containers may still be opened. */
static bool parse_value(parser *p, unsigned depth, csn_jval *v)
{
    skip_space(p);
    v->text = p->at;
    char c = peek(p);
    bool ok;
    if (c == '{' || c == '[') {
        ok = parse_container(p, depth, v);
    } else if (c == '"') {
        v->type = CSN_JSON_STRING;
        ok = parse_string(p, &v->string);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        ok = parse_number(p, v);
    } else {
        ok = parse_word(p, v);
    }
    v->len = (size_t)(p->at - v->text);
    return ok;
}

static bool parse_document(parser *p, csn_jval *root)
{
    if (!parse_value(p, CSN_JSON_DEPTH_MAX, root))
        return false;
    skip_space(p);
    return p->at == p->end ? true : syntax_error(p, "unexpected text after the value");
}

static csn_status describe(const parser *p, const char *what, csn_error **err)
{
    size_t line = 1, column = 1;

    if (!p->error)
        return csn_fail(err, CSN_NOMEM, "%s: out of memory", what);
    for (const char *c = p->start; c < p->at; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + 1;
    }
    return csn_fail(err, CSN_INVALID, "%s: line %zu, column %zu: %s", what, line, column,
                    p->error);
}

csn_status csn_json_parse(const char *text, size_t len, const char *what, csn_jval **ret,
                          csn_error **err)
{
    if (len > CSN_JSON_BYTES_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "%s: %zu bytes of JSON, at most %u are read", what,
                        len, CSN_JSON_BYTES_MAX);
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    csn_jdoc *doc = a ? csn_arena_alloc(a, sizeof(*doc)) : NULL;
    char *copy = doc ? csn_arena_memdup(a, len > 0 ? text : "", len) : NULL;
    if (!copy)
        return csn_fail(err, CSN_NOMEM, "%s: out of memory", what);
    parser p = {.start = copy, .at = copy, .end = copy + len, .arena = a};
    bool ok = parse_document(&p, &doc->root);
    free(p.pending);
    if (!ok)
        return describe(&p, what, err);
    doc->arena = CSN_STEAL(a);
    *ret = &doc->root;
    return CSN_OK;
}

void csn_jval_free(csn_jval *root)
{
    if (root)
        csn_arena_free(((csn_jdoc *)root)->arena);
}
