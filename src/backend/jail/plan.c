/* plan.c: turns a configuration into the list of mounts of a jail.
 *
 * The configuration is trusted; the trees it names may be under the agent's control. Shares are
 * mounted in the order of their depth, so that one inside another is visible. Invariants: only
 * what is planned here and in system_mounts.c exists inside; an option that cannot be enforced
 * is refused. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/cover.h"
#include "backend/jail/jail.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/landlock.h"

#define HOME_INSIDE   "/home/sandbox"
#define HOME_FALLBACK "/sandbox"
#define USER_INSIDE   1000u /* for a root caller whose workspace belongs to root */
/* Uids without account: above those that account tools assign, below 2^31. */
#define EPHEMERAL_UID_LOW  0x70000000u
#define EPHEMERAL_UID_SPAN 0x0ffffffeu

typedef csn_jail_shares shares; /* room for each path of the configuration */

void csn_jail_add(csn_jail *j, uint32_t kind, uint32_t flags, uint32_t access, const char *from,
                  const char *to)
{
    if (j->mount_count < CSN_MOUNTS_MAX)
        j->mounts[j->mount_count] = (csn_mount){
            .kind = kind, .flags = flags, .access = access, .fd = -1, .from = from, .to = to};
    j->mount_count++; /* above the maximum: csn_jail_plan fails */
}

void csn_jail_give(csn_jail *j, const csn_jail_share *share)
{
    if (j->mount_count > CSN_MOUNTS_MAX || j->given_count == CSN_SPEC_GIVEN_MAX)
        return;
    j->mounts[j->mount_count - 1].kind = CSN_MOUNT_GIVEN;
    j->mounts[j->mount_count - 1].fd = (int32_t)j->given_count;
    j->given[j->given_count++] = share;
}

char *csn_jail_clean_path(csn_arena *a, const char *path)
{
    char *out = csn_arena_alloc(a, strlen(path) + 2), *to = out;

    if (!out)
        return NULL;
    for (const char *p = path; *p;) {
        p += strspn(p, "/");
        size_t len = strcspn(p, "/");
        if (len == 2 && p[0] == '.' && p[1] == '.')
            return NULL;
        if (len > 0 && !(len == 1 && p[0] == '.')) {
            *to++ = '/';
            memcpy(to, p, len);
            to += len;
        }
        p += len;
    }
    if (to == out)
        *to++ = '/';
    *to = '\0';
    return out;
}

/* ---- shares ---- */

/* HOST[:INSIDE][:rw|ro|cow]. A directory that exists under the whole text takes precedence. */
static csn_status parse_workspace(csn_arena *a, const char *text, csn_jail_share *ret,
                                  csn_error **err)
{
    char *host = csn_arena_strdup(a, text);
    struct stat st;

    if (!host)
        return csn_fail(err, CSN_NOMEM, "workspace");
    *ret = (csn_jail_share){.option = "workspace", .host = host, .writable = true, .dir = true};
    if (stat(text, &st) == 0)
        return CSN_OK;
    char *colon = strrchr(host, ':');
    bool cow = colon && strcmp(colon, ":cow") == 0;
    if (cow || (colon && (strcmp(colon, ":rw") == 0 || strcmp(colon, ":ro") == 0))) {
        ret->writable = cow || colon[2] == 'w';
        ret->cow = cow;
        *colon = '\0';
    }
    colon = strrchr(host, ':');
    if (colon && colon[1] == '/' && stat(host, &st) < 0) {
        ret->inside = colon + 1;
        *colon = '\0';
    }
    return CSN_OK;
}

/* A jail has its own /proc and /dev; the host's /proc would show its processes under any path.
 * Devices do not work on a nodev mount. */
static csn_status check_share(const csn_jail_share *share, const struct stat *st,
                              csn_error **err)
{
    const char *own =
        csn_path_below(share->inside, "/proc") ? "/proc"
        : csn_path_below(share->inside, "/dev") && !csn_path_below(share->inside, "/dev/shm")
            ? "/dev"
            : NULL;

    if (strcmp(share->host, "/") == 0)
        return csn_fail(err, CSN_INVALID, "%s: the root directory cannot be shared",
                        share->option);
    if (strcmp(share->inside, "/") == 0) {
        csn_status no = csn_fail(err, CSN_INVALID, "%s %s:/: a jail has its own root directory",
                                 share->option, share->host);
        return csn_error_advise(no, err, "%s:/work, or any other directory", share->host);
    }
    if (own || csn_path_below(share->host, "/proc"))
        return csn_fail(err, CSN_INVALID, "%s %s: a jail has its own %s", share->option,
                        share->inside, own ? own : "/proc");
    if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
        return csn_fail(err, CSN_UNSUPPORTED, "%s %s: devices cannot be shared with a jail",
                        share->option, share->inside);
    return CSN_OK;
}

/* If two options name the same directory, it is read-only unless both are writable. */
static csn_status place_share(shares *s, const csn_jail_share *share, csn_error **err)
{
    for (size_t i = 0; i < s->count; i++) {
        csn_jail_share *other = &s->v[i];
        if (strcmp(other->inside, share->inside) != 0)
            continue;
        if (strcmp(other->host, share->host) != 0)
            return csn_fail(err, CSN_INVALID, "%s: %s and %s would both be %s inside",
                            share->option, other->host, share->host, share->inside);
        other->writable = other->writable && share->writable;
        return CSN_OK;
    }
    s->v[s->count++] = *share;
    return CSN_OK;
}

/* True if the path that the option names leads through a link that another share shows: nothing
 * can be mounted there, and the link leads to the real path inside as well. */
static bool is_behind_link(const shares *s, const csn_jail_share *share)
{
    for (size_t i = 0; i < s->count && strcmp(share->inside, share->host) != 0; i++)
        if (strcmp(s->v[i].inside, s->v[i].host) == 0 &&
            csn_path_below(share->inside, s->v[i].inside) &&
            csn_path_below(share->host, s->v[i].host))
            return true;
    return false;
}

/* Inside, a share has the path that the option names, so that paths in scripts stay valid. */
static csn_status add_share(csn_jail *j, shares *s, csn_jail_share share, csn_error **err)
{
    char real[PATH_MAX];
    struct stat st = {0};
    csn_autofree char *shown = csn_path_printable(share.host);

    if (s->count == CSN_JAIL_SHARES_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "at most %u directories can be shared",
                        CSN_JAIL_SHARES_MAX);
    if (!realpath(share.host, real))
        return csn_fail_errno(err, errno, "%s: %s", share.option, shown ? shown : "");
    /* --read and --write accept files; a workspace or a home must be a directory. */
    share.file = stat(real, &st) == 0 && !S_ISDIR(st.st_mode);
    if (share.file && share.dir)
        return csn_fail(err, CSN_WRONG_TYPE, "%s: %s is not a directory", share.option,
                        shown ? shown : "");
    bool mapped = share.inside != NULL;
    if (!mapped)
        share.inside = share.host[0] == '/' ? share.host : real;
    share.inside = csn_jail_clean_path(j->arena, share.inside);
    if (!share.inside && !mapped)
        share.inside = csn_arena_strdup(j->arena, real);
    share.host = csn_arena_strdup(j->arena, real);
    if (!share.inside && mapped)
        return csn_fail(err, CSN_INVALID, "%s: the path inside must not contain '..'",
                        share.option);
    if (!share.inside || !share.host)
        return csn_fail(err, CSN_NOMEM, "%s", share.option);
    if (!mapped && is_behind_link(s, &share))
        share.inside = share.host;
    csn_status ok = check_share(&share, &st, err);
    return ok < 0 ? ok : place_share(s, &share, err);
}

static csn_status add_list(csn_jail *j, shares *s, const char *option, const char *const *dirs,
                           bool writable, csn_error **err)
{
    csn_status st = CSN_OK;

    for (size_t i = 0; st == CSN_OK && dirs && dirs[i]; i++) {
        if (writable && csn_protected_is_rule_for(s->v, s->count, dirs[i]))
            continue; /* only an exception for a protected file, which must stay replaceable */
        st = add_share(
            j, s, (csn_jail_share){.option = option, .host = dirs[i], .writable = writable},
            err);
    }
    return st;
}

static csn_status add_all(csn_runtime *rt, csn_jail *j, shares *s, csn_error **err)
{
    const csn_config *c = rt->config;
    csn_jail_share one;
    csn_status st = parse_workspace(j->arena, c->workspace ? c->workspace : ".", &one, err);

    if (st == CSN_OK && (c->flags & CSN_OPEN_COW) && !one.writable)
        st = csn_fail(err, CSN_INVALID, "--cow: the workspace %s is read-only", c->workspace);
    one.cow = st == CSN_OK && (one.cow || (c->flags & CSN_OPEN_COW));
    if (st == CSN_OK)
        st = add_share(j, s, one, err);
    for (size_t i = 0; st == CSN_OK && c->workspaces && c->workspaces[i]; i++) {
        st = parse_workspace(j->arena, c->workspaces[i], &one, err);
        if (st == CSN_OK)
            st = add_share(j, s, one, err);
    }
    if (st == CSN_OK && c->home)
        st = add_share(
            j, s,
            (csn_jail_share){.option = "home", .host = c->home, .writable = true, .dir = true},
            err);
    if (st == CSN_OK)
        st = add_list(j, s, "read", c->read, false, err);
    return st == CSN_OK ? add_list(j, s, "write", c->write, true, err) : st;
}

static int by_depth(const void *a, const void *b)
{
    const csn_jail_share *x = a, *y = b;

    return strcmp(x->inside, y->inside); /* a directory sorts before its contents */
}

static void mount_shares(csn_jail *j, const shares *s)
{
    csn_jail_share *sorted = csn_arena_array(j->arena, s->count, sizeof(*sorted));

    if (!sorted)
        return;
    memcpy(sorted, s->v, s->count * sizeof(*sorted));
    qsort(sorted, s->count, sizeof(*sorted), by_depth);
    for (size_t i = 0; i < s->count; i++) {
        const csn_jail_share *one = &sorted[i];
        if (one->cow && !j->cow_copy) {
            csn_jail_cow_plan(j, one);
            continue;
        }
        uint32_t flags = one->writable ? 0 : CSN_MOUNT_RDONLY;
        uint32_t access = CSN_LL_READ | CSN_LL_EXEC | (one->writable ? CSN_LL_WRITE : 0);
        csn_jail_add(j, CSN_MOUNT_BIND, flags, access, one->host, one->inside);
        if (j->idmapped)
            csn_jail_give(j, one);
    }
}

/* ---- the user ---- */

/* A random uid without account, or 0 if the caller may not change to it. */
static csn_status choose_spare(csn_jail *j, csn_error **err)
{
    uint32_t r = 0;

    if (getrandom(&r, sizeof(r), 0) != sizeof(r))
        return csn_fail_errno(err, errno, "random number");
    j->spare_uid = EPHEMERAL_UID_LOW + r % EPHEMERAL_UID_SPAN;
    /* In a full jail the start of the keeper reports it. */
    if (!j->idmapped && !csn_fsuid_may_become(j->spare_uid))
        j->spare_uid = 0;
    return CSN_OK;
}

/* Commands of a root caller run with a uid without account. An id-mapped mount shows the files
 * of the workspace's owner as theirs. */
static csn_status choose_idmapped_user(csn_jail *j, csn_error **err)
{
    struct stat st;

    if (stat(j->shares->v[0].host, &st) < 0)
        return csn_fail_errno(err, errno, "workspace");
    j->host_uid = j->host_gid = j->spare_uid;
    j->disk_uid = st.st_uid;
    j->disk_gid = st.st_gid;
    j->other_user = true;
    j->uid = st.st_uid;
    j->gid = st.st_gid;
    return CSN_OK;
}

static csn_status choose_user(const csn_runtime *rt, csn_jail *j, csn_error **err)
{
    csn_status st = j->root ? choose_spare(j, err) : CSN_OK;

    j->host_uid = geteuid();
    j->host_gid = getegid();
    if (st == CSN_OK && j->root && !j->idmapped)
        st = csn_weaker_user_choose(rt, j, err);
    j->uid = j->host_uid;
    j->gid = j->host_gid;
    if (st == CSN_OK && j->idmapped)
        st = choose_idmapped_user(j, err);
    if (j->root) {
        j->uid = j->uid != 0 ? j->uid : USER_INSIDE;
        j->gid = j->gid != 0 ? j->gid : USER_INSIDE;
    }
    snprintf(j->uid_map, sizeof(j->uid_map), "%u %u 1", j->disk_uid, j->host_uid);
    snprintf(j->gid_map, sizeof(j->gid_map), "%u %u 1", j->disk_gid, j->host_gid);
    return st;
}

/* ---- denials ---- */

void csn_jail_pin_parents(csn_jail *j, const csn_jail_share *share, const char *rest)
{
    for (const char *slash = strchr(rest, '/'); share->writable && slash;
         slash = strchr(slash + 1, '/')) {
        const char *dir =
            csn_arena_printf(j->arena, "%s/%.*s", share->inside, (int)(slash - rest), rest);
        bool again = false;
        for (size_t i = 0; dir && i < j->mount_count && i < CSN_MOUNTS_MAX; i++)
            again = again || (j->mounts[i].kind == CSN_MOUNT_SELF && j->mounts[i].to &&
                              strcmp(j->mounts[i].to, dir) == 0);
        if (!again)
            csn_jail_add(j, CSN_MOUNT_SELF, CSN_MOUNT_OPTIONAL, 0, NULL, dir);
    }
}

/* The keeper's helper process makes its mounts in parallel. A mount that is above or below one
 * of the entries from `first` on must keep its place in the order, so the keeper makes it. */
static void clear_helper_conflicts(csn_jail *j, size_t first)
{
    size_t count = j->mount_count < CSN_MOUNTS_MAX ? j->mount_count : CSN_MOUNTS_MAX;

    for (size_t i = 0; i < first && i < count; i++)
        for (size_t n = first; j->mounts[i].flags & CSN_MOUNT_BY_HELPER && n < count; n++)
            if (j->mounts[n].to && (csn_path_below(j->mounts[n].to, j->mounts[i].to) ||
                                    csn_path_below(j->mounts[i].to, j->mounts[n].to)))
                j->mounts[i].flags &= ~CSN_MOUNT_BY_HELPER;
}

/* The private home moves if a share or a denied path contains its usual place. */
static const char *choose_home(const csn_runtime *rt, const csn_jail *j, const shares *s)
{
    const char *const *const denied[] = {rt->config->deny, rt->config->deny_missing_ok};

    for (size_t i = 0; i < s->count; i++)
        if (csn_path_below(HOME_INSIDE, s->v[i].inside))
            return HOME_FALLBACK;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; denied[k] && denied[k][i]; i++) {
            const char *clean =
                denied[k][i][0] == '/' ? csn_jail_clean_path(j->arena, denied[k][i]) : NULL;
            if (clean && csn_path_below(HOME_INSIDE, clean))
                return HOME_FALLBACK;
        }
    }
    return HOME_INSIDE;
}

csn_status csn_jail_find_shares(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    const csn_config *c = rt->config;
    size_t named = 2 + csn_strv_len(c->workspaces) + csn_strv_len(c->read) +
                   csn_strv_len(c->write); /* 2: the workspace and the home */
    size_t room = named < CSN_JAIL_SHARES_MAX ? named : CSN_JAIL_SHARES_MAX;

    j->shares = csn_arena_alloc(j->arena, sizeof(shares) + room * sizeof(csn_jail_share));
    if (!j->shares)
        return csn_fail(err, CSN_NOMEM, "plan of the jail");
    csn_status st = add_all(rt, j, j->shares, err);
    if (st == CSN_OK)
        st = csn_jail_cow_check(rt, err);
    if (st == CSN_OK)
        st = csn_jail_check_audit(rt, err);
    return st < 0 ? st : choose_user(rt, j, err);
}

csn_status csn_jail_plan(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    const shares *s = j->shares;
    csn_status st;

    if (rt->level == CSN_LEVEL_LANDLOCK_ONLY) {
        st = csn_landlock_only_plan(rt, s->v, s->count, err);
        return st < 0 ? st : csn_protected_plan(rt, s->v, s->count, err);
    }
    const char *own = choose_home(rt, j, s);
    const char *home = rt->config->home ? csn_jail_clean_path(j->arena, rt->config->home) : own;
    /* Total use of shares cannot be limited; at least no single file may exceed --disk. */
    if (rt->config->disk_max && rt->config->disk_max != CSN_NO_LIMIT &&
        (rt->file_max == 0 || rt->config->disk_max < rt->file_max))
        rt->file_max = rt->config->disk_max;
    rt->base.path = strdup(s->v[0].inside);
    rt->home.path = strdup(home ? home : HOME_INSIDE);
    if (!rt->base.path || !rt->home.path)
        return csn_fail(err, CSN_NOMEM, "plan of the jail");
    csn_jail_add_system(rt, j, rt->home.path, s->v, s->count);
    if (!rt->config->home)
        csn_jail_add(j, CSN_MOUNT_SCRATCH, 0, CSN_LL_READ | CSN_LL_EXEC | CSN_LL_WRITE, NULL,
                     own);
    size_t first = j->mount_count;
    mount_shares(j, s);
    csn_jail_cover_sockets(j, s->v, s->count);
    st = csn_jail_cover_records(j, s->v, s->count, err);
    if (st == CSN_OK)
        st = csn_protected_plan(rt, s->v, s->count, err);
    if (st == CSN_OK)
        st = csn_cover_plan(rt, err);
    clear_helper_conflicts(j, first);
    if (st == CSN_OK && j->mount_count > CSN_MOUNTS_MAX)
        st = csn_fail(err, CSN_TOO_LARGE, "more than %u mounts", CSN_MOUNTS_MAX);
    for (size_t i = 0; st == CSN_OK && i < j->mount_count; i++)
        if (!j->mounts[i].to)
            st = csn_fail(err, CSN_NOMEM, "plan of the jail");
    return st;
}
