/* cgroup_sweep.c: removes the groups that crashed callers left behind.
 *
 * The owner may have been in another group than this process, so the sweep covers all of a
 * hierarchy that the caller may write to. Invariants: a group with processes is never removed
 * (the kernel would refuse), nor one of another user, nor a new one that waits for its keeper.
 * The age is that of the directory: the kernel may make it look younger, never older. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/cgroup_internal.h"

#define GROUPS_MAX 20000 /* visited by one sweep, to bound its time */
#define SECOND     1     /* the kernel rounds times up */

typedef struct sweep {
    const csn_cgroup_host *host;
    uid_t uid;
    const char *id; /* only this sandbox's; NULL: all */
    time_t newest;  /* groups made later are left alone */
    unsigned depth, visited;
    int removed;
} sweep;

/* The id of the sandbox that has the group; NULL: it is not one of ours. */
static const char *id_of(const char *path)
{
    const char *name = strrchr(path, '/');
    size_t n = strlen(CSN_CGROUP_PREFIX);

    return name && strncmp(name + 1, CSN_CGROUP_PREFIX, n) == 0 && name[1 + n] ? name + 1 + n
                                                                               : NULL;
}

static int sweep_group(void *ctx, const char *path)
{
    sweep *s = ctx;
    struct stat st;

    if (++s->visited > GROUPS_MAX)
        return -E2BIG;
    const char *id = id_of(path);
    if (id) {
        if (s->id && strcmp(s->id, id) != 0)
            return 0;
        if (stat(path, &st) == 0 && st.st_uid == s->uid && st.st_mtime <= s->newest &&
            st.st_ctime <= s->newest && !csn_cgroup_has_process(path))
            s->removed += csn_cgroup_rmdir(s->host, path) == 0;
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
static bool highest_writable(const csn_cgroup_hierarchy *h, char ret[CSN_CGROUP_PATH_MAX])
{
    char dir[CSN_CGROUP_PATH_MAX];
    bool any = false;

    if (!h->mounted || h->read_only || !h->own[0] || csn_cgroup_join(dir, h->own, "") < 0)
        return false;
    do {
        if (csn_cgroup_writable(dir) == CSN_CGROUP_USABLE)
            any = csn_cgroup_join(ret, dir, "") == 0;
    } while (csn_cgroup_climb(dir, h->top));
    return any;
}

static int sweep_all(sweep *s)
{
    const csn_cgroup_host *host = s->host;
    csn_cgroup_hierarchies all;
    char from[CSN_CGROUP_PATH_MAX];
    int rc = csn_cgroup_find(host, &all);

    if (rc < 0)
        return rc;
    for (int k = 0; k <= CSN_CGROUP_KINDS; k++) {
        const csn_cgroup_hierarchy *h = k < CSN_CGROUP_KINDS ? &all.v1[k] : &all.v2;
        bool duplicate = false;

        for (int j = 0; j < k && k < CSN_CGROUP_KINDS; j++)
            duplicate = duplicate || strcmp(all.v1[j].top, h->top) == 0;
        if (!duplicate && highest_writable(h, from))
            (void)csn_cgroup_each_child(from, sweep_group, s);
    }
    return s->removed;
}

int csn_cgroup_sweep(const csn_cgroup_host *host, unsigned min_age_s)
{
    return sweep_all(&(sweep){
        .host = host, .uid = csn_cgroup_uid(host), .newest = time(NULL) - (time_t)min_age_s});
}

int csn_cgroup_sweep_id(const csn_cgroup_host *host, const char *id)
{
    return sweep_all(&(sweep){
        .host = host, .uid = csn_cgroup_uid(host), .id = id, .newest = time(NULL) + SECOND});
}
