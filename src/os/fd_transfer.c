/* fd_transfer.c: a letter box with a low number.
 *
 * The kernel can give a process a table of its own that has only the lower part of the old one
 * (close_range with CLOSE_RANGE_UNSHARE). So this library keeps one descriptor, made with the
 * first start and therefore low, through which the others come as a message. Two numbers of the
 * host's table are used for that, for good. They may be closed by a host that closes all it
 * does not know, and taken by something else, or be a parent's after a fork: each time it is
 * checked that they are still ours. */
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
static csn_vfork_lock full; /* something is in it */
static bool stale;          /* something that nobody takes is: it needs another */
static struct {
    pid_t maker;
    int take, give; /* the ends */
    ino_t take_ino, give_ino;
} box = {.take = -1, .give = -1};

static bool is(int fd, ino_t ino)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == ino;
}

static int make_box(void)
{
    struct stat st;
    int pair[2];

    /* whatever has these numbers now, unless it is ours, is not ours to close */
    if (box.maker == getpid() && is(box.take, box.take_ino) && is(box.give, box.give_ino))
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    box.maker = getpid();
    box.take = pair[0];
    box.give = pair[1];
    box.take_ino = fstat(pair[0], &st) == 0 ? st.st_ino : 0;
    box.give_ino = fstat(pair[1], &st) == 0 ? st.st_ino : 0;
    return 0;
}

static void drop_box(void)
{
    if (is(box.take, box.take_ino))
        close(box.take);
    if (is(box.give, box.give_ino))
        close(box.give);
    box.take = box.give = -1;
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
    drop_box(); /* with what is in it */
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
    int rc = make_box();
    if (rc == 0 && n > 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * n),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
    }
    if (rc == 0 && sendmsg(box.give, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        rc = -errno;
    if (rc == 0) {
        csn_vfork_lock_take(&full);
        rc = box.take;
    } else {
        drop_box();
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void csn_fd_transfer_end(csn_fd_transfer h)
{
    if (h == CSN_FD_TRANSFER_TAKEN)
        return;
    pthread_mutex_lock(&lock);
    if (h == CSN_FD_TRANSFER_WAITS) /* whoever should have taken it was killed */
        csn_fd_transfer_abandon();
    drop_stale(); /* unless the next one has */
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
