/* step_lock.c: one at a time, for sandboxes whose every command makes a new state.
 *
 * Two commands that began with the same state would end with two states, and one of them would
 * be lost. So whoever changes the sandbox has the turn: among the threads of this process by a
 * counter that can be polled, among processes by a lock on the directory of the record. Waiting
 * ends with the caller's deadline or cancel like the command itself. A process that dies gives
 * both back. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "remote/remote.h"

#define LOOK_MS_MIN 2 /* how often the lock of other processes is looked at */
#define LOOK_MS_MAX 50

struct csn_step_lock {
    int free; /* readable while nobody of this process has it */
    int lock; /* held against other processes, or -1 */
};

csn_status csn_step_lock_new(csn_step_lock **ret, csn_error **err)
{
    csn_step_lock *t = calloc(1, sizeof(*t));

    if (!t)
        return csn_fail(err, CSN_NOMEM, "open");
    t->lock = -1;
    t->free = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (t->free < 0) {
        free(t);
        return csn_fail_errno(err, errno, "open");
    }
    *ret = t;
    return CSN_OK;
}

void csn_step_lock_free(csn_step_lock *t)
{
    if (!t)
        return;
    csn_closep(&t->lock);
    close(t->free);
    free(t);
}

/* Waits for `fd` (-1: only for time to pass), at most `most_ms` (-1: no limit). */
static csn_status wait_for(int fd, int most_ms, uint64_t deadline_ns,
                           const int32_t cancel_fds[3], csn_error **err)
{
    struct pollfd p[] = {{.fd = fd, .events = POLLIN},
                         {.fd = cancel_fds[0], .events = POLLIN},
                         {.fd = cancel_fds[1], .events = POLLIN},
                         {.fd = cancel_fds[2], .events = POLLIN}};
    int left = deadline_ns ? csn_deadline_poll_ms(deadline_ns) : -1;
    int ms = left < 0 || (most_ms >= 0 && most_ms < left) ? most_ms : left;

    if (left == 0)
        return csn_fail(err, CSN_TIMEOUT, "deadline passed while another command ran");
    if (poll(p, 4, ms) > 0 && (p[1].revents || p[2].revents || p[3].revents))
        return csn_fail(err, CSN_CANCELLED, "cancelled");
    return CSN_OK;
}

static csn_status take_here(csn_step_lock *t, uint64_t deadline_ns, const int32_t cancel_fds[3],
                            csn_error **err)
{
    uint64_t one;

    for (;;) {
        if (read(t->free, &one, sizeof(one)) == (ssize_t)sizeof(one))
            return CSN_OK;
        csn_status st = wait_for(t->free, -1, deadline_ns, cancel_fds, err);
        if (st < 0)
            return st;
    }
}

/* The record may be removed meanwhile, with the sandbox: what to do then is the caller's. */
static csn_status take_there(csn_step_lock *t, const csn_remote *r, uint64_t deadline_ns,
                             const int32_t cancel_fds[3], csn_error **err)
{
    csn_autofd int dir = csn_remote_note_dir(r, false);
    csn_autofd int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int ms = LOOK_MS_MIN;

    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return csn_fail_errno(err, errno, "lock of '%s'", r->id);
        csn_status st = wait_for(-1, ms, deadline_ns, cancel_fds, err);
        if (st < 0)
            return st;
        ms = ms * 2 > LOOK_MS_MAX ? LOOK_MS_MAX : ms * 2;
    }
    t->lock = csn_steal_fd(&fd);
    return CSN_OK;
}

csn_status csn_step_lock_take(csn_step_lock *t, const csn_remote *r, uint64_t deadline_ns,
                              const int32_t cancel_fds[3], csn_error **err)
{
    csn_status st = take_here(t, deadline_ns, cancel_fds, err);

    if (st < 0 || !csn_remote_shared(r))
        return st;
    st = take_there(t, r, deadline_ns, cancel_fds, err);
    if (st < 0)
        csn_step_lock_give(t);
    return st;
}

void csn_step_lock_give(csn_step_lock *t)
{
    const uint64_t one = 1;

    csn_closep(&t->lock);
    t->lock = -1;
    (void)!write(t->free, &one, sizeof(one));
}
