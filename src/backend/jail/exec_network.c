/* exec_network.c: a network apart from the jail's: for one command, and for doctor.
 *
 * A call that names the domains it needs may reach these and nothing else, while others in the
 * same sandbox go on as they are. Its command gets a network of its own by way of its sockets
 * (os/socket_divert.h): the keeper's program is started once more, outside of the jail, in a
 * network with the same addresses, and makes them; the sandbox's gateway serves that network by
 * the call's rules and the sandbox's (gateway/exec_rules.c). Doctor starts the same to learn
 * what network rules become on this host, and no more. What must hold: a command that was to be
 * narrowed and could not be is not run; both helpers end with the call, whatever it leaves
 * running, and what it left has no network then. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/seccomp.h"
#include "os/spawn.h"
#include "runtime/link.h"

#define NOBODY 0x7fffff00u /* the user of a root caller's attempt */
#define APART_STEP                                                                             \
    0x20000000u /* from the number of a root's jail: nobody's, and none of theirs */
/* All that it can have without files and processes of its own. */
#define APART_WALLS                                                                            \
    (CSN_CONFINE_BIT(CSN_CONFINE_NET) | CSN_CONFINE_BIT(CSN_CONFINE_LIMITS) |                  \
     CSN_CONFINE_BIT(CSN_CONFINE_KEYRING) | CSN_CONFINE_BIT(CSN_CONFINE_LANDLOCK) |            \
     CSN_CONFINE_BIT(CSN_CONFINE_CAPS) | CSN_CONFINE_BIT(CSN_CONFINE_SECCOMP))

/* ---- the keeper's program in a network of its own ---- */

typedef struct program {
    const char *id;
    uint32_t flags; /* of its spec */
    uint32_t walls;
    uint32_t user; /* of a root caller's */
    csn_gateway_net_order order;
} program;

static csn_status start(const program *p, int *ret_control, int *ret_pidfd, csn_error **err)
{
    const csn_keeper_spec spec = {
        .flags = p->flags,
        .id = p->id,
        .tag_base = csn_spec_tag_base(p->id),
        .confinement = {.on = p->walls, .seccomp = CSN_SECCOMP_DEFAULT, .net = p->order}};
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

/* READY: 0, what it became, and its descriptors in *m. FAILED: why. */
static int await(int control, void *buf, size_t size, csn_msg *m, csn_ready_msg *ret)
{
    csn_failed_msg failed;
    int rc = csn_msg_await(control, csn_deadline_in(CSN_KEEPER_ANSWER_MS), buf, size, m);

    if (rc != 1)
        return rc < 0 ? rc : -EPIPE;
    rc = csn_proto_decode(m, CSN_MSG_READY, ret);
    if (rc < 0 && csn_proto_decode(m, CSN_MSG_FAILED, &failed) == 0)
        rc = -(int)failed.errnum;
    if (rc < 0)
        csn_msg_release(m);
    return rc;
}

static void let_go(int *control, int *pidfd)
{
    if (*control >= 0)
        close(csn_steal_fd(control));
    if (*pidfd >= 0) {
        (void)csn_spawn_wait(*pidfd, (int)CSN_KEEPER_ANSWER_MS);
        close(csn_steal_fd(pidfd));
    }
}

/* Starts it and waits until its network stands. On failure nothing is left. */
static csn_status launch(const program *p, int *ret_control, int *ret_pidfd, void *buf,
                         size_t size, csn_msg *m, csn_ready_msg *ret, csn_error **err)
{
    csn_status st = start(p, ret_control, ret_pidfd, err);

    if (st == CSN_OK) {
        int rc = await(*ret_control, buf, size, m, ret);
        if (rc < 0)
            st = csn_fail(err, CSN_UNAVAILABLE, "%s", strerrordesc_np(-rc));
    }
    if (st < 0)
        let_go(ret_control, ret_pidfd);
    return st;
}

csn_status csn_jail_net_try(csn_ready_msg *ret, csn_error **err)
{
    const program p = {.id = "doctor",
                       .walls = CSN_CONFINE_BIT(CSN_CONFINE_NET),
                       .user = NOBODY,
                       .order = {.mode = CSN_GATEWAY_NET_EITHER}};
    int control = -1, pidfd = -1;
    uint8_t buf[256];
    csn_msg m;
    csn_status st = launch(&p, &control, &pidfd, buf, sizeof(buf), &m, ret, err);

    if (st < 0)
        return st;
    csn_msg_release(&m);
    let_go(&control, &pidfd);
    return CSN_OK;
}

/* ---- for one command ---- */

/* The gateway has the new network's sockets, which follow the root and the link in `m`. */
static csn_status hand_over(const csn_gateway *g, csn_msg *m, const csn_ready_msg *told,
                            const char *const *rules, int *ret_lease, csn_error **err)
{
    csn_gateway_setup_msg s = {
        .flags = told->net_sockets,
        .rules = {.mode = CSN_GATEWAY_LISTED, .allow = (const char **)(uintptr_t)rules}};

    if (m->nfds != 2 + (size_t)__builtin_popcount(told->net_sockets))
        return csn_fail(err, CSN_UNAVAILABLE, "the network of the command is not as ordered");
    return csn_gateway_exec_rules(g, &s, m->fds + 2, m->nfds - 2, ret_lease, err);
}

csn_status csn_exec_network_begin(csn_runtime *rt, const char *const *rules,
                                  csn_exec_network *ret, csn_error **err)
{
    const csn_jail *j = rt->jail;
    uint8_t buf[256];
    csn_ready_msg told;
    csn_msg m;

    if (!j->net)
        return csn_fail(err, CSN_DENIED, "sandbox '%s' has no network", rt->id);
    const program p = {
        .id = rt->id,
        .flags = CSN_SPEC_SOCKETS,
        .walls = APART_WALLS,
        .user = j->host_uid - APART_STEP,
        .order = {.mode = j->ready.net_mode, .proxy_port = (uint16_t)j->ready.proxy_port}};
    csn_status st = launch(&p, &ret->sockets, &ret->pidfd, buf, sizeof(buf), &m, &told, err);
    if (st < 0)
        return csn_wrap(st, err, "a network for one command");
    st = hand_over(&j->net->gateway, &m, &told, rules, &ret->lease, err);
    csn_msg_release(&m);
    if (st < 0)
        csn_exec_network_end(ret);
    return st;
}

/* The lease first: sockets that are still open are not served any more. */
void csn_exec_network_end(csn_exec_network *a)
{
    if (a->lease >= 0)
        close(csn_steal_fd(&a->lease));
    let_go(&a->sockets, &a->pidfd);
}
