/* ports.c: single ports that cross the wall by rule of their own.
 *
 * Published: the gateway listens on the host's loopback and connects to a port inside, with a
 * socket that the keeper makes there and sends. Lent: a listener inside leads to a port of the
 * host's loopback. Both are named by the user, port by port, so the rules about names and
 * addresses are not asked. Who connects to a published port is any process of the host. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/gateway.h"

#define BACKLOG 128

static csn_netaddr loopback(unsigned family)
{
    static const uint8_t four[4] = {127, 0, 0, 1};
    static const uint8_t six[16] = {[15] = 1};

    return family == 4 ? csn_netaddr_v4(four) : csn_netaddr_v6(six);
}

/* ---- lent ------------------------------------------------------------------------------ */

void gw_ports_lent(gw_flow *f, uint16_t host)
{
    csn_netaddr both[2] = {loopback(4), loopback(6)};

    f->judged = true;
    gw_flow_dial(f, both, 2, host);
}

/* ---- published ------------------------------------------------------------------------- */

/* One byte; its answer comes when it comes, in the order of the questions. */
static void ask_keeper(gw_flow *f, uint8_t family)
{
    gw_gateway *g = f->gate;

    if (g->link.fd < 0 || g->line_len == CSN_LINK_LINE ||
        send(g->link.fd, &family, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
        gw_flow_failed(f, EAGAIN);
        return;
    }
    f->dialling = true;
    f->awaits = family;
    g->line[(g->line_at + g->line_len++) % CSN_LINK_LINE] = f;
}

void gw_ports_forget(gw_flow *f)
{
    gw_gateway *g = f->gate;

    for (size_t i = 0; f->awaits && i < g->line_len; i++) {
        gw_flow **at = &g->line[(g->line_at + i) % CSN_LINK_LINE];
        if (*at == f)
            *at = NULL;
    }
    f->awaits = 0;
}

/* A server inside may listen on one family only. */
static void inside_dialled(void *flow, int fd, const csn_netaddr *addr)
{
    gw_flow *f = flow;

    if (fd == -ECONNREFUSED && addr->family == 0 && f->peer.family == 4) {
        f->dial = NULL;
        f->peer = loopback(6);
        ask_keeper(f, 6);
        return;
    }
    gw_flow_dialled(flow, fd, addr);
}

void gw_ports_published(gw_flow *f, uint16_t inside)
{
    f->judged = true;
    f->to.port = inside;
    f->peer = loopback(4);
    ask_keeper(f, 4);
}

/* The socket of the answer, -errno, or 1: there is no answer yet. */
static int take_answer(int link)
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

static void answered(gw_gateway *g, int fd)
{
    gw_flow *f = g->line[g->line_at];

    g->line_at = (g->line_at + 1) % CSN_LINK_LINE;
    g->line_len--;
    if (!f) {
        if (fd >= 0)
            close(fd);
        return;
    }
    uint8_t family = f->awaits;
    f->awaits = 0;
    if (fd < 0) {
        gw_flow_failed(f, -fd);
        return;
    }
    csn_netaddr to = loopback(family);
    f->dial = gw_dial_with(&g->loop, fd, &to, f->to.port, f, inside_dialled);
    if (!f->dial)
        gw_flow_failed(f, ENOMEM);
}

/* The keeper is trusted no more than anybody who speaks to it: an answer that nobody asked for
 * ends the link, and published ports with it. */
static void on_link(gw_io *io, uint32_t events)
{
    gw_gateway *g = CSN_OWNER(gw_gateway, link, io);

    (void)events;
    for (;;) {
        int fd = take_answer(io->fd);
        if (fd == 1 && !(events & (EPOLLHUP | EPOLLERR)))
            return;
        if (fd == -EPIPE || fd == -ECONNRESET || g->line_len == 0 || fd == 1) {
            gw_loop_close(io);
            while (g->line_len > 0)
                answered(g, -EPIPE);
            return;
        }
        answered(g, fd);
    }
}

int gw_ports_link(gw_gateway *g, int fd)
{
    return gw_loop_listen(&g->loop, &g->link, fd, on_link);
}

/* ---- listening on the host ------------------------------------------------------------- */

/* REUSEADDR: a sandbox that is made again soon has its port again. */
static int listen_on(unsigned family, uint16_t port)
{
    csn_autofd int fd = socket(family == 4 ? AF_INET : AF_INET6,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr *sa = family == 4 ? (void *)&in : (void *)&in6;
    socklen_t len = family == 4 ? sizeof(in) : sizeof(in6);
    int on = 1;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, sa, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return csn_steal_fd(&fd);
}

/* The v4 one must be; the v6 one is for programs that try it first, where it is free. */
int gw_ports_publish(gw_gateway *g, uint16_t inside, uint16_t *port)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);
    csn_netaddr bound;
    csn_autofd int four = listen_on(4, *port);

    if (four < 0)
        return four;
    if (getsockname(four, (struct sockaddr *)&ss, &len) < 0)
        return -errno;
    gw_sockaddr_read(&ss, &bound, port);
    int rc = gw_listener_open(g, four, CSN_WAY_PUBLISHED, inside, NULL);
    if (rc < 0)
        return rc;
    (void)csn_steal_fd(&four);
    csn_autofd int six = listen_on(6, *port);
    if (six >= 0 && gw_listener_open(g, six, CSN_WAY_PUBLISHED, inside, NULL) == 0)
        (void)csn_steal_fd(&six);
    return 0;
}
