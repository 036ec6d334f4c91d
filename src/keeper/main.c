/* main.c: starts a keeper, runs its event loop and ends everything it has started.
 *
 * caisson-keeper holds one sandbox: it starts commands, reaps them, keeps the output of
 * background processes, and kills everything on request, when its owner dies or when its
 * lifetime is over. The library starts it with the descriptors of spec.h and an empty
 * environment. It reads no configuration and loads no plug-ins. Flags of the spec make the same
 * program a sweeper (sweep.c), or a process that creates the sockets of one command
 * (os/socket_divert.h). Exit status 2: the spec or the descriptors are wrong, or the
 * confinement has failed. */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "keeper/keeper.h"
#include "os/socket_divert.h"

static kp_keeper keeper;

/* Resets the dispositions, because commands would inherit those of the library's host: an
 * ignored SIGPIPE breaks `yes | head`. SIGCHLD and SIGTERM (an orderly end) arrive through the
 * signalfd; SIGHUP and SIGINT of a terminal, and SIGPIPE, are blocked. */
static int watch_signals(kp_keeper *k)
{
    sigset_t set;

    kp_reset_signals(1, 64);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGPIPE);
    if (fd < 0 || sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return -errno;
    return kp_watch_open(k, &k->signals, KP_WATCH_SIGNALS, fd, NULL);
}

static int prepare(kp_keeper *k)
{
    k->signals.fd = k->owner.fd = k->listen.fd = k->net.fd = k->names.fd = -1;
    int rc = kp_boot(k);
    if (rc < 0 || (k->spec.flags & CSN_SPEC_SWEEP))
        return rc;
    /* Without confinement, commands have the rights of the keeper anyway, and /proc/PID/fd is
     * the way to the socket of a detached keeper when its file was removed. */
    bool hide = k->spec.confinement.on != 0 || !(k->spec.flags & CSN_SPEC_DETACHED);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) < 0 ||
        (hide && prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0))
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
    kp_watch_close(k, &k->listen); /* accept no connection while everything is killed */
    kp_kill_everything(k);
    kp_sweep_listed(&k->spec);
    return rc < 0 ? 1 : 0;
}
