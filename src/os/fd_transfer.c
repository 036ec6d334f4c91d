/* fd_transfer.c: passes descriptors to a child that shares the host's table, without copying
 * the table.
 *
 * close_range(CLOSE_RANGE_UNSHARE) gives the child a private table truncated at a low number.
 * The library therefore keeps one socket pair at low descriptor numbers for the life of the
 * process; the child receives everything else over it with SCM_RIGHTS.
 *
 * Invariants:
 *  - The pair is verified (process and inodes) before each use: the host may have closed it,
 *    reused the numbers, or forked. A stale pair is replaced; foreign numbers are not closed.
 *  - At most one message is in the pair: `full` is held from send to receive. */
#include "os/fd_transfer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/raw_syscall.h"
#include "os/vfork_lock.h"

#define UNSHARE 2u /* CLOSE_RANGE_UNSHARE */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static csn_vfork_lock full; /* a message is in the pair */
static bool stale;          /* a message that no child will receive is in it */
static struct {
    pid_t owner;
    int receive, send; /* the ends */
    ino_t receive_ino, send_ino;
} pair = {.receive = -1, .send = -1};

static bool is_socket(int fd, ino_t ino)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == ino;
}

static int ensure_pair(void)
{
    struct stat st;
    int fd[2];

    if (pair.owner == getpid() && is_socket(pair.receive, pair.receive_ino) &&
        is_socket(pair.send, pair.send_ino))
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0)
        return -errno;
    pair.owner = getpid();
    pair.receive = fd[0];
    pair.send = fd[1];
    pair.receive_ino = fstat(fd[0], &st) == 0 ? st.st_ino : 0;
    pair.send_ino = fstat(fd[1], &st) == 0 ? st.st_ino : 0;
    return 0;
}

static void drop_pair(void)
{
    if (is_socket(pair.receive, pair.receive_ino))
        close(pair.receive);
    if (is_socket(pair.send, pair.send_ino))
        close(pair.send);
    pair.receive = pair.send = -1;
}

static void lock_empty(void)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        if (!csn_vfork_lock_is_taken(&full))
            return;
        pthread_mutex_unlock(&lock);
        csn_vfork_lock_wait(&full);
    }
}

static void drop_stale(void)
{
    if (!__atomic_load_n(&stale, __ATOMIC_ACQUIRE))
        return;
    drop_pair();
    __atomic_store_n(&stale, false, __ATOMIC_RELAXED);
}

int csn_fd_transfer_begin(const int *fds, size_t n)
{
    char one = 0;
    union {
        char bytes[CMSG_SPACE(sizeof(int) * CSN_FD_TRANSFER_MAX)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {.iov_base = &one, .iov_len = 1};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    if (n > CSN_FD_TRANSFER_MAX)
        return -E2BIG;
    lock_empty();
    drop_stale();
    int rc = ensure_pair();
    if (rc == 0 && n > 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * n),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
    }
    if (rc == 0 && sendmsg(pair.send, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        rc = -errno;
    if (rc == 0) {
        csn_vfork_lock_take(&full);
        rc = pair.receive;
    } else {
        drop_pair();
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void csn_fd_transfer_end(csn_fd_transfer h)
{
    if (h == CSN_FD_TRANSFER_TAKEN)
        return;
    pthread_mutex_lock(&lock);
    if (h == CSN_FD_TRANSFER_SENT) /* the child was killed before it received them */
        csn_fd_transfer_abandon();
    drop_stale();
    pthread_mutex_unlock(&lock);
}

CSN_IN_CHILD void csn_fd_transfer_abandon(void)
{
    __atomic_store_n(&stale, true, __ATOMIC_RELEASE);
    csn_vfork_lock_release(&full);
}

CSN_IN_CHILD int csn_fd_transfer_take(int at, int *fds, size_t n)
{
    char one;
    union {
        char bytes[CMSG_SPACE(sizeof(int) * CSN_FD_TRANSFER_MAX)];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = &one, .iov_len = 1};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};

    long rc = csn_raw(SYS_close_range, (unsigned)at + 1, ~0u, UNSHARE);
    if (rc == 0)
        rc = csn_raw(SYS_recvmsg, at, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (rc != 1)
        return rc < 0 ? (int)rc : -EPROTO;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (m.msg_flags & MSG_CTRUNC)
        return -EMFILE; /* the kernel drops what exceeds the limit of descriptors */
    if (n > 0 && (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int) * n)))
        return -EPROTO;
    csn_vfork_lock_release(&full);
    if (n == 0)
        return 0;
    const int *sent = (const int *)(const void *)CMSG_DATA(c);
    for (size_t i = 0; i < n; i++)
        fds[i] = sent[i];
    return 0;
}
