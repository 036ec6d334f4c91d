/* proxy.c: serves HTTP proxy and SOCKS 5 clients in sandboxes without a redirect.
 *
 * One listener on the sandbox's loopback speaks CONNECT, plain HTTP with absolute targets, and
 * SOCKS 5; the first byte identifies the protocol. Targets are checked and dialled, and
 * tunnelled bytes inspected (inspect.c), as for redirected connections. A plain request is
 * forwarded in origin form, one per connection: the next may name another host, which needs a
 * separate check and connection. An attacker controls all bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/gateway.h"

#define REWRITTEN_MAX (CSN_HTTP_HEAD_MAX + 512u)

/* ---- targets --------------------------------------------------------------------------- */

static bool parse_target(const char *text, size_t len, bool is_v6, uint16_t port,
                         gw_target *ret)
{
    *ret = (gw_target){.port = port};
    if (port == 0)
        return false;
    if (csn_netaddr_parse(text, len, &ret->addr))
        return (ret->addr.family == 6) == is_v6 || !is_v6;
    return !is_v6 && csn_domain_parse_lookup(text, len, &ret->name, NULL);
}

/* Defers the step: a refusal would end the flow while its pipeline is in use. */
static void set_target(gw_flow *f, const gw_target *to)
{
    gw_flow_set_target(f, to);
    gw_flow_defer_step(f);
}

/* Forwards the client's bytes to the target from here on. */
static void begin_tunnel(gw_flow *f)
{
    f->refusal_style = GW_REFUSE_RESET;
    if (gw_inspect_begin(f) < 0)
        f->broken = true;
    gw_pipeline_resume(&f->to_server);
}

/* ---- SOCKS ----------------------------------------------------------------------------- */

static void socks_connected(gw_flow *f)
{
    uint8_t reply[GW_SOCKS_REPLY_LEN];

    gw_socks_reply(GW_SOCKS_OK, reply);
    if (gw_pipeline_write(&f->to_client, reply, sizeof(reply)) < 0)
        f->broken = true;
    begin_tunnel(f);
}

static int socks_target(gw_flow *f, gw_inspection *ret)
{
    const gw_socks *s = &f->parse->socks;
    gw_target to = {.port = s->port};
    bool good = s->port != 0;

    if (s->address_len == 4)
        to.addr = csn_netaddr_v4(s->address);
    else if (s->address_len == 16)
        to.addr = csn_netaddr_v6(s->address);
    else
        good = parse_target(s->name.at, s->name.len, false, s->port, &to);
    if (!good)
        return gw_policy_refuse_later(f, NULL, "the target is not a valid host and port");
    f->on_connected = socks_connected;
    ret->pause = true;
    set_target(f, &to);
    return 0;
}

static int inspect_socks(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;
    gw_socks *s = &f->parse->socks;

    f->proto = CSN_GATEWAY_SOCKS;
    f->refusal_style = GW_REFUSE_SOCKS;
    for (;;) {
        enum gw_socks_step step = gw_socks_next(s, data + ret->drop, len - ret->drop);
        if (step == GW_SOCKS_NEED_MORE)
            return 0;
        if (step == GW_SOCKS_REFUSE || step == GW_SOCKS_NOT_SOCKS)
            return gw_policy_refuse_later(f, NULL, s->why ? s->why : "malformed SOCKS");
        ret->drop += s->used;
        if (step == GW_SOCKS_CONNECT)
            return socks_target(f, ret);
        int rc = gw_pipeline_write(&f->to_client, s->reply, s->reply_len);
        if (rc < 0)
            return rc;
    }
}

/* ---- HTTP ------------------------------------------------------------------------------ */

static void connect_connected(gw_flow *f)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

    if (gw_pipeline_write(&f->to_client, established, sizeof(established) - 1) < 0)
        f->broken = true;
    begin_tunnel(f);
}

static void plain_connected(gw_flow *f)
{
    f->refusal_style = GW_REFUSE_RESET; /* the server may already be replying */
}

/* The head to forward. One static buffer is enough: the relay copies it when the callback
 * returns. */
static char rewritten[REWRITTEN_MAX];
static size_t rewritten_len;

static void put(const void *data, size_t len)
{
    if (len > sizeof(rewritten) - rewritten_len)
        len = sizeof(rewritten) - rewritten_len; /* cannot happen: REWRITTEN_MAX */
    memcpy(rewritten + rewritten_len, data, len);
    rewritten_len += len;
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

/* Hop-by-hop fields, and Host, which is rewritten. */
static bool is_hop_by_hop(const char *line, size_t len)
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

static void put_fields(const char *at, const char *end)
{
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t len = nl ? (size_t)(nl - at) + 1 : (size_t)(end - at);
        if (!is_hop_by_hop(at, len))
            put(at, len);
        at += len;
    }
}

/* Converts absolute to origin form. Host is set from the target, so the server receives the
 * host name that was checked. */
static void rewrite_head(const uint8_t *data, const gw_http_head *h)
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
                         gw_inspection *ret)
{
    uint16_t port = h->authority.port ? h->authority.port : 80;
    gw_target to;

    f->proto = CSN_GATEWAY_HTTP;
    if (h->upgrade)
        return gw_policy_refuse_later(f, NULL, "Upgrade needs a CONNECT request to the proxy");
    if (!parse_target(h->authority.host.at, h->authority.host.len, h->authority.is_v6, port,
                      &to))
        return gw_policy_refuse_later(f, NULL, "the target is not a valid host and port");
    rewrite_head(data, h);
    ret->insert = rewritten;
    ret->insert_len = rewritten_len;
    f->on_connected = plain_connected;
    f->inspected = true;
    set_target(f, &to);
    return 0;
}

static int connect_request(gw_flow *f, const gw_http_head *h, gw_inspection *ret)
{
    gw_target to;

    f->proto = CSN_GATEWAY_CONNECT_PROXY;
    if (!parse_target(h->authority.host.at, h->authority.host.len, h->authority.is_v6,
                      h->authority.port, &to))
        return gw_policy_refuse_later(f, NULL, "the target is not a valid host and port");
    f->on_connected = connect_connected;
    ret->pause = true;
    set_target(f, &to);
    return 0;
}

static int first_head(gw_flow *f, const uint8_t *data, const gw_http_head *h,
                      gw_inspection *ret)
{
    f->parse->request_seen = true;
    ret->drop = h->len;
    if (h->form == GW_HTTP_AUTHORITY)
        return connect_request(f, h, ret);
    if (h->form == GW_HTTP_ABSOLUTE)
        return plain_request(f, data, h, ret);
    return gw_policy_refuse_later(f, NULL, "the proxy itself serves no requests");
}

/* One head and its body. A second head is not read: the connection closes after the first
 * response. */
static int inspect_http(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;
    gw_http_head head;

    f->refusal_style = f->parse->request_seen ? f->refusal_style : GW_REFUSE_HTTP;
    while (ret->drop + ret->pass < len) {
        size_t n = 0, at = ret->drop + ret->pass;
        enum gw_http_result r =
            gw_http_follow_next(&f->parse->follow, data + at, len - at, &n, &head);
        if (r == GW_HTTP_HEAD && !f->parse->request_seen) {
            int rc = first_head(f, data, &head, ret);
            if (rc < 0 || ret->pause)
                return rc;
        } else if (r == GW_HTTP_BODY && n > 0) {
            ret->pass += n;
        } else if (r == GW_HTTP_NEED_MORE && !ret->ended) {
            return 0;
        } else if (f->parse->request_seen) {
            ret->pause = true;
            return 0;
        } else {
            return gw_policy_refuse_later(f, NULL, "not a proxy request");
        }
    }
    return 0;
}

/* ---- first byte ------------------------------------------------------------------------ */

static int inspect_first(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;

    f->to_server.inspect = data[0] == 5 || data[0] == 4 ? inspect_socks : inspect_http;
    return f->to_server.inspect(ctx, data, len, ret);
}

int gw_proxy_begin(gw_flow *f)
{
    f->parse = calloc(1, sizeof(*f->parse));
    if (!f->parse)
        return -ENOMEM;
    f->to_server.inspect = inspect_first;
    f->to_server.inspect_ctx = f;
    return 0;
}

/* ---- refusals -------------------------------------------------------------------------- */

static void reply_socks(gw_flow *f, enum gw_socks_code code)
{
    uint8_t reply[GW_SOCKS_REPLY_LEN];

    gw_socks_reply(code, reply);
    gw_flow_reply_and_close(f, reply, sizeof(reply));
}

/* On REFUSE the SOCKS parser has already built the reply. */
static void refuse_socks(gw_flow *f)
{
    const gw_socks *s = &f->parse->socks;

    if (s->reply_len > 0)
        gw_flow_reply_and_close(f, s->reply, s->reply_len);
    else
        reply_socks(f, GW_SOCKS_NOT_ALLOWED);
}

static void reply_http(gw_flow *f, const char *status, const char *text)
{
    char answer[1536];
    int n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                     status, strlen(text), text);

    gw_flow_reply_and_close(f, answer, (size_t)n);
}

void gw_proxy_refuse(gw_flow *f, const gw_refusal *r)
{
    const csn_domain *name = r->name.len > 0 ? &r->name : &f->target.name;
    const csn_netverdict *v = &r->verdict;
    char text[1024];

    if (f->refusal_style == GW_REFUSE_SOCKS) {
        refuse_socks(f);
        return;
    }
    snprintf(text, sizeof(text), "The sandbox's network policy refused this%s%s: %s.\n%s%s%s",
             name->len > 0 ? ": " : "", name->text, v->why,
             v->hint[0] ? "To allow it, add the rule " : "", v->hint, v->hint[0] ? "\n" : "");
    reply_http(f, "403 Forbidden", text);
}

static enum gw_socks_code socks_code(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return GW_SOCKS_REFUSED;
    case ENETUNREACH:
        return GW_SOCKS_NET_UNREACHABLE;
    case EHOSTUNREACH:
    case ETIMEDOUT:
        return GW_SOCKS_HOST_UNREACHABLE;
    default:
        return GW_SOCKS_FAILED;
    }
}

void gw_proxy_failed(gw_flow *f, int error)
{
    char text[256];

    if (f->refusal_style == GW_REFUSE_SOCKS) {
        reply_socks(f, socks_code(error));
        return;
    }
    snprintf(text, sizeof(text), "The sandbox's gateway could not connect: %s.\n",
             gw_errno_text(error));
    reply_http(f, error == ETIMEDOUT ? "504 Gateway Timeout" : "502 Bad Gateway", text);
}
