/* http_follow.c: goes along a connection, from request to request.
 *
 * Called by the gateway with everything a client sends in plain HTTP. What must hold: a head is
 * found exactly where the server finds it, so bodies are counted as RFC 9112 says and what it
 * only tolerates is BAD; and a connection leaves HTTP when the server has said so, not when the
 * client asks: else one ignored `Upgrade` would hide all requests behind it. Memory is
 * constant; bytes of bodies are counted, not read. */
#include <string.h>
#include <strings.h>

#include "gateway/http.h"

#define CHUNK_DIGITS 15u /* so that no size overflows */

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
enum answer { A_NONE, A_LEFT, A_STAYED, A_BAD };

#define STATUS     "HTTP/1.d nnn"
#define STATUS_LEN (sizeof(STATUS) - 1)

static enum gw_http_result fail(gw_http_follow *f, const char *why)
{
    f->phase = F_BAD;
    f->why = why;
    return CSN_HTTP_BAD;
}

static void end_request(gw_http_follow *f)
{
    f->again = true;
    f->scan = (gw_http_scan){0};
    f->phase = F_HEAD;
    if (!f->switching)
        return;
    if (f->answer == A_NONE)
        f->phase = F_WAIT;
    else if (f->answer == A_LEFT)
        f->phase = F_OPAQUE;
    else if (f->answer == A_BAD)
        fail(f, "the server's answer is not HTTP");
}

static void begin_body(gw_http_follow *f, const gw_http_head *h)
{
    f->connect = h->form == CSN_HTTP_AUTHORITY;
    /* HTTP/2 is not followed: a client that was let into it meets BAD with its next bytes */
    f->switching = !f->again && (f->connect || (h->upgrade && !h->h2c));
    f->left = h->body_len;
    f->chunk = C_SIZE;
    f->line_len = f->extensions_len = f->trailer_len = f->name_len = 0;
    if (h->framing == CSN_HTTP_LENGTH)
        f->phase = F_LENGTH;
    else if (h->framing == CSN_HTTP_CHUNKED)
        f->phase = F_CHUNKED;
    else
        end_request(f);
}

static enum gw_http_result next_head(gw_http_follow *f, const void *data, size_t len,
                                     size_t *pass, gw_http_head *head)
{
    enum gw_http_result r = gw_http_inspect(&f->scan, data, len, head);

    if (r == CSN_HTTP_HEAD) {
        *pass = head->len;
        begin_body(f, head);
    } else if (r == CSN_HTTP_BAD) {
        fail(f, head->why);
    } else if (r == CSN_HTTP_NOT_HTTP && f->again) {
        r = fail(f, "bytes that belong to no request");
    } else if (r == CSN_HTTP_NOT_HTTP) {
        f->phase = F_NOT_HTTP;
    } else if (r == CSN_HTTP_H2C) {
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
        return "a chunk without a plain size";
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
        return "a control character in a chunk extension";
    if (++f->line_len > CSN_HTTP_CHUNK_LINE_MAX ||
        ++f->extensions_len > CSN_HTTP_EXTENSIONS_MAX)
        return "chunk extensions that are too long";
    return NULL;
}

/* Fields that say where a request goes or ends have no place behind its body. */
static bool is_forbidden_trailer(const char *name, size_t len)
{
    static const char *const forbidden[] = {"host", "content-length", "transfer-encoding",
                                            "connection", "upgrade"};

    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        if (len == strlen(forbidden[i]) && strncasecmp(name, forbidden[i], len) == 0)
            return true;
    return false;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static const char *take_trailer_name(gw_http_follow *f, char c)
{
    if (c == '\r' && f->name_len == 0) {
        f->chunk = C_END_LF;
        return NULL;
    }
    if (c == ':' && f->name_len > 0) {
        if (is_forbidden_trailer(f->name, f->name_len))
            return "a trailer that belongs into the head";
        f->chunk = C_TRAILER_VALUE;
        return NULL;
    }
    if (!is_name_byte(c))
        return "a trailer without a plain name and a colon";
    if (f->name_len < sizeof(f->name))
        f->name[f->name_len++] = c; /* a longer one is no forbidden one */
    return NULL;
}

static const char *take_trailer_byte(gw_http_follow *f, char c)
{
    if (++f->trailer_len > CSN_HTTP_TRAILER_MAX)
        return "trailers that are too long";
    if (f->chunk == C_TRAILER)
        return take_trailer_name(f, c);
    if (c == '\r')
        f->chunk = C_TRAILER_LF;
    else if (!is_text_byte(c))
        return "a control character in a trailer";
    return NULL;
}

/* The states in which one certain byte must follow. */
static const char *take_fixed(gw_http_follow *f, char c)
{
    if (c != (f->chunk == C_DATA_CR ? '\r' : '\n'))
        return "a line or a chunk that does not end with CR LF";
    if (f->chunk == C_DATA_CR) {
        f->chunk = C_DATA_LF;
    } else if (f->chunk == C_SIZE_LF && f->left > 0) {
        f->chunk = C_DATA;
    } else if (f->chunk == C_DATA_LF) {
        f->chunk = C_SIZE;
        f->line_len = 0;
    } else if (f->chunk == C_END_LF) {
        end_request(f);
    } else { /* the last chunk, or the end of one trailer */
        f->chunk = C_TRAILER;
        f->name_len = 0;
    }
    return NULL;
}

/* Takes one byte of the frame around the data; why it must not be there, or NULL. */
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
            fail(f, why);
            break;
        }
        at++;
    }
    *pass = at;
    return at > 0 ? CSN_HTTP_BODY : CSN_HTTP_BAD;
}

enum gw_http_result gw_http_follow_next(gw_http_follow *f, const void *data, size_t len,
                                        size_t *pass, gw_http_head *head)
{
    *pass = 0;
    switch ((enum phase)f->phase) {
    case F_WAIT:
        return CSN_HTTP_WAIT;
    case F_H2C:
        return CSN_HTTP_H2C;
    case F_NOT_HTTP:
        return CSN_HTTP_NOT_HTTP;
    case F_BAD:
        return CSN_HTTP_BAD;
    case F_HEAD:
    case F_LENGTH:
    case F_CHUNKED:
    case F_OPAQUE:
        break;
    }
    if (f->phase == F_OPAQUE) {
        *pass = len;
        return CSN_HTTP_OPAQUE;
    }
    if (len == 0)
        return CSN_HTTP_NEED_MORE;
    if (f->phase == F_HEAD)
        return next_head(f, data, len, pass, head);
    if (f->phase == F_CHUNKED)
        return next_chunked(f, data, len, pass);
    *pass = take_data(f, len);
    return CSN_HTTP_BODY;
}

uint64_t gw_http_follow_ahead(const gw_http_follow *f)
{
    if (f->phase == F_OPAQUE)
        return UINT64_MAX;
    if (f->phase == F_LENGTH || (f->phase == F_CHUNKED && f->chunk == C_DATA))
        return f->left;
    return 0;
}

void gw_http_follow_skip(gw_http_follow *f, uint64_t n)
{
    if (f->phase == F_OPAQUE || n == 0)
        return;
    if (n > gw_http_follow_ahead(f)) {
        fail(f, "more was passed on than was known");
        return;
    }
    f->left -= n - 1;
    take_data(f, 1);
}

bool gw_http_follow_wants_answer(const gw_http_follow *f)
{
    return f->switching && f->answer == A_NONE && f->phase != F_BAD;
}

/* A status line says what became of the request, unless it is one of those before the answer.
 */
static void judge_status(gw_http_follow *f)
{
    unsigned code = f->answer_code;

    if (f->connect ? code / 100 == 2 : code == 101)
        f->answer = A_LEFT;
    else if (code / 100 != 1 || code == 101)
        f->answer = A_STAYED;
    else if (++f->answer_interim > CSN_HTTP_INTERIM_MAX)
        f->answer = A_BAD;
    f->answer_line = 1; /* still in a line that is not empty */
}

static void take_status_byte(gw_http_follow *f, char c)
{
    char want = STATUS[f->answer_at];
    bool digit = c >= '0' && c <= '9';

    if (want == 'd' || want == 'n' ? !digit : c != want)
        f->answer = A_BAD;
    if (want == 'n')
        f->answer_code = f->answer_code * 10 + (unsigned)(c - '0');
    if (++f->answer_at == STATUS_LEN && f->answer == A_NONE)
        judge_status(f);
}

/* The rest of an answer before the answer, up to its empty line. */
static void skip_answer_byte(gw_http_follow *f, char c)
{
    if (++f->answer_len > CSN_HTTP_HEAD_MAX)
        f->answer = A_BAD;
    if (c == '\n' && f->answer_line == 0)
        f->answer_at = f->answer_code = 0;
    else if (c == '\n')
        f->answer_line = 0;
    else if (c != '\r')
        f->answer_line = 1;
}

void gw_http_follow_answer(gw_http_follow *f, const void *data, size_t len)
{
    const char *bytes = data;

    for (size_t i = 0; i < len && gw_http_follow_wants_answer(f); i++) {
        if (f->answer_at < STATUS_LEN)
            take_status_byte(f, bytes[i]);
        else
            skip_answer_byte(f, bytes[i]);
    }
    if (f->phase == F_WAIT && f->answer != A_NONE)
        end_request(f);
}
