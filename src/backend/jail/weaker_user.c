/* weaker_user.c: the user of a root caller's commands on a host that refuses id-mapped mounts.
 *
 * In a full jail commands of a root caller run as a uid that only this sandbox has, and mounts
 * map the workspace's files to it. In a container, in `unshare -Ur` or on overlayfs the kernel
 * refuses one of the two. With --allow-weaker commands then run as the first of these users
 * that can use every share:
 *
 *   a uid without account   only without namespaces: it has no access but what files give all
 *   the workspace's owner   if that is not root, and the caller may change to it
 *   the caller itself       root, without any capability
 *
 * Uid 0 of the host (as_root) owns files that the kernel protects by their owner alone:
 * /proc/sys, /proc/sysrq-trigger, devices, the files of the container's system. No capability
 * is needed to write them or to change their mode. Invariant: for such a user every path that
 * is not granted for writing is on a read-only mount, or system calls that Landlock does not
 * mediate are refused for it (os/owner_guard.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/error.h"
#include "os/landlock.h"
#include "os/userns.h"

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

/* 0, or -errno if this user, without capabilities, cannot use the share. */
static int try_access(const csn_jail_share *s, unsigned uid, unsigned gid)
{
    csn_fsuid g;
    int mode = R_OK | X_OK | (s->writable ? W_OK : 0);

    int rc = csn_fsuid_switch(&g, uid, gid);
    if (rc < 0)
        return rc;
    if (s->file)
        mode &= ~X_OK;
    rc = syscall(SYS_faccessat2, AT_FDCWD, s->host, mode, AT_EACCESS) < 0 ? -errno : 0;
    csn_fsuid_restore(&g);
    return rc;
}

static bool can_use_all(const csn_jail *j, unsigned uid, unsigned gid)
{
    for (size_t i = 0; i < j->shares->count; i++)
        if (try_access(&j->shares->v[i], uid, gid) < 0)
            return false;
    return true;
}

csn_status csn_weaker_user_check(const csn_jail *j, const csn_jail_share *s, csn_error **err)
{
    int rc = j->root ? try_access(s, j->host_uid, j->host_gid) : 0;

    if (rc == 0)
        return CSN_OK;
    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE, "%s %s: not %s for the sandbox user (uid %u)", s->option,
                 s->host, s->writable ? "writable" : "readable", j->host_uid);
    if (s->writable && strcmp(s->option, "workspace") == 0)
        return csn_error_advise(
            st, err, "run caisson as the owner of %s, or share it read-only: --workspace %s:ro",
            s->host, s->host);
    return csn_error_advise(st, err, "run caisson as the owner of %s", s->host);
}

void csn_weaker_user_classify(csn_jail *j)
{
    j->other_user = j->root && j->host_uid != geteuid();
    if (j->host_uid >= CSN_SPEC_USER_LOW)
        j->spare_uid = j->host_uid;
    j->as_root = j->root && !j->other_user && csn_userns_root_may_be_global();
}

csn_status csn_weaker_user_choose(const csn_runtime *rt, csn_jail *j, csn_error **err)
{
    const char *workspace = j->shares->v[0].host;
    struct stat st;

    if (stat(workspace, &st) < 0)
        return csn_fail_errno(err, errno, "workspace %s", workspace);
    if (rt->level == CSN_LEVEL_LANDLOCK_ONLY && j->spare_uid != 0 &&
        can_use_all(j, j->spare_uid, j->spare_uid)) {
        j->host_uid = j->host_gid = j->spare_uid;
    } else if (st.st_uid != 0 && can_use_all(j, st.st_uid, st.st_gid)) {
        j->host_uid = st.st_uid;
        j->host_gid = st.st_gid;
    }
    csn_weaker_user_classify(j);
    return CSN_OK;
}

/* ---- /proc ---- */

/* Entries of /proc about the kernel whose mode gives nothing to users other than their owner.
 * Processes are directories with numbers; the kernel checks access to their files itself. */
void csn_weaker_user_cover_proc(csn_jail *j)
{
    DIR *d = opendir("/proc");

    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        bool process = e->d_name[0] >= '0' && e->d_name[0] <= '9';
        if (process || e->d_name[0] == '.' ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode) ||
            (st.st_mode & S_IROTH) != 0)
            continue;
        csn_jail_add(j, CSN_MOUNT_MASK, CSN_MOUNT_OPTIONAL, 0, NULL,
                     csn_arena_printf(j->arena, "/proc/%s", e->d_name));
    }
    if (d)
        closedir(d);
}

/* ---- layers ---- */

static csn_layer *find_layer(csn_jail *j, const char *name)
{
    for (size_t i = 0; i < j->layer_count; i++)
        if (strcmp(j->layers[i].name, name) == 0)
            return &j->layers[i];
    return NULL;
}

csn_status csn_weaker_user_layers(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    const char *user =
        j->other_user ? "a user namespace; commands run as the owner of the workspace, whose "
                        "uid they share with processes outside"
        : j->as_root  ? "a user namespace; commands have the caller's own uid, root, without "
                        "capabilities"
                      : "a user namespace; commands have the caller's own uid";
    const char *level = csn_arena_printf(
        j->arena, "%s: namespaces in which commands have %s uid (--allow-weaker)", j->weaker,
        j->other_user ? "the workspace owner's" : "the caller's own");
    csn_layer *layer = find_layer(j, "user");

    if (!level || !layer)
        return csn_fail(err, CSN_NOMEM, "layers");
    layer->status = "weaker";
    layer->detail = user;
    memmove(j->layers + 1, j->layers, j->layer_count * sizeof(j->layers[0]));
    j->layers[0] = (csn_layer){"rung", "weaker", level};
    j->layer_count++;
    return CSN_OK;
}
