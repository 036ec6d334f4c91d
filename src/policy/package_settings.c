/* package_settings.c: the settings of a package manager that name its index, as variables.
 *
 * A sandbox does not show the user's configuration files, because they hold tokens. The index
 * alone is passed on, in the variable that the tool reads for it. The text is that of
 * package_config.c. Invariant: a value has no credentials, no control bytes and nothing that
 * the tool would expand. */
#include <ctype.h>
#include <string.h>

#include "base/strv.h"
#include "policy/package_config.h"

typedef struct span {
    const char *at;
    size_t len;
} span;

static const struct row {
    const char *key, *variable;
    csn_registry_format format;
    bool list; /* several, which may continue in indented lines */
    bool url;
} rows[] = {
    {"registry", "npm_config_registry", CSN_REGISTRY_NPMRC, false, true},
    {"index-url", "PIP_INDEX_URL", CSN_REGISTRY_PIP, false, true},
    {"extra-index-url", "PIP_EXTRA_INDEX_URL", CSN_REGISTRY_PIP, true, true},
    {"trusted-host", "PIP_TRUSTED_HOST", CSN_REGISTRY_PIP, true, false},
    {"GOPROXY", "GOPROXY", CSN_REGISTRY_GOENV, false, false},
    {"GOSUMDB", "GOSUMDB", CSN_REGISTRY_GOENV, false, false},
    {"GONOSUMDB", "GONOSUMDB", CSN_REGISTRY_GOENV, false, false},
    {"GOPRIVATE", "GOPRIVATE", CSN_REGISTRY_GOENV, false, false},
};

static span trim(span s, const char *what)
{
    for (; s.len > 0 && s.at[0] && strchr(what, s.at[0]); s.len--)
        s.at++;
    while (s.len > 0 && s.at[s.len - 1] && strchr(what, s.at[s.len - 1]))
        s.len--;
    return s;
}

/* The length of "user:password@" at the start of an authority. */
static size_t credentials(const char *at, const char *end)
{
    size_t n = 0;

    for (const char *p = at; p < end && !strchr("/?#\\ \t,|", *p); p++)
        if (*p == '@')
            n = (size_t)(p + 1 - at);
    return n;
}

/* An @ that is left may belong to a password with odd bytes. */
bool csn_registry_clean(const char *value, size_t len, char *ret, size_t size)
{
    const char *end = value + len;
    size_t n = 0;

    for (const char *p = value; p < end;) {
        bool authority = end - p >= 3 && memcmp(p, "://", 3) == 0;
        size_t take = authority ? 3 : 1;
        if (n + take >= size || (unsigned char)*p < ' ' || *p == 0x7f || strchr("$@", *p))
            return false;
        memcpy(ret + n, p, take);
        n += take;
        p += take;
        if (authority)
            p += credentials(p, end);
    }
    ret[n] = '\0';
    return n > 0;
}

static bool is_key(const struct row *row, span key)
{
    bool fold = row->format == CSN_REGISTRY_PIP;

    if (key.len != strlen(row->key))
        return false;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.at[i] == '_' && fold ? '-' : key.at[i];
        if ((fold ? tolower((unsigned char)c) : c) != row->key[i])
            return false;
    }
    return true;
}

/* All of a value, its continuation lines joined by blanks, up to the next key. */
static span whole_value(const struct row *row, span value, span *rest)
{
    while (row->list && rest->len > 1 && (rest->at[0] == ' ' || rest->at[0] == '\t')) {
        const char *nl = memchr(rest->at, '\n', rest->len);
        size_t n = nl ? (size_t)(nl - rest->at) + 1 : rest->len;
        value.len = (size_t)(rest->at + n - value.at);
        *rest = (span){rest->at + n, rest->len - n};
    }
    return value;
}

/* Anything else could be a token beside the address: { url = "...", token = "..." }. */
static bool words_fit(const struct row *row, const char *value)
{
    if (!row->list && strchr(value, ' '))
        return false;
    for (const char *word = value; row->url && *word; word += strspn(word, " ")) {
        if (!csn_str_starts(word, "http://") && !csn_str_starts(word, "https://"))
            return false;
        word += strcspn(word, " ");
    }
    return true;
}

static void report(const struct row *row, span value, csn_setting_fn fn, void *ctx)
{
    char joined[CSN_REGISTRY_VALUE_MAX], clean[CSN_REGISTRY_VALUE_MAX];
    size_t n = 0;

    value = trim(value, " \t\r\n\"'");
    if (value.len >= sizeof(joined))
        return;
    for (size_t i = 0; i < value.len; i++) {
        bool blank = value.at[i] && strchr(" \t\r\n", value.at[i]);
        if (!blank || (n > 0 && joined[n - 1] != ' '))
            joined[n++] = (char)(blank ? ' ' : value.at[i]);
    }
    if (csn_registry_clean(joined, n, clean, sizeof(clean)) && words_fit(row, clean))
        fn(ctx, row->variable, clean);
}

void csn_registry_settings(csn_registry_format format, const char *text, size_t len,
                           csn_setting_fn fn, void *ctx)
{
    span rest = {text, len < CSN_REGISTRY_TEXT_MAX ? len : CSN_REGISTRY_TEXT_MAX};

    while (rest.len > 0) {
        const char *nl = memchr(rest.at, '\n', rest.len);
        span line = {rest.at, nl ? (size_t)(nl - rest.at) : rest.len};
        rest = (span){line.at + line.len + (nl != NULL), rest.len - line.len - (nl != NULL)};
        size_t at = 0;
        while (at < line.len && line.at[at] != '=' &&
               !(format == CSN_REGISTRY_PIP && line.at[at] == ':'))
            at++;
        if (at == line.len)
            continue;
        span key = trim((span){line.at, at}, " \t\r");
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            span value = {line.at + at + 1, line.len - at - 1};
            if (rows[i].format == format && is_key(&rows[i], key))
                report(&rows[i], whole_value(&rows[i], value, &rest), fn, ctx);
        }
    }
}
