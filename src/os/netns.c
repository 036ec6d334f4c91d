/* netns.c: makes a network namespace with loopback only, and probes ports. */
#include "os/netns.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CONNECT_MS 100 /* loopback answers at once, unless a backlog is full */

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C /* the network namespace of a socket, as a descriptor */
#endif

/* Brings loopback up and returns a descriptor of the namespace. It comes from a socket
 * (SIOCGSKNS), because the process that builds the root file system at the same time may have
 * covered /proc/self/ns. */
static int loopback_up(void)
{
    csn_autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo"};

    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
        return -errno;
    r.ifr_flags = (short)(r.ifr_flags | IFF_UP | IFF_RUNNING);
    if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
        return -errno;
    int ns = ioctl(fd, SIOCGSKNS);
    return ns < 0 ? -errno : ns;
}

int csn_netns_make(void)
{
    return unshare(CLONE_NEWNET) < 0 ? -errno : loopback_up();
}

int csn_netns_enter(int ns)
{
    return setns(ns, CLONE_NEWNET) < 0 ? -errno : 0;
}

static int probe(int family, const void *addr, socklen_t len)
{
    csn_autofd int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t elen = sizeof(int);
    int e = 0;

    if (fd < 0)
        return -errno;
    if (connect(fd, addr, len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    struct pollfd pf = {.fd = fd, .events = POLLOUT};
    if (poll(&pf, 1, CONNECT_MS) != 1)
        return -ETIMEDOUT;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &elen) < 0 ? -errno : -e;
}

int csn_port_probe(uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int rc = probe(AF_INET, &v4, sizeof(v4));

    return rc == 0 || probe(AF_INET6, &v6, sizeof(v6)) == 0 ? 0 : rc;
}
