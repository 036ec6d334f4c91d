/* cgroup_sweep.c: removes what crashed owners left.
 *
 * Called by a sweeper that has done its own work. Looks through all of a hierarchy that the
 * caller may write to, because the owner may have been in another group than we are. What must
 * hold: a group with processes is never touched (and the kernel would refuse), nor one of
 * another user, nor one that was only just made and waits for its keeper. The age is that of
 * the directory: the kernel may make it look younger than it is, never older. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/cgroup_parts.h"

#define GROUPS_MAX 20000 /* looked at by one sweep: it must end soon, not find everything */

typedef struct sweeping {
    const csn_cgroup_host *host;
    uid_t uid;
    time_t youngest; /* made later than this: left alone */
    unsigned depth, looked;
    int removed;
} sweeping;

static bool is_ours(const char *path)
{
    const char *name = strrchr(path, '/');
    size_t n = strlen(CSN_CGROUP_PREFIX);

    return name && strncmp(name + 1, CSN_CGROUP_PREFIX, n) == 0 && name[1 + n];
}

static int sweep_group(void *ctx, const char *path)
{
    sweeping *s = ctx;
    struct stat st;

    if (++s->looked > GROUPS_MAX)
        return -E2BIG;
    if (is_ours(path)) {
        if (stat(path, &st) == 0 && st.st_uid == s->uid && st.st_mtime <= s->youngest &&
            st.st_ctime <= s->youngest && !csn_cgroup_has_process(path))
            s->removed += csn_cgroup_drop(s->host, path) == 0;
        return 0;
    }
    if (s->depth >= CSN_CGROUP_DEPTH_MAX)
        return 0;
    s->depth++;
    int rc = csn_cgroup_each_child(path, sweep_group, s);
    s->depth--;
    return rc == -E2BIG ? rc : 0;
}

/* The highest group at or above the caller's own that it may write to. */
static bool highest(const csn_cgroup_place *p, char ret[CSN_CGROUP_PATH_MAX])
{
    char dir[CSN_CGROUP_PATH_MAX];
    bool any = false;

    if (!p->mounted || p->read_only || !p->own[0] || csn_cgroup_join(dir, p->own, "") < 0)
        return false;
    for (char *slash = dir; slash && strlen(dir) >= strlen(p->top);) {
        if (csn_cgroup_writable(dir) == CSN_CGROUP_USABLE)
            any = csn_cgroup_join(ret, dir, "") == 0;
        slash = strrchr(dir, '/');
        if (slash)
            *slash = '\0';
    }
    return any;
}

int csn_cgroup_sweep(const csn_cgroup_host *host, unsigned min_age_s)
{
    csn_cgroup_map map;
    char from[CSN_CGROUP_PATH_MAX];
    sweeping s = {
        .host = host, .uid = csn_cgroup_uid(host), .youngest = time(NULL) - (time_t)min_age_s};
    int rc = csn_cgroup_find(host, &map);

    if (rc < 0)
        return rc;
    for (int k = 0; k <= CSN_CGROUP_KINDS; k++) {
        const csn_cgroup_place *p = k < CSN_CGROUP_KINDS ? &map.v1[k] : &map.v2;
        bool again = false;

        for (int j = 0; j < k && k < CSN_CGROUP_KINDS; j++)
            again = again || strcmp(map.v1[j].top, p->top) == 0;
        if (!again && highest(p, from))
            (void)csn_cgroup_each_child(from, sweep_group, &s);
    }
    return s.removed;
}
