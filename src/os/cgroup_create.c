/* cgroup_create.c: finds out which limits are available, plans the groups and creates them.
 *
 * The caller may be root, a user to whom a part of the hierarchy was delegated, or neither. The
 * id becomes part of a path and must be a plain name. Invariants: a plan names every group that
 * csn_cgroup_create makes; when that succeeds all limits are in force, when it fails none of
 * its groups is left; swap never extends a memory limit; a limit that the kernel cannot express
 * is refused. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/path.h"
#include "os/cgroup_internal.h"

#define PERIOD_US      100000u
#define PERIOD_MAX_US  1000000u
#define QUOTA_MIN_US   1000u /* the kernel refuses less */
#define CPU_MILLI_MAX  10000000u
#define PIDS_MAX_LIMIT 4194304u /* the highest value that pids.max takes */

/* ---- what is available ---- */

const char *csn_cgroup_why_text(csn_cgroup_why why)
{
    static const char *const texts[] = {
        [CSN_CGROUP_USABLE] = "usable",
        [CSN_CGROUP_NOT_MOUNTED] = "no control groups with this controller are mounted",
        [CSN_CGROUP_OUTSIDE] = "the caller's own control group is not visible here",
        [CSN_CGROUP_NOT_DELEGATED] = "no control group is delegated to this user",
        [CSN_CGROUP_READ_ONLY] = "control groups are mounted read-only",
        [CSN_CGROUP_NOT_ENABLED] =
            "the controller is not enabled for the control groups of this user",
        [CSN_CGROUP_OCCUPIED] = "the delegated control group holds processes itself",
        [CSN_CGROUP_REFUSED] = "the kernel refused it",
    };

    return (size_t)why < sizeof(texts) / sizeof(texts[0]) ? texts[why] : "unknown";
}

/* v1: groups go below the caller's own, so that its limits hold too. */
static void v1_parent(const csn_cgroup_hierarchy *h, csn_cgroup_parent *ret)
{
    *ret = (csn_cgroup_parent){0};
    if (!h->mounted)
        ret->why = CSN_CGROUP_NOT_MOUNTED;
    else if (!h->own[0])
        ret->why = CSN_CGROUP_OUTSIDE;
    else
        ret->why = h->read_only ? CSN_CGROUP_READ_ONLY : csn_cgroup_writable(h->own);
    if (h->mounted)
        (void)csn_cgroup_join(ret->path, h->own[0] ? h->own : h->top, "");
}

int csn_cgroup_probe(const csn_cgroup_host *host, csn_cgroup_offer ret[CSN_CGROUP_KINDS])
{
    csn_cgroup_hierarchies all;
    csn_cgroup_parent parent;
    int rc = csn_cgroup_find(host, &all);

    if (rc < 0)
        return rc;
    for (int k = 0; k < CSN_CGROUP_KINDS; k++) {
        if (all.v1[k].listed)
            v1_parent(&all.v1[k], &parent);
        else
            csn_cgroup_v2_parent(host, &all.v2, 1u << k, false, &parent);
        ret[k].version = parent.why ? 0 : all.v1[k].listed ? 1 : 2;
        ret[k].why = parent.why;
        memcpy(ret[k].where, parent.path, sizeof(ret[k].where));
    }
    return 0;
}

/* ---- the plan ---- */

typedef struct plan {
    const csn_cgroup_host *host;
    csn_cgroup_fault *fault;
    char name[CSN_NAME_BYTES_MAX + sizeof(CSN_CGROUP_PREFIX)];
    csn_cgroup group;
} plan;

static int fail(csn_cgroup_fault *fault, csn_cgroup_why why, const char *path, int rc)
{
    if (fault) {
        fault->why = why;
        if (csn_cgroup_join(fault->path, path, "") < 0)
            fault->path[0] = '\0';
    }
    if (why == CSN_CGROUP_REFUSED)
        return rc;
    return why == CSN_CGROUP_NOT_DELEGATED || why == CSN_CGROUP_READ_ONLY ? -EACCES : -ENOTSUP;
}

static int add_group(plan *p, int version, unsigned kinds, const char *parent)
{
    char path[CSN_CGROUP_PATH_MAX];
    uint32_t i = 0;
    int rc = csn_cgroup_join(path, parent, p->name);

    if (rc < 0)
        return fail(p->fault, CSN_CGROUP_REFUSED, parent, rc);
    /* Controllers that are mounted together share one group. */
    while (i < p->group.count && strcmp(p->group.dirs[i].path, path) != 0)
        i++;
    csn_cgroup_dir *d = &p->group.dirs[i];
    p->group.count += i == p->group.count;
    d->version = (uint8_t)version;
    d->kinds |= (uint8_t)kinds;
    memcpy(d->path, path, sizeof(path));
    return 0;
}

/* Plans v2 last, because only v2 may change something. */
static int plan_groups(plan *p, unsigned kinds)
{
    csn_cgroup_hierarchies all;
    csn_cgroup_parent parent;
    unsigned unified = 0;
    int rc = csn_cgroup_find(p->host, &all);

    if (rc < 0)
        return fail(p->fault, CSN_CGROUP_REFUSED, "/proc/self", rc);
    for (int k = 0; k < CSN_CGROUP_KINDS; k++) {
        if (!(kinds & 1u << k))
            continue;
        if (!all.v1[k].listed) {
            unified |= 1u << k;
            continue;
        }
        v1_parent(&all.v1[k], &parent);
        rc = parent.why ? fail(p->fault, parent.why, parent.path, 0)
                        : add_group(p, 1, 1u << k, parent.path);
        if (rc < 0)
            return rc;
    }
    if (!unified)
        return 0;
    csn_cgroup_v2_parent(p->host, &all.v2, unified, true, &parent);
    if (parent.why)
        return fail(p->fault, parent.why, parent.path, parent.rc);
    rc = add_group(p, 2, unified, parent.path);
    p->group.parent_made = rc == 0 && parent.caisson_made;
    return rc;
}

/* The sweeper removes every planned group, so none of them may belong to another sandbox. */
static int refuse_existing(const plan *p)
{
    for (uint32_t i = 0; i < p->group.count; i++)
        if (access(p->group.dirs[i].path, F_OK) == 0)
            return fail(p->fault, CSN_CGROUP_REFUSED, p->group.dirs[i].path, -EEXIST);
    return 0;
}

/* Removes the first `count` directories, and the parent if the plan made it. */
static void undo(const csn_cgroup_host *host, const csn_cgroup *g, uint32_t count)
{
    char parent[CSN_CGROUP_PATH_MAX];

    while (count > 0)
        (void)csn_cgroup_rmdir(host, g->dirs[--count].path);
    if (!g->parent_made || csn_cgroup_join(parent, g->dirs[g->count - 1].path, "") < 0)
        return;
    *strrchr(parent, '/') = '\0';
    (void)csn_cgroup_rmdir(host, parent);
}

static bool name_group(plan *p, const char *id)
{
    if (!csn_name_valid(id))
        return false;
    snprintf(p->name, sizeof(p->name), CSN_CGROUP_PREFIX "%s", id);
    return true;
}

int csn_cgroup_plan(const csn_cgroup_host *host, const char *id, const csn_cgroup_limits *l,
                    csn_cgroup *ret, csn_cgroup_fault *fault)
{
    plan p = {.host = host, .fault = fault};
    unsigned kinds = (l->memory_max ? 1u << CSN_CGROUP_MEMORY : 0) |
                     (l->pids_max ? 1u << CSN_CGROUP_PIDS : 0) |
                     (l->cpu_milli ? 1u << CSN_CGROUP_CPU : 0);

    if (!name_group(&p, id) || l->cpu_milli > CPU_MILLI_MAX || l->memory_max > INT64_MAX)
        return fail(fault, CSN_CGROUP_REFUSED, "", -EINVAL);
    int rc = kinds ? plan_groups(&p, kinds) : 0;
    if (rc == 0)
        rc = refuse_existing(&p);
    if (rc < 0) {
        undo(host, &p.group, 0);
        return rc;
    }
    *ret = p.group;
    return 0;
}

/* The pid may have been recycled: only a group of that very name counts. */
int csn_cgroup_find_by_pid(pid_t pid, const char *id, unsigned kinds, csn_cgroup *ret)
{
    char self[48];
    const csn_cgroup_host host = {.self_cgroup = self};
    plan p = {.host = &host};
    csn_cgroup_hierarchies all;

    if (pid <= 0 || !name_group(&p, id))
        return -EINVAL;
    snprintf(self, sizeof(self), "/proc/%d/cgroup", (int)pid);
    int rc = csn_cgroup_find(&host, &all);
    for (int k = 0; rc == 0 && k < CSN_CGROUP_KINDS; k++) {
        csn_cgroup_hierarchy *h = all.v1[k].listed ? &all.v1[k] : &all.v2;
        char parent[CSN_CGROUP_PATH_MAX];

        memcpy(parent, h->own, sizeof(parent));
        char *last = strrchr(parent, '/');
        if (!(kinds & 1u << k) || !last || strcmp(last + 1, p.name) != 0)
            continue;
        *last = '\0';
        rc = add_group(&p, all.v1[k].listed ? 1 : 2, 1u << k, parent);
    }
    if (rc == 0)
        *ret = p.group;
    return rc;
}

/* ---- creation ---- */

typedef struct new_group {
    const csn_cgroup_dir *dir;
    csn_cgroup_fault *fault;
    int rc; /* of the first write that failed; later ones are skipped */
} new_group;

static void set_text(new_group *n, const char *file, bool optional, const char *text)
{
    char path[CSN_CGROUP_PATH_MAX];

    if (n->rc < 0)
        return;
    int rc = csn_cgroup_write(n->dir->path, file, text);
    if (rc == 0 || (optional && (rc == -ENOENT || rc == -EOPNOTSUPP)))
        return;
    if (csn_cgroup_join(path, n->dir->path, file) < 0)
        path[0] = '\0';
    n->rc = fail(n->fault, CSN_CGROUP_REFUSED, path, rc);
}

/* optional: the kernel may lack the file. */
static void set(new_group *n, const char *file, bool optional, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    set_text(n, file, optional, text);
}

static void set_memory(new_group *n, uint64_t max)
{
    if (n->dir->version == 2) {
        set(n, "memory.max", false, max);
        set(n, "memory.swap.max", true, 0);
        /* The OOM killer must not take the keeper along. */
        set(n, "memory.oom.group", true, 0);
        return;
    }
    set(n, "memory.limit_in_bytes", false, max);
    /* Memory and swap together; may not be below the first limit, so it is written second.
     * Kernels that do not account swap lack it; swappiness 0 then keeps the group out of
     * swap. */
    set(n, "memory.memsw.limit_in_bytes", true, max);
    set(n, "memory.swappiness", true, 0);
}

/* Small shares need a long period: 5 thousandths of the usual period are 500 us, below the
 * kernel's minimum. */
static void set_cpu(new_group *n, uint64_t milli)
{
    uint64_t period = milli * (PERIOD_US / 1000) < QUOTA_MIN_US ? PERIOD_MAX_US : PERIOD_US;
    uint64_t quota = milli * (period / 1000);
    char text[48];

    if (n->dir->version == 2) {
        snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, quota, period);
        set_text(n, "cpu.max", false, text);
    } else {
        set(n, "cpu.cfs_period_us", false, period);
        set(n, "cpu.cfs_quota_us", false, quota);
    }
}

static int set_limits(const csn_cgroup_dir *d, const csn_cgroup_limits *l,
                      csn_cgroup_fault *fault)
{
    new_group n = {.dir = d, .fault = fault};

    if (d->version == 2) /* no nested groups, should the sandbox be able to write here */
        set(&n, "cgroup.max.descendants", true, 0);
    if (d->kinds & 1u << CSN_CGROUP_MEMORY)
        set_memory(&n, l->memory_max);
    if (d->kinds & 1u << CSN_CGROUP_PIDS)
        set(&n, "pids.max", false, l->pids_max < PIDS_MAX_LIMIT ? l->pids_max : PIDS_MAX_LIMIT);
    if (d->kinds & 1u << CSN_CGROUP_CPU)
        set_cpu(&n, l->cpu_milli);
    return n.rc;
}

int csn_cgroup_create(const csn_cgroup_host *host, const csn_cgroup *g,
                      const csn_cgroup_limits *l, csn_cgroup_fault *fault)
{
    uint32_t made = 0;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < g->count; i++) {
        rc = csn_cgroup_mkdir(host, g->dirs[i].path);
        if (rc < 0) {
            rc = fail(fault, CSN_CGROUP_REFUSED, g->dirs[i].path, rc);
            break;
        }
        made++;
        rc = set_limits(&g->dirs[i], l, fault);
    }
    if (rc < 0)
        undo(host, g, made);
    return rc;
}
