/* inspect.c: is a connection for the host that it was opened for?
 *
 * Looks at what a program inside sends, for flow.c, before any of it leaves. The name of a
 * connection is known from the address it was opened to; one that says another name in a
 * ClientHello or a request would reach, at a host that serves many, somebody the rules do not
 * speak of. TLS and HTTP/2 are settled by the hello; HTTP/1 is followed to its last request.
 * Bytes of any other protocol name no host and pass. Every byte here is the attacker's; the
 * parsers are tls.c and http.c, and what they cannot tell for sure is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gateway.h"

/* Whatever follows is not looked at. */
static int pass_all(gw_flow *f, size_t len, gw_inspect_fn *ret)
{
    f->judged = true;
    f->there.look = NULL;
    ret->pass = len;
    gw_flow_step_later(f); /* there may be an event to record */
    return 0;
}

/* ---- TLS ------------------------------------------------------------------------------- */

static int judge_hello(gw_flow *f, const gw_tls_hello *h, size_t len, gw_inspect_fn *ret)
{
    char why[128];
    csn_domain name;

    f->proto = CSN_GATEWAY_TLS;
    if (!h->has_sni)
        return gw_policy_refuse_later(f, NULL, "TLS without a server name");
    if (!csn_domain_parse_lookup(h->sni, h->sni_len, &name, NULL))
        return gw_policy_refuse_later(f, NULL, "TLS with a server name that is none");
    if (csn_domain_equal(&name, &f->to.name))
        return pass_all(f, len, ret);
    /* With an encrypted hello the outer name is the provider's and the true one unreadable. */
    snprintf(why, sizeof(why), "TLS %sfor another host than %.50s, which was connected to",
             h->ech ? "(encrypted hello) " : "", f->to.name.text);
    return gw_policy_refuse_later(f, &name, why);
}

/* ---- HTTP ------------------------------------------------------------------------------ */

/* A refusal of the first request can be told as an answer: nothing has been sent to the server,
 * so none of its answers can be confused with ours. */
static int object(gw_flow *f, const csn_domain *name, const char *why)
{
    if (!f->front->heads && f->back.bytes == 0)
        f->voice = CSN_VOICE_HTTP;
    return gw_policy_refuse_later(f, name, why);
}

static int judge_authority(gw_flow *f, const gw_http_authority *a)
{
    char why[128];
    csn_domain name;

    if (a->is_v6 || !csn_domain_parse_lookup(a->host.at, a->host.len, &name, NULL))
        return object(f, NULL, "a request for a host that is no name");
    if (csn_domain_equal(&name, &f->to.name))
        return 0;
    snprintf(why, sizeof(why), "a request for another host than %.60s, which was connected to",
             f->to.name.text);
    return object(f, &name, why);
}

static int judge_head(gw_flow *f, const gw_http_head *h)
{
    int rc = 0;

    f->proto = CSN_GATEWAY_HTTP;
    if (h->form == CSN_HTTP_AUTHORITY)
        rc = object(f, NULL, "CONNECT: the host would connect elsewhere for us");
    else if (h->h2c)
        rc = object(f, NULL, "HTTP/2 without TLS cannot be followed");
    else if (h->form == CSN_HTTP_ABSOLUTE)
        rc = judge_authority(f, &h->authority);
    if (rc == 0 && h->has_host)
        rc = judge_authority(f, &h->host);
    f->front->heads = f->front->heads || rc == 0;
    return rc;
}

static int hear_answer(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    gw_flow *f = ctx;

    ret->pass = len;
    gw_http_follow_answer(&f->front->follow, data, len);
    if (!gw_http_follow_wants_answer(&f->front->follow)) {
        f->back.look = NULL;
        gw_pipeline_resume(&f->there);
        gw_flow_step_later(f);
    }
    return 0;
}

static int bad_http(gw_flow *f, enum gw_http_result r)
{
    char why[128];

    if (r == CSN_HTTP_H2C)
        return object(f, NULL, "HTTP/2 without TLS cannot be followed");
    snprintf(why, sizeof(why), "HTTP that can be read in two ways: %.80s",
             f->front->follow.why ? f->front->follow.why : "malformed");
    f->proto = CSN_GATEWAY_HTTP;
    return object(f, NULL, why);
}

static int unfinished(gw_flow *f)
{
    f->proto = CSN_GATEWAY_HTTP;
    return object(f, NULL, "HTTP that can be read in two ways: it ends within a head");
}

/* All heads and bodies that are there. */
static int look_http(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    gw_flow *f = ctx;
    gw_http_follow *follow = &f->front->follow;
    gw_http_head head;

    while (ret->pass < len) {
        size_t n = 0;
        enum gw_http_result r =
            gw_http_follow_next(follow, data + ret->pass, len - ret->pass, &n, &head);
        int rc = 0;
        if (r == CSN_HTTP_NOT_HTTP && !f->front->heads)
            return pass_all(f, len, ret);
        if (r == CSN_HTTP_OPAQUE)
            return pass_all(f, len, ret);
        if (r == CSN_HTTP_HEAD)
            rc = judge_head(f, &head);
        else if (r == CSN_HTTP_BAD || r == CSN_HTTP_H2C || r == CSN_HTTP_NOT_HTTP)
            rc = bad_http(f, r);
        if (rc < 0)
            return rc;
        ret->pass += n;
        ret->pause = r == CSN_HTTP_WAIT;
        if (r == CSN_HTTP_WAIT || r == CSN_HTTP_NEED_MORE || n == 0)
            break;
    }
    if (gw_http_follow_wants_answer(follow)) {
        f->back.look = hear_answer;
        f->back.look_ctx = f;
    }
    /* What ended before it was a request names no host; what ended as one in the making may. */
    if (ret->ended && !f->front->heads)
        return gw_http_is_begun(&follow->scan, data, len) ? unfinished(f)
                                                          : pass_all(f, len, ret);
    if (f->front->heads && !f->judged) {
        f->judged = true;
        gw_flow_step_later(f);
    }
    return 0;
}

/* ---- the first bytes ------------------------------------------------------------------- */

static int look_first(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    gw_flow *f = ctx;
    gw_tls *tls = &f->front->tls;
    char why[128];

    switch (gw_tls_inspect(tls, data, len)) {
    case CSN_TLS_HELLO:
        return judge_hello(f, &tls->hello, len, ret);
    case CSN_TLS_BAD:
        f->proto = CSN_GATEWAY_TLS;
        snprintf(why, sizeof(why), "TLS that cannot be read: %.90s",
                 tls->why ? tls->why : "malformed");
        return gw_policy_refuse_later(f, NULL, why);
    case CSN_TLS_NEED_MORE:
        return ret->ended ? pass_all(f, len, ret) : 0;
    case CSN_TLS_NOT_TLS:
    default:
        f->there.look = look_http;
        return look_http(ctx, data, len, ret);
    }
}

/* A connection to an address was opened for no name: what it says is noted, if it is there in
 * one piece, and that is all. */
static int note_first(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    gw_flow *f = ctx;
    gw_tls *tls = &f->front->tls;
    gw_http_head head;
    gw_http_scan scan = {0};

    if (gw_tls_inspect(tls, data, len) == CSN_TLS_HELLO) {
        f->proto = CSN_GATEWAY_TLS;
        if (tls->hello.has_sni)
            (void)csn_domain_parse_lookup(tls->hello.sni, tls->hello.sni_len, &f->said, NULL);
    } else if (gw_http_inspect(&scan, data, len, &head) == CSN_HTTP_HEAD) {
        f->proto = CSN_GATEWAY_HTTP;
        if (head.has_host && !head.host.is_v6)
            (void)csn_domain_parse_lookup(head.host.host.at, head.host.host.len, &f->said,
                                          NULL);
    }
    return pass_all(f, len, ret);
}

int gw_inspect_begin(gw_flow *f)
{
    free(f->front);
    f->front = calloc(1, sizeof(*f->front));
    if (!f->front)
        return -ENOMEM;
    f->there.look = f->to.name.len > 0 ? look_first : note_first;
    f->there.look_ctx = f;
    return 0;
}
