/* child.h: runs a body in a forked child with a deadline.
 *
 * Limits, signal masks and crashes stick to a process, so a test that may crash, hang or change
 * its own process runs in a child. The child's output can go to a descriptor of the caller.
 * While it waits the caller reaps every child it has: with csn_child_adopt() orphans of the
 * child come to us, and csn_child_orphans() tells whether something outlived it. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct csn_child_end {
    int exit_code; /* -1: a signal, or it hung */
    int signal;
    bool hung; /* the deadline passed and it was killed */
} csn_child_end;

static inline int64_t csn_child_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static inline void csn_child_nap(unsigned ms)
{
    (void)poll(NULL, 0, (int)ms);
}

/* Orphaned descendants become our children from now on. */
static inline void csn_child_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}

/* out_fd: where the child's stdout and stderr go, or -1. */
static inline csn_child_end csn_child_run(int (*body)(void *ctx), void *ctx, int out_fd,
                                          int64_t deadline_ms)
{
    csn_child_end end = {.exit_code = -1};
    int64_t until = csn_child_now_ms() + deadline_ms;

    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return end;
    if (pid == 0) {
        if (out_fd >= 0 && (dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0))
            _exit(99);
        exit(body(ctx)); /* not _exit: leak checkers work at exit */
    }
    for (unsigned nap = 1;;) {
        int ws = 0;
        pid_t got = waitpid(-1, &ws, WNOHANG);

        if (got == pid) {
            end.exit_code = WIFEXITED(ws) ? WEXITSTATUS(ws) : -1;
            end.signal = WIFSIGNALED(ws) ? WTERMSIG(ws) : 0;
            return end;
        }
        if (got > 0)
            continue;
        if (csn_child_now_ms() > until) {
            end.hung = true;
            kill(pid, SIGKILL);
            until = INT64_MAX;
        }
        csn_child_nap(nap);
        nap = nap < 10 ? nap + 1 : 10;
    }
}

/* Waits until no child is left; false when some live on after wait_ms. */
static inline bool csn_child_orphans_end(int64_t wait_ms)
{
    int64_t until = csn_child_now_ms() + wait_ms;

    for (;;) {
        pid_t got = waitpid(-1, NULL, WNOHANG);

        if (got < 0 && errno == ECHILD)
            return true;
        if (got == 0) {
            if (csn_child_now_ms() > until)
                return false;
            csn_child_nap(5);
        }
    }
}
