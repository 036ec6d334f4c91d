/* spawn.c: vfork-style start of a program from a threaded host.
 *
 * The library lives in programs with threads, handlers and children of their own, so nothing
 * here may fork (a large host would be copied), raise SIGCHLD, or leave a child for the host's
 * wait(). Two clones: a middle process that shares our memory and descriptors and ends without
 * a signal (exit_signal 0, which only __WALL sees), and from it the program itself, which is
 * thereby orphaned. The middle shares our descriptor table, so that the pidfd it gets is ours;
 * so does the program at first, and takes from it what it is to have (os/handover.h).
 * All signals are blocked meanwhile, and both run only system calls on stacks of their own
 * until exec.
 *
 * With namespaces, a caller who is root becomes a user of no account first and then goes the
 * way everybody goes: the user namespace is made by that user, and its maps are written from
 * inside. So no sandbox is ever mapped to user 0 of the host, not even for a moment. */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/guise.h"
#include "os/handover.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

#define STACK_SIZE (32u * 1024u)
#define FD_HIGH    64 /* descriptors are parked here while the low ones are filled */

#define IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread"), noinline))

/* The thread sanitizer takes every clone for a fork and adjusts itself in the child, which here
 * is its own memory. It does not know the C library by this name. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNSEEN_CLONE
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNSEEN_CLONE
#endif
#ifdef UNSEEN_CLONE
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

typedef struct start {
    const csn_orphan *o;
    char *stack2;
    int box;    /* where the descriptors are: csn_handover_take */
    bool taken; /* they have been */
    int pid, pidfd;
    int error; /* of the program's start */
    enum csn_orphan_stage stage;
} start;

/* What is handed over: the given descriptors without the -1, and the program. */
static size_t list_fds(const csn_orphan *o, int *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < o->nfds; i++)
        if (o->fds[i] >= 0)
            ret[n++] = o->fds[i];
    if (o->exec_fd > 0)
        ret[n++] = o->exec_fd;
    return n;
}

IN_CHILD static int take_fds(start *s, int *fds)
{
    const csn_orphan *o = s->o;
    size_t n = o->exec_fd > 0 ? 1 : 0;

    for (size_t i = 0; i < o->nfds; i++)
        n += o->fds[i] >= 0;
    int rc = csn_handover_take(s->box, fds, n);
    s->taken = rc == 0;
    return rc < 0 ? -1 : 0;
}

/* Puts the given descriptors (have: as they were handed over) at 0..n-1 and closes all others.
 * The program itself comes next, and closes with its exec. */
IN_CHILD static int place_fds(const csn_orphan *o, const int *have)
{
    int parked[CSN_ORPHAN_FDS_MAX];
    unsigned last = (unsigned)o->nfds;

    for (size_t i = 0; i < o->nfds; i++) {
        int from = o->fds[i] < 0 ? (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0)
                                 : *have++;
        parked[i] = (int)syscall(SYS_fcntl, from, F_DUPFD, FD_HIGH);
        if (parked[i] < 0)
            return -1;
    }
    int program = o->exec_fd > 0 ? (int)syscall(SYS_fcntl, *have, F_DUPFD, FD_HIGH) : 0;
    if (program < 0)
        return -1;
    for (size_t i = 0; i < o->nfds; i++)
        if (syscall(SYS_dup3, parked[i], (int)i, 0) < 0)
            return -1;
    if (o->exec_fd > 0 && syscall(SYS_dup3, program, (int)last++, O_CLOEXEC) < 0)
        return -1;
    return (int)syscall(SYS_close_range, last, ~0u, 0u);
}

IN_CHILD static int put_text(const char *path, const char *text)
{
    size_t len = 0;

    while (text[len])
        len++;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    return syscall(SYS_write, fd, text, len) == (long)len ? 0 : -1; /* place_fds closes it */
}

/* What building walls takes: DAC_OVERRIDE, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE,
 * NET_ADMIN, SYS_CHROOT, SYS_ADMIN, SYS_RESOURCE. Each is a call of its own. */
static const unsigned char kept_caps[] = {1, 6, 7, 8, 10, 12, 18, 21, 24};

/* The namespace's user 0 keeps its capabilities over exec; any other needs them ambient. */
IN_CHILD static int keep_caps(void)
{
    struct {
        uint32_t version;
        int pid;
    } head = {0x20080522, 0};
    struct {
        uint32_t effective, permitted, inheritable;
    } caps[2];

    if (syscall(SYS_capget, &head, caps) < 0)
        return -1;
    caps[0].inheritable = caps[0].permitted;
    caps[1].inheritable = caps[1].permitted;
    if (syscall(SYS_capset, &head, caps) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(kept_caps); i++)
        if (syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept_caps[i], 0L, 0L) < 0)
            return -1;
    return 0;
}

/* Groups are given up for good: without that a user may not write its own map. */
IN_CHILD static int write_maps(const csn_orphan_walls *w)
{
    if (put_text("/proc/self/setgroups", "deny") < 0 ||
        put_text("/proc/self/uid_map", w->uid_map) < 0 ||
        put_text("/proc/self/gid_map", w->gid_map) < 0)
        return -1;
    return w->keep_caps ? keep_caps() : 0;
}

/* Changing user makes the memory, which is the host program's, undumpable, and the files in
 * /proc that hold our maps root's. Both are set back before anybody else can run. */
IN_CHILD static int become(const csn_orphan_walls *w)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, w->gid, w->gid, w->gid) < 0 ||
        syscall(SYS_setresuid, w->uid, w->uid, w->uid) < 0)
        return -1;
    return (int)syscall(SYS_prctl, PR_SET_DUMPABLE, 1L, 0L, 0L, 0L);
}

/* The handlers are the host's and must not run here: first they go, then the mask. The table is
 * this process's own. A signal that has no action to set is none that could come. */
IN_CHILD static void reset_signals(void)
{
    const struct {
        unsigned long handler, flags, restorer, more;
        uint64_t mask;
    } usual = {0};
    const uint64_t none = 0;

    for (int i = 1; i <= 64; i++)
        (void)syscall(SYS_rt_sigaction, i, &usual, NULL, sizeof(none));
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

IN_CHILD static int program_main(void *arg)
{
    static const char *const no_env[] = {NULL};
    start *s = arg;
    const csn_orphan *o = s->o;
    int have[CSN_ORPHAN_FDS_MAX + 1];
    const char *const *env = o->env ? o->env : no_env;

    s->stage = CSN_ORPHAN_EXEC;
    if (take_fds(s, have) < 0) /* until then the table is the host's */
        goto failed;
    syscall(SYS_setsid);
    s->stage = CSN_ORPHAN_MAP;
    if (o->walls && o->walls->namespaces != 0 && write_maps(o->walls) < 0)
        goto failed;
    s->stage = CSN_ORPHAN_EXEC;
    /* Signals stay blocked: the handlers are the host's until exec, and then the program's own
     * affair. */
    if (syscall(SYS_chdir, "/") < 0 || place_fds(o, have) < 0)
        goto failed;
    if (o->usual_signals)
        reset_signals();
    if (o->exec_fd > 0) /* was put behind the others */
        syscall(SYS_execveat, (int)o->nfds, "", o->argv, env, AT_EMPTY_PATH);
    else
        syscall(SYS_execve, o->path, o->argv, env);
failed:
    s->error = errno;
    syscall(SYS_exit_group, 127);
    __builtin_unreachable();
}

/* The middle moves itself, which is cheap for a single thread and needs no right of the
 * program's; what it starts is born where it is, and that is the root of its cgroup namespace.
 * The kernel's memory killer spares who shares its memory with a parent in vfork: the host. */
IN_CHILD static int enter_groups(const csn_orphan *o)
{
    for (size_t i = 0; i < o->door_count; i++)
        if (syscall(SYS_write, o->doors[i], "0", 1) != 1)
            return -1;
    return 0;
}

IN_CHILD static int middle_main(void *arg)
{
    start *s = arg;
    const csn_orphan_walls *w = s->o->walls;
    int pidfd = -1;

    s->stage = CSN_ORPHAN_ENTER;
    int rc = enter_groups(s->o);
    if (rc == 0) {
        s->stage = CSN_ORPHAN_USER;
        rc = w && w->become ? become(w) : 0;
    }
    if (rc < 0) {
        s->error = errno;
    } else {
        s->stage = CSN_ORPHAN_CLONE;
        int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PIDFD | SIGCHLD;
        s->pid = clone(program_main, s->stack2 + STACK_SIZE,
                       flags | (w ? (int)w->namespaces : 0), s, &pidfd);
        if (s->pid < 0)
            s->error = errno;
        else
            s->pidfd = pidfd;
    }
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

int csn_orphan_start(const csn_orphan *o, pid_t *ret_pid, int *ret_pidfd,
                     enum csn_orphan_stage *ret_stage)
{
    start s = {.o = o, .pid = -1, .pidfd = -1, .stage = CSN_ORPHAN_CLONE};
    uint64_t all = ~0ull, old = 0;
    int dumpable = 1, fds[CSN_ORPHAN_FDS_MAX + 1];

    char *stacks = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return -errno;
    s.stack2 = stacks + STACK_SIZE;
    s.box = csn_handover_begin(fds, list_fds(o, fds));
    if (s.box < 0) {
        munmap(stacks, 2 * STACK_SIZE);
        return s.box;
    }
    bool alone = o->walls && o->walls->become;
    /* Whoever becomes another user makes the memory that all threads share undumpable for a
     * moment, and then no other thread's child may write its maps. */
    if (alone)
        csn_guise_freeze();
    if (alone)
        dumpable = prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
    int mid = clone(middle_main, stacks + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_FILES, &s);
    int e = mid < 0 ? errno : s.error;
    if (mid > 0)
        while (waitpid(mid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    if (alone && dumpable != 1)
        (void)prctl(PR_SET_DUMPABLE, (long)dumpable, 0L, 0L, 0L);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
    if (alone)
        csn_guise_thaw();
    munmap(stacks, 2 * STACK_SIZE);
    csn_handover_end(s.taken);
    if (ret_stage)
        *ret_stage = s.stage;
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
