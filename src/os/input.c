/* input.c: reads a descriptor of the caller: a pipe, socket, terminal, file or device.
 *
 * A sandbox never gets such a descriptor, because /proc/self/fd opens it again for writing:
 * what is written into a pipe of the caller is read by the caller's next program, and a socket
 * is both. The bytes are moved to a pipe of our own instead.
 *
 * Other programs share the descriptor, so its O_NONBLOCK is not changed, and a byte that poll
 * reported may be gone. Invariant: nothing here waits for input, except that a file or a device
 * is read as slowly as its file system is. */
#include "os/input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "os/spawn.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif
#define BACKGROUND_MS 200 /* interval of checks whether we are in the foreground again */

/* A separate open file description, because O_NONBLOCK must not affect other users of the
 * terminal. A terminal of another user cannot be opened again and is read as it is. */
static int reopen(int terminal)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", terminal);
    return open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

int csn_input_open(csn_input *in, int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
        return -EBADF;
    bool terminal = S_ISCHR(st.st_mode) && isatty(fd);
    *in = (csn_input){.fd = fd,
                      .own = terminal ? reopen(fd) : -1,
                      .terminal = terminal,
                      .socket = S_ISSOCK(st.st_mode),
                      .splices = S_ISFIFO(st.st_mode)};
    if (in->own >= 0)
        in->fd = in->own;
    return 0;
}

void csn_input_close(csn_input *in)
{
    if (in->own >= 0)
        close(in->own);
    *in = CSN_INPUT_NONE;
}

bool csn_input_splices(const csn_input *in)
{
    return in->splices;
}

ssize_t csn_input_splice(csn_input *in, int to, size_t max)
{
    csn_sigpipe hold;

    csn_sigpipe_hold(&hold);
    ssize_t n = splice(in->fd, NULL, to, NULL, max, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    int e = n < 0 ? errno : 0;
    csn_sigpipe_release(&hold, e == EPIPE);
    return e == EINTR ? -EAGAIN : n < 0 ? -e : n;
}

/* A process in the background may not read its terminal: with SIGTTIN blocked the read fails
 * with EIO instead of stopping the host. It is tried again, because the process may come to the
 * foreground. EIO in the foreground: the terminal has hung up. */
static ssize_t read_terminal(csn_input *in, void *buf, size_t len)
{
    sigset_t ttin, old;

    sigemptyset(&ttin);
    sigaddset(&ttin, SIGTTIN);
    pthread_sigmask(SIG_BLOCK, &ttin, &old);
    ssize_t n = read(in->fd, buf, len);
    int e = n < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (e != EIO)
        return n < 0 ? -e : n;
    pid_t front = tcgetpgrp(in->fd);
    if (front <= 0 || front == getpgrp())
        return 0;
    in->retry_ns = csn_deadline_in(BACKGROUND_MS);
    return -EAGAIN;
}

/* Another reader may have taken what poll reported. Kernels that cannot read a pipe without
 * waiting wait then. */
static ssize_t read_pipe(int fd, void *buf, size_t len)
{
    const struct iovec iov = {.iov_base = buf, .iov_len = len};
    ssize_t n = syscall(SYS_preadv2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);

    if (n < 0 && errno == EOPNOTSUPP)
        n = read(fd, buf, len);
    return n < 0 ? -errno : n;
}

ssize_t csn_input_read(csn_input *in, void *buf, size_t len)
{
    ssize_t n;

    in->retry_ns = 0;
    if (in->terminal)
        n = read_terminal(in, buf, len);
    else if (in->splices)
        n = read_pipe(in->fd, buf, len);
    else if ((n = in->socket ? recv(in->fd, buf, len, MSG_DONTWAIT) : read(in->fd, buf, len)) <
             0)
        n = -errno;
    return n == -EINTR ? -EAGAIN : n;
}
