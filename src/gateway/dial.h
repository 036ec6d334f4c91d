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

/* Tries the addresses in order, each 250 ms after the one before or as soon as that failed. fn
 * is called from the loop, never from here. NULL without memory. */
gw_dial *gw_dial_start(gw_loop *loop, const csn_netaddr *addrs, size_t n, uint16_t port,
                       void *owner, gw_dial_fn *fn);
/* Uses a socket made in another network namespace. Always owns sock. */
gw_dial *gw_dial_with(gw_loop *loop, int sock, const csn_netaddr *addr, uint16_t port,
                      void *owner, gw_dial_fn *fn);
void gw_dial_cancel(gw_dial *d);
