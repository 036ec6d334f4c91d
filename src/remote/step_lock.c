/* step_lock.c: runs one command at a time in sandboxes whose state each command replaces.
 *
 * Two commands started from the same state would produce two new states, and one would be lost.
 * Threads of this process wait on an eventfd, processes on flock() of the record's directory.
 * The kernel releases both when the process dies. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "remote/internal.h"

#define FLOCK_POLL_MS_MIN 2
#define FLOCK_POLL_MS_MAX 50

struct csn_step_lock {
    int event_fd; /* a semaphore: readable while no thread of this process holds the lock */
    int flock_fd; /* held against other processes, or -1 */
};

csn_status csn_step_lock_new(csn_step_lock **ret, csn_error **err)
{
    csn_step_lock *l = calloc(1, sizeof(*l));

    if (!l)
        return csn_fail(err, CSN_NOMEM, "open");
    l->flock_fd = -1;
    l->event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (l->event_fd < 0) {
        free(l);
        return csn_fail_errno(err, errno, "open");
    }
    *ret = l;
    return CSN_OK;
}

void csn_step_lock_free(csn_step_lock *l)
{
    if (!l)
        return;
    csn_closep(&l->flock_fd);
    close(l->event_fd);
    free(l);
}

/* Waits for `fd` (-1: only for time to pass), at most max_ms (-1: no limit). */
static csn_status wait_for(int fd, int max_ms, uint64_t deadline_ns,
                           const int32_t cancel_fds[3], csn_error **err)
{
    struct pollfd p[] = {{.fd = fd, .events = POLLIN},
                         {.fd = cancel_fds[0], .events = POLLIN},
                         {.fd = cancel_fds[1], .events = POLLIN},
                         {.fd = cancel_fds[2], .events = POLLIN}};
    int left = deadline_ns ? csn_deadline_poll_ms(deadline_ns) : -1;
    int ms = left < 0 || (max_ms >= 0 && max_ms < left) ? max_ms : left;

    if (left == 0)
        return csn_fail(err, CSN_TIMEOUT, "deadline passed while another command ran");
    if (poll(p, 4, ms) > 0 && (p[1].revents || p[2].revents || p[3].revents))
        return csn_fail(err, CSN_CANCELLED, "cancelled");
    return CSN_OK;
}

static csn_status acquire_event(csn_step_lock *l, uint64_t deadline_ns,
                                const int32_t cancel_fds[3], csn_error **err)
{
    uint64_t one;

    while (read(l->event_fd, &one, sizeof(one)) != (ssize_t)sizeof(one)) {
        csn_status st = wait_for(l->event_fd, -1, deadline_ns, cancel_fds, err);
        if (st < 0)
            return st;
    }
    return CSN_OK;
}

/* Succeeds without a lock if there is no record: the caller then finds that the sandbox is
 * gone. */
static csn_status acquire_flock(csn_step_lock *l, const csn_remote *r, uint64_t deadline_ns,
                                const int32_t cancel_fds[3], csn_error **err)
{
    csn_autofd int dir = csn_remote_record_dir(r, false);
    csn_autofd int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int ms = FLOCK_POLL_MS_MIN;

    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return csn_fail_errno(err, errno, "lock of '%s'", r->id);
        csn_status st = wait_for(-1, ms, deadline_ns, cancel_fds, err);
        if (st < 0)
            return st;
        ms = ms * 2 > FLOCK_POLL_MS_MAX ? FLOCK_POLL_MS_MAX : ms * 2;
    }
    l->flock_fd = csn_steal_fd(&fd);
    return CSN_OK;
}

csn_status csn_step_lock_acquire(csn_step_lock *l, const csn_remote *r, uint64_t deadline_ns,
                                 const int32_t cancel_fds[3], csn_error **err)
{
    csn_status st = acquire_event(l, deadline_ns, cancel_fds, err);

    if (st < 0 || !csn_remote_shared(r))
        return st;
    st = acquire_flock(l, r, deadline_ns, cancel_fds, err);
    if (st < 0)
        csn_step_lock_release(l);
    return st;
}

void csn_step_lock_release(csn_step_lock *l)
{
    const uint64_t one = 1;

    csn_closep(&l->flock_fd);
    l->flock_fd = -1;
    (void)!write(l->event_fd, &one, sizeof(one));
}
