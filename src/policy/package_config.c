/* package_config.c: finds the hosts in configuration files of package managers.
 *
 * Called by core/packages.c with files and variables of the user and the system, never with
 * what a sandbox can write. They are still other programs' files of any age and dialect:
 * readers are tolerant, bounded and line by line, and know of each format only the keys that
 * name a host. What must hold: a host comes out only if it stands in the address of such a key,
 * in a form that the one parser of rules accepts; a password never comes out. */
#include "policy/package_config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "policy/netport.h"
#include "policy/netrules.h"
#include "policy/package_config_parts.h"

/* ---- addresses ----------------------------------------------------------------------------
 */

/* What comes after the last c, or all of s. */
static csn_span after_last(csn_span s, char c)
{
    for (size_t i = s.len; i > 0; i--)
        if (s.at[i - 1] == c)
            return (csn_span){s.at + i, s.len - i};
    return s;
}

/* Ports of schemes; "sparse+https", "mirror+http" and the like count as what follows the plus.
 */
static unsigned scheme_port(csn_span s)
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
static bool split_port(csn_span *host, unsigned *port)
{
    csn_span tail = after_last(*host, ':');
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

/* Inside, this machine's loopback is the sandbox's own: a mirror there is lent by host_ports.
 * Metadata services and the like are nobody's package index. */
static bool is_elsewhere(const csn_netrule *rule)
{
    static const csn_domain localhost = {"localhost", 9};
    const csn_netrange *range;

    if (rule->kind != CSN_NETRULE_NET)
        return !csn_domain_equal(&rule->name, &localhost) &&
               !csn_domain_below(&rule->name, &localhost);
    range = csn_netaddr_refused(&rule->net.base);
    return !range || range->offer;
}

/* What stands between "://" and the path. */
static void tell_authority(csn_registry_scan *scan, csn_span scheme, csn_span where)
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
    if (csn_netrule_parse(text, &rule, NULL) && is_elsewhere(&rule) &&
        scan->told < CSN_REGISTRY_HOSTS_MAX) {
        scan->told++;
        scan->fn(scan->ctx, text);
    }
}

static bool is_scheme_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '+' || c == '-' || c == '.';
}

static bool ends_authority(char c)
{
    return c == '\0' || strchr("/?#\\ \t\r\n\f\v\"'<>,;|", c) != NULL;
}

void csn_registry_urls(csn_registry_scan *scan, csn_span text)
{
    const char *p = text.at, *end = text.at + text.len;

    while (p < end && scan->told < CSN_REGISTRY_HOSTS_MAX) {
        const char *sep = memmem(p, (size_t)(end - p), "://", 3);
        if (!sep)
            return;
        const char *scheme = sep, *stop = sep + 3;
        while (scheme > p && is_scheme_byte(scheme[-1]))
            scheme--;
        while (stop < end && !ends_authority(*stop))
            stop++;
        tell_authority(scan, (csn_span){scheme, (size_t)(sep - scheme)},
                       (csn_span){sep + 3, (size_t)(stop - sep - 3)});
        p = stop;
    }
}

/* ---- lines --------------------------------------------------------------------------------
 */

csn_span csn_span_trim(csn_span s)
{
    while (s.len > 0 && strchr(" \t\r\f\v", s.at[0]) && s.at[0] != '\0') {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && strchr(" \t\r\f\v", s.at[s.len - 1]) && s.at[s.len - 1] != '\0')
        s.len--;
    return s;
}

static bool next_line(csn_span *rest, csn_span *line)
{
    if (rest->len == 0)
        return false;
    const char *nl = memchr(rest->at, '\n', rest->len);
    size_t n = nl ? (size_t)(nl - rest->at) : rest->len;
    *line = (csn_span){rest->at, n};
    *rest = (csn_span){rest->at + n + (nl ? 1 : 0), rest->len - n - (nl ? 1 : 0)};
    return true;
}

bool csn_span_is(csn_span s, const char *word)
{
    return s.len == strlen(word) && memcmp(s.at, word, s.len) == 0;
}

static bool span_starts(csn_span s, const char *word)
{
    return s.len >= strlen(word) && memcmp(s.at, word, strlen(word)) == 0;
}

static bool span_ends(csn_span s, const char *word)
{
    size_t n = strlen(word);
    return s.len >= n && memcmp(s.at + s.len - n, word, n) == 0;
}

/* key SEP value, both trimmed. false: no separator. */
static bool split_at(csn_span line, char sep, csn_span *key, csn_span *value)
{
    const char *at = line.len ? memchr(line.at, sep, line.len) : NULL;

    if (!at)
        return false;
    *key = csn_span_trim((csn_span){line.at, (size_t)(at - line.at)});
    *value = csn_span_trim((csn_span){at + 1, (size_t)(line.at + line.len - at) - 1});
    return true;
}

static bool is_comment(csn_span line)
{
    return line.len == 0 || line.at[0] == '#' || line.at[0] == ';';
}

/* ---- formats of single lines --------------------------------------------------------------
 */

static void npmrc_line(csn_registry_scan *scan, csn_span line)
{
    csn_span key, value;

    if (!is_comment(line) && split_at(line, '=', &key, &value) &&
        (csn_span_is(key, "registry") || span_ends(key, ":registry")))
        csn_registry_urls(scan, value);
}

/* registry "https://..." (classic); npmRegistryServer: "https://..." at any depth. */
static void yarnrc_line(csn_registry_scan *scan, csn_span line)
{
    size_t n = 0;

    if (is_comment(line))
        return;
    while (n < line.len && !strchr(" \t=", line.at[n]))
        n++;
    csn_span key = {line.at, n};
    if (csn_span_is(key, "registry") || csn_span_is(key, "npmRegistryServer:") ||
        span_ends(key, ":registry") || span_ends(key, ":registry\""))
        csn_registry_urls(scan, (csn_span){line.at + n, line.len - n});
}

/* NAME, NAME+KEY, or one of them and a URL; without that the name is where it is. */
static void tell_sumdb(csn_registry_scan *scan, csn_span value)
{
    csn_span name = {value.at, 0};

    while (name.len < value.len && !strchr("+ \t", value.at[name.len]))
        name.len++;
    if (memchr(value.at, ':', value.len))
        csn_registry_urls(scan, value);
    else if (!csn_span_is(name, "off"))
        tell_authority(scan, (csn_span){"https", strlen("https")}, name);
}

static void goenv_line(csn_registry_scan *scan, csn_span line)
{
    csn_span key, value;

    if (is_comment(line) || !split_at(line, '=', &key, &value))
        return;
    if (csn_span_is(key, "GOPROXY"))
        csn_registry_urls(scan, value);
    else if (csn_span_is(key, "GOSUMDB"))
        tell_sumdb(scan, value);
}

static void apt_line(csn_registry_scan *scan, csn_span line)
{
    if (span_starts(line, "deb ") || span_starts(line, "deb\t") ||
        span_starts(line, "deb-src ") || span_starts(line, "deb-src\t"))
        csn_registry_urls(scan, line);
}

static void bundle_line(csn_registry_scan *scan, csn_span line)
{
    csn_span key, value;

    /* the key has an address in it too, that of what is mirrored: the value follows ": " */
    if (!span_starts(line, "BUNDLE_MIRROR__"))
        return;
    const char *sep = memmem(line.at, line.len, ": ", 2);
    if (sep && split_at((csn_span){sep, (size_t)(line.at + line.len - sep)}, ':', &key, &value))
        csn_registry_urls(scan, value);
}

/* ---- formats in which a value goes on in the next line -------------------------------------
 */

/* pip takes - and _ and either case alike. */
static bool is_pip_key(csn_span key)
{
    static const char *const keys[] = {"index-url", "extra-index-url", "find-links"};
    char name[24];

    while (key.len > 0 && key.at[0] == '-')
        key = (csn_span){key.at + 1, key.len - 1};
    if (key.len >= sizeof(name))
        return false;
    for (size_t i = 0; i < key.len; i++)
        name[i] = key.at[i] == '_' ? '-' : (char)tolower((unsigned char)key.at[i]);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (csn_span_is((csn_span){name, key.len}, keys[i]))
            return true;
    return false;
}

static void read_pip(csn_registry_scan *scan, csn_span rest)
{
    csn_span line, key, value;
    bool on = false;

    while (next_line(&rest, &line)) {
        bool indented = line.len > 0 && (line.at[0] == ' ' || line.at[0] == '\t');
        line = csn_span_trim(line);
        if (is_comment(line))
            continue;
        if (indented && on) {
            csn_registry_urls(scan, line);
            continue;
        }
        on = (split_at(line, '=', &key, &value) && is_pip_key(key)) ||
             (split_at(line, ':', &key, &value) && is_pip_key(key));
        if (on)
            csn_registry_urls(scan, value);
    }
}

static void read_deb822(csn_registry_scan *scan, csn_span rest)
{
    csn_span line, key, value;
    bool on = false;

    while (next_line(&rest, &line)) {
        bool indented = line.len > 0 && (line.at[0] == ' ' || line.at[0] == '\t');
        line = csn_span_trim(line);
        if (line.len > 0 && line.at[0] == '#')
            continue;
        if (!indented)
            on = split_at(line, ':', &key, &value) && key.len == 4 &&
                 strncasecmp(key.at, "URIs", 4) == 0;
        if (on)
            csn_registry_urls(scan, indented ? line : value);
    }
}

/* :sources: and the list below it, or `gem: --source ADDRESS`. */
static void read_gem(csn_registry_scan *scan, csn_span rest)
{
    csn_span line, key, value;
    bool on = false;

    while (next_line(&rest, &line)) {
        line = csn_span_trim(line);
        if (is_comment(line))
            continue;
        if (span_starts(line, ":sources:") || span_starts(line, "sources:")) {
            on = true;
            csn_registry_urls(scan, line);
            continue;
        }
        on = on && line.at[0] == '-';
        if (on)
            csn_registry_urls(scan, line);
        else if (memmem(line.at, line.len, "--source", 8) && split_at(line, ':', &key, &value))
            csn_registry_urls(scan, value);
    }
}

/* Text of <url> elements that stand in no comment. The address of a proxy is no <url>. */
static void read_maven(csn_registry_scan *scan, csn_span rest)
{
    const char *p = rest.at, *end = rest.at + rest.len;

    while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
        csn_span here = {p, (size_t)(end - p)};
        const char *stop;
        if (span_starts(here, "<!--")) {
            stop = memmem(p, here.len, "-->", 3);
            p = stop ? stop + 3 : end;
        } else if (span_starts(here, "<url>")) {
            stop = memchr(p + 5, '<', here.len - 5);
            csn_registry_urls(scan, (csn_span){p + 5, (size_t)((stop ? stop : end) - p) - 5});
            p = stop ? stop : end;
        } else {
            p++;
        }
    }
}

/* ---- the door -----------------------------------------------------------------------------
 */

static void each_line(csn_registry_scan *scan, csn_span rest,
                      void (*fn)(csn_registry_scan *scan, csn_span line))
{
    csn_span line;

    while (scan->told < CSN_REGISTRY_HOSTS_MAX && next_line(&rest, &line))
        fn(scan, csn_span_trim(line));
}

void csn_registry_hosts(csn_registry_format format, const char *text, size_t len,
                        csn_registry_fn fn, void *ctx)
{
    csn_registry_scan scan = {.fn = fn, .ctx = ctx};
    csn_span all = {text, len < CSN_REGISTRY_TEXT_MAX ? len : CSN_REGISTRY_TEXT_MAX};

    if (len == 0)
        return;
    switch (format) {
    case CSN_REGISTRY_URLS:
        csn_registry_urls(&scan, all);
        break;
    case CSN_REGISTRY_NPMRC:
        each_line(&scan, all, npmrc_line);
        break;
    case CSN_REGISTRY_YARNRC:
        each_line(&scan, all, yarnrc_line);
        break;
    case CSN_REGISTRY_PIP:
        read_pip(&scan, all);
        break;
    case CSN_REGISTRY_UV:
    case CSN_REGISTRY_CARGO:
        csn_registry_toml(&scan, format, all);
        break;
    case CSN_REGISTRY_GOENV:
        each_line(&scan, all, goenv_line);
        break;
    case CSN_REGISTRY_MAVEN:
        read_maven(&scan, all);
        break;
    case CSN_REGISTRY_APT:
        each_line(&scan, all, apt_line);
        break;
    case CSN_REGISTRY_DEB822:
        read_deb822(&scan, all);
        break;
    case CSN_REGISTRY_GEM:
        read_gem(&scan, all);
        break;
    case CSN_REGISTRY_BUNDLE:
        each_line(&scan, all, bundle_line);
        break;
    }
}
