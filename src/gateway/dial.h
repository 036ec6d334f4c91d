/* dial.h: a connection to one of several addresses, whichever answers first. */
#pragma once
#include <sys/socket.h>

#include "gateway/loop.h"
#include "policy/netaddr.h"

#define CSN_DIAL_ADDRESSES 16u
#define CSN_DIAL_AT_ONCE   3u

typedef struct gw_dial gw_dial;
/* fd: connected, non-blocking, the owner's from now on; or -errno of the first that failed. The
 * dial is gone when this is called. */
typedef void gw_dial_fn(void *owner, int fd, const csn_netaddr *addr);

/* Dials exactly these addresses, in their order, each a quarter of a second after the one
 * before or when that failed. fn is called later, never from here. NULL without memory. */
gw_dial *gw_dial_start(gw_loop *loop, const csn_netaddr *addrs, size_t n, uint16_t port,
                       void *owner, gw_dial_fn *fn);
/* The same with one socket that somebody else made (in another namespace); takes it, in any
 * case. */
gw_dial *gw_dial_with(gw_loop *loop, int sock, const csn_netaddr *addr, uint16_t port,
                      void *owner, gw_dial_fn *fn);
void gw_dial_cancel(gw_dial *d);

/* Small messages are not to wait for each other. */
void gw_socket_prompt(int fd);
/* A socket whose other end is on this machine: nothing on the way is ever congested, and what a
 * host does about that only costs. Connections inherit it from listeners. */
void gw_socket_local(int fd);
/* The address of a socket, as value and port. */
void gw_sockaddr_read(const struct sockaddr_storage *ss, csn_netaddr *addr, uint16_t *port);
