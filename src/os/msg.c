/* msg.c: sends and receives messages with descriptors.
 *
 * The peer may be compromised: a body is accepted only in a sealed memfd, which its owner can
 * neither change nor truncate, and is copied; unexpected descriptors are closed. Linked into
 * the library, the keeper and the gateway. */
#include "os/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define GRACE_MS     1000u
#define LATE_TRIES   3
#define SUSPENDED_NS 250000000u /* more than any scheduling delay */

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int csn_sealed_memfd(const char *name, const void *data, size_t len)
{
    csn_autofd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const char *p = data;

    if (fd < 0)
        return -errno;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        len -= (size_t)n;
    }
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        return -errno;
    return csn_steal_fd(&fd);
}

/* Waits until the socket is ready; -ETIMEDOUT. Both processes may be stopped or frozen until
 * after the deadline, so the peer gets a grace period, repeated until this process has run
 * throughout it. */
static int await_ready(int sock, short events, uint64_t deadline_ns)
{
    struct pollfd pf = {.fd = sock, .events = events};
    uint64_t until = deadline_ns;
    bool grace = false;

    for (;;) {
        int n = poll(&pf, 1, csn_deadline_poll_ms(until));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n < 0)
            continue;
        bool suspended = csn_now_ns() - until > SUSPENDED_NS;
        if (grace && !suspended)
            return -ETIMEDOUT;
        grace = true;
        until = csn_deadline_in(GRACE_MS);
    }
}

/* Never blocks in sendmsg: a peer that does not read could block it for ever. */
static int send_waiting(int sock, const struct msghdr *mh, uint64_t deadline_ns)
{
    for (int late = 0; late < LATE_TRIES;) {
        ssize_t n = sendmsg(sock, mh, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            return 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || deadline_ns == 1)
            return -errno;
        int rc = await_ready(sock, POLLOUT, deadline_ns);
        if (rc < 0)
            return rc;
        /* Another thread may have filled the buffer again. */
        late += csn_deadline_poll_ms(deadline_ns) == 0;
    }
    return -ETIMEDOUT;
}

int csn_msg_send(int sock, uint16_t type, const void *body, size_t len, const int *fds,
                 size_t nfds, uint64_t deadline_ns)
{
    csn_msg_head head = {CSN_MSG_MAGIC, CSN_MSG_VERSION, type, 0, (uint32_t)len};
    int all[CSN_KEEPER_FDS_MAX];
    csn_autofd int memfd = -1;

    if (len > CSN_KEEPER_BODY_MAX || nfds >= CSN_KEEPER_FDS_MAX)
        return -E2BIG;
    if (nfds > 0)
        memcpy(all, fds, nfds * sizeof(all[0]));
    if (len + sizeof(head) > CSN_KEEPER_MSG_MAX) {
        memfd = csn_sealed_memfd("caisson-msg", body, len);
        if (memfd < 0)
            return memfd;
        all[nfds++] = memfd;
        head.flags |= CSN_MSG_BODY_FD;
    }
    union {
        char bytes[CMSG_SPACE(sizeof(int) * CSN_KEEPER_FDS_MAX)];
        struct cmsghdr align;
    } ctl;
    struct iovec iov[2] = {{&head, sizeof(head)},
                           {(void *)(uintptr_t)body, memfd < 0 ? len : 0}};
    struct msghdr mh = {.msg_iov = iov, .msg_iovlen = iov[1].iov_len > 0 ? 2 : 1};
    if (nfds > 0) { /* the padding is sent too: it must not hold stack bytes */
        memset(&ctl, 0, sizeof(ctl));
        mh.msg_control = ctl.bytes;
        mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(c), all, sizeof(int) * nfds);
    }
    return send_waiting(sock, &mh, deadline_ns);
}

/* All programs are installed together, so another version is an error. */
int csn_msg_check(const void *packet, size_t n, size_t nfds, csn_msg_head *ret)
{
    if (n < sizeof(*ret))
        return -EPROTO;
    memcpy(ret, packet, sizeof(*ret));
    if (ret->magic != CSN_MSG_MAGIC || ret->version != CSN_MSG_VERSION)
        return -EPROTO;
    if ((ret->flags & ~CSN_MSG_BODY_FD) != 0)
        return -EPROTO;
    if (ret->flags & CSN_MSG_BODY_FD)
        return nfds > 0 && n == sizeof(*ret) && ret->length <= CSN_KEEPER_BODY_MAX ? 0
                                                                                   : -EPROTO;
    return ret->length == n - sizeof(*ret) ? 0 : -EPROTO;
}

int csn_msg_next_type(int sock)
{
    csn_msg_head head;
    ssize_t n = recv(sock, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);

    return n == (ssize_t)sizeof(head) ? head.type : -1;
}

/* Copies the body out of the last descriptor, which must be a sealed memfd. */
static int read_body_fd(csn_msg *m, size_t len)
{
    csn_autofd int fd = m->fds[--m->nfds];
    struct stat st;
    size_t got = 0;

    if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 ||
        (uint64_t)st.st_size != len)
        return -EPROTO;
    m->heap = malloc(len + 1);
    if (!m->heap)
        return -ENOMEM;
    while (got < len) {
        ssize_t n = pread(fd, (char *)m->heap + got, len - got, (off_t)got);
        if (n <= 0)
            return -EPROTO;
        got += (size_t)n;
    }
    m->body = m->heap;
    m->len = len;
    return 0;
}

/* Takes every descriptor that arrived, also unexpected ones: they would leak. */
static void collect_fds(struct msghdr *mh, csn_msg *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (m->nfds < CSN_KEEPER_FDS_MAX)
                m->fds[m->nfds++] = fd;
            else
                close(fd);
        }
    }
}

/* The kernel drops descriptors that exceed the limit of this process; a sender that breaks the
 * protocol sends more than there is room for. */
static int truncated(const struct msghdr *mh, const csn_msg *m)
{
    bool dropped = !(mh->msg_flags & MSG_TRUNC) && m->nfds < CSN_KEEPER_FDS_MAX;

    return dropped ? -EMFILE : -EPROTO;
}

int csn_msg_recv(int sock, void *buf, size_t size, csn_msg *ret)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * CSN_KEEPER_FDS_MAX)];
        struct cmsghdr align;
    } ctl;
    struct iovec iov = {buf, size};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.bytes,
                        .msg_controllen = sizeof(ctl.bytes)};
    csn_msg m = {0};
    csn_msg_head head;
    ssize_t n;

    /* ECONNRESET: the peer closed with our message unread. The kernel reports it once, before
     * the peer's last messages, so the loop reads on. */
    int resets = 0;
    do
        n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (n < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    if (n < 0)
        return errno == ECONNRESET ? 0 : -errno;
    collect_fds(&mh, &m);
    if (n == 0 && m.nfds == 0)
        return 0;
    int rc = (mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
                 ? truncated(&mh, &m)
                 : csn_msg_check(buf, (size_t)n, m.nfds, &head);
    if (rc == 0) {
        m.type = head.type;
        m.body = (const uint8_t *)buf + sizeof(head);
        m.len = head.length;
        if (head.flags & CSN_MSG_BODY_FD)
            rc = read_body_fd(&m, head.length);
    }
    if (rc < 0) {
        csn_msg_release(&m);
        return rc;
    }
    *ret = m;
    return 1;
}

void csn_msg_release(csn_msg *m)
{
    for (size_t i = 0; i < m->nfds; i++)
        if (m->fds[i] >= 0)
            close(m->fds[i]);
    free(m->heap);
    *m = (csn_msg){0};
}

int csn_msg_take_fd(csn_msg *m, size_t i)
{
    return i < m->nfds ? csn_steal_fd(&m->fds[i]) : -1;
}

int csn_msg_request(int sock, uint16_t type, const void *body, size_t len, const int *fds,
                    size_t nfds, uint64_t deadline_ns, int *ret_channel)
{
    int pair[2], all[CSN_KEEPER_FDS_MAX];

    if (nfds + 1 > CSN_KEEPER_FDS_MAX)
        return -E2BIG;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    csn_autofd int ours = pair[0];
    all[0] = pair[1];
    if (nfds > 0)
        memcpy(all + 1, fds, nfds * sizeof(*fds));
    int rc = csn_msg_send(sock, type, body, len, all, nfds + 1, deadline_ns);
    close(pair[1]); /* an open copy would hide that the peer has hung up */
    if (rc == -ECONNRESET || rc == -ENOTCONN)
        return -EPIPE;
    if (rc == 0)
        *ret_channel = csn_steal_fd(&ours);
    return rc;
}

int csn_msg_await(int sock, uint64_t deadline_ns, void *buf, size_t size, csn_msg *ret)
{
    for (;;) {
        int rc = await_ready(sock, POLLIN, deadline_ns);
        if (rc == 0)
            rc = csn_msg_recv(sock, buf, size, ret);
        if (rc != -EAGAIN)
            return rc;
    }
}
