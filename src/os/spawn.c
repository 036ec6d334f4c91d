/* spawn.c: vfork-style start of a program from a threaded host.
 *
 * The library lives in programs with threads, handlers and children of their own, so nothing
 * here may fork (a large host would be copied), raise SIGCHLD, or leave a child for the host's
 * wait(). Two clones: a middle process that shares our memory and descriptors and ends without
 * a signal (exit_signal 0, which only __WALL sees), and from it the program itself, which is
 * thereby orphaned. The middle shares our descriptor table, so that the pidfd it gets is ours;
 * so does the program at first, and takes from it what it is to have (os/fd_transfer.h).
 * In both all signals are blocked, and they run only system calls, on stacks of their own,
 * until exec. The host's thread may go on meanwhile: so what they call leaves errno alone
 * (os/raw_syscall.h), and is not seen by sanitizers, to whom they would be that thread.
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
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "os/affinity.h"
#include "os/fd_transfer.h"
#include "os/fsuid.h"
#include "os/raw_syscall.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

#define STACK_SIZE (32u * 1024u)
#define FD_HIGH    64 /* descriptors are parked here while the low ones are filled */

typedef struct csn_spawn_pending {
    const csn_spawn_opts *o;
    char *stacks, *stack2;  /* of the middle, below it; of the program */
    int box;                /* where the descriptors are: csn_fd_transfer_take */
    csn_fd_transfer handed; /* and whether they still are */
    bool alone;             /* no thread takes another guise until the maps are written */
    int dumpable;           /* the host was, before */
    int middle, pid, pidfd;
    csn_affinity cpus; /* the host's thread may use */
    int error;         /* of the program's start */
    enum csn_spawn_stage stage;
} start;

/* What is handed over: the given descriptors without the -1, and the program. */
static size_t list_fds(const csn_spawn_opts *o, int *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < o->nfds; i++)
        if (o->fds[i] >= 0)
            ret[n++] = o->fds[i];
    if (o->exec_fd > 0)
        ret[n++] = o->exec_fd;
    return n;
}

CSN_IN_CHILD static int take_fds(start *s, int *fds)
{
    const csn_spawn_opts *o = s->o;
    size_t n = o->exec_fd > 0 ? 1 : 0;

    for (size_t i = 0; i < o->nfds; i++)
        n += o->fds[i] >= 0;
    int rc = csn_fd_transfer_take(s->box, fds, n);
    if (rc == 0)
        s->handed = CSN_FD_TRANSFER_TAKEN;
    return rc;
}

/* A number of at least FD_HIGH for it. The kernel's word for a limit below that is EINVAL. */
CSN_IN_CHILD static int park(int fd)
{
    long rc = csn_raw(SYS_fcntl, fd, F_DUPFD, FD_HIGH);

    return (int)(rc == -EINVAL ? -EMFILE : rc);
}

/* Puts the given descriptors (have: as they were handed over) at 0..n-1 and closes all others.
 * The program itself comes next, and closes with its exec. */
CSN_IN_CHILD static int place_fds(const csn_spawn_opts *o, const int *have)
{
    int parked[CSN_SPAWN_FDS_MAX];
    unsigned last = (unsigned)o->nfds;

    for (size_t i = 0; i < o->nfds; i++) {
        int from = o->fds[i] < 0 ? (int)csn_raw(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0)
                                 : *have++;
        parked[i] = from < 0 ? from : park(from);
        if (parked[i] < 0)
            return parked[i];
    }
    int program = o->exec_fd > 0 ? park(*have) : 0;
    if (program < 0)
        return program;
    long rc = 0;
    for (size_t i = 0; rc >= 0 && i < o->nfds; i++)
        rc = csn_raw(SYS_dup3, parked[i], (int)i, 0);
    if (rc >= 0 && o->exec_fd > 0)
        rc = csn_raw(SYS_dup3, program, (int)last++, O_CLOEXEC);
    return (int)(rc < 0 ? rc : csn_raw(SYS_close_range, last, ~0u, 0u));
}

CSN_IN_CHILD static int put_text(const char *path, const char *text)
{
    size_t len = 0;

    while (text[len])
        len++;
    int fd = (int)csn_raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long n = csn_raw(SYS_write, fd, text, len); /* place_fds closes it */
    return n < 0 ? (int)n : n == (long)len ? 0 : -EIO;
}

/* What building walls takes: DAC_OVERRIDE, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE,
 * NET_ADMIN, SYS_CHROOT, SYS_ADMIN, SYS_RESOURCE. Each is a call of its own. */
static const unsigned char kept_caps[] = {1, 6, 7, 8, 10, 12, 18, 21, 24};

/* The namespace's user 0 keeps its capabilities over exec; any other needs them ambient. */
CSN_IN_CHILD static int keep_caps(void)
{
    struct {
        uint32_t version;
        int pid;
    } head = {0x20080522, 0};
    struct {
        uint32_t effective, permitted, inheritable;
    } caps[2];

    long rc = csn_raw(SYS_capget, &head, caps);
    if (rc < 0)
        return (int)rc;
    caps[0].inheritable = caps[0].permitted;
    caps[1].inheritable = caps[1].permitted;
    rc = csn_raw(SYS_capset, &head, caps);
    for (size_t i = 0; rc == 0 && i < sizeof(kept_caps); i++)
        rc = csn_raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept_caps[i], 0L, 0L);
    return (int)rc;
}

/* Groups are given up for good: without that a user may not write its own map. */
CSN_IN_CHILD static int write_maps(const csn_spawn_namespaces *w)
{
    int rc = put_text("/proc/self/setgroups", "deny");

    if (rc == 0)
        rc = put_text("/proc/self/uid_map", w->uid_map);
    if (rc == 0)
        rc = put_text("/proc/self/gid_map", w->gid_map);
    return rc == 0 && w->keep_caps ? keep_caps() : rc;
}

/* Changing user makes the memory, which is the host program's, undumpable, and the files in
 * /proc that hold our maps root's. Both are set back before anybody else can run. */
CSN_IN_CHILD static int become(const csn_spawn_namespaces *w)
{
    long rc = csn_raw(SYS_setgroups, 0, NULL);

    if (rc == 0)
        rc = csn_raw(SYS_setresgid, w->gid, w->gid, w->gid);
    if (rc == 0)
        rc = csn_raw(SYS_setresuid, w->uid, w->uid, w->uid);
    return (int)(rc < 0 ? rc : csn_raw(SYS_prctl, PR_SET_DUMPABLE, 1L, 0L, 0L, 0L));
}

/* The handlers are the host's and must not run here: first they go, then the mask. The table is
 * this process's own. A signal that has no action to set is none that could come. */
CSN_IN_CHILD static void reset_signals(void)
{
    const struct {
        unsigned long handler, flags, restorer, more;
        uint64_t mask;
    } usual = {0};
    const uint64_t none = 0;

    for (int i = 1; i <= 64; i++)
        (void)csn_raw(SYS_rt_sigaction, i, &usual, NULL, sizeof(none));
    (void)csn_raw(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

/* The host is again what it was. By whoever comes to it first. */
CSN_IN_CHILD static void let_others(start *s)
{
    if (!s->alone)
        return;
    s->alone = false;
    if (s->dumpable != 1)
        (void)csn_raw(SYS_prctl, PR_SET_DUMPABLE, s->dumpable, 0L, 0L, 0L);
    csn_fsuid_thaw();
}

/* It did not come to the start: nobody is to wait for it. The host itself may, for a second
 * start, before it looks how the first one went. */
CSN_IN_CHILD static void give_up(start *s)
{
    if (s->handed == CSN_FD_TRANSFER_WAITS) {
        s->handed = CSN_FD_TRANSFER_ABANDONED;
        csn_fd_transfer_abandon();
    }
    let_others(s);
}

/* Everything up to the exec. 0 or -errno, at s->stage. */
CSN_IN_CHILD static int get_ready(start *s)
{
    const csn_spawn_opts *o = s->o;
    int have[CSN_SPAWN_FDS_MAX + 1];

    s->stage = CSN_SPAWN_AT_EXEC;
    if (s->cpus.known)
        (void)csn_raw(SYS_sched_setaffinity, 0, sizeof(s->cpus.bits), s->cpus.bits);
    int rc = take_fds(s, have); /* until then the table is the host's */
    if (rc < 0)
        return rc;
    (void)csn_raw(SYS_setsid);
    s->stage = CSN_SPAWN_AT_MAP;
    rc = o->walls && o->walls->namespaces != 0 ? write_maps(o->walls) : 0;
    if (rc < 0)
        return rc;
    let_others(s);
    s->stage = CSN_SPAWN_AT_EXEC;
    rc = (int)csn_raw(SYS_chdir, "/");
    if (rc == 0)
        rc = place_fds(o, have);
    /* Signals stay blocked: the handlers are the host's until exec, and then the program's own
     * affair. */
    if (rc == 0 && o->usual_signals)
        reset_signals();
    return rc;
}

CSN_IN_CHILD static int program_main(void *arg)
{
    static const char *const no_env[] = {NULL};
    start *s = arg;
    const csn_spawn_opts *o = s->o;
    const char *const *env = o->env ? o->env : no_env;
    long rc = get_ready(s);

    if (rc == 0 && o->exec_fd > 0) /* was put behind the others */
        rc = csn_raw(SYS_execveat, (int)o->nfds, "", o->argv, env, AT_EMPTY_PATH);
    else if (rc == 0)
        rc = csn_raw(SYS_execve, o->path, o->argv, env);
    s->error = (int)-rc;
    (void)csn_raw(SYS_exit_group, 127);
    __builtin_unreachable();
}

CSN_IN_CHILD static int middle_main(void *arg)
{
    start *s = arg;
    const csn_spawn_namespaces *w = s->o->walls;
    int pidfd = -1;

    s->stage = CSN_SPAWN_AT_USER;
    int rc = w && w->become ? become(w) : 0;
    s->error = -rc;
    if (rc == 0) {
        s->stage = CSN_SPAWN_AT_CLONE;
        uint64_t flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PIDFD | SIGCHLD;
        s->pid = (int)csn_raw_clone(program_main, s->stack2 + STACK_SIZE,
                                    flags | (w ? w->namespaces : 0), s, &pidfd);
        if (s->pid < 0)
            s->error = -s->pid;
        else
            s->pidfd = pidfd;
    }
    give_up(s); /* nothing is left of that after a start: until its exec we did not run */
    (void)csn_raw(SYS_exit_group, 0);
    __builtin_unreachable();
}

/* ---- by the host ---- */

static int new_start(const csn_spawn_opts *o, start **ret)
{
    start *s = malloc(sizeof(*s));
    int fds[CSN_SPAWN_FDS_MAX + 1];

    if (!s)
        return -ENOMEM;
    *s = (start){.o = o, .pid = -1, .pidfd = -1, .dumpable = 1, .stage = CSN_SPAWN_AT_CLONE};
    s->stacks = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int rc = s->stacks == MAP_FAILED ? -errno : csn_fd_transfer_begin(fds, list_fds(o, fds));
    if (rc >= 0) {
        s->stack2 = s->stacks + STACK_SIZE;
        s->box = rc;
        *ret = s;
        return 0;
    }
    if (s->stacks != MAP_FAILED)
        munmap(s->stacks, 2 * STACK_SIZE);
    free(s);
    return rc;
}

int csn_spawn_begin(const csn_spawn_opts *o, csn_spawn_pending **ret)
{
    uint64_t all = ~0ull, old = 0;
    start *s = NULL;

    int rc = new_start(o, &s);
    if (rc < 0)
        return rc;
    /* Whoever becomes another user makes the memory that all threads share undumpable for a
     * moment, and then no other thread's child may write its maps. */
    s->alone = o->walls && o->walls->become;
    if (s->alone) {
        csn_fsuid_freeze();
        s->dumpable = prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
    csn_affinity_get(&s->cpus);
    s->middle = (int)csn_raw_clone(middle_main, s->stack2, CLONE_VM | CLONE_FILES, s, NULL);
    if (s->middle < 0) {
        s->error = -s->middle;
        give_up(s);
    } else {
        csn_affinity_move_away(s->middle);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
    *ret = s;
    return 0;
}

int csn_spawn_finish(csn_spawn_pending *s, pid_t *ret_pid, int *ret_pidfd,
                     enum csn_spawn_stage *ret_stage)
{
    if (s->middle > 0)
        while (waitpid(s->middle, NULL, __WALL) < 0 && errno == EINTR)
            ;
    let_others(s);
    munmap(s->stacks, 2 * STACK_SIZE);
    csn_fd_transfer_end(s->handed);
    if (ret_stage)
        *ret_stage = s->stage;
    int e = s->error;
    if (e != 0 && s->pidfd >= 0) {
        (void)csn_spawn_wait(s->pidfd, 1000);
        close(s->pidfd);
    }
    if (e == 0) {
        *ret_pid = s->pid;
        *ret_pidfd = s->pidfd;
    }
    free(s);
    return -e;
}

int csn_spawn(const csn_spawn_opts *o, pid_t *ret_pid, int *ret_pidfd,
              enum csn_spawn_stage *ret_stage)
{
    csn_spawn_pending *birth = NULL;

    if (ret_stage)
        *ret_stage = CSN_SPAWN_AT_CLONE;
    int rc = csn_spawn_begin(o, &birth);
    return rc < 0 ? rc : csn_spawn_finish(birth, ret_pid, ret_pidfd, ret_stage);
}

int csn_spawn_wait(int pidfd, int timeout_ms)
{
    struct pollfd pf = {.fd = pidfd, .events = POLLIN};
    uint64_t deadline = timeout_ms < 0 ? 0 : csn_deadline_in((uint64_t)timeout_ms);
    siginfo_t si;
    int n;

    do /* a host may have timers that interrupt us over and over */
        n = poll(&pf, 1, csn_deadline_poll_ms(deadline));
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
