/* rootfs.c: builds the root of a jail and enters it.
 *
 * Runs before any code of the sandbox. The entries themselves are mounted by
 * boot/rootfs_mount.c.
 *
 * Everything that comes from the old root is opened first. The new root is either a template (a
 * directory prepared by the library) or a tmpfs. With a template, the tmpfs lies hidden under
 * /proc, and writable places are bind mounts of its directories. Without one, the entries are
 * created in the tmpfs, writable places are mounted over themselves, and the tmpfs itself
 * becomes read-only. Either way one size limit covers everything that a sandbox can write
 * outside its workspace.
 *
 *   keeper                                helper
 *   open sources, pivot_root, start ----> detach the old root (the kernel waits for all CPUs)
 *   mount unmarked entries
 *     ready ----------------------------> on_proc
 *     (before an entry in /proc) <------- proc_done
 *     filled -------------------+         mount marked entries
 *   next steps of the boot      +-------> make the root read-only
 *   kp_rootfs_join <--------------------- exit
 *
 * Invariant: after kp_rootfs_join, a path that is not in the list does not exist. */
#include "keeper/boot/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/boot/rootfs_mount.h"
#include "os/mount.h"
#include "os/raw_syscall.h"

static bool is_by_helper(const kp_rootfs *w, size_t i)
{
    return (w->m.list[i].flags & CSN_MOUNT_BY_HELPER) != 0;
}

/* ---- in the helper ---- */

/* After pivot_root(".", ".") the old root lies on top of the new one. */
static int detach_old_root(kp_rootfs *w)
{
    int rc = (int)csn_raw(SYS_fchdir, w->old);

    if (rc == 0)
        rc = (int)csn_raw(SYS_umount2, ".", MNT_DETACH);
    w->detach_rc = rc;
    kp_step_done(&w->detached);
    return rc;
}

static int mount_marked(kp_rootfs *w)
{
    kp_mounter b = {.w = w, .path = w->path[1], .trusted = true};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < w->m.count; i++) {
        rc = is_by_helper(w, i) ? kp_rootfs_mount(&b, i) : 0;
        w->failed_at = rc < 0 ? i : w->failed_at;
    }
    return rc;
}

static int set_read_only(const kp_rootfs *w)
{
    int rc = csn_mount_set(w->scratch, CSN_MOUNT_RDONLY, false);

    for (size_t i = 0; rc == 0 && i < w->deferred_count; i++)
        rc = csn_mount_set(w->deferred_rdonly[i], CSN_MOUNT_RDONLY, false);
    return rc;
}

static int run_helper(void *arg)
{
    kp_rootfs *w = arg;

    w->failed_at = w->m.count;
    int rc = detach_old_root(w);
    kp_step_await(&w->ready);
    if (rc == 0 && w->on_proc)
        rc = w->on_proc(w->arg);
    kp_step_done(&w->proc_done);
    if (rc == 0)
        rc = mount_marked(w);
    if (rc < 0)
        return rc;
    kp_step_await(&w->filled);
    return set_read_only(w);
}

/* ---- in the keeper ---- */

static int new_tmpfs(const csn_rootfs *m)
{
    char size[32], inodes[32];
    const char *options[] = {"mode", "0755", NULL, NULL, NULL, NULL, NULL};
    size_t n = 2;

    if (m->size != 0) {
        snprintf(size, sizeof(size), "%llu", (unsigned long long)m->size);
        options[n++] = "size";
        options[n++] = size;
    }
    if (m->inodes != 0) {
        snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)m->inodes);
        options[n++] = "nr_inodes";
        options[n++] = inodes;
    }
    return csn_mount_new_fs("tmpfs", options, 0);
}

/* The descriptor belongs to the caller, or to the list. */
static int open_template(const kp_rootfs *w)
{
    const csn_mount *m = &w->m.list[0];

    if (m->kind == CSN_MOUNT_GIVEN)
        return m->fd;
    int rc = w->source[0] < 0 ? w->source[0] : csn_mount_set(w->source[0], m->flags, true);
    return rc < 0 ? rc : w->source[0];
}

/* pivot_root needs a mount point. /proc always exists, and no path of the old root is used from
 * here on. */
static int pivot(kp_rootfs *w, int new_root)
{
    w->old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w->old < 0)
        return -errno;
    int rc = csn_mount_attach(new_root, AT_FDCWD, "/proc");
    if (rc < 0)
        return rc;
    if (fchdir(new_root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return -errno;
    w->root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return w->root < 0 ? -errno : 0;
}

static int enter_new_root(kp_rootfs *w)
{
    w->scratch = new_tmpfs(&w->m);
    if (w->scratch < 0 || !kp_rootfs_has_template(&w->m))
        return w->scratch < 0 ? w->scratch : pivot(w, w->scratch);
    int template = open_template(w);
    int rc = template <0 ? template : pivot(w, template);
    return rc < 0 ? rc : csn_mount_attach(w->scratch, w->root, "proc");
}

static bool is_in_proc(const csn_mount *m)
{
    static const char proc[] = "/proc/";

    return strncmp(m->to, proc, sizeof(proc) - 1) == 0;
}

static int mount_unmarked(kp_rootfs *w, size_t *ret_at)
{
    kp_mounter b = {.w = w, .path = w->path[0], .trusted = true};
    int rc = kp_rootfs_make_masks(&b);

    for (size_t i = 0; rc == 0 && i < w->m.count; i++) {
        bool marked = is_by_helper(w, i), in_proc = is_in_proc(&w->m.list[i]);
        *ret_at = i;
        if ((marked || in_proc) && !w->ready)
            kp_step_done(&w->ready);
        if (marked)
            continue;
        if (in_proc)
            rc = kp_helper_await(&w->helper, &w->proc_done);
        if (rc == 0)
            rc = kp_rootfs_mount(&b, i);
    }
    if (rc < 0)
        return rc;
    *ret_at = w->m.count;
    kp_step_done(&w->ready);
    kp_step_done(&w->filled);
    return 0;
}

int kp_rootfs_enter(const csn_rootfs *m, kp_rootfs *w, size_t *ret_at)
{
    *ret_at = m->count;
    if (m->count > CSN_MOUNTS_MAX)
        return -E2BIG;
    w->m = *m;
    w->detached = w->ready = w->filled = w->proc_done = 0;
    w->deferred_count = 0;
    w->layers = -1;
    for (size_t i = 0; i < m->count; i++)
        w->source[i] = kp_rootfs_open_source(&m->list[i]);
    int rc = enter_new_root(w);
    if (rc == 0)
        rc = kp_helper_begin(&w->helper, run_helper, w);
    return rc < 0 ? rc : mount_unmarked(w, ret_at);
}

int kp_rootfs_await_detached(kp_rootfs *w)
{
    int rc = kp_helper_await(&w->helper, &w->detached);

    return rc < 0 ? rc : w->detach_rc;
}

int kp_rootfs_join(kp_rootfs *w, size_t *ret_at)
{
    int rc = kp_helper_join(&w->helper);

    *ret_at = w->failed_at;
    close(w->mask_dir);
    close(w->mask_file);
    if (w->mask_empty >= 0)
        close(w->mask_empty);
    close(w->root);
    close(w->scratch);
    close(w->old);
    while (w->deferred_count > 0)
        close(w->deferred_rdonly[--w->deferred_count]);
    return rc == 0 && chdir("/") < 0 ? -errno : rc;
}
