/* http.c: parses one HTTP/1 request head.
 *
 * An attacker controls every byte. Invariant: the parser finds the same host as any server
 * would. It therefore accepts only the strict form of RFC 9112 and returns BAD for anything
 * else. NOT_HTTP is returned only for bytes that no lenient server would treat as a request;
 * the rest of such a line is watched for a version (gw_http_watch_line). Time is linear in the
 * number of bytes, in whatever segments they arrive; nothing is allocated. */
#include "gateway/http.h"

#include <string.h>

#define METHOD_MIN  3u
#define METHOD_MAX  32u
#define HOST_MAX    255u
#define LENGTH_MAX  18u /* digits: prevents overflow */
#define PREFACE     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PREFACE_LEN (sizeof(PREFACE) - 1)

enum phase { P_BLANK, P_WORD, P_REST, P_LINES };

/* Fields that may occur once. */
typedef struct once {
    bool host, length, encoding;
} once;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool gw_http_is_token_byte(char c)
{
    return is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* Bytes that some server accepts as the space after a method. */
static bool is_gap(char c)
{
    unsigned char u = (unsigned char)c;

    return u == ' ' || (u >= '\t' && u <= '\r' && u != '\n') || (u >= 0x1c && u <= 0x1f) ||
           u == 0x85 || u == 0xa0;
}

static enum gw_http_result bad(gw_http_head *h, const char *why)
{
    h->why = why;
    return GW_HTTP_BAD;
}

static bool is_known_method(gw_slice word)
{
    static const char *const known[] = {"GET",     "HEAD",    "POST",  "PUT",   "DELETE",
                                        "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (gw_slice_equals(word, known[i]))
            return true;
    return false;
}

static bool names_a_version(const char *line, size_t len)
{
    for (size_t i = 0; i + 5 <= len; i++)
        if (strncasecmp(line + i, "HTTP/", 5) == 0)
            return true;
    return false;
}

/* A PROXY protocol header, version 1 or 2, forges the client address and precedes the request,
 * which the parser would then not see. */
static bool is_proxy_header(gw_slice word, char c, const char *data, size_t seen)
{
    if (word.len == 0)
        return c == '\0' && seen == 4 && memcmp(data, "\r\n\r\n", 4) == 0;
    return c == ' ' && gw_slice_equals(word, "PROXY");
}

/* The first word ends before data[s->seen]. */
static enum gw_http_result classify_word(gw_http_scan *s, const char *data, gw_http_head *h)
{
    gw_slice word = {.at = data + s->word, .len = s->seen - s->word};
    char c = data[s->seen];

    if (is_proxy_header(word, c, data, s->seen))
        return bad(h, "PROXY protocol header");
    if (is_known_method(word)) {
        if (c != ' ' || s->word > 0)
            return bad(h, "method without a single space after it, or with space before it");
        s->phase = P_LINES;
    } else if (is_gap(c)) {
        s->phase = P_REST;
    } else {
        return GW_HTTP_NOT_HTTP;
    }
    return GW_HTTP_NEED_MORE;
}

/* True if the second word of a line is a request target. Without a version the line is a
 * request of HTTP/0.9, to which lenient servers still read the fields. */
static bool has_target(const char *line, size_t len)
{
    size_t n = 0;

    while (n < len && !is_gap(line[n]))
        n++;
    while (n < len && is_gap(line[n]))
        n++;
    if (n < len && line[n] == '/')
        return true;
    for (; n + 3 <= len && !is_gap(line[n]); n++)
        if (memcmp(line + n, "://", 3) == 0)
            return true;
    return false;
}

/* A line with an unknown method is HTTP if it has a version or a target. */
static enum gw_http_result classify_line(gw_http_scan *s, const char *data, gw_http_head *h)
{
    size_t len = s->seen - s->word;

    if (!names_a_version(data + s->word, len))
        return has_target(data + s->word, len) ? bad(h, "request without a version")
                                               : GW_HTTP_NOT_HTTP;
    if (s->word > 0)
        return bad(h, "space before the request line");
    s->phase = P_LINES;
    return GW_HTTP_NEED_MORE;
}

/* True if the first word can be a method: methods in use consist of letters. */
static bool is_word_of_letters(const char *data, const gw_http_scan *s)
{
    size_t n = s->word;

    while ((data[n] | 0x20) >= 'a' && (data[n] | 0x20) <= 'z')
        n++;
    return n - s->word >= METHOD_MIN && (data[n] == '-' || !gw_http_is_token_byte(data[n]));
}

/* Decides whether this is HTTP; enters phase P_LINES if so. */
static enum gw_http_result classify_start(gw_http_scan *s, const char *data, size_t len,
                                          gw_http_head *h)
{
    enum gw_http_result r = GW_HTTP_NEED_MORE;

    for (; s->seen < len && s->phase != P_LINES && r == GW_HTTP_NEED_MORE; s->seen++) {
        char c = data[s->seen];
        if (s->phase == P_BLANK && !is_gap(c) && c != '\n') {
            s->phase = P_WORD;
            s->word = s->seen;
        }
        if (s->phase == P_WORD && !gw_http_is_token_byte(c))
            r = classify_word(s, data, h);
        else if (s->phase == P_REST && c == '\n')
            r = classify_line(s, data, h);
        else if (s->phase == P_REST && c == '\0' && !is_word_of_letters(data, s))
            r = GW_HTTP_NOT_HTTP;
    }
    if (s->phase == P_LINES)
        s->seen = 0; /* P_LINES starts with the request line */
    return r;
}

/* host, host:port, [v6] or [v6]:port. No user info, path or list. */
static bool read_authority(gw_slice s, gw_http_authority *ret)
{
    size_t n = 0, i;
    uint32_t port = 0;

    ret->is_v6 = s.len > 0 && s.at[0] == '[';
    if (ret->is_v6) {
        for (n = 1; n < s.len && (is_alnum(s.at[n]) || s.at[n] == ':' || s.at[n] == '.'); n++)
            ;
        if (n == s.len || s.at[n] != ']')
            return false;
        ret->host = (gw_slice){.at = s.at + 1, .len = n - 1};
        n++;
    } else {
        while (n < s.len && (is_alnum(s.at[n]) || strchr("-_.", s.at[n])) && s.at[n] != '\0')
            n++;
        ret->host = (gw_slice){.at = s.at, .len = n};
    }
    if (ret->host.len == 0 || ret->host.len > HOST_MAX)
        return false;
    ret->port = 0;
    if (n == s.len)
        return true;
    if (s.at[n] != ':' || s.len - n < 2 || s.len - n > 6)
        return false;
    for (i = n + 1; i < s.len && is_digit(s.at[i]); i++)
        port = port * 10 + (uint32_t)(s.at[i] - '0');
    ret->port = (uint16_t)port;
    return i == s.len && port > 0 && port <= UINT16_MAX;
}

/* http://authority[/path]: the authority ends at a slash or at the end. Other delimiters are
 * refused, because servers disagree whether they belong to host or path. */
static bool read_absolute(gw_http_head *h)
{
    gw_slice t = h->target;

    if (t.len < 7 || strncasecmp(t.at, "http://", 7) != 0)
        return false;
    const char *slash = memchr(t.at + 7, '/', t.len - 7);
    size_t end = slash ? (size_t)(slash - t.at) : t.len;
    h->form = GW_HTTP_ABSOLUTE;
    h->path = (gw_slice){.at = t.at + end, .len = t.len - end};
    return read_authority((gw_slice){.at = t.at + 7, .len = end - 7}, &h->authority);
}

static bool read_target(gw_http_head *h)
{
    if (gw_slice_equals(h->method, "CONNECT")) {
        h->form = GW_HTTP_AUTHORITY;
        return read_authority(h->target, &h->authority) && h->authority.port != 0;
    }
    if (h->target.at[0] == '/') {
        h->form = GW_HTTP_ORIGIN;
        return true;
    }
    if (gw_slice_equals(h->target, "*")) {
        h->form = GW_HTTP_ASTERISK;
        return gw_slice_equals(h->method, "OPTIONS");
    }
    return read_absolute(h);
}

static gw_slice until_space(const char *at, const char *end)
{
    const char *space = memchr(at, ' ', (size_t)(end - at));

    return (gw_slice){.at = at, .len = (size_t)((space ? space : end) - at)};
}

static enum gw_http_result read_request_line(gw_http_head *h, gw_slice line)
{
    const char *end = line.at + line.len;

    h->method = until_space(line.at, end);
    if (h->method.len == 0 || h->method.len > METHOD_MAX || h->method.len == line.len)
        return bad(h, "missing or too long method");
    for (size_t i = 0; i < h->method.len; i++)
        if (!gw_http_is_token_byte(h->method.at[i]))
            return bad(h, "invalid character in the method");
    h->target = until_space(h->method.at + h->method.len + 1, end);
    const char *version = h->target.at + h->target.len + 1;
    if (end - version != 8 || memcmp(version, "HTTP/1.", 7) != 0 ||
        (version[7] != '0' && version[7] != '1'))
        return bad(h, "request line does not end in HTTP/1.0 or HTTP/1.1");
    h->minor = version[7] == '1';
    for (size_t i = 0; i < h->target.len; i++)
        if ((unsigned char)h->target.at[i] <= ' ' || h->target.at[i] == 0x7f)
            return bad(h, "control character in the target");
    if (h->target.len == 0 || !read_target(h))
        return bad(h, "invalid target");
    return GW_HTTP_HEAD;
}

/* The next element of a comma-separated list; false at its end. */
static bool next_word(gw_slice *list, gw_slice *word)
{
    while (list->len > 0 && strchr(", \t", list->at[0])) {
        list->at++;
        list->len--;
    }
    word->at = list->at;
    while (list->len > 0 && !strchr(", \t", list->at[0])) {
        list->at++;
        list->len--;
    }
    word->len = (size_t)(list->at - word->at);
    return word->len > 0;
}

/* `Connection: host` would make a proxy on the way remove the Host field. */
static enum gw_http_result read_connection(gw_http_head *h, gw_slice list)
{
    gw_slice word;

    while (next_word(&list, &word)) {
        if (gw_slice_equals_nocase(word, "close"))
            h->close = true;
        else if (gw_slice_equals_nocase(word, "host") ||
                 gw_slice_equals_nocase(word, "content-length") ||
                 gw_slice_equals_nocase(word, "transfer-encoding"))
            return bad(h, "Connection names Host or a length field");
    }
    return GW_HTTP_HEAD;
}

static enum gw_http_result read_upgrade(gw_http_head *h, gw_slice list)
{
    gw_slice word;

    while (next_word(&list, &word)) {
        const char *slash = memchr(word.at, '/', word.len);
        if (slash)
            word.len = (size_t)(slash - word.at); /* NAME/VERSION */
        h->upgrade = true;
        if (gw_slice_equals_nocase(word, "h2c"))
            h->h2c = true;
        else if (gw_slice_equals_nocase(word, "tls") || gw_slice_equals_nocase(word, "http") ||
                 gw_slice_equals_nocase(word, "h2"))
            return bad(h, "Upgrade to TLS or another version of HTTP");
    }
    return GW_HTTP_HEAD;
}

static enum gw_http_result read_length(gw_http_head *h, gw_slice value)
{
    if (value.len == 0 || value.len > LENGTH_MAX)
        return bad(h, "Content-Length is empty or too large");
    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit(value.at[i]))
            return bad(h, "Content-Length is not a number");
        h->body_len = h->body_len * 10 + (uint64_t)(value.at[i] - '0');
    }
    if (h->body_len > 0)
        h->framing = GW_HTTP_LENGTH;
    return GW_HTTP_HEAD;
}

static enum gw_http_result read_field(gw_http_head *h, once *seen, gw_slice name,
                                      gw_slice value)
{
    if (gw_slice_equals_nocase(name, "host")) {
        if (seen->host)
            return bad(h, "more than one Host");
        seen->host = h->has_host = true;
        if (!read_authority(value, &h->host))
            return bad(h, "Host is not a host and port");
    } else if (gw_slice_equals_nocase(name, "content-length")) {
        if (seen->length)
            return bad(h, "more than one Content-Length");
        seen->length = true;
        return read_length(h, value);
    } else if (gw_slice_equals_nocase(name, "transfer-encoding")) {
        if (seen->encoding || !gw_slice_equals_nocase(value, "chunked"))
            return bad(h, "Transfer-Encoding is not exactly chunked");
        seen->encoding = true;
        h->framing = GW_HTTP_CHUNKED;
    } else if (gw_slice_equals_nocase(name, "connection")) {
        return read_connection(h, value);
    } else if (gw_slice_equals_nocase(name, "upgrade")) {
        return read_upgrade(h, value);
    }
    return GW_HTTP_HEAD;
}

static enum gw_http_result read_field_line(gw_http_head *h, once *seen, gw_slice line)
{
    gw_slice name = {.at = line.at}, value;

    while (name.len < line.len && gw_http_is_token_byte(line.at[name.len]))
        name.len++;
    if (name.len == 0 || name.len == line.len || line.at[name.len] != ':')
        return bad(h, "malformed or folded field");
    value.at = line.at + name.len + 1;
    value.len = line.len - name.len - 1;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return bad(h, "control character in a field");
    }
    while (value.len > 0 && (value.at[0] == ' ' || value.at[0] == '\t')) {
        value.at++;
        value.len--;
    }
    while (value.len > 0 && strchr(" \t", value.at[value.len - 1]))
        value.len--;
    return read_field(h, seen, name, value);
}

static enum gw_http_result check_whole(gw_http_head *h, const once *seen)
{
    if (seen->length && seen->encoding)
        return bad(h, "both Content-Length and Transfer-Encoding");
    if (seen->encoding && h->minor == 0)
        return bad(h, "Transfer-Encoding in HTTP/1.0");
    if (!seen->host && h->minor > 0)
        return bad(h, "Host is missing");
    if (h->form == GW_HTTP_AUTHORITY && h->framing != GW_HTTP_NO_BODY)
        return bad(h, "CONNECT with a body");
    return GW_HTTP_HEAD;
}

/* data ends with an empty line; every line ends with CRLF and contains no other LF. */
static enum gw_http_result read_head(const char *data, size_t len, gw_http_head *h)
{
    once seen = {0};
    unsigned fields = 0;
    enum gw_http_result r = GW_HTTP_HEAD;

    h->len = len;
    for (size_t at = 0; at < len - 2 && r == GW_HTTP_HEAD;) {
        const char *lf = memchr(data + at, '\n', len - at);
        gw_slice line = {.at = data + at, .len = (size_t)(lf - (data + at)) - 1};
        if (at == 0)
            r = read_request_line(h, line);
        else if (++fields > CSN_HTTP_FIELDS_MAX)
            r = bad(h, "too many fields");
        else
            r = read_field_line(h, &seen, line);
        at += line.len + 2;
    }
    return r == GW_HTTP_HEAD ? check_whole(h, &seen) : r;
}

/* Searches for the empty line from where the last call stopped. */
static enum gw_http_result find_end(gw_http_scan *s, const char *data, size_t len,
                                    gw_http_head *h)
{
    const char *lf;

    while ((lf = memchr(data + s->seen, '\n', len - s->seen))) {
        size_t at = (size_t)(lf - data);
        if (at == s->line || data[at - 1] != '\r')
            return bad(h, "line ends without CR");
        s->seen = at + 1;
        if (at == s->line + 1)
            return read_head(data, s->seen, h);
        s->line = s->seen;
    }
    s->seen = len;
    return GW_HTTP_NEED_MORE;
}

enum gw_http_result gw_http_parse(gw_http_scan *s, const void *data, size_t len,
                                  gw_http_head *ret)
{
    size_t limit = len < CSN_HTTP_HEAD_MAX ? len : CSN_HTTP_HEAD_MAX;
    enum gw_http_result r = GW_HTTP_NEED_MORE;

    memset(ret, 0, sizeof(*ret));
    if (len == 0)
        return GW_HTTP_NEED_MORE;
    if (memcmp(data, PREFACE, limit < PREFACE_LEN ? limit : PREFACE_LEN) == 0)
        return limit < PREFACE_LEN ? GW_HTTP_NEED_MORE : GW_HTTP_H2C;
    if (s->phase != P_LINES)
        r = classify_start(s, data, limit, ret);
    if (r == GW_HTTP_NEED_MORE && s->phase == P_LINES)
        r = find_end(s, data, limit, ret);
    if (r == GW_HTTP_NEED_MORE && len >= CSN_HTTP_HEAD_MAX)
        r = bad(ret, "request head too long");
    return r;
}

bool gw_http_has_begun(const gw_http_scan *s, const void *data, size_t len)
{
    const char *text = data;

    return s->phase == P_LINES ||
           (s->phase == P_REST && (names_a_version(text + s->word, len - s->word) ||
                                   has_target(text + s->word, len - s->word)));
}

/* "HTTP/" begins with the only H that can be followed by all of it, so no bytes are kept. */
enum gw_http_result gw_http_watch_line(gw_http_watch *w, const void *data, size_t len)
{
    static const char version[] = "http/";
    const char *text = data;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (!w->begun && (is_gap(c) || c == '\n'))
            continue;
        w->begun = true;
        if (c == '\n' || c == '\0' || ++w->seen > CSN_HTTP_HEAD_MAX)
            return GW_HTTP_NOT_HTTP;
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        w->matched = c == version[w->matched] ? w->matched + 1 : c == 'h';
        if (w->matched == sizeof(version) - 1)
            return GW_HTTP_BAD;
    }
    return GW_HTTP_NEED_MORE;
}
