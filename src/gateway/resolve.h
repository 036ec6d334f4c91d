/* resolve.h: look up the addresses of allowed names with the host's resolver.
 *
 * getaddrinfo blocks and therefore runs in threads. It honours /etc/hosts, nsswitch and caching
 * daemons like any program on the host. Concurrent lookups of one name share one call. */
#pragma once
#include "gateway/loop.h"
#include "policy/domain.h"
#include "policy/netaddr.h"

#define GW_RESOLVE_ADDRESSES_MAX 16u

typedef struct gw_resolver gw_resolver;
typedef struct gw_lookup gw_lookup;

/* A pending lookup, embedded in its owner. Zeroed: none. */
struct gw_lookup {
    struct gw_resolve_job *job;
    gw_lookup *prev, *next;
    /* error: 0 or errno. May be called before gw_resolve returns. */
    void (*fn)(gw_lookup *a, int error, const csn_netaddr *addrs, size_t n);
};

/* NULL without memory. */
gw_resolver *gw_resolver_new(gw_loop *loop);
/* -EAGAIN: too many lookups are pending. */
int gw_resolve(gw_resolver *r, gw_lookup *a, const csn_domain *name,
               void (*fn)(gw_lookup *, int, const csn_netaddr *, size_t));
void gw_resolve_cancel(gw_lookup *a);
