/* sweeper.c: starts the program that cleans up after a jail (keeper/sweep.c).
 *
 * A jail's keeper cannot reach the control groups and the runtime directory of its sandbox, and
 * the library may be killed. So a second process, the caller's own and outside of all walls,
 * waits for the keeper's end. It is started only when there is something to remove: a control
 * group, or the directory of a detached sandbox; where there is no pid namespace always. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "kept/link.h"

static csn_status make_orders(const csn_kept *k, const csn_cgroup *g, int *ret, csn_error **err)
{
    const csn_jail *j = k->own;
    uint8_t buf[1024];
    csn_wire_out o;
    csn_keeper_spec spec = {
        .flags = CSN_SPEC_SWEEP, .tag_base = csn_spec_tag_base(k->id), .id = k->id};

    if (k->detached || j->place)
        spec.remove[0] = k->run_path;
    if (j->place) { /* no pid namespace takes along what a killed keeper leaves */
        spec.flags |= CSN_SPEC_TAGGED;
        spec.user = j->privileged ? j->host_uid : 0;
        spec.remove[1] = strcmp(j->place, k->run_path) == 0 ? NULL : j->place;
    }
    for (uint32_t i = 0; i < g->count; i++)
        spec.groups[i] = g->dirs[i].path;
    csn_wire_out_init(&o, buf, sizeof(buf));
    csn_spec_put(&o, &spec);
    int fd = o.error != 0 ? -o.error : csn_sealed_memfd("caisson-spec", o.data, o.len);
    csn_wire_out_release(&o);
    if (fd < 0)
        return csn_fail_errno(err, -fd, "orders for the sweeper");
    *ret = fd;
    return CSN_OK;
}

csn_status csn_jail_sweeper_start(csn_kept *k, csn_error **err)
{
    csn_jail *j = k->own;
    csn_autofd int spec = -1;
    pid_t pid = 0;

    if (!k->detached && !j->place && j->limits.group.count == 0)
        return CSN_OK;
    csn_status st = make_orders(k, &j->limits.group, &spec, err);
    if (st < 0)
        return st;
    const char *argv[] = {"caisson-sweeper", k->id, NULL};
    const csn_orphan o = {.path = k->program,
                          .argv = argv,
                          .fds = {-1, -1, -1, -1, spec, k->keeper_pidfd},
                          .nfds = 6};
    int rc = csn_orphan_start(&o, &pid, &j->limits.sweeper_pidfd, NULL);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "start the sweeper: %s", strerrordesc_np(-rc));
    return CSN_OK;
}
