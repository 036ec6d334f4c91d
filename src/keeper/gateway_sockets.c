/* gateway_sockets.c: creates the sockets that the gateway uses inside the jail's network.
 *
 * The gateway runs outside; only the keeper is in that network. During boot the keeper creates
 * the listening sockets (os/gateway_net.h) and sends them with READY. It closes its own copies,
 * so that the ports are closed when the gateway has ended. Later the gateway asks on the link
 * for sockets to connect to ports inside: a request is one byte, and any other packet closes
 * the link, because the gateway parses hostile input and may be compromised. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/keeper.h"
#include "os/gateway_net.h"

static csn_gateway_net built = {.fds = {-1, -1, -1, -1, -1, -1, -1}};
static int gateway_end = -1;

static void list_fds(const csn_gateway_net_order *order, csn_ready_msg *ready, int *ret,
                     size_t *ret_count)
{
    size_t n = 0;

    ret[n++] = gateway_end;
    for (uint32_t i = 0; i < CSN_GATEWAY_NET_SOCKETS; i++)
        if (built.fds[i] >= 0) {
            ready->net_sockets |= 1u << i;
            ret[n++] = built.fds[i];
        }
    for (uint32_t i = 0; i < order->host_port_count; i++)
        ret[n++] = built.host_ports[i];
    *ret_count = n;
}
_Static_assert(2 + CSN_GATEWAY_NET_SOCKETS + CSN_GATEWAY_NET_HOST_PORTS_MAX <=
                   CSN_KEEPER_FDS_MAX,
               "the root and all sockets fit into one message");

int kp_net_build(kp_keeper *k, csn_ready_msg *ready, int *ret_fds, size_t *ret_count,
                 csn_failed_msg *failed)
{
    const csn_gateway_net_order *order = &k->spec.confinement.net;
    int pair[2];

    *ret_count = 0;
    if (order->mode == CSN_GATEWAY_NET_NONE) {
        kp_names_open(k);
        return 0;
    }
    int rc = csn_gateway_net_build(order, &built);
    failed->net_step = built.step;
    failed->net_detail = built.detail;
    if (rc < 0)
        return rc;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -errno;
    k->net.fd = pair[0];
    gateway_end = pair[1];
    ready->net_mode = built.mode;
    ready->net_lacking = (uint32_t)built.lacking;
    ready->proxy_port = built.proxy_port;
    list_fds(order, ready, ret_fds, ret_count);
    return 0;
}

void kp_net_release(void)
{
    if (gateway_end < 0)
        return;
    csn_gateway_net_close(&built);
    close(csn_steal_fd(&gateway_end));
}

int kp_net_watch(kp_keeper *k)
{
    return k->net.fd < 0 ? 0 : kp_watch_open(k, &k->net, KP_WATCH_NET, k->net.fd, NULL);
}

/* One byte, errno or 0, and the socket. */
static int answer(int to, uint8_t error, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = {.bytes = {0}};
    struct iovec iov = {.iov_base = &error, .iov_len = sizeof(error)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    return sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

void kp_net_serve(kp_keeper *k)
{
    uint8_t ask[2];
    ssize_t n = recv(k->net.fd, ask, sizeof(ask), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    int rc = n == 1 ? 0 : -EPROTO; /* 0: the gateway has ended */
    if (rc == 0) {
        csn_autofd int fd = csn_gateway_net_tcp_socket(ask[0]);
        rc = answer(k->net.fd, fd < 0 ? (uint8_t)-fd : 0, fd);
    }
    if (rc < 0) /* a lost reply would shift all later ones */
        kp_watch_close(k, &k->net);
}
