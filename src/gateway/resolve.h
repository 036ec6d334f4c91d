/* resolve.h: real addresses of allowed names, by the host's own resolver.
 *
 * getaddrinfo blocks, so it runs in a few threads; /etc/hosts, nsswitch and the host's cache
 * count as they do for every program of the host. Questions for one name are asked once. */
#pragma once
#include "gateway/loop.h"
#include "policy/domain.h"
#include "policy/netaddr.h"

#define CSN_RESOLVE_ADDRESSES 16u

typedef struct gw_resolver gw_resolver;
typedef struct gw_ask gw_ask;

/* A question that waits, inside whoever asks. Zeroed: none. */
struct gw_ask {
    struct gw_resolve_job *job;
    gw_ask *prev, *next;
    /* error: 0, or errno of what is nearest to what the resolver said. May be called before
     * gw_resolve returns. */
    void (*fn)(gw_ask *a, int error, const csn_netaddr *addrs, size_t n);
};

/* NULL without memory or threads. */
gw_resolver *gw_resolver_new(gw_loop *loop);
/* Answers by a->fn, unless it is taken back before. -EAGAIN: too many questions wait. */
int gw_resolve(gw_resolver *r, gw_ask *a, const csn_domain *name,
               void (*fn)(gw_ask *, int, const csn_netaddr *, size_t));
void gw_resolve_cancel(gw_resolver *r, gw_ask *a);
