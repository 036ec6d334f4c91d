/* cgroup_v2.c: finds the parent for new groups in the unified hierarchy.
 *
 * The kernel's rules: a group has the controllers that its parent lists in
 * cgroup.subtree_control; a group other than the root that lists any must not hold processes;
 * and an unprivileged user may move a process only between groups whose nearest common ancestor
 * has a cgroup.procs that the user may write. The caller's own group holds the caller, so for
 * users the parent is a group above it, as far up as was delegated (with systemd:
 * user@UID.service and its slices). Root uses a group `caisson` below the mount point, or the
 * rule for users where that is impossible, as in containers. Invariant: no process is moved and
 * no controller is disabled. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/cgroup_internal.h"

typedef struct v2_search {
    const csn_cgroup_host *host;
    unsigned kinds;
    bool change; /* enable missing controllers, make `caisson` */
} v2_search;

static unsigned controllers_in(const char *dir, const char *file)
{
    char list[1024];
    unsigned found = 0;

    if (csn_cgroup_read(dir, file, list, sizeof(list)) < 0)
        return 0;
    for (int k = 0; k < CSN_CGROUP_KINDS; k++)
        if (csn_cgroup_list_has(list, " \n", csn_cgroup_kind_name(k)))
            found |= 1u << k;
    return found;
}

/* Only the root of the whole hierarchy lacks cgroup.events. */
static bool is_root_group(const char *dir)
{
    char path[CSN_CGROUP_PATH_MAX];

    return csn_cgroup_join(path, dir, "cgroup.events") == 0 && access(path, F_OK) < 0 &&
           errno == ENOENT;
}

static csn_cgroup_why file_writable(const char *dir, const char *file)
{
    char path[CSN_CGROUP_PATH_MAX];

    return csn_cgroup_join(path, dir, file) < 0 ? CSN_CGROUP_OUTSIDE
                                                : csn_cgroup_writable(path);
}

/* Can groups with these controllers be created in dir? *ret_missing: those to be enabled
 * first. */
static csn_cgroup_why examine(const char *dir, unsigned kinds, unsigned *ret_missing)
{
    csn_cgroup_why why = csn_cgroup_writable(dir);

    if (!why)
        why = file_writable(dir, "cgroup.procs");
    if (why)
        return why;
    if (kinds & ~controllers_in(dir, "cgroup.controllers"))
        return CSN_CGROUP_NOT_ENABLED;
    /* In a group with processes, enabling pids or cpu would succeed and make all children
     * unusable. */
    if (!is_root_group(dir) && csn_cgroup_has_process(dir))
        return CSN_CGROUP_OCCUPIED;
    *ret_missing = kinds & ~controllers_in(dir, "cgroup.subtree_control");
    return *ret_missing ? file_writable(dir, "cgroup.subtree_control") : CSN_CGROUP_USABLE;
}

static int enable(const char *dir, unsigned missing)
{
    char text[64] = "";

    for (int k = 0; k < CSN_CGROUP_KINDS; k++)
        if (missing & 1u << k) {
            size_t n = strlen(text);
            snprintf(text + n, sizeof(text) - n, "%s+%s", n ? " " : "",
                     csn_cgroup_kind_name(k));
        }
    return missing ? csn_cgroup_write(dir, "cgroup.subtree_control", text) : 0;
}

/* Keeps the highest reason; of equals the first, nearest to the caller's group. */
static void note_obstacle(csn_cgroup_parent *ret, csn_cgroup_why why, const char *dir, int rc)
{
    if (ret->path[0] && why <= ret->why)
        return;
    ret->why = why;
    ret->rc = rc;
    (void)csn_cgroup_join(ret->path, dir, "");
}

static bool found(csn_cgroup_parent *ret, const char *dir)
{
    ret->why = CSN_CGROUP_USABLE;
    return csn_cgroup_join(ret->path, dir, "") == 0;
}

static bool try_group(v2_search *s, const char *dir, bool enabling, csn_cgroup_parent *ret)
{
    unsigned missing = 0;
    csn_cgroup_why why = examine(dir, s->kinds, &missing);

    if (!why && missing && !enabling)
        return false;
    int rc = !why && s->change ? enable(dir, missing) : 0;
    if (rc < 0)
        why = CSN_CGROUP_REFUSED;
    if (!why)
        return found(ret, dir);
    note_obstacle(ret, why, dir, rc);
    return false;
}

/* The group `caisson` stays when its sandboxes are gone: removing it would race with a process
 * that is about to use it. */
static bool try_caisson(v2_search *s, const char *top, csn_cgroup_parent *ret)
{
    char dir[CSN_CGROUP_PATH_MAX];

    if (csn_cgroup_join(dir, top, "caisson") < 0 || !try_group(s, top, true, ret))
        return false;
    if (!s->change)
        return found(ret, dir);
    ret->path[0] = '\0';
    int rc = csn_cgroup_mkdir(s->host, dir);
    if (rc < 0 && rc != -EEXIST) {
        note_obstacle(ret, CSN_CGROUP_REFUSED, dir, rc);
        return false;
    }
    ret->caisson_made = rc == 0;
    if (try_group(s, dir, true, ret))
        return true;
    if (ret->caisson_made)
        (void)csn_cgroup_rmdir(s->host, dir);
    ret->caisson_made = false;
    return false;
}

/* From the caller's own group upwards; a group that needs no change is preferred. */
static bool try_above(v2_search *s, const csn_cgroup_hierarchy *h, csn_cgroup_parent *ret)
{
    char dir[CSN_CGROUP_PATH_MAX];

    for (int enabling = 0; enabling <= 1; enabling++) {
        if (csn_cgroup_join(dir, h->own, "") < 0)
            return false;
        do {
            if (try_group(s, dir, enabling, ret))
                return true;
        } while (csn_cgroup_climb(dir, h->top));
    }
    return false;
}

void csn_cgroup_v2_parent(const csn_cgroup_host *host, const csn_cgroup_hierarchy *h,
                          unsigned kinds, bool change, csn_cgroup_parent *ret)
{
    v2_search s = {.host = host, .kinds = kinds, .change = change};

    *ret = (csn_cgroup_parent){0};
    if (!h->mounted)
        ret->why = CSN_CGROUP_NOT_MOUNTED;
    else if (!h->own[0])
        note_obstacle(ret, CSN_CGROUP_OUTSIDE, h->top, 0);
    else if (h->read_only)
        note_obstacle(ret, CSN_CGROUP_READ_ONLY, h->top, 0);
    else if (kinds & ~controllers_in(h->top, "cgroup.controllers"))
        note_obstacle(ret, CSN_CGROUP_NOT_ENABLED, h->top, 0);
    else if (csn_cgroup_uid(host) != 0 || !try_caisson(&s, h->top, ret))
        (void)try_above(&s, h, ret);
}
