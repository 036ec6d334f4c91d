/* sweeper.c: starts the program that cleans up after a jail (keeper/sweep.c).
 *
 * A jail's keeper cannot reach the control groups and the runtime directory of its sandbox, and
 * the library may be killed. So a second process, the caller's own and outside of all walls,
 * waits for the keeper's end, or for ours while there is no keeper. It is started only when
 * there will be something to remove: a control group, or the directory of a detached sandbox;
 * where there is no pid namespace always. What must hold: its orders list everything that is
 * made afterwards, and nothing is made before it is on its way: from then on it needs us no
 * more (os/spawn.c). Groups, which nobody else would find soon, wait until it runs in a session
 * of its own, where no signal to our process group reaches it. */
#include "backend/jail/sweeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/statedir.h"
#include "runtime/link.h"

#define END_MS 2000

void csn_jail_sweeper_init(csn_jail_sweeper *s)
{
    *s = (csn_jail_sweeper){.control = -1, .pidfd = -1};
}

/* ---- its orders ---- */

/* None of what it is to remove exists yet. */
static csn_status send_orders(const csn_runtime *k, const csn_jail_sweeper *s, csn_error **err)
{
    const csn_jail *j = k->jail;
    const csn_cgroup *g = &j->limits.group;
    csn_autofree char *run = NULL, *place = NULL;
    csn_keeper_spec spec = {
        .flags = CSN_SPEC_SWEEP, .tag_base = csn_spec_tag_base(k->id), .id = k->id};

    if (k->detached || k->level == CSN_LEVEL_LANDLOCK_ONLY) {
        run = csn_statedir_path(CSN_DIR_RUNTIME, k->id);
        if (!run)
            return csn_fail_errno(err, errno, "runtime directory of sandbox '%s'", k->id);
        spec.remove[0] = run;
    }
    if (k->level == CSN_LEVEL_LANDLOCK_ONLY) { /* no pid namespace takes along what a killed
                                                  keeper leaves */
        spec.flags |= CSN_SPEC_TAGGED;
        spec.user = j->privileged ? j->host_uid : 0;
        place = csn_landlock_only_place(k, run);
        if (!place)
            return csn_fail(err, CSN_NOMEM, "orders for the sweeper");
        spec.remove[1] = strcmp(place, run) == 0 ? NULL : place;
    }
    for (uint32_t i = 0; i < g->count; i++)
        spec.groups[i] = g->dirs[i].path;
    int rc = csn_keeper_send_spec(s->control, &spec);
    return rc < 0 ? csn_fail_errno(err, -rc, "orders for the sweeper") : CSN_OK;
}

/* ---- its life ---- */

csn_status csn_jail_sweeper_begin(csn_runtime *k, csn_error **err)
{
    csn_jail *j = k->jail;
    csn_jail_sweeper *s = &j->sweeper;

    if (s->start.program)
        return CSN_OK;
    csn_status st = csn_jail_limits_plan(k, err);
    if (st < 0 ||
        (!k->detached && k->level == CSN_LEVEL_NAMESPACES && j->limits.group.count == 0))
        return st;
    st =
        csn_keeper_start_begin(&s->start, "caisson-sweeper", k->id, NULL, -1, &s->control, err);
    return st < 0 ? st : send_orders(k, s, err);
}

csn_status csn_jail_sweeper_ready(csn_runtime *k, csn_error **err)
{
    csn_jail_sweeper *s = &k->jail->sweeper;
    pid_t pid = 0;

    if (!s->start.pending)
        return CSN_OK;
    int rc = csn_keeper_start_finish(&s->start, &pid, &s->pidfd, NULL);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "start the sweeper: %s", strerrordesc_np(-rc));
    return CSN_OK;
}

csn_status csn_jail_sweeper_tell(csn_runtime *k, csn_error **err)
{
    csn_jail_sweeper *s = &k->jail->sweeper;

    if (s->control < 0)
        return CSN_OK;
    int rc = csn_proto_send(s->control, CSN_MSG_KEEPER, NULL, &k->keeper_pidfd, 1,
                            csn_deadline_in(CSN_KEEPER_ANSWER_MS));
    close(csn_steal_fd(&s->control));
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "the sweeper has ended: %s",
                        strerrordesc_np(-rc));
    return CSN_OK;
}

bool csn_jail_sweeper_leave(csn_runtime *k, bool wait)
{
    csn_jail_sweeper *s = &k->jail->sweeper;
    struct pollfd pf = {.events = POLLIN};

    (void)csn_jail_sweeper_ready(k, NULL);
    if (s->control >= 0)
        close(csn_steal_fd(&s->control));
    if (s->pidfd < 0)
        return false;
    if (wait)
        (void)csn_spawn_wait(s->pidfd, END_MS);
    pf.fd = s->pidfd;
    return poll(&pf, 1, 0) == 0;
}

void csn_jail_sweeper_release(csn_jail_sweeper *s)
{
    pid_t pid = 0;

    if (s->start.pending)
        (void)csn_keeper_start_finish(&s->start, &pid, &s->pidfd, NULL);
    if (s->control >= 0)
        close(csn_steal_fd(&s->control));
    if (s->pidfd >= 0)
        close(csn_steal_fd(&s->pidfd));
    free(CSN_STEAL(s->start.program));
}
