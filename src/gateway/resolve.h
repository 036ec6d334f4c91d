/* resolve.h: real addresses of allowed names, by the host's own resolver.
 *
 * getaddrinfo blocks, so it runs in a few threads; /etc/hosts, nsswitch and the host's cache
 * count as they do for every program of the host. Questions for one name are asked once. */
#pragma once
#include "gateway/loop.h"
#include "policy/domain.h"
#include "policy/netaddr.h"

#define CSN_RESOLVE_ADDRESSES 16u

typedef struct csn_resolver csn_resolver;
typedef struct csn_ask csn_ask;

/* A question that waits, inside whoever asks. Zeroed: none. */
struct csn_ask {
    struct csn_resolve_job *job;
    csn_ask *prev, *next;
    /* error: 0, or errno of what is nearest to what the resolver said. May be called before
     * csn_resolve returns. */
    void (*fn)(csn_ask *a, int error, const csn_netaddr *addrs, size_t n);
};

/* NULL without memory or threads. */
csn_resolver *csn_resolver_new(csn_loop *loop);
/* Answers by a->fn, unless it is taken back before. -EAGAIN: too many questions wait. */
int csn_resolve(csn_resolver *r, csn_ask *a, const csn_domain *name,
                void (*fn)(csn_ask *, int, const csn_netaddr *, size_t));
void csn_resolve_cancel(csn_resolver *r, csn_ask *a);
