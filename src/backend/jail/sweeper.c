/* sweeper.c: starts the program that cleans up after a jail (keeper/sweep.c).
 *
 * A jail's keeper cannot reach the control groups and the directory of its sandbox, and
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
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/statedir.h"
#include "runtime/cow.h"
#include "runtime/link.h"

#define END_MS   2000
#define HELD_MAX (CSN_KEEPER_FDS_MAX - 2)

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
    csn_autofree char *run = NULL, *place = NULL, *layers = NULL;
    csn_keeper_spec spec = {
        .flags = CSN_SPEC_SWEEP, .tag_base = csn_spec_tag_base(rt->id), .id = rt->id};

    if (rt->detached || rt->level == CSN_LEVEL_LANDLOCK_ONLY) {
        run = csn_runtime_run_path(rt);
        if (!run)
            return csn_fail_errno(err, errno, "directory of sandbox '%s'", rt->id);
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
    if (j->shares->v[0].cow) {
        spec.layers = layers = csn_cow_tree_path(rt);
        if (!layers)
            return csn_fail_errno(err, errno, "orders for the sweeper");
    }
    for (uint32_t i = 0; i < g->count; i++)
        spec.groups[i] = g->dirs[i].path;
    int rc = csn_keeper_send_spec(s->control, &spec);
    return rc < 0 ? csn_fail_errno(err, -rc, "orders for the sweeper") : CSN_OK;
}

/* ---- start and end ---- */

/* Orders fail with EPIPE if the program could not be started: the cause is the error of the
 * start. */
static csn_status report_start(csn_runtime *rt, csn_status st, csn_error **err)
{
    csn_error *why = NULL;

    if (st == CSN_OK)
        return st;
    csn_status started = csn_jail_sweeper_ready(rt, &why);
    if (started == CSN_OK)
        return st;
    if (err) {
        csn_error_free(*err);
        *err = CSN_STEAL(why);
    }
    csn_error_free(why);
    return started;
}

csn_status csn_jail_sweeper_begin(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_jail_sweeper *s = &j->sweeper;

    if (s->start.program)
        return CSN_OK;
    csn_status st = csn_jail_limits_plan(rt, err);
    if (st < 0 || (!rt->detached && rt->level == CSN_LEVEL_NAMESPACES &&
                   j->limits.group.count == 0 && !j->shares->v[0].cow))
        return st;
    st = csn_keeper_start_begin(&s->start, "caisson-sweeper", rt->id, NULL, -1, &s->control,
                                err);
    return st < 0 ? st : report_start(rt, send_orders(rt, s, err), err);
}

csn_status csn_jail_sweeper_ready(csn_runtime *rt, csn_error **err)
{
    csn_jail_sweeper *s = &rt->jail->sweeper;

    if (!s->start.pending)
        return CSN_OK;
    int rc = csn_keeper_start_finish(&s->start, &s->pid, &s->pidfd, NULL);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "start the sweeper: %s", strerrordesc_np(-rc));
    return CSN_OK;
}

/* The files that the sweeper of a detached jail holds: a handle that connects finds them in its
 * /proc/PID/fd if other files have their paths by then. */
static int open_held(csn_runtime *rt, int fds[HELD_MAX], size_t *ret_count)
{
    fds[0] = openat(rt->run_fd, CSN_KEEPER_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fds[0] < 0)
        return -errno;
    *ret_count = 1;
    if (rt->jail->idmapped)
        *ret_count += csn_protected_clone_trees(rt, fds + 1, HELD_MAX - 1);
    return csn_pid_identify(rt->jail->sweeper.pid, &rt->record.holder);
}

csn_status csn_jail_sweeper_set_keeper(csn_runtime *rt, csn_error **err)
{
    csn_jail_sweeper *s = &rt->jail->sweeper;
    int fds[1 + HELD_MAX] = {rt->keeper_pidfd}, rc = 0;
    size_t held = 0;

    if (s->control < 0)
        return CSN_OK;
    if (rt->detached)
        rc = open_held(rt, fds + 1, &held);
    if (rc == 0)
        rc = csn_proto_send(s->control, CSN_MSG_KEEPER, NULL, fds, 1 + held,
                            csn_deadline_in(CSN_KEEPER_ANSWER_MS));
    for (size_t i = 0; i < held; i++)
        close(fds[1 + i]);
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
    if (s->start.pending)
        (void)csn_keeper_start_finish(&s->start, &s->pid, &s->pidfd, NULL);
    if (s->control >= 0)
        close(csn_steal_fd(&s->control));
    if (s->pidfd >= 0)
        close(csn_steal_fd(&s->pidfd));
    free(CSN_STEAL(s->start.program));
}
