/* toml.c: translates a subset of TOML to JSON.
 *
 * The document is a file of the user, which another program may have written. Invariants: what
 * is not understood is an error, never skipped, because a rule could be lost with it; a key is
 * set once; depth, number of keys and recursion are bounded. */
#include "cli/toml.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/utf8.h"

#define DEPTH_MAX 12
#define KEYS_MAX  10000u

typedef enum kind { TABLE, STRING, BOOLEAN, INTEGER, STRINGS } kind;

typedef struct node {
    const char *key;
    kind kind;
    bool closed;        /* a table that no later line may add to: it has its own header */
    bool sealed;        /* an inline table */
    const char *string; /* INTEGER: its digits */
    bool boolean;
    unsigned depth;
    struct node *first, *last, *next; /* of a table, or of STRINGS */
} node;

typedef struct reader {
    const char *p, *end, *begin;
    csn_arena *arena;
    const char *why; /* the first mistake; NULL: none */
    size_t keys;
} reader;

static bool wrong(reader *r, const char *why)
{
    if (!r->why)
        r->why = why;
    return false;
}

static int peek(const reader *r)
{
    return r->p < r->end ? (unsigned char)*r->p : -1;
}

static bool take_char(reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->p++;
    return true;
}

static void skip_blanks(reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->p++;
}

/* Skips blanks, a comment and, if `lines`, line ends with all that is between them. */
static void skip(reader *r, bool lines)
{
    for (;;) {
        skip_blanks(r);
        if (peek(r) == '#')
            while (peek(r) != '\n' && peek(r) != -1)
                r->p++;
        if (!lines)
            return;
        if (peek(r) == '\r' && r->p + 1 < r->end && r->p[1] == '\n')
            r->p++;
        if (!take_char(r, '\n'))
            return;
    }
}

static bool end_of_line(reader *r)
{
    skip(r, false);
    if (peek(r) == '\r' && r->p + 1 < r->end && r->p[1] == '\n')
        r->p++;
    return peek(r) == -1 || take_char(r, '\n') || wrong(r, "expected the end of the line");
}

/* ---- strings ------------------------------------------------------------------------- */

/* \uXXXX and \UXXXXXXXX: `digits` hex digits, written as UTF-8. */
static bool take_code(reader *r, int digits, csn_buf *to)
{
    uint32_t c = 0;

    for (int i = 0; i < digits; i++) {
        int d = peek(r);
        int v = d >= '0' && d <= '9'   ? d - '0'
                : d >= 'a' && d <= 'f' ? d - 'a' + 10
                : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                       : -1;
        if (v < 0)
            return wrong(r, "expected hexadecimal digits");
        c = c << 4 | (uint32_t)v;
        r->p++;
    }
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return wrong(r, "not a character");
    char utf8[4] = {(char)c};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; n > 1 && i > 0; i--, c >>= 6)
        utf8[i] = (char)(0x80 | (c & 0x3f));
    if (n > 1)
        utf8[0] = (char)((n == 2 ? 0xc0u : n == 3 ? 0xe0u : 0xf0u) | c);
    csn_buf_append(to, utf8, n);
    return true;
}

static bool take_escape(reader *r, csn_buf *to)
{
    static const char from[] = "btnfr\"\\", become[] = "\b\t\n\f\r\"\\";
    int c = peek(r);
    const char *at = c > 0 ? strchr(from, c) : NULL;

    r->p += c != -1;
    if (c == 'u' || c == 'U')
        return take_code(r, c == 'u' ? 4 : 8, to);
    if (!at)
        return wrong(r, "unknown escape");
    csn_buf_putc(to, become[at - from]);
    return true;
}

/* A basic ("...") or literal ('...') string of one line, at its quote. */
static bool take_string(reader *r, const char **ret)
{
    char quote = *r->p++;
    csn_autobuf text;

    csn_buf_init(&text, (size_t)(r->end - r->begin) + 1);
    if (r->end - r->p >= 2 && r->p[0] == quote && r->p[1] == quote)
        return wrong(r, "strings of several lines are not supported");
    while (peek(r) != quote) {
        int c = peek(r);
        if (c == -1 || c == '\n' || c == '\r')
            return wrong(r, "the string does not end on its line");
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return wrong(r, "control character in a string");
        r->p++;
        if (c == '\\' && quote == '"') {
            if (!take_escape(r, &text))
                return false;
        } else {
            csn_buf_putc(&text, (char)c);
        }
    }
    r->p++;
    *ret = text.err ? NULL : csn_arena_memdup(r->arena, text.data ? text.data : "", text.len);
    return *ret || wrong(r, "out of memory");
}

/* ---- the tree ------------------------------------------------------------------------ */

static node *find(const node *table, const char *key)
{
    for (node *n = table->first; n; n = n->next)
        if (n->key && strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

/* Appends a child; key is NULL for an item of an array. */
static node *append(reader *r, node *parent, const char *key, kind of)
{
    node *n = parent->depth < DEPTH_MAX && r->keys < KEYS_MAX
                  ? csn_arena_alloc(r->arena, sizeof(*n))
                  : NULL;

    if (!n) {
        wrong(r, "too many keys, or nested too deeply");
        return NULL;
    }
    *n = (node){.key = key, .kind = of, .depth = parent->depth + 1};
    if (parent->last)
        parent->last->next = n;
    else
        parent->first = n;
    parent->last = n;
    r->keys++;
    return n;
}

static bool take_key(reader *r, const char **ret)
{
    const char *from = r->p;

    if (peek(r) == '"' || peek(r) == '\'')
        return take_string(r, ret);
    while ((peek(r) >= 'a' && peek(r) <= 'z') || (peek(r) >= 'A' && peek(r) <= 'Z') ||
           (peek(r) >= '0' && peek(r) <= '9') || peek(r) == '_' || peek(r) == '-')
        r->p++;
    if (r->p == from)
        return wrong(r, "expected a key");
    *ret = csn_arena_memdup(r->arena, from, (size_t)(r->p - from));
    return *ret || wrong(r, "out of memory");
}

/* Takes a.b.c: *table becomes the table that has c, with all between made; *ret_key is c. */
static bool take_path(reader *r, node **table, const char **ret_key)
{
    for (;;) {
        if (!take_key(r, ret_key))
            return false;
        skip_blanks(r);
        if (!take_char(r, '.'))
            return true;
        skip_blanks(r);
        node *next = find(*table, *ret_key);
        if (next && (next->kind != TABLE || next->sealed))
            return wrong(r, "the key is not a table that can be added to");
        if (!next && !(next = append(r, *table, *ret_key, TABLE)))
            return false;
        *table = next;
    }
}

static bool take_pair(reader *r, node *table);

/* ---- values -------------------------------------------------------------------------- */

static bool take_strings(reader *r, node *list)
{
    list->kind = STRINGS;
    for (skip(r, true); !take_char(r, ']'); skip(r, true)) {
        node *item = NULL;
        if (peek(r) != '"' && peek(r) != '\'')
            return wrong(r, "only arrays of strings are supported");
        if (!(item = append(r, list, NULL, STRING)) || !take_string(r, &item->string))
            return false;
        skip(r, true);
        if (!take_char(r, ',') && peek(r) != ']')
            return wrong(r, "expected ',' or ']'");
    }
    return true;
}

static bool take_inline_table(reader *r, node *table)
{
    table->kind = TABLE;
    for (skip_blanks(r); !take_char(r, '}'); skip_blanks(r)) {
        if (!take_pair(r, table))
            return false;
        skip_blanks(r);
        if (!take_char(r, ',') && peek(r) != '}')
            return wrong(r, "expected ',' or '}'");
    }
    table->sealed = table->closed = true;
    return true;
}

/* true, false or a whole number. */
static bool take_word(reader *r, node *n)
{
    const char *from = r->p;

    while (peek(r) > ' ' && !strchr(",]}#", peek(r)))
        r->p++;
    const char *word = csn_arena_memdup(r->arena, from, (size_t)(r->p - from));
    if (!word)
        return wrong(r, "out of memory");
    n->kind = BOOLEAN;
    n->boolean = strcmp(word, "true") == 0;
    if (n->boolean || strcmp(word, "false") == 0)
        return true;
    size_t digits = strspn(word + (word[0] == '-'), "0123456789");
    n->kind = INTEGER;
    n->string = word;
    bool leading = word[word[0] == '-'] == '0' && digits > 1;
    if (digits > 0 && digits <= 15 && !word[(word[0] == '-') + digits] && !leading)
        return true;
    r->p = from;
    return wrong(r, "only strings, true, false, whole numbers, arrays of strings and tables "
                    "are supported");
}

static bool take_value(reader *r, node *n)
{
    int c = peek(r);

    if (c == '"' || c == '\'')
        return take_string(r, &n->string);
    if (take_char(r, '['))
        return take_strings(r, n);
    if (take_char(r, '{'))
        return take_inline_table(r, n);
    return take_word(r, n);
}

/* key = value */
static bool take_pair(reader *r, node *table)
{
    const char *key = NULL;
    const char *at = r->p;

    if (!take_path(r, &table, &key))
        return false;
    if (!take_char(r, '='))
        return wrong(r, "expected '='");
    skip_blanks(r);
    if (find(table, key)) {
        r->p = at;
        return wrong(r, "the key is there already");
    }
    node *n = append(r, table, key, STRING);
    return n && take_value(r, n);
}

/* [a.b.c] */
static bool take_header(reader *r, node *root, node **ret)
{
    const char *key = NULL;
    node *table = root;

    if (peek(r) == '[')
        return wrong(r, "arrays of tables are not supported");
    skip_blanks(r);
    if (!take_path(r, &table, &key))
        return false;
    if (!take_char(r, ']'))
        return wrong(r, "expected ']'");
    node *n = find(table, key);
    if (n && (n->kind != TABLE || n->closed))
        return wrong(r, "the table is there already");
    if (!n && !(n = append(r, table, key, TABLE)))
        return false;
    n->closed = true;
    *ret = n;
    return true;
}

static bool take_document(reader *r, node *root)
{
    node *table = root;

    for (skip(r, true); peek(r) != -1; skip(r, true)) {
        bool ok = take_char(r, '[') ? take_header(r, root, &table) : take_pair(r, table);
        if (!ok || !end_of_line(r))
            return false;
    }
    return true;
}

/* ---- JSON ---------------------------------------------------------------------------- */

/* DEPTH_MAX bounds the recursion. */
static void put(csn_json *j, const node *n)
{
    switch (n->kind) {
    case STRING:
        csn_json_str(j, n->string);
        break;
    case BOOLEAN:
        csn_json_bool(j, n->boolean);
        break;
    case INTEGER:
        csn_json_raw(j, n->string, strlen(n->string));
        break;
    case STRINGS:
        csn_json_array(j);
        for (const node *c = n->first; c; c = c->next)
            put(j, c);
        csn_json_array_end(j);
        break;
    case TABLE:
        csn_json_object(j);
        for (const node *c = n->first; c; c = c->next) {
            csn_json_key(j, c->key);
            put(j, c);
        }
        csn_json_object_end(j);
        break;
    }
}

static csn_status fail_at(const reader *r, const char *what, csn_error **err)
{
    size_t line = 1, column = 1;

    for (const char *p = r->begin; p < r->p; p++, column++)
        if (*p == '\n') {
            line++;
            column = 0;
        }
    return csn_fail(err, CSN_INVALID, "%s: line %zu, column %zu: %s", what, line, column,
                    r->why ? r->why : "not understood");
}

csn_status csn_toml_to_json(const char *text, size_t len, const char *what, csn_buf *out,
                            csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    reader r = {.p = text, .begin = text, .end = text + len, .arena = a};
    node root = {.kind = TABLE};
    csn_json j;

    if (!a)
        return csn_fail(err, CSN_NOMEM, "%s", what);
    if (!csn_utf8_valid(text, len) || memchr(text, '\0', len))
        return csn_fail(err, CSN_INVALID, "%s: not UTF-8 text", what);
    if (!take_document(&r, &root))
        return fail_at(&r, what, err);
    csn_json_begin(&j, out);
    put(&j, &root);
    return csn_json_end(&j) == 0 ? CSN_OK : csn_fail(err, CSN_NOMEM, "%s", what);
}
