/* cgroup_make.c: what limits can be had here, and the groups that set them.
 *
 * Called by the library, on behalf of the host program: perhaps root, perhaps a user to whom a
 * part of the hierarchy was delegated, mostly neither. The id becomes part of a path, so it
 * must be a plain name. What must hold: a plan makes no group of the sandbox and names all that
 * making will make, which is what a sweeper is told beforehand; limits that were asked for are
 * all in force when make succeeds, and when it fails no group of it is left and the caller
 * learns which file it was. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/path.h"
#include "os/cgroup_parts.h"

const char *csn_cgroup_why_text(csn_cgroup_why why)
{
    switch (why) {
    case CSN_CGROUP_USABLE:
        return "usable";
    case CSN_CGROUP_NOT_MOUNTED:
        return "no control groups with this controller are mounted";
    case CSN_CGROUP_OUTSIDE:
        return "the caller's own control group is not visible here";
    case CSN_CGROUP_NOT_DELEGATED:
        return "no control group is delegated to this user";
    case CSN_CGROUP_READ_ONLY:
        return "control groups are mounted read-only";
    case CSN_CGROUP_NOT_ENABLED:
        return "the controller is not enabled for the control groups of this user";
    case CSN_CGROUP_OCCUPIED:
        return "the delegated control group holds processes itself";
    case CSN_CGROUP_REFUSED:
        return "the kernel refused it";
    }
    return "unknown";
}

/* v1: groups go below the caller's own, so that limits on that one hold too. */
static void v1_find(const csn_cgroup_place *p, csn_cgroup_parent *ret)
{
    *ret = (csn_cgroup_parent){0};
    if (!p->mounted)
        ret->why = CSN_CGROUP_NOT_MOUNTED;
    else if (!p->own[0])
        ret->why = CSN_CGROUP_OUTSIDE;
    else
        ret->why = p->read_only ? CSN_CGROUP_READ_ONLY : csn_cgroup_writable(p->own);
    if (p->mounted)
        (void)csn_cgroup_join(ret->path, p->own[0] ? p->own : p->top, "");
}

int csn_cgroup_probe(const csn_cgroup_host *host, csn_cgroup_offer ret[CSN_CGROUP_KINDS])
{
    csn_cgroup_map map;
    csn_cgroup_parent parent;
    int rc = csn_cgroup_find(host, &map);

    if (rc < 0)
        return rc;
    for (int k = 0; k < CSN_CGROUP_KINDS; k++) {
        if (map.v1[k].listed)
            v1_find(&map.v1[k], &parent);
        else
            csn_cgroup_v2_find(host, &map.v2, 1u << k, &parent);
        ret[k].version = parent.why ? 0 : map.v1[k].listed ? 1 : 2;
        ret[k].why = parent.why;
        memcpy(ret[k].where, parent.path, sizeof(ret[k].where));
    }
    return 0;
}

/* What is being planned or made, until it is complete. */
typedef struct making {
    const csn_cgroup_host *host;
    const csn_cgroup_limits *limits;
    csn_cgroup_fault *fault;
    char name[CSN_NAME_BYTES_MAX + sizeof(CSN_CGROUP_PREFIX)];
    csn_cgroup group;
} making;

static int failed(making *m, csn_cgroup_why why, const char *path, int rc)
{
    if (m->fault) {
        m->fault->why = why;
        if (csn_cgroup_join(m->fault->path, path, "") < 0)
            m->fault->path[0] = '\0';
    }
    if (why == CSN_CGROUP_REFUSED)
        return rc;
    return why == CSN_CGROUP_NOT_DELEGATED || why == CSN_CGROUP_READ_ONLY ? -EACCES : -ENOTSUP;
}

static int add_group(making *m, int version, unsigned kinds, const csn_cgroup_parent *parent)
{
    char path[CSN_CGROUP_PATH_MAX];
    uint32_t i = 0;
    int rc = csn_cgroup_join(path, parent->path, m->name);

    if (rc < 0)
        return failed(m, CSN_CGROUP_REFUSED, parent->path, rc);
    /* Controllers that are mounted together share one group. */
    while (i < m->group.count && strcmp(m->group.dirs[i].path, path) != 0)
        i++;
    csn_cgroup_dir *d = &m->group.dirs[i];
    m->group.count += i == m->group.count;
    d->version = (uint8_t)version;
    d->kinds |= (uint8_t)kinds;
    memcpy(d->path, path, sizeof(path));
    return 0;
}

/* Decides where the groups will be. v2 comes last: it may change something. */
static int plan(making *m, unsigned kinds)
{
    csn_cgroup_map map;
    csn_cgroup_parent parent;
    unsigned unified = 0;
    int rc = csn_cgroup_find(m->host, &map);

    if (rc < 0)
        return failed(m, CSN_CGROUP_REFUSED, "/proc/self", rc);
    for (int k = 0; k < CSN_CGROUP_KINDS; k++) {
        if (!(kinds & 1u << k))
            continue;
        if (!map.v1[k].listed) {
            unified |= 1u << k;
            continue;
        }
        v1_find(&map.v1[k], &parent);
        rc = parent.why ? failed(m, parent.why, parent.path, 0)
                        : add_group(m, 1, 1u << k, &parent);
        if (rc < 0)
            return rc;
    }
    if (!unified)
        return 0;
    csn_cgroup_v2_prepare(m->host, &map.v2, unified, &parent);
    if (parent.why)
        return failed(m, parent.why, parent.path, parent.rc);
    rc = add_group(m, 2, unified, &parent);
    m->group.parent_made = rc == 0 && parent.caisson_made;
    return rc;
}

static int make_group(making *m, const csn_cgroup_dir *d, uint32_t *made)
{
    csn_cgroup_step steps[CSN_CGROUP_STEPS_MAX];
    char file[CSN_CGROUP_PATH_MAX];
    bool fake = m->host && m->host->make;

    if ((fake ? m->host->make(d->path) : mkdir(d->path, 0755)) < 0)
        return failed(m, CSN_CGROUP_REFUSED, d->path, -errno);
    (*made)++;
    size_t n = csn_cgroup_steps(d->version, d->kinds, m->limits, steps);
    for (size_t i = 0; i < n; i++) {
        int rc = csn_cgroup_put(d->path, steps[i].file, steps[i].text);
        if (rc == 0 || (steps[i].optional && (rc == -ENOENT || rc == -EOPNOTSUPP)))
            continue;
        if (csn_cgroup_join(file, d->path, steps[i].file) < 0)
            file[0] = '\0';
        return failed(m, CSN_CGROUP_REFUSED, file, rc);
    }
    return 0;
}

/* made: so many of its directories exist. */
static void undo(const csn_cgroup_host *host, const csn_cgroup *g, uint32_t made)
{
    char parent[CSN_CGROUP_PATH_MAX];

    while (made > 0)
        (void)csn_cgroup_drop(host, g->dirs[--made].path);
    if (!g->parent_made || csn_cgroup_join(parent, g->dirs[g->count - 1].path, "") < 0)
        return;
    *strrchr(parent, '/') = '\0';
    (void)csn_cgroup_drop(host, parent);
}

/* Only a group of that very name counts: the process may be anybody by now. */
int csn_cgroup_of(pid_t pid, const char *id, unsigned kinds, csn_cgroup *ret)
{
    char self[48], name[CSN_NAME_BYTES_MAX + sizeof(CSN_CGROUP_PREFIX)];
    const csn_cgroup_host there = {.self_cgroup = self};
    making m = {.host = &there};
    csn_cgroup_map map;

    if (pid <= 0 || !csn_name_valid(id))
        return -EINVAL;
    snprintf(self, sizeof(self), "/proc/%d/cgroup", (int)pid);
    snprintf(name, sizeof(name), CSN_CGROUP_PREFIX "%s", id);
    int rc = csn_cgroup_find(&there, &map);
    for (int k = 0; rc == 0 && k < CSN_CGROUP_KINDS; k++) {
        const csn_cgroup_place *p = map.v1[k].listed ? &map.v1[k] : &map.v2;
        const char *last = strrchr(p->own, '/');
        csn_cgroup_parent parent = {0};

        if (!(kinds & 1u << k) || !last || strcmp(last + 1, name) != 0)
            continue;
        memcpy(parent.path, p->own, (size_t)(last - p->own));
        memcpy(m.name, name, sizeof(name));
        rc = add_group(&m, map.v1[k].listed ? 1 : 2, 1u << k, &parent);
    }
    if (rc == 0)
        *ret = m.group;
    return rc;
}

static unsigned kinds_of(const csn_cgroup_limits *l)
{
    return (l->memory_max ? 1u << CSN_CGROUP_MEMORY : 0) |
           (l->pids_max ? 1u << CSN_CGROUP_PIDS : 0) |
           (l->cpu_milli ? 1u << CSN_CGROUP_CPU : 0);
}

/* A group of that name is somebody's, and whoever is told of our plan would remove it. */
static int check_free(making *m)
{
    for (uint32_t i = 0; i < m->group.count; i++)
        if (access(m->group.dirs[i].path, F_OK) == 0)
            return failed(m, CSN_CGROUP_REFUSED, m->group.dirs[i].path, -EEXIST);
    return 0;
}

int csn_cgroup_plan(const csn_cgroup_host *host, const char *id, const csn_cgroup_limits *l,
                    csn_cgroup *ret, csn_cgroup_fault *fault)
{
    making m = {.host = host, .limits = l, .fault = fault};
    unsigned kinds = kinds_of(l);

    if (!csn_name_valid(id) || csn_cgroup_limits_check(l) < 0)
        return failed(&m, CSN_CGROUP_REFUSED, "", -EINVAL);
    snprintf(m.name, sizeof(m.name), CSN_CGROUP_PREFIX "%s", id);
    int rc = kinds ? plan(&m, kinds) : 0;
    if (rc == 0)
        rc = check_free(&m);
    if (rc < 0) {
        undo(host, &m.group, 0);
        return rc;
    }
    *ret = m.group;
    return 0;
}

int csn_cgroup_make(const csn_cgroup_host *host, const csn_cgroup *g,
                    const csn_cgroup_limits *l, csn_cgroup_fault *fault)
{
    making m = {.host = host, .limits = l, .fault = fault};
    uint32_t made = 0;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < g->count; i++)
        rc = make_group(&m, &g->dirs[i], &made);
    if (rc < 0)
        undo(host, g, made);
    return rc;
}

int csn_cgroup_create(const csn_cgroup_host *host, const char *id, const csn_cgroup_limits *l,
                      csn_cgroup *ret, csn_cgroup_fault *fault)
{
    csn_cgroup g;
    int rc = csn_cgroup_plan(host, id, l, &g, fault);

    if (rc == 0)
        rc = csn_cgroup_make(host, &g, l, fault);
    if (rc == 0)
        *ret = g;
    return rc;
}
