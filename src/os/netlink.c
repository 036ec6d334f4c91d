/* netlink.c: builds and sends netlink requests and reads the kernel's answers.
 *
 * Invariants: a batch that did not fit is never sent in part; only the caller's memory is
 * written, because callers may share theirs with another process (keeper/boot/helper.h). */
#include "os/netlink.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NLA_F_NESTED 0x8000u
#define NLMSG_ERROR  2u

struct nlmsghdr {
    uint32_t len;
    uint16_t type, flags;
    uint32_t seq, pid;
};

static void *reserve(csn_nl *b, size_t n)
{
    size_t padded = (n + 3) & ~(size_t)3;

    if (b->full || padded > sizeof(b->data) - b->len) {
        b->full = true;
        return NULL;
    }
    uint8_t *p = b->data + b->len;
    memset(p, 0, padded);
    b->len += padded;
    return p;
}

void csn_nl_begin(csn_nl *b, uint16_t type, uint16_t flags, uint8_t step, const void *head,
                  size_t len)
{
    struct nlmsghdr h = {
        .type = type, .flags = (uint16_t)(CSN_NL_REQUEST | flags), .seq = b->count};

    if (b->count >= CSN_NL_MESSAGES_MAX) {
        b->full = true;
        return;
    }
    b->steps[b->count++] = step;
    b->message = b->len;
    uint8_t *p = reserve(b, sizeof(h) + len);
    if (!p)
        return;
    memcpy(p, &h, sizeof(h));
    memcpy(p + sizeof(h), head, len);
}

void csn_nl_end(csn_nl *b)
{
    uint32_t n = (uint32_t)(b->len - b->message);

    if (!b->full)
        memcpy(b->data + b->message, &n, sizeof(n));
}

void csn_nl_put(csn_nl *b, uint16_t type, const void *data, size_t len)
{
    uint16_t head[2] = {(uint16_t)(sizeof(head) + len), type};
    uint8_t *p = reserve(b, sizeof(head) + len);

    if (!p)
        return;
    memcpy(p, head, sizeof(head));
    if (len > 0)
        memcpy(p + sizeof(head), data, len);
}

void csn_nl_put_text(csn_nl *b, uint16_t type, const char *text)
{
    csn_nl_put(b, type, text, strlen(text) + 1);
}

void csn_nl_put_be32(csn_nl *b, uint16_t type, uint32_t v)
{
    uint32_t be = htonl(v);

    csn_nl_put(b, type, &be, sizeof(be));
}

size_t csn_nl_open(csn_nl *b, uint16_t type)
{
    size_t at = b->len;

    csn_nl_put(b, type | NLA_F_NESTED, NULL, 0);
    return at;
}

void csn_nl_close(csn_nl *b, size_t at)
{
    uint16_t n = (uint16_t)(b->len - at);

    if (!b->full)
        memcpy(b->data + at, &n, sizeof(n));
}

int csn_nl_send(csn_nl *b, int protocol)
{
    const struct {
        uint16_t family, pad;
        uint32_t pid, groups;
    } kernel = {.family = AF_NETLINK};
    csn_autofd int fd = -1;

    if (b->full)
        return -EMSGSIZE;
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0 ||
        sendto(fd, b->data, b->len, 0, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
        return -errno;
    return csn_steal_fd(&fd);
}

int csn_nl_answer(int fd, uint32_t *ret_seq, int *ret_error)
{
    struct {
        struct nlmsghdr head;
        int32_t error;
        uint8_t request[1024]; /* echoed */
    } a;
    ssize_t n;

    do
        n = recv(fd, &a, sizeof(a), MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    if ((size_t)n < sizeof(a.head) + sizeof(a.error) || a.head.type != NLMSG_ERROR ||
        a.error > 0)
        return -EPROTO;
    *ret_seq = a.head.seq;
    *ret_error = a.error;
    return 1;
}
