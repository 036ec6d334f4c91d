/* spawn.c: starts a program from a threaded host without fork.
 *
 * The library runs in programs that have threads, signal handlers and children of their own. A
 * start must not copy the host's memory, raise SIGCHLD, or leave a child for the host's wait().
 * Two clones:
 *
 *   host          clones the intermediate process, which shares its memory and descriptors
 *   intermediate  clones the program and exits without a signal (exit_signal 0: __WALL only)
 *   program       orphaned by that exit; CLONE_VFORK until exec
 *
 * The intermediate process shares the host's descriptor table, so the pidfd it receives is the
 * host's. The program shares the table too and takes the descriptors it needs with
 * os/fd_transfer.h.
 *
 * Invariants:
 *  - Both children have all signals blocked and run only system calls on their own stacks.
 *  - The host's thread may run at the same time: the children leave errno alone
 *    (os/raw_syscall.h) and are not instrumented by sanitizers.
 *  - With namespaces, a root caller becomes an unprivileged user first; that user makes the
 *    user namespace and writes its maps from inside. No sandbox is mapped to the host's uid 0.
 */
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
#define FD_HIGH    64 /* descriptors are parked from here on while the low ones are filled */

typedef struct csn_spawn_pending {
    const csn_spawn_opts *o;
    char *stacks, *stack2;    /* of the intermediate process; of the program, above it */
    int transfer_fd;          /* for csn_fd_transfer_take */
    csn_fd_transfer transfer; /* state of the descriptors */
    bool frozen;              /* no thread switches its fsuid until the maps are written */
    int dumpable;             /* value of the host, to be restored */
    int intermediate, pid, pidfd;
    csn_affinity cpus; /* of the host's thread */
    int error;         /* errno of the start */
    enum csn_spawn_stage stage;
} pending;

/* The descriptors to transfer: those given, without -1, and the program. */
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

CSN_IN_CHILD static int take_fds(pending *s, int *fds)
{
    const csn_spawn_opts *o = s->o;
    size_t n = o->exec_fd > 0 ? 1 : 0;

    for (size_t i = 0; i < o->nfds; i++)
        n += o->fds[i] >= 0;
    int rc = csn_fd_transfer_take(s->transfer_fd, fds, n);
    if (rc == 0)
        s->transfer = CSN_FD_TRANSFER_TAKEN;
    return rc;
}

/* Duplicates it at FD_HIGH or above. EINVAL means that the limit on descriptors is lower. */
CSN_IN_CHILD static int park(int fd)
{
    long rc = csn_raw(SYS_fcntl, fd, F_DUPFD, FD_HIGH);

    return (int)(rc == -EINVAL ? -EMFILE : rc);
}

/* Places the given descriptors (have: as received) at 0..n-1, then the program, which is
 * close-on-exec, and closes all others. */
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

CSN_IN_CHILD static int write_file(const char *path, const char *text)
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

/* What a keeper needs to boot: DAC_OVERRIDE, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE,
 * NET_ADMIN, SYS_CHROOT, SYS_ADMIN, SYS_RESOURCE. */
static const unsigned char boot_caps[] = {1, 6, 7, 8, 10, 12, 18, 21, 24};

/* Uid 0 of the namespace keeps its capabilities over exec; any other uid needs ambient ones. */
CSN_IN_CHILD static int raise_ambient_caps(void)
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
    for (size_t i = 0; rc == 0 && i < sizeof(boot_caps); i++)
        rc = csn_raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, boot_caps[i], 0L, 0L);
    return (int)rc;
}

/* An unprivileged user may write a gid map only after setgroups is denied. */
CSN_IN_CHILD static int write_maps(const csn_spawn_namespaces *w)
{
    int rc = write_file("/proc/self/setgroups", "deny");

    if (rc == 0)
        rc = write_file("/proc/self/uid_map", w->uid_map);
    if (rc == 0)
        rc = write_file("/proc/self/gid_map", w->gid_map);
    return rc == 0 && w->keep_caps ? raise_ambient_caps() : rc;
}

/* Changing the uid makes the memory, which is the host's, undumpable, and the map files in
 * /proc root's. PR_SET_DUMPABLE reverts both; thaw_host restores the host's own value. */
CSN_IN_CHILD static int become_user(const csn_spawn_namespaces *w)
{
    long rc = csn_raw(SYS_setgroups, 0, NULL);

    /* A user namespace may deny setgroups; as the same user nothing is lost. */
    if (rc == -EPERM && (unsigned)csn_raw(SYS_geteuid) == w->uid)
        rc = 0;
    if (rc == 0)
        rc = csn_raw(SYS_setresgid, w->gid, w->gid, w->gid);
    if (rc == 0)
        rc = csn_raw(SYS_setresuid, w->uid, w->uid, w->uid);
    return (int)(rc < 0 ? rc : csn_raw(SYS_prctl, PR_SET_DUMPABLE, 1L, 0L, 0L, 0L));
}

/* Resets the handlers, which are the host's, before the signal mask. The child has its own
 * table of handlers. The call fails only for signals that cannot have a handler. */
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

/* Called by whichever process finishes first: a child or the host. */
CSN_IN_CHILD static void thaw_host(pending *s)
{
    if (!s->frozen)
        return;
    s->frozen = false;
    if (s->dumpable != 1)
        (void)csn_raw(SYS_prctl, PR_SET_DUMPABLE, s->dumpable, 0L, 0L, 0L);
    csn_fsuid_thaw();
}

/* After a failed start: other threads of the host may wait for the descriptor transfer or for
 * the fsuid lock, and the host may begin a second start before it finishes this one. */
CSN_IN_CHILD static void release_host(pending *s)
{
    if (s->transfer == CSN_FD_TRANSFER_SENT) {
        s->transfer = CSN_FD_TRANSFER_ABANDONED;
        csn_fd_transfer_abandon();
    }
    thaw_host(s);
}

/* Everything up to the exec. 0 or -errno, at s->stage. */
CSN_IN_CHILD static int prepare(pending *s)
{
    const csn_spawn_opts *o = s->o;
    int have[CSN_SPAWN_FDS_MAX + 1];

    s->stage = CSN_SPAWN_AT_EXEC;
    if (s->cpus.known)
        (void)csn_raw(SYS_sched_setaffinity, 0, sizeof(s->cpus.bits), s->cpus.bits);
    int rc = take_fds(s, have); /* until here the table is the host's */
    if (rc < 0)
        return rc;
    (void)csn_raw(SYS_setsid);
    s->stage = CSN_SPAWN_AT_MAP;
    rc = o->namespaces && o->namespaces->namespaces != 0 ? write_maps(o->namespaces) : 0;
    if (rc < 0)
        return rc;
    thaw_host(s);
    s->stage = CSN_SPAWN_AT_EXEC;
    rc = (int)csn_raw(SYS_chdir, "/");
    if (rc == 0)
        rc = place_fds(o, have);
    /* Otherwise signals stay blocked: a keeper unblocks them when its handlers are set. */
    if (rc == 0 && o->usual_signals)
        reset_signals();
    return rc;
}

CSN_IN_CHILD static int program_main(void *arg)
{
    static const char *const no_env[] = {NULL};
    pending *s = arg;
    const csn_spawn_opts *o = s->o;
    const char *const *env = o->env ? o->env : no_env;
    long rc = prepare(s);

    if (rc == 0 && o->exec_fd > 0) /* place_fds put it behind the others */
        rc = csn_raw(SYS_execveat, (int)o->nfds, "", o->argv, env, AT_EMPTY_PATH);
    else if (rc == 0)
        rc = csn_raw(SYS_execve, o->path, o->argv, env);
    s->error = (int)-rc;
    (void)csn_raw(SYS_exit_group, 127);
    __builtin_unreachable();
}

CSN_IN_CHILD static int intermediate_main(void *arg)
{
    pending *s = arg;
    const csn_spawn_namespaces *w = s->o->namespaces;
    int pidfd = -1;

    s->stage = CSN_SPAWN_AT_USER;
    int rc = w && w->become ? become_user(w) : 0;
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
    release_host(s); /* does nothing after a start: CLONE_VFORK returned after exec */
    (void)csn_raw(SYS_exit_group, 0);
    __builtin_unreachable();
}

/* ---- in the host ---- */

static int new_pending(const csn_spawn_opts *o, pending **ret)
{
    pending *s = malloc(sizeof(*s));
    int fds[CSN_SPAWN_FDS_MAX + 1];

    if (!s)
        return -ENOMEM;
    *s = (pending){.o = o, .pid = -1, .pidfd = -1, .dumpable = 1, .stage = CSN_SPAWN_AT_CLONE};
    s->stacks = mmap(NULL, 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int rc = s->stacks == MAP_FAILED ? -errno : csn_fd_transfer_begin(fds, list_fds(o, fds));
    if (rc >= 0) {
        s->stack2 = s->stacks + STACK_SIZE;
        s->transfer_fd = rc;
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
    pending *s = NULL;

    int rc = new_pending(o, &s);
    if (rc < 0)
        return rc;
    /* become_user makes the shared memory undumpable for a moment; meanwhile no other child of
     * the host could write its maps. */
    s->frozen = o->namespaces && o->namespaces->become;
    if (s->frozen) {
        csn_fsuid_freeze();
        s->dumpable = prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
    csn_affinity_get(&s->cpus);
    s->intermediate =
        (int)csn_raw_clone(intermediate_main, s->stack2, CLONE_VM | CLONE_FILES, s, NULL);
    if (s->intermediate < 0) {
        s->error = -s->intermediate;
        release_host(s);
    } else {
        csn_affinity_move_away(s->intermediate);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
    *ret = s;
    return 0;
}

int csn_spawn_finish(csn_spawn_pending *s, pid_t *ret_pid, int *ret_pidfd,
                     enum csn_spawn_stage *ret_stage)
{
    if (s->intermediate > 0)
        while (waitpid(s->intermediate, NULL, __WALL) < 0 && errno == EINTR)
            ;
    thaw_host(s);
    munmap(s->stacks, 2 * STACK_SIZE);
    csn_fd_transfer_end(s->transfer);
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
    csn_spawn_pending *s = NULL;

    if (ret_stage)
        *ret_stage = CSN_SPAWN_AT_CLONE;
    int rc = csn_spawn_begin(o, &s);
    return rc < 0 ? rc : csn_spawn_finish(s, ret_pid, ret_pidfd, ret_stage);
}

int csn_spawn_wait(int pidfd, int timeout_ms)
{
    struct pollfd pf = {.fd = pidfd, .events = POLLIN};
    uint64_t deadline = timeout_ms < 0 ? 0 : csn_deadline_in((uint64_t)timeout_ms);
    siginfo_t si;
    int n;

    do /* EINTR: the host may have interval timers */
        n = poll(&pf, 1, csn_deadline_poll_ms(deadline));
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    (void)waitid((idtype_t)P_PIDFD, (id_t)pidfd, &si, WEXITED | WNOHANG | __WALL);
    return 0;
}

void csn_sigpipe_hold(csn_sigpipe *s)
{
    sigset_t pipe_set, raised;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&raised);
    s->was_pending = sigismember(&raised, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_set, &s->old);
}

void csn_sigpipe_release(const csn_sigpipe *s, bool raised)
{
    const struct timespec now = {0};
    sigset_t pipe_set;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    if (raised && !s->was_pending)
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &s->old, NULL);
}

ssize_t csn_write_quietly(int fd, const void *data, size_t len)
{
    csn_sigpipe hold;

    csn_sigpipe_hold(&hold);
    ssize_t n = write(fd, data, len);
    int e = n < 0 ? errno : 0;
    csn_sigpipe_release(&hold, e == EPIPE);
    return n < 0 ? -e : n;
}
