/* socket.h: socket options and addresses. */
#pragma once
#include <stdint.h>
#include <sys/socket.h>

#include "policy/netaddr.h"

void gw_socket_set_nodelay(int fd);
int gw_socket_set_nonblock(int fd);
/* Selects the cheapest congestion control, for connections within this machine. Accepted
 * connections inherit it from their listener. */
void gw_socket_set_local(int fd);
/* Enables TCP keep-alive, which detects a peer that has disappeared. */
void gw_socket_set_keepalive(int fd);
/* Returns and clears SO_ERROR. */
int gw_socket_error(int fd);

csn_netaddr gw_loopback(unsigned family); /* 4 or 6 */
/* addr->family is 0 if sa is not an IP address. */
void gw_sockaddr_to_netaddr(const struct sockaddr *sa, csn_netaddr *addr, uint16_t *port);
socklen_t gw_netaddr_to_sockaddr(const csn_netaddr *a, uint16_t port,
                                 struct sockaddr_storage *ret);
