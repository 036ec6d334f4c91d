/* ports.c: connects published ports and host ports.
 *
 * Published: the gateway listens on the host's loopback and connects to a port inside through a
 * socket that the keeper creates there. Host port: the gateway forwards connections to a
 * listener inside to a port of the host's loopback. The user lists each port explicitly, so the
 * rules for names and addresses do not apply. Any process on the host may connect to a
 * published port. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/gateway.h"
#include "gateway/socket.h"

#define BACKLOG 128

/* ---- host ports ------------------------------------------------------------------------ */

void gw_ports_connect_host(gw_flow *f, uint16_t host)
{
    csn_netaddr both[2] = {gw_loopback(4), gw_loopback(6)};

    f->inspected = true;
    gw_flow_dial(f, both, 2, host);
}

/* ---- published ports ------------------------------------------------------------------- */

/* The keeper replies in the order of the requests. */
static void request_socket(gw_flow *f, uint8_t family)
{
    gw_gateway *g = f->gateway;

    if (g->link.fd < 0 || g->link_len == GW_LINK_QUEUE_MAX ||
        send(g->link.fd, &family, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
        gw_flow_failed(f, EAGAIN);
        return;
    }
    f->dialling = true;
    f->awaited_family = family;
    g->link_queue[(g->link_head + g->link_len++) % GW_LINK_QUEUE_MAX] = f;
}

void gw_ports_cancel(gw_flow *f)
{
    gw_gateway *g = f->gateway;

    for (size_t i = 0; f->awaited_family && i < g->link_len; i++) {
        gw_flow **at = &g->link_queue[(g->link_head + i) % GW_LINK_QUEUE_MAX];
        if (*at == f)
            *at = NULL;
    }
    f->awaited_family = 0;
}

/* Retries over IPv6: a server inside may listen on IPv6 only. */
static void on_inside_dialled(void *flow, int fd, const csn_netaddr *addr)
{
    gw_flow *f = flow;

    if (fd == -ECONNREFUSED && addr->family == 0 && f->peer.family == 4) {
        f->dial = NULL;
        f->peer = gw_loopback(6);
        request_socket(f, 6);
        return;
    }
    gw_flow_on_dialled(flow, fd, addr);
}

void gw_ports_connect_inside(gw_flow *f, uint16_t inside)
{
    f->inspected = true;
    f->target.port = inside;
    f->peer = gw_loopback(4);
    request_socket(f, 4);
}

/* Returns the socket, -errno from the keeper or the link, or 1 if there is no reply yet. */
static int recv_socket(int link)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl;
    uint8_t error = EPROTO;
    struct iovec iov = {&error, 1};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.bytes,
                        .msg_controllen = sizeof(ctl.bytes)};
    int fd = -1;
    ssize_t n = recvmsg(link, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
    struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    if (n == 1 && error == 0 && fd >= 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return n == 0 ? -EPIPE : error != 0 ? -(int)error : -EPROTO;
}

static void on_socket_reply(gw_gateway *g, int fd)
{
    gw_flow *f = g->link_queue[g->link_head];

    g->link_head = (g->link_head + 1) % GW_LINK_QUEUE_MAX;
    g->link_len--;
    if (!f) {
        if (fd >= 0)
            close(fd);
        return;
    }
    uint8_t family = f->awaited_family;
    f->awaited_family = 0;
    if (fd < 0) {
        gw_flow_failed(f, -fd);
        return;
    }
    csn_netaddr to = gw_loopback(family);
    f->dial = gw_dial_with(&g->loop, fd, &to, f->target.port, f, on_inside_dialled);
    if (!f->dial)
        gw_flow_failed(f, ENOMEM);
}

/* The keeper is not trusted: an unsolicited reply closes the link, and published ports stop
 * working. */
static void on_link(gw_io *io, uint32_t events)
{
    gw_gateway *g = GW_CONTAINER_OF(gw_gateway, link, io);

    (void)events;
    for (;;) {
        int fd = recv_socket(io->fd);
        if (fd == 1 && !(events & (EPOLLHUP | EPOLLERR)))
            return;
        if (fd == -EPIPE || fd == -ECONNRESET || g->link_len == 0 || fd == 1) {
            gw_loop_close(io);
            while (g->link_len > 0)
                on_socket_reply(g, -EPIPE);
            return;
        }
        on_socket_reply(g, fd);
    }
}

int gw_ports_link(gw_gateway *g, int fd)
{
    return gw_loop_add_level(&g->loop, &g->link, fd, on_link);
}

/* ---- listening on the host ------------------------------------------------------------- */

/* SO_REUSEADDR lets a sandbox that is re-created at once bind the same port. */
static int listen_on(unsigned family, uint16_t port)
{
    csn_autofd int fd = socket(family == 4 ? AF_INET : AF_INET6,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    struct sockaddr_storage ss;
    csn_netaddr loopback = gw_loopback(family);
    socklen_t len = gw_netaddr_to_sockaddr(&loopback, port, &ss);
    int on = 1;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&ss, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return csn_steal_fd(&fd);
}

/* IPv4 is required; IPv6 serves clients that try it first, if the port is free there. */
int gw_ports_publish(gw_gateway *g, uint16_t inside, uint16_t *port)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    csn_netaddr bound;
    csn_autofd int v4 = listen_on(4, *port);

    if (v4 < 0)
        return v4;
    if (getsockname(v4, (struct sockaddr *)&ss, &len) < 0)
        return -errno;
    gw_sockaddr_to_netaddr((struct sockaddr *)&ss, &bound, port);
    int rc = gw_listener_open(g, v4, GW_ORIGIN_PUBLISHED, inside, NULL);
    if (rc < 0)
        return rc;
    (void)csn_steal_fd(&v4);
    csn_autofd int v6 = listen_on(6, *port);
    if (v6 >= 0 && gw_listener_open(g, v6, GW_ORIGIN_PUBLISHED, inside, NULL) == 0)
        (void)csn_steal_fd(&v6);
    return 0;
}
