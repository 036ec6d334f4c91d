/* unix_sockets.c: lists the bound unix sockets of the network namespace.
 *
 * On a host with many sandboxes nearly all sockets are unnamed pairs: sock_diag skips those in
 * the kernel, whereas /proc/net/unix prints a line for each. Other users choose the names; the
 * kernel bounds them to 108 bytes, and they are never opened here. */
#include "os/unix_sockets.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ANSWER_MAX 8192u /* the kernel's NLMSG_GOODSIZE has at most so many bytes */

#define DEV_MINOR_BITS 20 /* the kernel's own form of a device number */

typedef int (*name_fn)(void *ctx, const csn_unix_socket *name);

static int send_dump_request(int fd)
{
    struct {
        struct nlmsghdr head;
        struct unix_diag_req req;
    } m = {.head = {.nlmsg_len = sizeof(m),
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
           /* a connected socket accepts no connection */
           .req = {.sdiag_family = AF_UNIX,
                   .udiag_states = ~(1u << TCP_ESTABLISHED),
                   .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS}};

    return send(fd, &m, sizeof(m), 0) == (ssize_t)sizeof(m) ? 0 : -errno;
}

static int handle_socket(const struct nlmsghdr *h, name_fn fn, void *ctx)
{
    const struct unix_diag_msg *m = NLMSG_DATA(h);
    size_t left = h->nlmsg_len > NLMSG_LENGTH(sizeof(*m)) ? NLMSG_PAYLOAD(h, sizeof(*m)) : 0;
    const struct rtattr *a = (const void *)((const char *)m + NLMSG_ALIGN(sizeof(*m)));

    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1] = {0};
    csn_unix_socket one = {.path = path};

    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        size_t len = RTA_PAYLOAD(a);
        struct unix_diag_vfs vfs;
        if (a->rta_type == UNIX_DIAG_NAME && len < sizeof(path)) {
            memcpy(path, RTA_DATA(a), len);
        } else if (a->rta_type == UNIX_DIAG_VFS && len >= sizeof(vfs)) {
            memcpy(&vfs, RTA_DATA(a), sizeof(vfs));
            one.known = true;
            one.ino = vfs.udiag_vfs_ino;
            one.dev_major = vfs.udiag_vfs_dev >> DEV_MINOR_BITS;
            one.dev_minor = vfs.udiag_vfs_dev & ((1u << DEV_MINOR_BITS) - 1);
        }
    }
    return path[0] ? fn(ctx, &one) : 0; /* else unnamed or abstract */
}

/* 1: more messages follow. */
static int handle_answer(const char *data, size_t len, name_fn fn, void *ctx)
{
    const struct nlmsghdr *h = (const void *)data;

    for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
        if (h->nlmsg_type == NLMSG_DONE)
            return 0;
        if (h->nlmsg_type == NLMSG_ERROR) {
            const struct nlmsgerr *e = NLMSG_DATA(h);
            return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ? -EPROTO : e->error;
        }
        if (handle_socket(h, fn, ctx) != 0)
            return 0;
    }
    return 1;
}

static int list_by_netlink(name_fn fn, void *ctx)
{
    _Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
    csn_autofd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    int rc = fd < 0 ? -errno : send_dump_request(fd);
    for (rc = rc == 0 ? 1 : rc; rc == 1;) {
        ssize_t n = recv(fd, answer, ANSWER_MAX, 0);
        if (n < 0 && errno == EINTR)
            continue;
        rc = n < 0 ? -errno : handle_answer(answer, (size_t)n, fn, ctx);
    }
    return rc;
}

/* "ffff...: 00000002 00000000 00010000 0001 01 12345 /run/x.sock": the name is the eighth word
 * and may hold blanks. */
static const char *parse_name(char *line)
{
    char *p = line;

    for (int i = 0; i < 7 && *p; i++) {
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
    p[strcspn(p, "\n")] = '\0';
    return *p == '@' || *p == '\0' ? NULL : p;
}

static int list_by_proc(name_fn fn, void *ctx)
{
    FILE *list = fopen("/proc/net/unix", "re");
    csn_autofree char *line = NULL;
    size_t cap = 0;
    bool stop = false;

    if (!list)
        return -errno;
    while (!stop && getline(&line, &cap, list) > 0) {
        const csn_unix_socket one = {.path = parse_name(line)};
        stop = one.path && fn(ctx, &one) != 0;
    }
    fclose(list);
    return 0;
}

/* The module for sock_diag may be missing; then /proc/net/unix is read. */
int csn_unix_sockets_each(name_fn fn, void *ctx)
{
    return list_by_netlink(fn, ctx) == 0 ? 0 : list_by_proc(fn, ctx);
}
