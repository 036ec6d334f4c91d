/* spawn.c: vfork-style start of a program from a threaded host.
 *
 * The library lives in programs with threads, handlers and children of their own, so nothing
 * here may fork (a large host would be copied), raise SIGCHLD, or leave a child for the host's
 * wait(). Two clones: a middle process that shares our memory and descriptors and ends without
 * a signal (exit_signal 0, which only __WALL sees), and from it the program itself, which is
 * thereby orphaned. The middle shares our descriptor table, so that the pidfd it gets is ours.
 * All signals are blocked meanwhile, and both run only system calls on stacks of their own
 * until exec. */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

#define STACK_SIZE (32u * 1024u)
#define FD_HIGH    64 /* descriptors are parked here while the low ones are filled */

#define IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread"), noinline))

typedef struct start {
    const csn_orphan *o;
    char *stack2;
    int pid, pidfd;
    int error; /* of the program's start */
} start;

/* Puts the given descriptors at 0..n-1 and closes all others. */
IN_CHILD static int place_fds(const csn_orphan *o)
{
    int parked[CSN_ORPHAN_FDS_MAX];

    for (size_t i = 0; i < o->nfds; i++) {
        int from = o->fds[i];
        if (from < 0)
            from = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
        parked[i] = (int)syscall(SYS_fcntl, from, F_DUPFD, FD_HIGH);
        if (parked[i] < 0)
            return -1;
    }
    for (size_t i = 0; i < o->nfds; i++)
        if (syscall(SYS_dup3, parked[i], (int)i, 0) < 0)
            return -1;
    return (int)syscall(SYS_close_range, (unsigned)o->nfds, ~0u, 0u);
}

IN_CHILD static int program_main(void *arg)
{
    static char *const no_env[] = {NULL};
    start *s = arg;

    syscall(SYS_setsid);
    /* Signals stay blocked: the handlers are the host's until exec, and then the program's own
     * affair. */
    if (syscall(SYS_chdir, "/") == 0 && place_fds(s->o) == 0)
        syscall(SYS_execve, s->o->path, s->o->argv, no_env);
    s->error = errno;
    syscall(SYS_exit_group, 127);
    __builtin_unreachable();
}

IN_CHILD static int middle_main(void *arg)
{
    start *s = arg;
    int pidfd = -1;

    s->pid = clone(program_main, s->stack2 + STACK_SIZE,
                   CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, s, &pidfd);
    if (s->pid < 0)
        s->error = errno;
    else
        s->pidfd = pidfd;
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

int csn_orphan_start(const csn_orphan *o, pid_t *ret_pid, int *ret_pidfd)
{
    start s = {.o = o, .pid = -1, .pidfd = -1};
    uint64_t all = ~0ull, old = 0;

    char *stacks = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return -errno;
    s.stack2 = stacks + STACK_SIZE;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
    int mid = clone(middle_main, stacks + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_FILES, &s);
    int e = mid < 0 ? errno : s.error;
    if (mid > 0)
        while (waitpid(mid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
    munmap(stacks, 2 * STACK_SIZE);
    if (e != 0) {
        if (s.pidfd >= 0) {
            (void)csn_orphan_wait(s.pidfd, 1000);
            close(s.pidfd);
        }
        return -e;
    }
    *ret_pid = s.pid;
    *ret_pidfd = s.pidfd;
    return 0;
}

int csn_orphan_wait(int pidfd, int timeout_ms)
{
    struct pollfd pf = {.fd = pidfd, .events = POLLIN};
    siginfo_t si;
    int n;

    do
        n = poll(&pf, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    (void)waitid((idtype_t)P_PIDFD, (id_t)pidfd, &si, WEXITED | WNOHANG | __WALL);
    return 0;
}

ssize_t csn_write_quietly(int fd, const void *data, size_t len)
{
    const struct timespec now = {0};
    sigset_t pipe_set, pending, old;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
    ssize_t n = write(fd, data, len);
    int e = errno;
    if (n < 0 && e == EPIPE && !was_pending)
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n < 0 ? -e : n;
}
