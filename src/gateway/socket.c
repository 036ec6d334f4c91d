/* socket.c: sets socket options and converts addresses. */
#include "gateway/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

/* A peer is considered dead after two minutes of silence and three unanswered probes. */
#define KEEPALIVE_IDLE_S     120
#define KEEPALIVE_INTERVAL_S 30
#define KEEPALIVE_PROBES     3

static void set_int(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

void gw_socket_set_nodelay(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

int gw_socket_set_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

void gw_socket_set_local(int fd)
{
    static const char reno[] = "reno"; /* present in every kernel, allowed for every user */

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno) - 1);
}

void gw_socket_set_keepalive(int fd)
{
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
}

int gw_socket_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? errno : error;
}

csn_netaddr gw_loopback(unsigned family)
{
    static const uint8_t v4[4] = {127, 0, 0, 1}, v6[16] = {[15] = 1};

    return family == 4 ? csn_netaddr_v4(v4) : csn_netaddr_v6(v6);
}

void gw_sockaddr_to_netaddr(const struct sockaddr *sa, csn_netaddr *addr, uint16_t *port)
{
    *addr = (csn_netaddr){0};
    *port = 0;
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)sa;
        *addr = csn_netaddr_v4((const uint8_t *)&in->sin_addr);
        *port = ntohs(in->sin_port);
    } else if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        *addr = csn_netaddr_v6(in6->sin6_addr.s6_addr);
        *port = ntohs(in6->sin6_port);
    }
}

socklen_t gw_netaddr_to_sockaddr(const csn_netaddr *a, uint16_t port,
                                 struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){0};
    if (a->family == 4) {
        struct sockaddr_in *in = (void *)ret;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, a->bytes, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (void *)ret;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, a->bytes, 16);
    return sizeof(*in6);
}
