/* package_config.c: find the hosts in configuration files of package managers.
 *
 * The user and the system own the files, and no sandbox can write them, but other programs
 * wrote them, in any version and dialect. So the reader is tolerant, bounded and linear, and
 * knows of each format only the keys that name a host. Invariants: a host is reported only from
 * the address of such a key, and only if the parser of network rules accepts it; a password is
 * never reported. */
#include "policy/package_config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "policy/netport.h"
#include "policy/netrules.h"

#define KEY_BYTES_MAX 256u /* bytes of a TOML key or table name */

/* A piece of the text that is being read; not NUL-terminated. */
typedef struct span {
    const char *at;
    size_t len;
} span;

typedef struct scan_state {
    csn_registry_fn fn;
    void *ctx;
    size_t count; /* hosts reported so far */
} scan_state;

/* ---- addresses ---- */

/* What comes after the last c, or all of s. */
static span after_last(span s, char c)
{
    const char *at = s.len ? memrchr(s.at, c, s.len) : NULL;

    return at ? (span){at + 1, (size_t)(s.at + s.len - at) - 1} : s;
}

/* "sparse+https", "mirror+http" and the like count as what follows the plus. */
static unsigned scheme_port(span s)
{
    static const struct {
        const char *name;
        unsigned port;
    } known[] = {{"https", 443}, {"http", 80}, {"ssh", 22}, {"git", 9418}};

    s = after_last(s, '+');
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (s.len == strlen(known[i].name) && strncasecmp(s.at, known[i].name, s.len) == 0)
            return known[i].port;
    return 0;
}

/* Splits "host:port" or "[v6]:port". false: neither. */
static bool split_port(span *host, unsigned *port)
{
    span tail = after_last(*host, ':');
    uint16_t given = 0;

    if (tail.len == host->len || host->at[host->len - 1] == ']')
        return true;
    if (tail.len > 0 && !csn_port_parse(tail.at, tail.len, &given))
        return false;
    if (given)
        *port = given;
    host->len -= tail.len + 1;
    return true;
}

/* False for what cannot be offered: metadata services, and loopback addresses other than those
 * of localhost, whose ports can be lent. */
static bool may_be_reported(const csn_netrule *rule)
{
    static const csn_domain localhost = {"localhost", 9};
    const csn_netrange *range;

    if (csn_netrule_is_loopback(rule))
        return true;
    if (rule->kind != CSN_NETRULE_NET)
        return !csn_domain_equal(&rule->name, &localhost) &&
               !csn_domain_below(&rule->name, &localhost);
    range = csn_netaddr_refused(&rule->net.base);
    return !range || range->offer;
}

/* `where` is the text between "://" and the path. */
static void report_host(scan_state *scan, span scheme, span where)
{
    unsigned port = scheme_port(scheme);
    char text[CSN_NETRULE_TEXT];
    csn_netrule rule;

    where = after_last(where, '@');
    if (port == 0 || where.len == 0 || !split_port(&where, &port) ||
        where.len > CSN_DOMAIN_MAX + 1 || memchr(where.at, '/', where.len) ||
        memchr(where.at, '*', where.len) || memchr(where.at, '\0', where.len))
        return;
    (void)snprintf(text, sizeof(text), "%.*s:%u", (int)where.len, where.at, port);
    for (char *c = text; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    if (csn_netrule_parse(text, &rule, NULL) && may_be_reported(&rule) &&
        scan->count < CSN_REGISTRY_HOSTS_MAX) {
        scan->count++;
        scan->fn(scan->ctx, text);
    }
}

static bool is_scheme_byte(char c)
{
    return isascii(c) && (isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.');
}

static void read_urls(scan_state *scan, span text)
{
    const char *p = text.at, *end = text.at + text.len, *sep;

    while (p < end && scan->count < CSN_REGISTRY_HOSTS_MAX &&
           (sep = memmem(p, (size_t)(end - p), "://", 3))) {
        const char *scheme = sep, *stop = sep + 3;
        while (scheme > p && is_scheme_byte(scheme[-1]))
            scheme--;
        while (stop < end && !strchr("/?#\\ \t\r\n\f\v\"'<>,;|", *stop)) /* or NUL */
            stop++;
        report_host(scan, (span){scheme, (size_t)(sep - scheme)},
                    (span){sep + 3, (size_t)(stop - sep - 3)});
        p = stop;
    }
}

/* ---- files made of lines ---- */

enum row_flags {
    FOLD = 1,     /* ignore case, leading dashes, and - versus _ */
    INDENTED = 2, /* the value continues in indented lines */
    DASHED = 4,   /* the value continues in lines that begin with a dash */
    SOURCE = 8,   /* only a value with --source */
    SUMDB = 16,   /* NAME[+KEY] [URL]: without the URL the name is the host */
};

/* The keys that name a host; a * at the start or end matches anything. */
static const struct row {
    csn_registry_format format;
    const char *separators; /* the first of them ends the key */
    const char *key;
    unsigned flags;
} rows[] = {
    {CSN_REGISTRY_NPMRC, "=", "registry", 0},
    {CSN_REGISTRY_NPMRC, "=", "*:registry", 0},
    {CSN_REGISTRY_YARNRC, " \t=", "registry", 0},
    {CSN_REGISTRY_YARNRC, " \t=", "*:registry", 0},
    {CSN_REGISTRY_YARNRC, " \t=", "*:registry\"", 0},
    {CSN_REGISTRY_YARNRC, " \t=", "npmRegistryServer:", 0},
    {CSN_REGISTRY_PIP, "=:", "index-url", FOLD | INDENTED},
    {CSN_REGISTRY_PIP, "=:", "extra-index-url", FOLD | INDENTED},
    {CSN_REGISTRY_PIP, "=:", "find-links", FOLD | INDENTED},
    {CSN_REGISTRY_GOENV, "=", "GOPROXY", 0},
    {CSN_REGISTRY_GOENV, "=", "GOSUMDB", SUMDB},
    {CSN_REGISTRY_APT, " \t", "deb", 0},
    {CSN_REGISTRY_APT, " \t", "deb-src", 0},
    {CSN_REGISTRY_DEB822, ":", "uris", FOLD | INDENTED},
    {CSN_REGISTRY_GEM, " \t", ":sources:", DASHED},
    {CSN_REGISTRY_GEM, " \t", "sources:", DASHED},
    {CSN_REGISTRY_GEM, " \t", "*:", SOURCE},
    {CSN_REGISTRY_BUNDLE, " \t", "BUNDLE_MIRROR__*", 0}, /* an address is part of the key */
};

static bool is_blank(char c)
{
    return c != '\0' && strchr(" \t\r\f\v", c);
}

static span trim(span s)
{
    for (; s.len > 0 && is_blank(s.at[0]); s.len--)
        s.at++;
    while (s.len > 0 && is_blank(s.at[s.len - 1]))
        s.len--;
    return s;
}

static bool span_is(span s, const char *word)
{
    return s.len == strlen(word) && memcmp(s.at, word, s.len) == 0;
}

static bool equal(const char *text, const char *want, size_t len, bool fold)
{
    size_t i = 0;

    for (; fold && i < len; i++)
        if ((text[i] == '_' ? '-' : tolower((unsigned char)text[i])) != want[i])
            return false;
    return fold || memcmp(text, want, len) == 0;
}

static bool is_key(const struct row *r, span key)
{
    size_t len = strlen(r->key);
    bool fold = (r->flags & FOLD) != 0;

    for (; fold && key.len > 0 && key.at[0] == '-'; key.len--)
        key.at++;
    if (r->key[0] == '*')
        return key.len >= --len && equal(key.at + key.len - len, r->key + 1, len, fold);
    if (r->key[len - 1] == '*')
        return key.len >= --len && equal(key.at, r->key, len, fold);
    return key.len == len && equal(key.at, r->key, len, fold);
}

/* The row whose key begins the line, and its value. */
static const struct row *row_of(csn_registry_format format, span line, span *value)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = 0;
        if (rows[i].format != format)
            continue;
        while (n < line.len && (line.at[n] == '\0' || !strchr(rows[i].separators, line.at[n])))
            n++;
        if (!is_key(&rows[i], trim((span){line.at, n})))
            continue;
        n += n < line.len;
        *value = (span){line.at + n, line.len - n};
        return &rows[i];
    }
    return NULL;
}

static void report_value(scan_state *scan, const struct row *row, span value)
{
    static const span https = {"https", 5};
    span name = trim(value);

    if ((row->flags & SOURCE) && !memmem(value.at, value.len, "--source", 8))
        return;
    if (!(row->flags & SUMDB) || memchr(value.at, ':', value.len)) {
        read_urls(scan, value);
        return;
    }
    for (size_t i = 0; i < name.len; i++)
        if (strchr("+ \t", name.at[i]))
            name.len = i;
    if (!span_is(name, "off"))
        report_host(scan, https, name);
}

static void read_lines(scan_state *scan, csn_registry_format format, span rest)
{
    const struct row *row = NULL; /* the row whose value may continue in the next line */
    span value = {0};

    while (rest.len > 0 && scan->count < CSN_REGISTRY_HOSTS_MAX) {
        const char *nl = memchr(rest.at, '\n', rest.len);
        span line = {rest.at, nl ? (size_t)(nl - rest.at) : rest.len};
        bool indented = line.len > 0 && (line.at[0] == ' ' || line.at[0] == '\t');
        rest = (span){line.at + line.len + (nl != NULL), rest.len - line.len - (nl != NULL)};
        line = trim(line);
        if (line.len == 0 || line.at[0] == '#' || line.at[0] == ';')
            continue;
        if (row && (((row->flags & INDENTED) && indented) ||
                    ((row->flags & DASHED) && line.at[0] == '-')))
            read_urls(scan, line);
        else if ((row = row_of(format, line, &value)))
            report_value(scan, row, value);
    }
}

/* ---- settings.xml ---- */

/* Text of <url> elements outside comments. The address of a proxy is not in a <url>. */
static void read_maven(scan_state *scan, span rest)
{
    const char *p = rest.at, *end = rest.at + rest.len, *stop;

    while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
        size_t left = (size_t)(end - p);
        if (left >= 4 && memcmp(p, "<!--", 4) == 0) {
            stop = memmem(p, left, "-->", 3);
            p = stop ? stop + 3 : end;
        } else if (left >= 5 && memcmp(p, "<url>", 5) == 0) {
            stop = memchr(p + 5, '<', left - 5);
            stop = stop ? stop : end;
            read_urls(scan, (span){p + 5, (size_t)(stop - p) - 5});
            p = stop;
        } else {
            p++;
        }
    }
}

/* ---- TOML ---- */

/* Not a parser: it follows tables, keys, strings, arrays and inline tables far enough to know
 * under which key a string stands, in one pass, and skips everything else. */
typedef struct toml {
    span rest;
    span table;        /* of the last [table] or [[table]] */
    span outer, key;   /* the key at the start of a line; the last key, in braces too */
    const char *start; /* where the next key begins, if one comes */
    unsigned depth;    /* of open brackets and braces in a value */
    bool in_value;
} toml;

static void skip(toml *t, size_t n)
{
    n = n < t->rest.len ? n : t->rest.len;
    t->rest = (span){t->rest.at + n, t->rest.len - n};
}

static void skip_line(toml *t)
{
    const char *nl = memchr(t->rest.at, '\n', t->rest.len);
    skip(t, nl ? (size_t)(nl - t->rest.at) : t->rest.len);
}

/* A string in any of the four quotings, without its quotes. Escapes stay undecoded, because no
 * address has any. An unterminated string ends with its line. */
static span take_string(toml *t)
{
    char quote = t->rest.at[0];
    const char three[3] = {quote, quote, quote};
    bool block = t->rest.len >= 3 && memcmp(t->rest.at, three, 3) == 0;

    skip(t, block ? 3 : 1);
    span s = {t->rest.at, 0};
    if (block) {
        const char *end = memmem(t->rest.at, t->rest.len, three, 3);
        s.len = end ? (size_t)(end - s.at) : t->rest.len;
        skip(t, s.len + 3);
        return s;
    }
    while (s.len < t->rest.len && s.at[s.len] != quote && s.at[s.len] != '\n')
        s.len += quote == '"' && s.at[s.len] == '\\' && s.len + 1 < t->rest.len ? 2 : 1;
    if (s.len > t->rest.len)
        s.len = t->rest.len;
    skip(t, s.len + (s.len < t->rest.len && s.at[s.len] == quote ? 1 : 0));
    return s;
}

/* A key or the name of a table; empty if it is longer than any key in the table, which keeps
 * the scan linear. */
static span name_from(const char *from, const char *end)
{
    size_t n = (size_t)(end - from);
    return trim((span){from, n <= KEY_BYTES_MAX ? n : 0});
}

/* [a.b] or [[a.b]] at the start of a line. */
static void take_table(toml *t)
{
    while (t->rest.len > 0 && t->rest.at[0] == '[')
        skip(t, 1);
    const char *name = t->rest.at;
    skip_line(t);
    const char *end = memchr(name, ']', (size_t)(t->rest.at - name));
    t->table = name_from(name, end ? end : t->rest.at);
    t->outer = t->key = (span){name, 0};
    t->start = t->rest.at;
}

/* The part of a dotted name before the first dot, or after the last. */
static span part_of(span s, bool last)
{
    const char *dot = !s.len ? NULL
                      : last ? memrchr(s.at, '.', s.len)
                             : memchr(s.at, '.', s.len);

    if (dot)
        s = last ? (span){dot + 1, (size_t)(s.at + s.len - dot) - 1}
                 : (span){s.at, (size_t)(dot - s.at)};
    s = trim(s);
    if (s.len >= 2 && (s.at[0] == '"' || s.at[0] == '\'') && s.at[s.len - 1] == s.at[0])
        s = (span){s.at + 1, s.len - 2};
    return s;
}

/* Keys whose strings are addresses of an index; `top` is the outermost table, NULL: any. */
static const struct {
    csn_registry_format format;
    const char *top, *key;
} index_keys[] = {
    {CSN_REGISTRY_UV, NULL, "index-url"},
    {CSN_REGISTRY_UV, NULL, "extra-index-url"},
    {CSN_REGISTRY_UV, NULL, "default-index"},
    {CSN_REGISTRY_UV, NULL, "find-links"},
    {CSN_REGISTRY_UV, NULL, "python-install-mirror"},
    {CSN_REGISTRY_UV, "index", "url"},
    {CSN_REGISTRY_CARGO, "registries", "index"},
    {CSN_REGISTRY_CARGO, "registry", "index"},
    {CSN_REGISTRY_CARGO, "source", "registry"},
    {CSN_REGISTRY_CARGO, "source", "git"},
};

static bool names_index(const toml *t, csn_registry_format format)
{
    span key = part_of(t->key, true);
    span top = part_of(t->table.len > 0 ? t->table : t->outer, false);

    for (size_t i = 0; i < sizeof(index_keys) / sizeof(index_keys[0]); i++)
        if (index_keys[i].format == format && span_is(key, index_keys[i].key) &&
            (!index_keys[i].top || span_is(top, index_keys[i].top)))
            return true;
    return false;
}

static void take_sign(toml *t)
{
    char c = t->rest.at[0];

    if (c == '=') {
        t->key = name_from(t->start, t->rest.at);
        if (!t->in_value)
            t->outer = t->key;
        t->in_value = true;
    } else if (t->in_value && (c == '[' || c == '{')) {
        t->depth++;
    } else if (t->depth > 0 && (c == ']' || c == '}')) {
        t->depth--;
    } else if (c == '\n' && t->depth == 0) {
        t->in_value = false;
    }
    skip(t, 1);
    if (c == '\n' || c == '{' || c == ',')
        t->start = t->rest.at;
}

static void read_toml(scan_state *scan, csn_registry_format format, span text)
{
    toml t = {.rest = text, .table = {text.at, 0}, .outer = {text.at, 0}, .start = text.at};

    t.key = t.outer;
    while (t.rest.len > 0 && scan->count < CSN_REGISTRY_HOSTS_MAX) {
        char c = t.rest.at[0];
        if (c == '#') {
            skip_line(&t);
        } else if (c == '"' || c == '\'') {
            span s = take_string(&t);
            if (t.in_value && names_index(&t, format))
                read_urls(scan, s);
        } else if (c == '[' && !t.in_value) {
            take_table(&t);
        } else {
            take_sign(&t);
        }
    }
}

void csn_registry_hosts(csn_registry_format format, const char *text, size_t len,
                        csn_registry_fn fn, void *ctx)
{
    scan_state scan = {.fn = fn, .ctx = ctx};
    span all = {text, len < CSN_REGISTRY_TEXT_MAX ? len : CSN_REGISTRY_TEXT_MAX};

    if (len == 0)
        return;
    if (format == CSN_REGISTRY_URLS)
        read_urls(&scan, all);
    else if (format == CSN_REGISTRY_UV || format == CSN_REGISTRY_CARGO)
        read_toml(&scan, format, all);
    else if (format == CSN_REGISTRY_MAVEN)
        read_maven(&scan, all);
    else
        read_lines(&scan, format, all);
}
