/* sweeper.c: starts the program that cleans up after a jail (keeper/sweep.c).
 *
 * A jail's keeper cannot reach the control groups and the runtime directory of its sandbox, and
 * the library may be killed. The sweeper is therefore a separate, unconfined process of the
 * caller that waits for the end of the keeper, or of the library while there is no keeper. It
 * is started only if there will be something to remove: a control group, the directory of a
 * detached sandbox, or, without a pid namespace, processes.
 *
 * Invariants: its orders list everything that is created afterwards; directories are created
 * after its start has begun; control groups are created after it runs in its own session, where
 * signals to our process group do not reach it. */
#include "backend/jail/sweeper.h"

#include <errno.h>
#include <poll.h>
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

/* ---- orders ---- */

/* Lists what will be created; none of it exists yet. */
static csn_status send_orders(const csn_runtime *rt, const csn_jail_sweeper *s, csn_error **err)
{
    const csn_jail *j = rt->jail;
    const csn_cgroup *g = &j->limits.group;
    csn_autofree char *run = NULL, *place = NULL;
    csn_keeper_spec spec = {
        .flags = CSN_SPEC_SWEEP, .tag_base = csn_spec_tag_base(rt->id), .id = rt->id};

    if (rt->detached || rt->level == CSN_LEVEL_LANDLOCK_ONLY) {
        run = csn_statedir_path(CSN_DIR_RUNTIME, rt->id);
        if (!run)
            return csn_fail_errno(err, errno, "runtime directory of sandbox '%s'", rt->id);
        spec.remove[0] = run;
    }
    if (rt->level == CSN_LEVEL_LANDLOCK_ONLY) { /* no pid namespace */
        spec.flags |= CSN_SPEC_TAGGED;
        bool unused = j->host_uid >= CSN_SPEC_USER_LOW;
        spec.user = unused ? j->host_uid : 0;
        spec.tags_as = j->other_user && !unused ? j->host_uid : 0;
        place = csn_landlock_only_place(rt, run);
        if (!place)
            return csn_fail(err, CSN_NOMEM, "orders for the sweeper");
        spec.remove[1] = strcmp(place, run) == 0 ? NULL : place;
    }
    for (uint32_t i = 0; i < g->count; i++)
        spec.groups[i] = g->dirs[i].path;
    int rc = csn_keeper_send_spec(s->control, &spec);
    return rc < 0 ? csn_fail_errno(err, -rc, "orders for the sweeper") : CSN_OK;
}

/* ---- start and end ---- */

csn_status csn_jail_sweeper_begin(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_jail_sweeper *s = &j->sweeper;

    if (s->start.program)
        return CSN_OK;
    csn_status st = csn_jail_limits_plan(rt, err);
    if (st < 0 ||
        (!rt->detached && rt->level == CSN_LEVEL_NAMESPACES && j->limits.group.count == 0))
        return st;
    st = csn_keeper_start_begin(&s->start, "caisson-sweeper", rt->id, NULL, -1, &s->control,
                                err);
    return st < 0 ? st : send_orders(rt, s, err);
}

csn_status csn_jail_sweeper_ready(csn_runtime *rt, csn_error **err)
{
    csn_jail_sweeper *s = &rt->jail->sweeper;
    pid_t pid = 0;

    if (!s->start.pending)
        return CSN_OK;
    int rc = csn_keeper_start_finish(&s->start, &pid, &s->pidfd, NULL);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "start the sweeper: %s", strerrordesc_np(-rc));
    return CSN_OK;
}

csn_status csn_jail_sweeper_set_keeper(csn_runtime *rt, csn_error **err)
{
    csn_jail_sweeper *s = &rt->jail->sweeper;

    if (s->control < 0)
        return CSN_OK;
    int rc = csn_proto_send(s->control, CSN_MSG_KEEPER, NULL, &rt->keeper_pidfd, 1,
                            csn_deadline_in(CSN_KEEPER_ANSWER_MS));
    close(csn_steal_fd(&s->control));
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "the sweeper has ended: %s",
                        strerrordesc_np(-rc));
    return CSN_OK;
}

bool csn_jail_sweeper_finish(csn_runtime *rt, bool wait)
{
    csn_jail_sweeper *s = &rt->jail->sweeper;
    struct pollfd pf = {.events = POLLIN};

    (void)csn_jail_sweeper_ready(rt, NULL);
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
