/* proxy.c: for programs that ask a proxy, where connections cannot be redirected.
 *
 * One listener on the loopback inside speaks CONNECT, plain HTTP with absolute targets, and
 * SOCKS 5 (and refuses SOCKS 4 in its own words); the first byte tells which. The target is
 * judged and dialled like any other, and what goes through CONNECT or SOCKS is looked at as if
 * it had been redirected (inspect.c). A plain request is sent on in origin form, one to a
 * connection: the next may be for another host, and then deserves a judgement and a connection
 * of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/gateway.h"

#define HEAD_ROOM (CSN_HTTP_HEAD_MAX + 512u)

/* ---- where to -------------------------------------------------------------------------- */

static bool target_text(const char *text, size_t len, bool six, uint16_t port, gw_target *ret)
{
    *ret = (gw_target){.port = port};
    if (port == 0)
        return false;
    if (csn_netaddr_parse(text, len, &ret->addr))
        return (ret->addr.family == 6) == six || !six;
    return !six && csn_domain_parse_lookup(text, len, &ret->name, NULL);
}

/* Later, not here: a refusal ends the flow, and a lane of it is in the middle of a move. */
static void aim(gw_flow *f, const gw_target *to)
{
    gw_flow_aim(f, to);
    gw_flow_step_later(f);
}

/* What follows belongs to the target, which is reached now. */
static void begin_inside(gw_flow *f)
{
    f->voice = CSN_VOICE_RESET;
    if (gw_inspect_begin(f) < 0)
        f->broken = true;
    gw_pipeline_resume(&f->there);
}

/* ---- SOCKS ----------------------------------------------------------------------------- */

static void socks_connected(gw_flow *f)
{
    uint8_t reply[CSN_SOCKS_REPLY_LEN];

    gw_socks_answer(CSN_SOCKS_OK, reply);
    if (gw_pipeline_write(&f->back, reply, sizeof(reply)) < 0)
        f->broken = true;
    begin_inside(f);
}

static int socks_target(gw_flow *f, gw_inspect_fn *ret)
{
    const gw_socks *s = &f->front->socks;
    gw_target to = {.port = s->port};
    bool good = s->port != 0;

    if (s->address_len == 4)
        to.addr = csn_netaddr_v4(s->address);
    else if (s->address_len == 16)
        to.addr = csn_netaddr_v6(s->address);
    else
        good = target_text(s->name.at, s->name.len, false, s->port, &to);
    if (!good)
        return gw_policy_refuse_later(f, NULL, "a target that is no host and port");
    f->connected = socks_connected;
    ret->pause = true;
    aim(f, &to);
    return 0;
}

static int look_socks(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    gw_flow *f = ctx;
    gw_socks *s = &f->front->socks;

    f->proto = CSN_GATEWAY_SOCKS;
    f->voice = CSN_VOICE_SOCKS;
    for (;;) {
        enum gw_socks_step step = gw_socks_next(s, data + ret->drop, len - ret->drop);
        if (step == CSN_SOCKS_NEED_MORE)
            return 0;
        if (step == CSN_SOCKS_REFUSE || step == CSN_SOCKS_NOT_SOCKS)
            return gw_policy_refuse_later(f, NULL,
                                          s->why ? s->why : "SOCKS that cannot be read");
        ret->drop += s->used;
        if (step == CSN_SOCKS_CONNECT)
            return socks_target(f, ret);
        int rc = gw_pipeline_write(&f->back, s->reply, s->reply_len);
        if (rc < 0)
            return rc;
    }
}

/* ---- HTTP ------------------------------------------------------------------------------ */

static void connect_connected(gw_flow *f)
{
    static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";

    if (gw_pipeline_write(&f->back, yes, sizeof(yes) - 1) < 0)
        f->broken = true;
    begin_inside(f);
}

static void plain_connected(gw_flow *f)
{
    f->voice = CSN_VOICE_RESET; /* from now on the server speaks */
}

/* The head as the target gets it. One at a time: the lane copies it before anything else runs.
 */
static char rewritten[HEAD_ROOM];
static size_t rewritten_len;

static void put(const void *data, size_t len)
{
    if (len > sizeof(rewritten) - rewritten_len)
        len = sizeof(rewritten) - rewritten_len; /* never: it grows by less than the spare */
    memcpy(rewritten + rewritten_len, data, len);
    rewritten_len += len;
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

/* Fields that are between the program and us, and Host, which is the target's. */
static bool is_ours(const char *line, size_t len)
{
    static const char *const names[] = {"host", "connection", "keep-alive", "proxy-connection",
                                        "proxy-authorization"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = strlen(names[i]);
        if (len > n && line[n] == ':' && strncasecmp(line, names[i], n) == 0)
            return true;
    }
    return false;
}

/* The lines after the first, with the empty one at the end. */
static void put_fields(const char *at, const char *end)
{
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t len = nl ? (size_t)(nl - at) + 1 : (size_t)(end - at);
        if (!is_ours(at, len))
            put(at, len);
        at += len;
    }
}

/* Absolute to origin form. The target's own authority becomes Host, whatever Host said: what
 * was judged is what the server is asked for. */
static void rewrite(const uint8_t *data, const gw_http_head *h)
{
    const char *text = (const char *)data, *line = memchr(text, '\n', h->len);
    char port[8];

    rewritten_len = 0;
    put(h->method.at, h->method.len);
    put_text(h->path.len > 0 && h->path.at[0] == '/' ? " " : " /");
    put(h->path.at, h->path.len);
    put_text(h->minor == 0 ? " HTTP/1.0\r\nHost: " : " HTTP/1.1\r\nHost: ");
    put_text(h->authority.is_v6 ? "[" : "");
    put(h->authority.host.at, h->authority.host.len);
    put_text(h->authority.is_v6 ? "]" : "");
    snprintf(port, sizeof(port), ":%u", h->authority.port);
    put_text(h->authority.port != 0 ? port : "");
    put_text("\r\nConnection: close\r\n");
    if (line)
        put_fields(line + 1, text + h->len);
}

static int plain_request(gw_flow *f, const uint8_t *data, const gw_http_head *h,
                         gw_inspect_fn *ret)
{
    uint16_t port = h->authority.port ? h->authority.port : 80;
    gw_target to;

    f->proto = CSN_GATEWAY_HTTP;
    if (h->upgrade)
        return gw_policy_refuse_later(f, NULL, "to leave HTTP, ask the proxy to CONNECT");
    if (!target_text(h->authority.host.at, h->authority.host.len, h->authority.is_v6, port,
                     &to))
        return gw_policy_refuse_later(f, NULL, "a target that is no host and port");
    rewrite(data, h);
    ret->insert = rewritten;
    ret->insert_len = rewritten_len;
    f->connected = plain_connected;
    f->judged = true;
    aim(f, &to);
    return 0;
}

static int connect_request(gw_flow *f, const gw_http_head *h, gw_inspect_fn *ret)
{
    gw_target to;

    f->proto = CSN_GATEWAY_CONNECT_PROXY;
    if (!target_text(h->authority.host.at, h->authority.host.len, h->authority.is_v6,
                     h->authority.port, &to))
        return gw_policy_refuse_later(f, NULL, "a target that is no host and port");
    f->connected = connect_connected;
    ret->pause = true;
    aim(f, &to);
    return 0;
}

static int first_head(gw_flow *f, const uint8_t *data, const gw_http_head *h,
                      gw_inspect_fn *ret)
{
    f->front->heads = true;
    ret->drop = h->len;
    if (h->form == CSN_HTTP_AUTHORITY)
        return connect_request(f, h, ret);
    if (h->form == CSN_HTTP_ABSOLUTE)
        return plain_request(f, data, h, ret);
    return gw_policy_refuse_later(f, NULL, "a request for the proxy itself");
}

/* One head, and for a plain request its body. A second head is left alone: the connection ends
 * with the first answer, and who wants more comes again. */
static int look_http(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    gw_flow *f = ctx;
    gw_http_head head;

    f->voice = f->front->heads ? f->voice : CSN_VOICE_HTTP;
    while (ret->drop + ret->pass < len) {
        size_t n = 0, at = ret->drop + ret->pass;
        enum gw_http_result r =
            gw_http_follow_next(&f->front->follow, data + at, len - at, &n, &head);
        if (r == CSN_HTTP_HEAD && !f->front->heads) {
            int rc = first_head(f, data, &head, ret);
            if (rc < 0 || ret->pause)
                return rc;
        } else if (r == CSN_HTTP_BODY && n > 0) {
            ret->pass += n;
        } else if (r == CSN_HTTP_NEED_MORE && !ret->ended) {
            return 0;
        } else if (f->front->heads) {
            ret->pause = true;
            return 0;
        } else {
            return gw_policy_refuse_later(f, NULL, "not a request to a proxy");
        }
    }
    return 0;
}

/* ---- the first byte -------------------------------------------------------------------- */

static int look_first(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    gw_flow *f = ctx;

    f->there.look = data[0] == 5 || data[0] == 4 ? look_socks : look_http;
    return f->there.look(ctx, data, len, ret);
}

int gw_proxy_begin(gw_flow *f)
{
    f->front = calloc(1, sizeof(*f->front));
    if (!f->front)
        return -ENOMEM;
    f->there.look = look_first;
    f->there.look_ctx = f;
    return 0;
}

/* ---- refusals -------------------------------------------------------------------------- */

static void say_socks(gw_flow *f, enum gw_socks_code code)
{
    uint8_t reply[CSN_SOCKS_REPLY_LEN];

    gw_socks_answer(code, reply);
    gw_flow_farewell(f, reply, sizeof(reply));
}

/* What the conversation itself refused has its answer ready: there is more than one form. */
static void refuse_socks(gw_flow *f)
{
    const gw_socks *s = &f->front->socks;

    if (s->reply_len > 0)
        gw_flow_farewell(f, s->reply, s->reply_len);
    else
        say_socks(f, CSN_SOCKS_NOT_ALLOWED);
}

static void say_http(gw_flow *f, const char *status, const char *text)
{
    char answer[1536];
    int n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                     status, strlen(text), text);

    gw_flow_farewell(f, answer, (size_t)n);
}

/* Names the rule that would help: whoever reads this can ask for it. */
void gw_proxy_refuse(gw_flow *f, const gw_refusal *r)
{
    const csn_domain *name = r->name.len > 0 ? &r->name : &f->to.name;
    const csn_netverdict *v = &r->verdict;
    char text[1024];

    if (f->voice == CSN_VOICE_SOCKS) {
        refuse_socks(f);
        return;
    }
    snprintf(text, sizeof(text), "The sandbox's network policy refused this%s%s: %s.\n%s%s%s",
             name->len > 0 ? ": " : "", name->text, v->why,
             v->hint[0] ? "It would be allowed by the rule " : "", v->hint,
             v->hint[0] ? "\n" : "");
    say_http(f, "403 Forbidden", text);
}

/* So that clients say "refused" or "unreachable" themselves. */
static enum gw_socks_code socks_code(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return CSN_SOCKS_REFUSED;
    case ENETUNREACH:
        return CSN_SOCKS_NET_UNREACHABLE;
    case EHOSTUNREACH:
    case ETIMEDOUT:
        return CSN_SOCKS_HOST_UNREACHABLE;
    default:
        return CSN_SOCKS_FAILED;
    }
}

void gw_proxy_failed(gw_flow *f, int error)
{
    char text[256];

    if (f->voice == CSN_VOICE_SOCKS) {
        say_socks(f, socks_code(error));
        return;
    }
    snprintf(text, sizeof(text), "The sandbox's gateway could not connect: %s.\n",
             gw_why_errno(error));
    say_http(f, error == ETIMEDOUT ? "504 Gateway Timeout" : "502 Bad Gateway", text);
}
