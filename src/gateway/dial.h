/* dial.h: connect to the first of several addresses that answers. */
#pragma once
#include "gateway/loop.h"
#include "policy/netaddr.h"

#define GW_DIAL_ADDRESSES_MAX 16u
#define GW_DIAL_PARALLEL_MAX  3u

typedef struct gw_dial gw_dial;
/* fd: a connected, non-blocking socket that the callee owns, or -errno of the first failure.
 * The dial is freed before the call. */
typedef void gw_dial_fn(void *owner, int fd, const csn_netaddr *addr);

/* Starts one attempt per address, in order: the next begins 250 ms after the previous one, or
 * as soon as the previous one has failed. fn is called from the loop, never before
 * gw_dial_start returns. NULL: out of memory. */
gw_dial *gw_dial_start(gw_loop *loop, const csn_netaddr *addrs, size_t n, uint16_t port,
                       void *owner, gw_dial_fn *fn);
/* Connects sock, a socket of another network namespace, to one address. Owns sock even on
 * failure. */
gw_dial *gw_dial_with(gw_loop *loop, int sock, const csn_netaddr *addr, uint16_t port,
                      void *owner, gw_dial_fn *fn);
void gw_dial_cancel(gw_dial *d);
