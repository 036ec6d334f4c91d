/* main.c: a keeper from its first instruction to its last.
 *
 * caisson-keeper holds one sandbox: it starts its commands, reaps them, keeps the output of
 * background processes and ends everything on request, when its owner dies or when its
 * time is over. It is started by the library with exactly the descriptors of spec.h and an
 * empty environment; its orders are the first message. It loads no plug-ins and reads no
 * configuration and no environment variables. Flags of the orders make it a sweeper (sweep.c)
 * or the process that makes the sockets of one command (os/socket_divert.h) instead. If the
 * orders or the descriptors are malformed it does nothing and exits 2. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "os/socket_divert.h"

static kp_keeper keeper;
static _Alignas(KP_PAGE) char spec_bytes[sizeof(csn_msg_head) + CSN_SPEC_MAX];

/* The owner's end is watched as well: a host that has forked holds our connection open after it
 * has died. What it sent before counts. An owner may be stopped for any time, by a terminal or
 * a debugger; only where a listening socket is in its place, so that its end cannot be watched,
 * there is a deadline. */
int kp_await_message(void)
{
    struct stat st;
    bool owned = fstat(CSN_KEEPER_FD_OWNER, &st) == 0 && !S_ISSOCK(st.st_mode);
    struct pollfd pf[] = {{.fd = CSN_KEEPER_FD_CONTROL, .events = POLLIN},
                          {.fd = owned ? CSN_KEEPER_FD_OWNER : -1, .events = POLLIN}};
    uint64_t deadline = owned ? 0 : csn_deadline_in(CSN_KEEPER_SPEC_MS);

    while (pf[0].revents == 0) {
        int n = poll(pf, 2, csn_deadline_poll_ms(deadline));
        if (n == 0)
            return -ETIMEDOUT;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && pf[0].revents == 0)
            return -EOWNERDEAD;
    }
    return 0;
}

/* The orders may still be in the making. The first process of a pid namespace is going to be a
 * jail: it begins with what every jail needs. */
static int receive_spec(kp_keeper *k)
{
    csn_msg m;

    if (getpid() == 1)
        kp_confine_begin();
    int rc = kp_await_message();
    if (rc == 0)
        rc = csn_msg_recv(CSN_KEEPER_FD_CONTROL, spec_bytes, sizeof(spec_bytes), &m);
    if (rc <= 0)
        return rc < 0 ? rc : -EPIPE;
    if (csn_proto_decode(&m, CSN_MSG_SPEC, NULL) < 0)
        return -EPROTO;
    /* borrows from both */
    return csn_spec_get(m.body, m.len, kp_confine_mount_list(), &k->spec);
}

void kp_release_pages(void *start, void *end)
{
    uintptr_t from = ((uintptr_t)start + KP_PAGE - 1) / KP_PAGE * KP_PAGE;
    uintptr_t to = (uintptr_t)end / KP_PAGE * KP_PAGE;

    if (from < to) /* of other pages than we think there are: nothing is done */
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* The walls stand. What is left to do at the end, if anything, is still in our orders. */
static void release_spec(kp_keeper *k)
{
    csn_keeper_spec *s = &k->spec;

    s->id = "";
    if (!s->socket && !s->remove[0] && !s->groups[0])
        kp_release_pages(spec_bytes, spec_bytes + sizeof(spec_bytes));
}

/* Not by sigaction(): libc keeps the signals it uses itself (32 and up) out of reach. */
static void reset_signals(int first, int last)
{
    unsigned long dfl[8] = {0}; /* the kernel's struct, all default */

    for (int i = first; i <= last; i++)
        (void)syscall(SYS_rt_sigaction, i, dfl, NULL, 8ul);
}

/* Dispositions our starter had would be inherited by commands: an ignored SIGPIPE breaks `yes |
 * head`. SIGCHLD and SIGTERM (an orderly end) come through the signalfd; a terminal's hang-up
 * or interrupt is not meant for us. */
static int watch_signals(kp_keeper *k)
{
    sigset_t set;

    reset_signals(1, 64);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGPIPE);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return -errno;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    return kp_watch_open(k, &k->signals, KP_WATCH_SIGNALS, fd, NULL);
}

static int prepare(kp_keeper *k)
{
    kp_list *const lists[] = {&k->conns,    &k->jobs,   &k->ended,        &k->waiters,
                              &k->sessions, &k->drains, &k->deferred_free};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        kp_list_init(lists[i]);
    k->signals.fd = k->owner.fd = k->listen.fd = k->net.fd = -1;
    reset_signals(SIGCHLD, SIGCHLD); /* ignored, nobody could wait for who builds walls */
    for (int fd = CSN_KEEPER_FD_CONTROL; fd <= CSN_KEEPER_FD_OWNER; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return -errno;
    int rc = receive_spec(k);
    if (rc < 0)
        return rc;
    if (k->spec.flags & CSN_SPEC_SWEEP)
        return 0;
    rc = kp_confine(k);
    if (rc < 0)
        return rc;
    release_spec(k);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) < 0 ||
        prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
        return -errno;
    k->started_ms = csn_wall_ms();
    if (k->spec.lifetime_ms != 0) {
        k->ends_ns = csn_deadline_in(k->spec.lifetime_ms);
        k->ends_ms = k->ends_ns ? k->started_ms + (int64_t)k->spec.lifetime_ms : 0;
    }
    k->epfd = epoll_create1(EPOLL_CLOEXEC);
    return k->epfd < 0 ? -errno : watch_signals(k);
}

int main(void)
{
    kp_keeper *k = &keeper;

    if (prepare(k) < 0)
        return 2;
    if (k->spec.flags & CSN_SPEC_SWEEP)
        return kp_sweeper_run(&k->spec) < 0 ? 1 : 0;
    if (k->spec.flags & CSN_SPEC_SOCKETS) {
        (void)prctl(PR_SET_NAME, "caisson-sockets", 0L, 0L, 0L);
        return csn_socket_divert_serve(CSN_KEEPER_FD_CONTROL) < 0 ? 1 : 0;
    }
    int rc = kp_serve(k);
    kp_watch_close(k, &k->listen); /* nobody new comes in while we clear up */
    kp_kill_everything(k);
    kp_sweep_listed(&k->spec);
    return rc < 0 ? 1 : 0;
}
