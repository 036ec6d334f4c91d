/* keeper_process.c: starts the keeper of a sandbox, connects to a detached one, and ends it.
 *
 * Every keeper receives its spec (keeper/spec.h) as the first message on the connection it is
 * started with. Commands run next to it, so its messages are treated as hostile (link.c). If a
 * keeper was killed, its commands are found by their tag and killed here; in a pid namespace
 * the kernel has done so. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/proctree.h"
#include "runtime/cow.h"
#include "runtime/link.h"

#define PROCESS_NAME "caisson-keeper"
#define SWEEP_PASSES 50

/* ---- starting ---- */

csn_status csn_keeper_start_begin(csn_keeper_start *s, const char *name, const char *id,
                                  const csn_spawn_namespaces *ns, int listener,
                                  int *ret_control, csn_error **err)
{
    csn_autofd int owner = -1, ours = -1, theirs = -1;
    int pair[2];

    free(CSN_STEAL(s->program));
    csn_status st = csn_keeper_find(&s->program, err);
    if (st < 0)
        return st;
    csn_autofd int exe = open(s->program, O_RDONLY | O_CLOEXEC);
    if (exe < 0)
        return csn_fail_errno(err, errno, "%s", s->program);
    if (listener < 0)
        owner = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if ((listener < 0 && owner < 0) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return csn_fail_errno(err, errno, "start %s", name);
    ours = pair[0];
    theirs = pair[1]; /* closed on return: an open copy would hide the program's end */
    s->argv[0] = name;
    s->argv[1] = id;
    s->opts = (csn_spawn_opts){.path = s->program,
                               .exec_fd = exe,
                               .namespaces = ns,
                               .argv = s->argv,
                               .fds = {-1, -1, -1, theirs, listener < 0 ? owner : listener},
                               .nfds = CSN_KEEPER_FD_OWNER + 1};
    int rc = csn_spawn_begin(&s->opts, &s->pending);
    if (rc == -ENOMEM)
        return csn_fail(err, CSN_NOMEM, "start %s", name);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "start %s: %s", s->program, strerrordesc_np(-rc));
    *ret_control = csn_steal_fd(&ours);
    return CSN_OK;
}

int csn_keeper_start_finish(csn_keeper_start *s, pid_t *ret_pid, int *ret_pidfd,
                            enum csn_spawn_stage *ret_stage)
{
    return csn_spawn_finish(CSN_STEAL(s->pending), ret_pid, ret_pidfd, ret_stage);
}

int csn_keeper_send_spec(int control, const csn_keeper_spec *spec)
{
    uint8_t buf[4096];
    csn_packer o;

    csn_packer_init(&o, buf, sizeof(buf));
    csn_spec_put(&o, spec);
    int rc = o.error != 0 ? -o.error
                          : csn_msg_send(control, CSN_MSG_SPEC, o.data, o.len, NULL, 0,
                                         csn_deadline_in(CSN_KEEPER_ANSWER_MS));
    csn_packer_release(&o);
    return rc;
}

/* The socket is bound here, not in the keeper, so that open reports a failure. */
csn_status csn_runtime_spawn_begin(csn_runtime *rt, const csn_spawn_namespaces *ns,
                                   csn_error **err)
{
    csn_autofd int listener = -1;

    if (rt->detached) {
        csn_status st = csn_runtime_run_dir(rt, err);
        if (st < 0)
            return st;
        listener = csn_runtime_run_listen(rt, CSN_KEEPER_SOCKET, CSN_KEEPER_BACKLOG);
        if (listener < 0)
            return csn_fail_errno(err, -listener, "socket of sandbox '%s'", rt->id);
    }
    return csn_keeper_start_begin(&rt->start, PROCESS_NAME, rt->id, ns, listener,
                                  &rt->keeper_fd, err);
}

int csn_runtime_spawn_finish(csn_runtime *rt, enum csn_spawn_stage *ret_stage)
{
    pid_t pid = 0;
    int pidfd = -1;

    if (!rt->start.pending)
        return 0;
    int rc = csn_keeper_start_finish(&rt->start, &pid, &pidfd, ret_stage);
    if (rc < 0) {
        close(csn_steal_fd(&rt->keeper_fd));
        return rc;
    }
    rt->keeper_pid = pid;
    rt->keeper_pidfd = pidfd;
    return 0;
}

csn_keeper_spec csn_runtime_spec(const csn_runtime *rt)
{
    uint64_t lifetime = rt->config->lifetime_ms;

    return (csn_keeper_spec){.flags = rt->detached ? CSN_SPEC_DETACHED : 0,
                             .lifetime_ms = lifetime == CSN_NO_LIMIT ? 0 : lifetime,
                             .record_check_ms = rt->detached ? CSN_SPEC_RECORD_CHECK_MS : 0,
                             .tag_base = csn_spec_tag_base(rt->id),
                             .id = rt->id};
}

csn_status csn_runtime_send_orders(csn_runtime *rt, const csn_keeper_spec *spec,
                                   csn_error **err)
{
    int rc = csn_keeper_send_spec(rt->keeper_fd, spec);

    if (rc == -EPIPE)
        return csn_link_lost(rt, err);
    return rc < 0 ? csn_fail_errno(err, -rc, "orders for the keeper") : CSN_OK;
}

/* The keeper of an unconfined sandbox removes its socket and its own directory (with the
 * private home) when it ends, since this process may be killed first. No answer is awaited: the
 * first request shows whether it runs, which saves a round trip per start. */
static csn_status start_unconfined(csn_runtime *rt, csn_error **err)
{
    csn_keeper_spec spec = csn_runtime_spec(rt);
    csn_autofree char *sock = NULL;
    csn_status st = csn_runtime_spawn_begin(rt, NULL, err);

    if (st < 0)
        return st;
    int rc = csn_runtime_spawn_finish(rt, NULL);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "start %s: %s", rt->start.program,
                        strerrordesc_np(-rc));
    if (rt->detached && asprintf(&sock, "%s/" CSN_KEEPER_SOCKET, rt->run_path) < 0)
        return csn_fail(err, CSN_NOMEM, "keeper");
    spec.socket = sock;
    spec.remove[0] = rt->run_path;
    spec.layers = rt->cow ? rt->cow->path : NULL;
    return csn_runtime_send_orders(rt, &spec, err);
}

csn_status csn_runtime_ensure_keeper(csn_runtime *rt, csn_error **err)
{
    csn_status st = CSN_OK;

    pthread_mutex_lock(&rt->keeper_lock);
    if (rt->ended || (rt->keeper_fd < 0 && rt->connected))
        st = csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id);
    else if (rt->keeper_fd < 0)
        st = start_unconfined(rt, err);
    pthread_mutex_unlock(&rt->keeper_lock);
    return st;
}

/* ---- the end ---- */

void csn_runtime_sweep_tagged(const char *id)
{
    uint64_t base = csn_spec_tag_base(id);
    csn_proctree_query w = {.tag_lo = base, .tag_hi = base | CSN_TAG_SEQ_MASK};
    csn_proctree t = {0};

    for (int i = 0; i < SWEEP_PASSES; i++) {
        size_t fresh = 0;
        ssize_t n = csn_proctree_scan(&t, &w, SIGKILL, false, &fresh);
        if (n <= 0)
            break;
        if (fresh == 0)
            (void)poll(NULL, 0, 2);
    }
    csn_proctree_release(&t);
}

/* In a pid namespace the kernel kills all processes with pid 1. */
void csn_runtime_sweep_commands(const csn_runtime *rt)
{
    if (rt->level != CSN_LEVEL_NAMESPACES)
        csn_runtime_sweep_tagged(rt->id);
}

/* The keeper of another pid namespace has no pidfd here; its record tells. */
bool csn_runtime_keeper_is_dead(const csn_runtime *rt)
{
    struct pollfd pf = {.fd = rt->keeper_pidfd, .events = POLLIN};

    if (rt->keeper_pidfd < 0 && rt->connected && rt->run_fd >= 0)
        return csn_keeper_record_life(rt->run_fd, &rt->record) == CSN_KEEPER_ENDED;
    return rt->keeper_pidfd < 0 || (poll(&pf, 1, 0) == 1 && pf.revents != 0);
}

void csn_runtime_kill_keeper(csn_runtime *rt)
{
    if (rt->keeper_pidfd < 0)
        return;
    (void)syscall(SYS_pidfd_send_signal, rt->keeper_pidfd, SIGKILL, NULL, 0);
    (void)csn_spawn_wait(rt->keeper_pidfd, (int)CSN_KEEPER_ANSWER_MS);
    csn_runtime_sweep_commands(rt);
}

/* In a pid namespace the kernel kills everything together with the keeper. Waiting for that
 * takes as long as a start, so skip it if the last command reported that no other process was
 * left and no other handle can have started one since. */
static void end_namespaces(csn_runtime *rt)
{
    bool alone = rt->spawns == rt->alone_after && !rt->connected && !rt->detached;

    if (alone)
        (void)syscall(SYS_pidfd_send_signal, rt->keeper_pidfd, SIGKILL, NULL, 0);
    else
        csn_runtime_kill_keeper(rt);
}

/* Asks the keeper to end everything. It waits CSN_KEEPER_END_MS for unkillable processes, then
 * ends, and with it the channel closes. */
static void ask_end(csn_runtime *rt)
{
    const uint64_t patience = CSN_KEEPER_END_MS + CSN_KEEPER_ANSWER_MS;
    csn_autofd int channel = -1;
    uint8_t buf[64];
    csn_msg m;

    if (csn_link_send(rt, CSN_MSG_DESTROY, NULL, NULL, 0, &channel, NULL) < 0)
        (void)shutdown(rt->keeper_fd, SHUT_RDWR);
    if (rt->keeper_pidfd >= 0) {
        if (csn_spawn_wait(rt->keeper_pidfd, (int)patience) < 0)
            csn_runtime_kill_keeper(rt);
    } else if (channel >= 0 &&
               csn_msg_await(channel, csn_deadline_in(patience), buf, sizeof(buf), &m) == 1) {
        csn_msg_release(&m);
    }
}

/* The descriptors stay open until the state is freed, because other threads may use them. */
bool csn_runtime_end_keeper(csn_runtime *rt)
{
    (void)csn_runtime_spawn_finish(rt, NULL); /* a pending start must be finished first */
    pthread_mutex_lock(&rt->keeper_lock);
    int64_t pid = rt->keeper_fd >= 0 ? rt->keeper_pid : 0;
    rt->keeper_pid = 0;
    pthread_mutex_unlock(&rt->keeper_lock);
    if (pid == 0)
        return true;
    if (rt->level == CSN_LEVEL_NAMESPACES && rt->keeper_pidfd >= 0) {
        end_namespaces(rt);
        return true;
    }
    if (pid > 0 && csn_pid_is_stopped((pid_t)pid)) /* it would not answer */
        csn_runtime_kill_keeper(rt);
    else
        ask_end(rt);
    return csn_runtime_keeper_is_dead(rt);
}
