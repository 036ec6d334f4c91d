/* inspect.c: compares the host that TLS or HTTP names with the host connected to.
 *
 * The address of a redirected connection identifies the name that the client looked up. A
 * server may serve many hosts: a client that connects to an allowed name and then sends another
 * host name in its ClientHello or request would reach a host that the rules do not allow. For
 * TLS every plaintext ClientHello is checked, for HTTP/1 every request head; other protocols
 * carry no host name and pass. An attacker controls all bytes: input that the parsers (tls.c,
 * http.c) find ambiguous is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/gateway.h"

/* Forwards everything from here on without inspection. */
static int pass_all(gw_flow *f, size_t len, gw_inspection *ret)
{
    f->inspected = true;
    f->to_server.inspect = NULL;
    ret->pass = len;
    gw_flow_defer_step(f); /* records the connect event */
    return 0;
}

/* ---- TLS ------------------------------------------------------------------------------- */

static int check_hello(gw_flow *f, const gw_tls_hello *h)
{
    char why[128];
    csn_domain name;

    f->proto = CSN_GATEWAY_TLS;
    if (!h->has_sni)
        return gw_policy_refuse_later(f, NULL, "the TLS ClientHello has no server name (SNI)");
    if (!csn_domain_parse_lookup(h->sni, h->sni_len, &name, NULL))
        return gw_policy_refuse_later(f, NULL, "the TLS server name is not a valid host name");
    if (csn_domain_equal(&name, &f->target.name))
        return 0;
    /* With ECH the readable name is that of the hosting provider; the real one is encrypted. */
    snprintf(why, sizeof(why), "the TLS %sserver name is not %.50s, the host connected to",
             h->ech ? "(ECH) " : "", f->target.name.text);
    return gw_policy_refuse_later(f, &name, why);
}

static int refuse_tls(gw_flow *f, const char *what)
{
    char why[128];

    f->proto = CSN_GATEWAY_TLS;
    snprintf(why, sizeof(why), "malformed TLS: %.90s", what ? what : "malformed");
    return gw_policy_refuse_later(f, NULL, why);
}

static int watch_answer(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;

    ret->pass = len;
    gw_tls_follow_server(&f->parse->tls, data, len);
    if (!gw_tls_follow_wants_server(&f->parse->tls))
        f->to_client.inspect = NULL;
    return 0;
}

static int inspect_tls(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;
    gw_tls_follow *tls = &f->parse->tls;

    for (size_t n = 1; n > 0 && ret->pass < len; ret->pass += n) {
        enum gw_tls_follow_result r =
            gw_tls_follow_client(tls, data + ret->pass, len - ret->pass, &n);
        int rc = 0;
        if (r == GW_TLS_FOLLOW_OPAQUE)
            f->to_server.inspect = NULL;
        else if (r == GW_TLS_FOLLOW_BAD)
            rc = refuse_tls(f, tls->why);
        else if (r == GW_TLS_FOLLOW_HELLO)
            rc = check_hello(f, &tls->hello.hello);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Passes the first ClientHello and follows the handshake behind it. A TLS server sends nothing
 * before it: to read its answer, the whole of its bytes must be seen. */
static int accept_hello(gw_flow *f, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_tls_follow *tls = &f->parse->tls;
    int rc = check_hello(f, &tls->hello.hello);

    if (rc < 0)
        return rc;
    if (f->to_client.bytes > 0)
        return refuse_tls(f, "the server spoke before the ClientHello");
    f->inspected = true;
    gw_flow_defer_step(f); /* records the connect event */
    ret->pass = tls->hello.seen;
    gw_tls_follow_begin(tls);
    f->to_client.inspect = watch_answer;
    f->to_client.inspect_ctx = f;
    f->to_server.inspect = inspect_tls;
    return inspect_tls(f, data, len, ret);
}

/* ---- HTTP ------------------------------------------------------------------------------ */

/* Refuses the first request with an HTTP reply, later ones with a reset: once a request was
 * forwarded, the client could mistake the reply for the server's response. */
static int refuse_request(gw_flow *f, const csn_domain *name, const char *why)
{
    if (!f->parse->request_seen && f->to_client.bytes == 0)
        f->refusal_style = GW_REFUSE_HTTP;
    return gw_policy_refuse_later(f, name, why);
}

static int check_authority(gw_flow *f, const gw_http_authority *a)
{
    char why[128];
    csn_domain name;

    if (a->is_v6 || !csn_domain_parse_lookup(a->host.at, a->host.len, &name, NULL))
        return refuse_request(f, NULL, "the request names no valid host");
    if (csn_domain_equal(&name, &f->target.name))
        return 0;
    snprintf(why, sizeof(why), "the request is not for %.60s, the host connected to",
             f->target.name.text);
    return refuse_request(f, &name, why);
}

static int check_head(gw_flow *f, const gw_http_head *h)
{
    int rc = 0;

    f->proto = CSN_GATEWAY_HTTP;
    if (h->form == GW_HTTP_AUTHORITY)
        rc = refuse_request(f, NULL, "CONNECT to a server outside could reach any host");
    else if (h->h2c)
        rc = refuse_request(f, NULL, "HTTP/2 without TLS is not supported");
    else if (h->form == GW_HTTP_ABSOLUTE)
        rc = check_authority(f, &h->authority);
    if (rc == 0 && !h->has_host) /* HTTP/1.0: the server would choose the host */
        rc = refuse_request(f, NULL, "the request names no host; add a Host field");
    else if (rc == 0)
        rc = check_authority(f, &h->host);
    f->parse->request_seen = f->parse->request_seen || rc == 0;
    return rc;
}

static int inspect_response(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;

    ret->pass = len;
    gw_http_follow_response(&f->parse->follow, data, len);
    if (!gw_http_follow_wants_response(&f->parse->follow)) {
        f->to_client.inspect = NULL;
        gw_pipeline_resume(&f->to_server);
        gw_flow_defer_step(f);
    }
    return 0;
}

static int refuse_malformed(gw_flow *f, enum gw_http_result r)
{
    char why[128];

    if (r == GW_HTTP_H2C)
        return refuse_request(f, NULL, "HTTP/2 without TLS is not supported");
    snprintf(why, sizeof(why), "ambiguous HTTP: %.80s",
             f->parse->follow.why ? f->parse->follow.why : "malformed");
    f->proto = CSN_GATEWAY_HTTP;
    return refuse_request(f, NULL, why);
}

static int refuse_partial(gw_flow *f)
{
    f->proto = CSN_GATEWAY_HTTP;
    return refuse_request(f, NULL, "ambiguous HTTP: the client closed within a request head");
}

static int watch_line(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;
    enum gw_http_result r = gw_http_watch_line(&f->parse->watch, data, len);

    if (r == GW_HTTP_BAD) {
        f->proto = CSN_GATEWAY_HTTP;
        return refuse_request(f, NULL, "ambiguous HTTP: malformed method");
    }
    (void)pass_all(f, len, ret);
    if (r == GW_HTTP_NEED_MORE)
        f->to_server.inspect = watch_line;
    return 0;
}

static int inspect_http(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;
    gw_http_follow *follow = &f->parse->follow;
    gw_http_head head;

    while (ret->pass < len) {
        size_t n = 0;
        enum gw_http_result r =
            gw_http_follow_next(follow, data + ret->pass, len - ret->pass, &n, &head);
        int rc = 0;
        if (r == GW_HTTP_OPAQUE)
            return pass_all(f, len, ret);
        if (r == GW_HTTP_NOT_HTTP && !f->parse->request_seen)
            return watch_line(f, data, len, ret);
        if (r == GW_HTTP_HEAD)
            rc = check_head(f, &head);
        else if (r == GW_HTTP_BAD || r == GW_HTTP_H2C || r == GW_HTTP_NOT_HTTP)
            rc = refuse_malformed(f, r);
        if (rc < 0)
            return rc;
        ret->pass += n;
        ret->pause = r == GW_HTTP_WAIT;
        if (r == GW_HTTP_WAIT || r == GW_HTTP_NEED_MORE || n == 0)
            break;
    }
    if (gw_http_follow_wants_response(follow)) {
        f->to_client.inspect = inspect_response;
        f->to_client.inspect_ctx = f;
    }
    /* The client closed before the head was complete: pass only bytes that cannot start a
     * request. */
    if (ret->ended && !f->parse->request_seen)
        return gw_http_has_begun(&follow->scan, data, len) ? refuse_partial(f)
                                                           : pass_all(f, len, ret);
    if (f->parse->request_seen && !f->inspected) {
        f->inspected = true;
        gw_flow_defer_step(f);
    }
    return 0;
}

/* ---- first bytes ----------------------------------------------------------------------- */

static int inspect_first(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;
    gw_tls *hello = &f->parse->tls.hello;

    switch (gw_tls_parse(hello, data, len)) {
    case GW_TLS_HELLO:
        return accept_hello(f, data, len, ret);
    case GW_TLS_BAD:
        return refuse_tls(f, hello->why);
    case GW_TLS_NEED_MORE:
        if (ret->ended && hello->started)
            return refuse_tls(f, "the client closed within the ClientHello");
        return ret->ended ? pass_all(f, len, ret) : 0;
    case GW_TLS_NOT_TLS:
    default:
        f->to_server.inspect = inspect_http;
        return inspect_http(ctx, data, len, ret);
    }
}

/* For a connection to an address there is no name to compare: the host named in the first
 * segment is recorded only. */
static int observe_first(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    gw_flow *f = ctx;
    gw_tls *tls = &f->parse->tls.hello;
    gw_http_head head;
    gw_http_scan scan = {0};

    if (gw_tls_parse(tls, data, len) == GW_TLS_HELLO) {
        f->proto = CSN_GATEWAY_TLS;
        if (tls->hello.has_sni)
            (void)csn_domain_parse_lookup(tls->hello.sni, tls->hello.sni_len, &f->observed_name,
                                          NULL);
    } else if (gw_http_parse(&scan, data, len, &head) == GW_HTTP_HEAD) {
        f->proto = CSN_GATEWAY_HTTP;
        if (head.has_host && !head.host.is_v6)
            (void)csn_domain_parse_lookup(head.host.host.at, head.host.host.len,
                                          &f->observed_name, NULL);
    }
    return pass_all(f, len, ret);
}

int gw_inspect_begin(gw_flow *f)
{
    free(f->parse);
    f->parse = calloc(1, sizeof(*f->parse));
    if (!f->parse)
        return -ENOMEM;
    f->to_server.inspect = f->target.name.len > 0 ? inspect_first : observe_first;
    f->to_server.inspect_ctx = f;
    return 0;
}
