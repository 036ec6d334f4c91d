/* rootfs.c: building the root of a jail, and entering it: who does what, and when.
 *
 * Runs in a keeper that is pid 1 of fresh namespaces, before any code of the sandbox does. The
 * list comes from the library; its entries are put by os/rootfs_mount.c.
 *
 * Everything from the old root is opened first, while it is still the root. The new root is
 * either a directory that was prepared for it, the frame; then a tmpfs lies below /proc, where
 * nobody sees it, and the writable places are parts of it, mounted elsewhere. Or it is that
 * tmpfs: directories, links and small files are made in it, writable places are mounted over
 * themselves, and then the tmpfs itself becomes read-only. Either way there is one limit on
 * what a sandbox can write beside its workspace. With the old root gone, the mounts are a wall:
 * what is not in the list has no name.
 *
 * Two do it: taking off the old root makes the kernel wait for all processors, so a second
 * process does that, and then has time for all that nothing else depends on. It shares our
 * memory, so what it runs leaves errno alone (os/raw_syscall.h). */
#include "os/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/mount.h"
#include "os/raw_syscall.h"
#include "os/rootfs_mount.h"

/* ---- by the second process ---- */

static bool is_beside(const csn_rootfs_work *w, size_t i)
{
    return (w->m.list[i].flags & CSN_MOUNT_BY_HELPER) != 0;
}

/* By its descriptor: it lies on top of the new one. */
static int take_off(csn_rootfs_work *w)
{
    int rc = (int)csn_raw(SYS_fchdir, w->old);

    if (rc == 0)
        rc = (int)csn_raw(SYS_umount2, ".", MNT_DETACH);
    w->off_rc = rc;
    csn_step_done(&w->off);
    return rc;
}

static bool take(csn_rootfs_work *w, size_t i)
{
    return is_beside(w, i) && !__atomic_exchange_n(&w->taken[i], true, __ATOMIC_RELAXED);
}

static int put_beside(csn_rootfs_work *w)
{
    csn_rootfs_builder b = {.w = w, .root = w->root, .path = w->path[1], .ours = true};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < w->m.count; i++)
        if (take(w, i)) {
            rc = csn_rootfs_mount(&b, i);
            w->at = rc < 0 ? i : w->at;
        }
    return rc;
}

/* All is in it: nobody makes anything there from now on. */
static int close_up(csn_rootfs_work *w)
{
    int rc = csn_mount_set(w->scratch, CSN_MOUNT_RDONLY, false);

    for (size_t i = 0; rc == 0 && i < w->loft_count; i++)
        rc = csn_mount_set(w->lofts[i], CSN_MOUNT_RDONLY, false);
    return rc;
}

static int do_beside(void *arg)
{
    csn_rootfs_work *w = arg;

    w->at = w->m.count;
    int rc = take_off(w);
    csn_step_await(&w->ready); /* what is done now looks into /proc */
    if (rc == 0 && w->then)
        rc = w->then(w->arg);
    csn_step_done(&w->then_done);
    if (rc == 0)
        rc = put_beside(w);
    if (rc < 0)
        return rc;
    csn_step_await(&w->filled);
    return close_up(w);
}

/* ---- by ourselves ---- */

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

/* The descriptor is the caller's, or of the list. */
static int open_frame(const csn_rootfs_work *w)
{
    const csn_mount *m = &w->m.list[0];

    if (m->kind == CSN_MOUNT_GIVEN)
        return m->fd;
    int rc = w->source[0] < 0 ? w->source[0] : csn_mount_set(w->source[0], m->flags, true);
    return rc < 0 ? rc : w->source[0];
}

/* It must hang somewhere before things can hang in it. Nothing is opened by its old name from
 * now on, so where does not matter; /proc is always there. */
static int enter(csn_rootfs_work *w, int new_root)
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

static int enter_new(csn_rootfs_work *w)
{
    w->scratch = new_tmpfs(&w->m);
    if (w->scratch < 0 || !csn_rootfs_has_template(&w->m))
        return w->scratch < 0 ? w->scratch : enter(w, w->scratch);
    int frame = open_frame(w);
    int rc = frame < 0 ? frame : enter(w, frame);
    return rc < 0 ? rc : csn_mount_attach(w->scratch, w->root, "proc");
}

/* The other may have to look into it before something of it is covered. */
static bool is_in_proc(const csn_mount *m)
{
    static const char proc[] = "/proc";

    return m->kind != CSN_MOUNT_PROC && strncmp(m->to, proc, sizeof(proc) - 1) == 0;
}

static int put_in_turn(csn_rootfs_builder *b, size_t i)
{
    csn_rootfs_work *w = b->w;
    int rc = 0;

    if (is_in_proc(&w->m.list[i])) {
        csn_step_done(&w->ready);
        rc = csn_helper_await(&w->beside, &w->then_done);
    }
    return rc < 0 ? rc : csn_rootfs_mount(b, i);
}

/* The other may not even have begun: it waits for a processor, and then for the kernel to let
 * go of the old root. From the end, where it will come last. */
static int help(csn_rootfs_work *w, size_t *ret_at)
{
    csn_rootfs_builder b = {.w = w, .root = w->root, .path = w->path[0], .ours = true};
    int rc = 0;

    for (size_t i = w->m.count; rc == 0 && i-- > 0;) {
        if (is_in_proc(&w->m.list[i]) && !csn_step_is_done(&w->then_done))
            continue;
        *ret_at = i;
        rc = take(w, i) ? csn_rootfs_mount(&b, i) : 0;
    }
    return rc;
}

static int fill(csn_rootfs_work *w, size_t *ret_at)
{
    csn_rootfs_builder b = {.w = w, .root = w->root, .path = w->path[0], .ours = true};
    int rc = csn_rootfs_mount_masks(&b);

    for (size_t i = 0; rc == 0 && i < w->m.count; i++) {
        *ret_at = i;
        if (!is_beside(w, i))
            rc = put_in_turn(&b, i);
        else if (w->ready == 0)
            csn_step_done(&w->ready);
    }
    if (rc < 0)
        return rc;
    csn_step_done(&w->ready);
    rc = help(w, ret_at);
    if (rc < 0)
        return rc;
    *ret_at = w->m.count;
    csn_step_done(&w->filled);
    return 0;
}

int csn_rootfs_enter(const csn_rootfs *m, size_t *ret_at, csn_rootfs_work *w)
{
    *ret_at = m->count;
    if (m->count > CSN_MOUNTS_MAX)
        return -E2BIG;
    w->m = *m;
    w->off = w->ready = w->filled = w->then_done = 0;
    w->loft_count = 0;
    memset(w->taken, 0, sizeof(w->taken));
    for (size_t i = 0; i < m->count; i++)
        w->source[i] = csn_rootfs_open_sources(&m->list[i]);
    int rc = enter_new(w);
    if (rc == 0)
        rc = csn_helper_begin(&w->beside, do_beside, w);
    return rc < 0 ? rc : fill(w, ret_at);
}

int csn_rootfs_await_detached(csn_rootfs_work *w)
{
    int rc = csn_helper_await(&w->beside, &w->off);

    return rc < 0 ? rc : w->off_rc;
}

int csn_rootfs_join(csn_rootfs_work *w, size_t *ret_at)
{
    int rc = csn_helper_join(&w->beside);

    *ret_at = w->at;
    close(w->mask_dir);
    close(w->mask_file);
    close(w->root);
    close(w->scratch);
    close(w->old);
    while (w->loft_count > 0)
        close(w->lofts[--w->loft_count]);
    return rc == 0 && chdir("/") < 0 ? -errno : rc;
}
