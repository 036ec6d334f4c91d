/* netns.c: a network with loopback and nothing else. Servers and tests inside need that much.
 *
 * Called by keepers, in the network of their commands, and by the library in its own. */
#include "os/netns.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ANSWER_MS 100 /* loopback answers at once, unless a backlog is full */

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C /* the network namespace of a socket, as a descriptor */
#endif

/* Brings loopback up in the network we are in, and opens that network. Not by its name in
 * /proc: whoever builds a root file system beside us may have covered that by now. */
static int loopback_up(int *ret_ns)
{
    csn_autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo"};

    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
        return -errno;
    r.ifr_flags = (short)(r.ifr_flags | IFF_UP | IFF_RUNNING);
    if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
        return -errno;
    *ret_ns = ioctl(fd, SIOCGSKNS);
    return *ret_ns < 0 ? -errno : 0;
}

/* Runs beside its parent, in the same memory: it calls the kernel and touches nothing but *w. A
 * failed call sets errno, which both share; the parent looks at its own errno only right after
 * a call of its own that failed, and then either way something went wrong that ends it. */
static int worker(void *arg)
{
    csn_netns_work *w = arg;

    if (unshare(CLONE_NEWNET) < 0) {
        w->error = errno;
        return 0;
    }
    w->error = -loopback_up(&w->fd);
    return 0;
}

int csn_netns_begin(csn_netns_work *w)
{
    static _Alignas(64) char stack[16384];

    *w = (csn_netns_work){.pid = -1, .fd = -1};
    w->pid = clone(worker, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, w);
    return w->pid < 0 ? -errno : 0;
}

int csn_netns_join(csn_netns_work *w)
{
    while (waitpid(w->pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    csn_autofd int fd = w->fd;
    if (w->error != 0)
        return -w->error;
    return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
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
    if (poll(&pf, 1, ANSWER_MS) != 1)
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
