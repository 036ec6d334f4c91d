/* doctor_net.c: what network rules would be enforced by on this host.
 *
 * Called by doctor.c. A keeper is started with one wall only, a network with a way out, and
 * tells what it became: that is the whole question. Its sockets come along and are closed, and
 * it ends when we hang up. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "kept/link.h"
#include "os/spawn.h"

#define NOBODY 0x7fffff00u /* who a root caller's attempt is made as */

static int make_spec(void)
{
    uint8_t buf[1024];
    csn_wire_out o;
    const csn_keeper_spec spec = {
        .id = "doctor",
        .tag_base = csn_spec_tag_base("doctor"),
        .walls = {.on = CSN_WALL_BIT(CSN_WALL_NET), .net = {.mode = CSN_NETIN_EITHER}}};

    csn_wire_out_init(&o, buf, sizeof(buf));
    csn_spec_put(&o, &spec);
    int fd = o.error != 0 ? -o.error : csn_sealed_memfd("caisson-spec", o.data, o.len);
    csn_wire_out_release(&o);
    return fd;
}

static int start(const char *program, int control, int *ret_pidfd)
{
    const char *argv[] = {"caisson-keeper", NULL};
    char map[2][32];
    const csn_orphan_walls w = {.namespaces = CLONE_NEWUSER,
                                .become = geteuid() == 0,
                                .uid = NOBODY,
                                .gid = NOBODY,
                                .uid_map = map[0],
                                .gid_map = map[1]};
    csn_autofd int spec = make_spec(), owner = (int)syscall(SYS_pidfd_open, getpid(), 0);
    csn_autofd int exe = open(program, O_RDONLY | O_CLOEXEC);
    pid_t pid = 0;

    if (spec < 0 || owner < 0 || exe < 0)
        return spec < 0 ? spec : -errno;
    snprintf(map[0], sizeof(map[0]), "0 %u 1", w.become ? NOBODY : geteuid());
    snprintf(map[1], sizeof(map[1]), "0 %u 1", w.become ? NOBODY : getegid());
    const csn_orphan o = {.path = program,
                          .exec_fd = exe,
                          .walls = &w,
                          .argv = argv,
                          .fds = {-1, -1, -1, control, spec, owner},
                          .nfds = 6};
    return csn_orphan_start(&o, &pid, ret_pidfd, NULL);
}

/* READY: 0 and what it became. FAILED: why. */
static int await(int control, csn_net_body *ret)
{
    uint8_t buf[256];
    csn_ask_body told;
    csn_msg m;

    int rc =
        csn_msg_await(control, csn_deadline_in(CSN_KEEPER_ANSWER_MS), buf, sizeof(buf), &m);
    if (rc != 1)
        return rc < 0 ? rc : -EPIPE;
    rc = csn_get_ask(m.body, m.len, &told);
    if (rc == 0 && m.type == CSN_MSG_FAILED)
        rc = told.a > 0 && told.a < 4096 ? -(int)told.a : -EPROTO;
    else if (rc == 0)
        rc = m.type == CSN_MSG_READY ? csn_net_unpack(told.pid, ret) : -EPROTO;
    csn_msg_release(&m);
    return rc;
}

int csn_jail_net_try(const char *program, csn_net_body *ret)
{
    int pair[2], pidfd = -1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    int rc = start(program, pair[1], &pidfd);
    close(pair[1]);
    if (rc == 0)
        rc = await(pair[0], ret);
    close(pair[0]);
    if (pidfd >= 0) {
        (void)csn_orphan_wait(pidfd, (int)CSN_KEEPER_ANSWER_MS);
        close(pidfd);
    }
    return rc;
}
