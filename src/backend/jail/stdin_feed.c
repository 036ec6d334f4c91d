/* stdin_feed.c: feeds what is typed at the caller's terminal to a command through a pipe.
 *
 * Other programs of the caller read the terminal after the command. The agent has the other end
 * of the pipe and may close it, fill it or keep it open for ever.
 *
 * Invariants: nothing that is typed after the end of the command reaches the sandbox; ending
 * waits neither for input nor for a reader. */
#include "backend/jail/stdin_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKGROUND_MS 200 /* interval of checks whether we are in the foreground again */

/* False: feeding must end. */
static bool await(const csn_feed *f, int fd, short events, int timeout_ms)
{
    struct pollfd p[] = {{.fd = f->stop, .events = POLLIN},
                         {.fd = f->to, .events = 0}, /* POLLERR: the reading end was closed */
                         {.fd = fd, .events = events}};

    while (poll(p, 3, timeout_ms) < 0)
        if (errno != EINTR)
            return false;
    return p[0].revents == 0 && (p[1].revents & (POLLERR | POLLNVAL)) == 0;
}

static bool put(const csn_feed *f, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(f->to, bytes, len);
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (n < 0 && errno != EINTR &&
                   (errno != EAGAIN || !await(f, f->to, POLLOUT, -1))) {
            return false;
        }
    }
    return true;
}

/* A background process may not read its terminal (EIO, since signals are blocked). The read is
 * repeated, because the process may come to the foreground. */
static void *feed_loop(void *arg)
{
    csn_feed *f = arg;
    char bytes[4096];
    bool more = true;

    while (more && await(f, f->from, POLLIN, -1)) {
        ssize_t n = read(f->from, bytes, sizeof(bytes));
        if (n > 0)
            more = put(f, bytes, (size_t)n);
        else if (n == 0)
            more = false;
        else if (errno == EIO)
            more = tcgetpgrp(f->from) > 0 && tcgetpgrp(f->from) != getpgrp() &&
                   await(f, -1, 0, BACKGROUND_MS);
        else
            more = errno == EAGAIN || errno == EINTR;
    }
    close(csn_steal_fd(&f->to)); /* end of input */
    return NULL;
}

/* A separate open file description: O_NONBLOCK must not affect other users of the terminal. */
static int reopen(int terminal)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", terminal);
    return open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

static int start_thread(csn_feed *f)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&f->thread, NULL, feed_loop, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

csn_status csn_feed_begin(csn_feed *f, int terminal, int *ret, csn_error **err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return csn_fail_errno(err, errno, "standard input");
    csn_autofd int reader = ends[0], to = ends[1];
    csn_autofd int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    csn_autofd int from = reopen(terminal);
    if (stop < 0 || from < 0 || fcntl(to, F_SETFL, O_NONBLOCK) < 0)
        return csn_fail_errno(err, errno, "the terminal as standard input");
    *f = (csn_feed){.from = from, .to = to, .stop = stop};
    int rc = start_thread(f);
    if (rc != 0)
        return csn_fail_errno(err, rc, "the terminal as standard input");
    (void)csn_steal_fd(&to);
    (void)csn_steal_fd(&stop);
    (void)csn_steal_fd(&from);
    *ret = csn_steal_fd(&reader);
    return CSN_OK;
}

void csn_feed_end(csn_feed *f)
{
    (void)eventfd_write(f->stop, 1);
    pthread_join(f->thread, NULL);
    close(f->stop);
    close(f->from);
}
