/* http_follow.c: finds every request head on an HTTP/1 connection.
 *
 * An attacker controls all bytes. Invariants: a head is found exactly where the server finds
 * it, so bodies must be delimited strictly as RFC 9112 requires and anything else is BAD. A
 * connection leaves HTTP when the server accepts an Upgrade, not when the client requests it;
 * otherwise a declined Upgrade would hide all later requests. Memory is constant; body bytes
 * are counted, not read. */
#include "gateway/http.h"

#define CHUNK_DIGITS 15u /* prevents overflow */

enum phase { F_HEAD, F_LENGTH, F_CHUNKED, F_WAIT, F_OPAQUE, F_H2C, F_NOT_HTTP, F_BAD };
enum chunk {
    C_SIZE,
    C_EXTENSION,
    C_SIZE_LF,
    C_DATA,
    C_DATA_CR,
    C_DATA_LF,
    C_TRAILER,
    C_TRAILER_VALUE,
    C_TRAILER_LF,
    C_END_LF,
};
enum decision { D_PENDING, D_SWITCHED, D_STAYED, D_BAD };

#define STATUS     "HTTP/1.d nnn"
#define STATUS_LEN (sizeof(STATUS) - 1)

static enum gw_http_result set_bad(gw_http_follow *f, const char *why)
{
    f->phase = F_BAD;
    f->why = why;
    return GW_HTTP_BAD;
}

static void end_request(gw_http_follow *f)
{
    f->not_first = true;
    f->scan = (gw_http_scan){0};
    f->phase = F_HEAD;
    if (!f->switching)
        return;
    if (f->decision == D_PENDING)
        f->phase = F_WAIT;
    else if (f->decision == D_SWITCHED)
        f->phase = F_OPAQUE;
    else if (f->decision == D_BAD)
        set_bad(f, "the server's response is not HTTP");
}

static void begin_body(gw_http_follow *f, const gw_http_head *h)
{
    f->connect = h->form == GW_HTTP_AUTHORITY;
    /* an h2c upgrade is not followed: if the server accepts it, the next bytes are refused */
    f->switching = !f->not_first && (f->connect || (h->upgrade && !h->h2c));
    f->left = h->body_len;
    f->chunk = C_SIZE;
    f->line_len = f->extensions_len = f->trailer_len = f->name_len = 0;
    if (h->framing == GW_HTTP_LENGTH)
        f->phase = F_LENGTH;
    else if (h->framing == GW_HTTP_CHUNKED)
        f->phase = F_CHUNKED;
    else
        end_request(f);
}

static enum gw_http_result next_head(gw_http_follow *f, const void *data, size_t len,
                                     size_t *pass, gw_http_head *head)
{
    enum gw_http_result r = gw_http_parse(&f->scan, data, len, head);

    if (r == GW_HTTP_HEAD) {
        *pass = head->len;
        begin_body(f, head);
    } else if (r == GW_HTTP_BAD) {
        set_bad(f, head->why);
    } else if (r == GW_HTTP_NOT_HTTP && f->not_first) {
        r = set_bad(f, "bytes between requests");
    } else if (r == GW_HTTP_NOT_HTTP) {
        f->phase = F_NOT_HTTP;
    } else if (r == GW_HTTP_H2C) {
        f->phase = F_H2C;
    }
    return r;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text_byte(char c)
{
    unsigned char u = (unsigned char)c;

    return (u >= ' ' && u != 0x7f) || u == '\t';
}

static const char *take_size(gw_http_follow *f, char c)
{
    int digit = hex_digit(c);

    if (f->line_len == 0)
        f->left = 0;
    if (digit >= 0 && f->line_len < CHUNK_DIGITS) {
        f->left = f->left << 4 | (unsigned)digit;
        f->line_len++;
        return NULL;
    }
    if (f->line_len == 0 || (c != ';' && c != '\r'))
        return "invalid chunk size";
    f->chunk = c == ';' ? C_EXTENSION : C_SIZE_LF;
    return NULL;
}

static const char *take_extension(gw_http_follow *f, char c)
{
    if (c == '\r') {
        f->chunk = C_SIZE_LF;
        return NULL;
    }
    if (!is_text_byte(c))
        return "control character in a chunk extension";
    if (++f->line_len > CSN_HTTP_CHUNK_LINE_MAX ||
        ++f->extensions_len > CSN_HTTP_EXTENSIONS_MAX)
        return "chunk extensions too long";
    return NULL;
}

/* Fields that decide where a request goes or ends are not allowed as trailers. */
static bool is_forbidden_trailer(gw_slice name)
{
    static const char *const forbidden[] = {"host", "content-length", "transfer-encoding",
                                            "connection", "upgrade"};

    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        if (gw_slice_equals_nocase(name, forbidden[i]))
            return true;
    return false;
}

static const char *take_trailer_name(gw_http_follow *f, char c)
{
    if (c == '\r' && f->name_len == 0) {
        f->chunk = C_END_LF;
        return NULL;
    }
    if (c == ':' && f->name_len > 0) {
        if (is_forbidden_trailer((gw_slice){f->name, f->name_len}))
            return "trailer field not allowed";
        f->chunk = C_TRAILER_VALUE;
        return NULL;
    }
    if (!gw_http_is_token_byte(c))
        return "malformed trailer";
    if (f->name_len < sizeof(f->name))
        f->name[f->name_len++] =
            c; /* a name that fills the buffer is longer than any forbidden one */
    return NULL;
}

static const char *take_trailer_byte(gw_http_follow *f, char c)
{
    if (++f->trailer_len > CSN_HTTP_TRAILER_MAX)
        return "trailers too long";
    if (f->chunk == C_TRAILER)
        return take_trailer_name(f, c);
    if (c == '\r')
        f->chunk = C_TRAILER_LF;
    else if (!is_text_byte(c))
        return "control character in a trailer";
    return NULL;
}

/* States that expect one particular byte. */
static const char *take_fixed(gw_http_follow *f, char c)
{
    if (c != (f->chunk == C_DATA_CR ? '\r' : '\n'))
        return "line or chunk without CRLF";
    if (f->chunk == C_DATA_CR) {
        f->chunk = C_DATA_LF;
    } else if (f->chunk == C_SIZE_LF && f->left > 0) {
        f->chunk = C_DATA;
    } else if (f->chunk == C_DATA_LF) {
        f->chunk = C_SIZE;
        f->line_len = 0;
    } else if (f->chunk == C_END_LF) {
        end_request(f);
    } else { /* after the last chunk or a trailer */
        f->chunk = C_TRAILER;
        f->name_len = 0;
    }
    return NULL;
}

/* Takes one byte of chunk framing. NULL, or why it is invalid. */
static const char *take_chunk_byte(gw_http_follow *f, char c)
{
    if (f->chunk == C_SIZE)
        return take_size(f, c);
    if (f->chunk == C_EXTENSION)
        return take_extension(f, c);
    if (f->chunk == C_TRAILER || f->chunk == C_TRAILER_VALUE)
        return take_trailer_byte(f, c);
    return take_fixed(f, c);
}

static size_t take_data(gw_http_follow *f, size_t len)
{
    size_t n = f->left < len ? (size_t)f->left : len;

    f->left -= n;
    if (f->left == 0 && f->phase == F_LENGTH)
        end_request(f);
    else if (f->left == 0)
        f->chunk = C_DATA_CR;
    return n;
}

static enum gw_http_result next_chunked(gw_http_follow *f, const char *data, size_t len,
                                        size_t *pass)
{
    size_t at = 0;

    while (at < len && f->phase == F_CHUNKED) {
        if (f->chunk == C_DATA) {
            at += take_data(f, len - at);
            continue;
        }
        const char *why = take_chunk_byte(f, data[at]);
        if (why) {
            set_bad(f, why);
            break;
        }
        at++;
    }
    *pass = at;
    return at > 0 ? GW_HTTP_BODY : GW_HTTP_BAD;
}

enum gw_http_result gw_http_follow_next(gw_http_follow *f, const void *data, size_t len,
                                        size_t *pass, gw_http_head *head)
{
    *pass = 0;
    switch ((enum phase)f->phase) {
    case F_WAIT:
        return GW_HTTP_WAIT;
    case F_H2C:
        return GW_HTTP_H2C;
    case F_NOT_HTTP:
        return GW_HTTP_NOT_HTTP;
    case F_BAD:
        return GW_HTTP_BAD;
    case F_HEAD:
    case F_LENGTH:
    case F_CHUNKED:
    case F_OPAQUE:
        break;
    }
    if (f->phase == F_OPAQUE) {
        *pass = len;
        return GW_HTTP_OPAQUE;
    }
    if (len == 0)
        return GW_HTTP_NEED_MORE;
    if (f->phase == F_HEAD)
        return next_head(f, data, len, pass, head);
    if (f->phase == F_CHUNKED)
        return next_chunked(f, data, len, pass);
    *pass = take_data(f, len);
    return GW_HTTP_BODY;
}

bool gw_http_follow_wants_response(const gw_http_follow *f)
{
    return f->switching && f->decision == D_PENDING && f->phase != F_BAD;
}

/* Reads the decision from the final status line; interim (1xx) responses carry none. */
static void take_decision(gw_http_follow *f)
{
    unsigned code = f->status_code;

    if (f->connect ? code / 100 == 2 : code == 101)
        f->decision = D_SWITCHED;
    else if (code / 100 != 1 || code == 101)
        f->decision = D_STAYED;
    else if (++f->interim_count > CSN_HTTP_INTERIM_MAX)
        f->decision = D_BAD;
    f->line_used = 1; /* the status line is not empty */
}

static void take_status_byte(gw_http_follow *f, char c)
{
    char want = STATUS[f->status_at];
    bool digit = c >= '0' && c <= '9';

    if (want == 'd' || want == 'n' ? !digit : c != want)
        f->decision = D_BAD;
    if (want == 'n')
        f->status_code = f->status_code * 10 + (unsigned)(c - '0');
    if (++f->status_at == STATUS_LEN && f->decision == D_PENDING)
        take_decision(f);
}

/* The rest of an interim response, up to its empty line. */
static void skip_interim_byte(gw_http_follow *f, char c)
{
    if (++f->response_len > CSN_HTTP_HEAD_MAX)
        f->decision = D_BAD;
    if (c == '\n' && f->line_used == 0)
        f->status_at = f->status_code = 0;
    else if (c == '\n')
        f->line_used = 0;
    else if (c != '\r')
        f->line_used = 1;
}

void gw_http_follow_response(gw_http_follow *f, const void *data, size_t len)
{
    const char *bytes = data;

    for (size_t i = 0; i < len && gw_http_follow_wants_response(f); i++) {
        if (f->status_at < STATUS_LEN)
            take_status_byte(f, bytes[i]);
        else
            skip_interim_byte(f, bytes[i]);
    }
    if (f->phase == F_WAIT && f->decision != D_PENDING)
        end_request(f);
}
