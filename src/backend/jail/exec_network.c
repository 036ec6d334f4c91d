/* exec_network.c: gives one command a network of its own with stricter rules.
 *
 * A command with per-exec rules may connect only where both those rules and the sandbox's allow
 * it; other commands of the sandbox keep their network. The keeper's program is started again
 * outside the jail in a network namespace with the same addresses and creates the command's
 * sockets there (os/socket_divert.h); the sandbox's gateway serves this namespace by both sets
 * of rules (gateway/exec_rules.c). doctor starts the same program to find out which kind of
 * network the host supports.
 *
 * Invariants: a command whose stricter network cannot be set up is not run. The helper ends
 * with the call; processes that the command leaves behind then have no network. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/seccomp.h"
#include "os/spawn.h"
#include "runtime/link.h"

#define UNUSED_UID 0x7fffff00u /* doctor as root: has no account */
/* Subtracted from the uid of a root caller's jail: the result has no account and belongs to no
 * jail. */
#define UID_STEP 0x20000000u
/* The helper has no mounts or processes of its own to confine. */
#define CONFINEMENT                                                                            \
    (CSN_CONFINE_BIT(CSN_CONFINE_NET) | CSN_CONFINE_BIT(CSN_CONFINE_LIMITS) |                  \
     CSN_CONFINE_BIT(CSN_CONFINE_KEYRING) | CSN_CONFINE_BIT(CSN_CONFINE_LANDLOCK) |            \
     CSN_CONFINE_BIT(CSN_CONFINE_CAPS) | CSN_CONFINE_BIT(CSN_CONFINE_SECCOMP))

/* ---- the helper ---- */

typedef struct program {
    const char *id;
    uint32_t flags; /* of its spec */
    uint32_t confine;
    uint32_t user;     /* uid for a root caller; 0: its own */
    uint64_t until_ns; /* how long to wait for it */
    csn_gateway_net_order order;
} program;

static csn_status start(const program *p, int *ret_control, int *ret_pidfd, csn_error **err)
{
    const csn_keeper_spec spec = {
        .flags = p->flags,
        .id = p->id,
        .tag_base = csn_spec_tag_base(p->id),
        .confinement = {.on = p->confine, .seccomp = CSN_SECCOMP_DEFAULT, .net = p->order}};
    char map[2][32];
    const csn_spawn_namespaces w = {.namespaces = CLONE_NEWUSER,
                                    .become = geteuid() == 0,
                                    .uid = p->user,
                                    .gid = p->user,
                                    .uid_map = map[0],
                                    .gid_map = map[1]};
    csn_keeper_start s = {0};
    pid_t pid = 0;

    snprintf(map[0], sizeof(map[0]), "0 %u 1", w.become ? p->user : geteuid());
    snprintf(map[1], sizeof(map[1]), "0 %u 1", w.become ? p->user : getegid());
    const char *name = p->flags & CSN_SPEC_SOCKETS ? "caisson-sockets" : "caisson-keeper";
    csn_status st = csn_keeper_start_begin(&s, name, p->id, &w, -1, ret_control, err);
    int rc = st < 0 ? 0 : csn_keeper_start_finish(&s, &pid, ret_pidfd, NULL);
    free(s.program);
    if (st == CSN_OK && rc == 0)
        rc = csn_keeper_send_spec(*ret_control, &spec);
    return rc < 0 ? csn_fail(err, CSN_UNAVAILABLE, "%s", strerrordesc_np(-rc)) : st;
}

/* Waits for READY. 0: received; *m has its descriptors. -errno: also the one from FAILED. */
static int await(int control, uint64_t until_ns, void *buf, size_t size, csn_msg *m,
                 csn_ready_msg *ret)
{
    csn_failed_msg failed;
    int rc = csn_msg_await(control, until_ns, buf, size, m);

    if (rc != 1)
        return rc < 0 ? rc : -EPIPE;
    rc = csn_proto_decode(m, CSN_MSG_READY, ret);
    if (rc < 0 && csn_proto_decode(m, CSN_MSG_FAILED, &failed) == 0)
        rc = -(int)failed.errnum;
    if (rc < 0)
        csn_msg_release(m);
    return rc;
}

static void stop(int *control, int *pidfd)
{
    if (*control >= 0)
        close(csn_steal_fd(control));
    if (*pidfd >= 0) {
        if (csn_spawn_wait(*pidfd, (int)CSN_GATEWAY_END_MS) < 0) {
            (void)syscall(SYS_pidfd_send_signal, *pidfd, SIGKILL, NULL, 0);
            (void)csn_spawn_wait(*pidfd, (int)CSN_KEEPER_ANSWER_MS);
        }
        close(csn_steal_fd(pidfd));
    }
}

/* Starts the helper and waits for READY. On failure the helper has been stopped. */
static csn_status launch(const program *p, int *ret_control, int *ret_pidfd, void *buf,
                         size_t size, csn_msg *m, csn_ready_msg *ret, csn_error **err)
{
    csn_status st = start(p, ret_control, ret_pidfd, err);

    if (st == CSN_OK) {
        int rc = await(*ret_control, p->until_ns, buf, size, m, ret);
        if (rc < 0)
            st = csn_fail(err, CSN_UNAVAILABLE, "%s", strerrordesc_np(-rc));
    }
    if (st < 0)
        stop(ret_control, ret_pidfd);
    return st;
}

csn_status csn_jail_net_probe(csn_ready_msg *ret, csn_error **err)
{
    const program p = {.id = "doctor",
                       .confine = CSN_CONFINE_BIT(CSN_CONFINE_NET),
                       .user = csn_fsuid_may_become(UNUSED_UID) ? UNUSED_UID : 0,
                       .until_ns = csn_deadline_in(CSN_KEEPER_ANSWER_MS),
                       .order = {.mode = CSN_GATEWAY_NET_EITHER}};
    int control = -1, pidfd = -1;
    uint8_t buf[256];
    csn_msg m;
    csn_status st = launch(&p, &control, &pidfd, buf, sizeof(buf), &m, ret, err);

    if (st < 0)
        return st;
    csn_msg_release(&m);
    stop(&control, &pidfd);
    return CSN_OK;
}

/* ---- for one command ---- */

/* Passes the sockets of the new namespace, which follow the root and the link in `m`. */
static csn_status pass_sockets(csn_gateway *g, csn_msg *m, const csn_ready_msg *ready,
                               const char *const *rules, uint64_t until_ns, int *ret_lease,
                               csn_error **err)
{
    csn_gateway_setup_msg s = {
        .flags = ready->net_sockets,
        .rules = {.mode = CSN_GATEWAY_LISTED, .allow = (const char **)(uintptr_t)rules}};

    if (m->nfds != 2 + (size_t)__builtin_popcount(ready->net_sockets))
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the network of the command has unexpected sockets");
    return csn_gateway_exec_rules(g, &s, m->fds + 2, m->nfds - 2, until_ns, ret_lease, err);
}

csn_status csn_exec_network_begin(csn_runtime *rt, const char *const *rules,
                                  uint64_t deadline_ns, csn_exec_network *ret, csn_error **err)
{
    const csn_jail *j = rt->jail;
    uint8_t buf[256];
    csn_ready_msg ready;
    csn_msg m;

    if (!j->net)
        return csn_fail(err, CSN_DENIED, "sandbox '%s' has no network", rt->id);
    const program p = {
        .id = rt->id,
        .flags = CSN_SPEC_SOCKETS,
        .confine = CONFINEMENT,
        .user = j->spare_uid != 0 ? j->spare_uid - UID_STEP : 0,
        .until_ns = csn_gateway_patience(deadline_ns),
        .order = {.mode = j->ready.net_mode, .proxy_port = (uint16_t)j->ready.proxy_port}};
    csn_status st = launch(&p, &ret->sockets, &ret->pidfd, buf, sizeof(buf), &m, &ready, err);
    if (st < 0)
        return csn_wrap(st, err, "a network for one command");
    st = pass_sockets(&j->net->gateway, &m, &ready, rules, p.until_ns, &ret->lease, err);
    csn_msg_release(&m);
    if (st < 0)
        csn_exec_network_end(ret);
    return st;
}

/* The lease ends first, so that the gateway stops serving sockets that are still open. */
void csn_exec_network_end(csn_exec_network *n)
{
    if (n->lease >= 0)
        close(csn_steal_fd(&n->lease));
    stop(&n->sockets, &n->pidfd);
}
