/* netns.c: makes a network namespace with loopback only, probes its ports and reads its
 * counters. */
#include "os/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
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

/* Reads the beginning of a file: the length, 0 on failure. */
static size_t read_start(int proc, const char *path, char *buf, size_t size)
{
    csn_autofd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The value in the second line that stands where the first line has the name. */
static uint64_t column_of(const char *text, const char *name)
{
    const char *values = strchr(text, '\n');

    for (const char *at = text; values && *at && *at != '\n';) {
        size_t len = strcspn(at, " \n");
        if (values[0] == '\n' || values[0] == ' ')
            values++;
        if (len == strlen(name) && memcmp(at, name, len) == 0)
            return strtoull(values, NULL, 10);
        at += len + (at[len] == ' ');
        values += strcspn(values, " \n");
        if (*values != ' ')
            break;
    }
    return 0;
}

uint64_t csn_netns_unrouted(int proc)
{
    static const char v6[] = "\nIp6OutNoRoutes";
    char text[2048]; /* both stand near the beginning */
    uint64_t count = 0;

    if (read_start(proc, "self/net/snmp", text, sizeof(text)) > 0)
        count = column_of(text, "OutNoRoutes");
    if (read_start(proc, "self/net/snmp6", text, sizeof(text)) > 0) {
        const char *at = strstr(text, v6);
        count += at ? strtoull(at + strlen(v6), NULL, 10) : 0;
    }
    return count;
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
