/* cgroup_v2.c: finds the group of the unified hierarchy in which sandboxes get theirs.
 *
 * Called by probe and create. The kernel's rules, in short: a group gets the controllers that
 * its parent lists in cgroup.subtree_control; a group that lists any must not hold processes
 * itself, the root of all groups excepted; and who is not root may move a process only between
 * groups whose nearest common ancestor lets him write cgroup.procs. The caller's own group
 * holds the caller, so for users it is a group above that serves, as far up as it was delegated
 * (with systemd: user@UID.service and its slices). Root has a group `caisson` below the top
 * instead, and the way of users where that is impossible, as in containers. What must hold: no
 * process is moved and no controller is ever taken from a group here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/cgroup_parts.h"

typedef struct v2_search {
    const csn_cgroup_host *host;
    unsigned kinds;
    bool change; /* enable what is missing, and make `caisson` */
} v2_search;

static unsigned controllers_in(const char *dir, const char *file)
{
    char list[1024];
    unsigned found = 0;

    if (csn_cgroup_get(dir, file, list, sizeof(list)) < 0)
        return 0;
    for (int k = 0; k < CSN_CGROUP_KINDS; k++)
        if (csn_cgroup_lists(list, " \n", csn_cgroup_kind_name(k)))
            found |= 1u << k;
    return found;
}

/* Only the root of the whole hierarchy has no such file. */
static bool is_very_top(const char *dir)
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

/* Could groups with these controllers be made in dir? Which of them are still to be enabled? */
static csn_cgroup_why examine(const char *dir, unsigned kinds, unsigned *ret_missing)
{
    csn_cgroup_why why = csn_cgroup_writable(dir);

    if (!why)
        why = file_writable(dir, "cgroup.procs");
    if (why)
        return why;
    if (kinds & ~controllers_in(dir, "cgroup.controllers"))
        return CSN_CGROUP_NOT_ENABLED;
    /* Enabling pids or cpu would even succeed there, and make all children unusable. */
    if (!is_very_top(dir) && csn_cgroup_has_process(dir))
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
    return missing ? csn_cgroup_put(dir, "cgroup.subtree_control", text) : 0;
}

/* Keeps the reason that came nearest to success; of equals the first, nearest to the caller. */
static void note(csn_cgroup_parent *ret, csn_cgroup_why why, const char *dir, int rc)
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

/* One group: is it the one? */
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
    note(ret, why, dir, rc);
    return false;
}

/* Root's own place. Its parent group stays when the sandboxes in it are gone: removing it would
 * race with whoever is about to use it. */
static bool try_caisson(v2_search *s, const char *top, csn_cgroup_parent *ret)
{
    char dir[CSN_CGROUP_PATH_MAX];
    bool fake = s->host && s->host->make;

    if (csn_cgroup_join(dir, top, "caisson") < 0 || !try_group(s, top, true, ret))
        return false;
    if (!s->change)
        return found(ret, dir);
    ret->path[0] = '\0';
    ret->caisson_made = (fake ? s->host->make(dir) : mkdir(dir, 0755)) == 0;
    if (!ret->caisson_made && errno != EEXIST) {
        note(ret, CSN_CGROUP_REFUSED, dir, -errno);
        return false;
    }
    if (try_group(s, dir, true, ret))
        return true;
    if (ret->caisson_made)
        (void)csn_cgroup_drop(s->host, dir);
    ret->caisson_made = false;
    return false;
}

/* To the group above; false at the top. */
static bool climb(char *dir, const char *top)
{
    char *slash = strrchr(dir, '/');

    if (!slash || strlen(dir) <= strlen(top))
        return false;
    *slash = '\0';
    return true;
}

/* From the caller's own group upwards; first for one that needs no change. */
static bool try_above(v2_search *s, const csn_cgroup_place *p, csn_cgroup_parent *ret)
{
    char dir[CSN_CGROUP_PATH_MAX];

    for (int enabling = 0; enabling <= 1; enabling++) {
        if (csn_cgroup_join(dir, p->own, "") < 0)
            return false;
        do {
            if (try_group(s, dir, enabling, ret))
                return true;
        } while (climb(dir, p->top));
    }
    return false;
}

static void search(v2_search *s, const csn_cgroup_place *p, csn_cgroup_parent *ret)
{
    *ret = (csn_cgroup_parent){0};
    if (!p->mounted)
        ret->why = CSN_CGROUP_NOT_MOUNTED;
    else if (!p->own[0])
        note(ret, CSN_CGROUP_OUTSIDE, p->top, 0);
    else if (p->read_only)
        note(ret, CSN_CGROUP_READ_ONLY, p->top, 0);
    else if (s->kinds & ~controllers_in(p->top, "cgroup.controllers"))
        note(ret, CSN_CGROUP_NOT_ENABLED, p->top, 0);
    else if (csn_cgroup_uid(s->host) != 0 || !try_caisson(s, p->top, ret))
        (void)try_above(s, p, ret);
}

void csn_cgroup_v2_find(const csn_cgroup_host *host, const csn_cgroup_place *p, unsigned kinds,
                        csn_cgroup_parent *ret)
{
    v2_search s = {.host = host, .kinds = kinds};

    search(&s, p, ret);
}

void csn_cgroup_v2_prepare(const csn_cgroup_host *host, const csn_cgroup_place *p,
                           unsigned kinds, csn_cgroup_parent *ret)
{
    v2_search s = {.host = host, .kinds = kinds, .change = true};

    search(&s, p, ret);
}
