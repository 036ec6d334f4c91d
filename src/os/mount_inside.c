/* mount_inside.c: mounts in the mount namespace of another process, from a short-lived child.
 *
 * The host may have threads, and a process with threads cannot change its user namespace. The
 * child shares the memory and runs only system calls (os/raw_syscall.h), while the calling
 * thread waits (CLONE_VFORK). It has no exit signal, so neither SIGCHLD nor the host's wait()
 * notices it.
 *
 * The tree inside is hostile: paths are resolved without links below the new root. */
#include "os/mount_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/mount.h"
#include "os/overlay.h"
#include "os/raw_syscall.h"

#ifndef NS_GET_USERNS
#define NS_GET_USERNS _IO(0xb7, 0x1)
#endif
#ifndef SYS_fsopen
#define SYS_fsopen   430
#define SYS_fsconfig 431
#define SYS_fsmount  432
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define STACK_SIZE   65536u
#define MOVE_EMPTY   0x00000044u /* both paths are empty */
#define MOVE_BENEATH 0x00000200u

typedef struct order {
    int mount_ns, user_ns;             /* user_ns -1: stay in ours */
    const csn_overlay_switch *overlay; /* NULL: only the list */
    csn_overlay options;
    int lost; /* the old overlay is gone, the new one is not in its place */
    const csn_mount *list;
    size_t count, at;
    int error; /* -errno */
} order;

/* ---- in the child ---- */

CSN_IN_CHILD static int find(const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

    return (int)csn_raw(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* A copy of a mask that covers a file of /proc. */
CSN_IN_CHILD static int copy_file_mask(void)
{
    static const char *const masked[] = {"/proc/kcore",   "/proc/kallsyms", "/proc/keys",
                                         "/proc/modules", "/proc/kmsg",     "/proc/timer_list"};
    int rc = -ENOENT;

    for (size_t i = 0; rc < 0 && i < sizeof(masked) / sizeof(masked[0]); i++) {
        struct stat st = {0};
        rc = csn_mount_clone(AT_FDCWD, masked[i], false);
        if (rc < 0)
            continue;
        if (csn_raw(SYS_fstat, rc, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 0777)) {
            (void)csn_raw(SYS_close, rc);
            rc = -ENOENT;
        }
    }
    return rc;
}

/* An empty directory with mode 0 that is read-only. */
CSN_IN_CHILD static int make_dir_mask(void)
{
    int fs = (int)csn_raw(SYS_fsopen, "tmpfs", 1);
    long rc = fs < 0 ? fs : csn_raw(SYS_fsconfig, fs, 1, "mode", "0", 0);

    if (rc == 0)
        rc = csn_raw(SYS_fsconfig, fs, 1, "nr_inodes", "1", 0);
    if (rc == 0)
        rc = csn_raw(SYS_fsconfig, fs, 6, NULL, NULL, 0);
    /* read-only, nosuid, nodev, noexec */
    if (rc == 0)
        rc = csn_raw(SYS_fsmount, fs, 1, 0xf);
    if (fs >= 0)
        (void)csn_raw(SYS_close, fs);
    return (int)rc;
}

CSN_IN_CHILD static int mount_one(const csn_mount *m)
{
    bool mask = m->kind == CSN_MOUNT_MASK;
    struct stat st = {0};
    int at = find(m->to, mask ? O_NOFOLLOW : 0);
    int rc = at < 0 ? at : (int)csn_raw(SYS_fstat, at, &st);
    int source = rc;

    if (rc == 0 && mask)
        source = S_ISDIR(st.st_mode) ? make_dir_mask() : copy_file_mask();
    else if (rc == 0)
        source = csn_mount_clone(at, "", true);
    if (source >= 0 && !mask)
        rc = csn_mount_set(source, m->flags, true);
    if (source >= 0 && rc == 0)
        rc = csn_mount_attach(source, at, "");
    else if (source < 0)
        rc = source;
    return rc;
}

/* What the layers contain belongs to this user; the kernel does the overlay's own work, as in
 * the directory `work`, as the user that mounted it. */
CSN_IN_CHILD static long become_owner(const csn_overlay_switch *s)
{
    long rc = csn_raw(SYS_setresgid, s->gid, s->gid, s->gid);

    return rc < 0 ? rc : csn_raw(SYS_setresuid, s->uid, s->uid, s->uid);
}

/* Beneath the old overlay, so that the new one appears when the old one is detached. */
CSN_IN_CHILD static long replace_overlay(order *o, int overlay, int at)
{
    long rc = csn_raw(SYS_move_mount, overlay, "", at, "", MOVE_EMPTY | MOVE_BENEATH);
    bool beneath = rc == 0;

    if (rc < 0 && rc != -EINVAL) /* EINVAL: before Linux 6.5 */
        return rc;
    rc = csn_raw(SYS_umount2, o->overlay->place, MNT_DETACH);
    if (rc < 0 || beneath)
        return rc;
    at = find(o->overlay->place, 0);
    rc = at < 0 ? at : csn_mount_attach(overlay, at, "");
    o->lost = rc < 0;
    return rc;
}

CSN_IN_CHILD static long switch_overlay(order *o)
{
    const csn_overlay_switch *s = o->overlay;
    int overlay = csn_overlay_new(s->tree, &o->options);
    int at = overlay < 0 ? overlay : find(s->place, 0);
    long rc = at < 0 ? at : replace_overlay(o, overlay, at);

    for (size_t i = 0; rc == 0 && i < s->cover_count; i++) {
        rc = mount_one(&s->cover[i]);
        rc = rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
    }
    return rc;
}

CSN_IN_CHILD static int run(void *arg)
{
    order *o = arg;

    /* A user that has the capabilities of the namespace by owning it must be in it. */
    long rc = o->user_ns >= 0 ? csn_raw(SYS_setns, o->user_ns, CLONE_NEWUSER) : 0;
    if (rc == 0 && o->overlay)
        rc = become_owner(o->overlay);
    if (rc == 0)
        rc = csn_raw(SYS_setns, o->mount_ns, CLONE_NEWNS);
    if (rc == 0 && o->overlay)
        rc = switch_overlay(o);
    for (o->at = 0; rc == 0 && o->at < o->count; o->at += rc == 0)
        rc = mount_one(&o->list[o->at]);
    o->error = (int)rc;
    return 0;
}

/* ---- in the host ---- */

static int open_namespaces(pid_t pid, int pidfd, order *o)
{
    struct pollfd alive = {.fd = pidfd, .events = POLLIN};
    char path[64];

    snprintf(path, sizeof(path), "/proc/%lld/ns/mnt", (long long)pid);
    o->mount_ns = open(path, O_RDONLY | O_CLOEXEC);
    if (o->mount_ns < 0)
        return -errno;
    /* If the process still runs, the number was not given to another one. */
    if (poll(&alive, 1, 0) != 0)
        return -ESRCH;
    return 0;
}

static int run_child(order *o)
{
    char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    sigset_t all, old;
    int dumpable = prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L);

    if (stack == MAP_FAILED)
        return -errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    long pid = csn_raw_clone(run, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK, o, NULL);
    while (pid > 0 && waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L) != dumpable)
        (void)prctl(PR_SET_DUMPABLE, (long)dumpable, 0L, 0L, 0L);
    munmap(stack, STACK_SIZE);
    return pid < 0 ? (int)pid : o->error;
}

int csn_mount_inside(pid_t pid, int pidfd, const csn_mount *list, size_t count, size_t *ret_at)
{
    order o = {.mount_ns = -1, .user_ns = -1, .list = list, .count = count, .error = -EIO};
    int rc = open_namespaces(pid, pidfd, &o);
    bool root = geteuid() == 0;

    /* Root has the capabilities in every namespace, unless it lacks them here (a container). */
    if (rc == 0 && root)
        rc = run_child(&o);
    if ((rc == 0 && !root) || (rc == -EPERM && root && o.at == 0)) {
        o.user_ns = ioctl(o.mount_ns, NS_GET_USERNS);
        rc = o.user_ns < 0 ? -errno : run_child(&o);
    }
    *ret_at = o.at;
    if (o.mount_ns >= 0)
        close(o.mount_ns);
    if (o.user_ns >= 0)
        close(o.user_ns);
    return rc;
}

int csn_overlay_replace(const csn_overlay_switch *s, int *ret_lost)
{
    order o = {.mount_ns = -1, .user_ns = -1, .overlay = s, .error = -EIO};
    int rc = csn_overlay_describe(s->names, &o.options);

    if (rc == 0)
        rc = open_namespaces(s->pid, s->pidfd, &o);
    if (rc == 0) {
        o.user_ns = ioctl(o.mount_ns, NS_GET_USERNS);
        rc = o.user_ns < 0 ? -errno : run_child(&o);
    }
    *ret_lost = o.lost;
    if (o.mount_ns >= 0)
        close(o.mount_ns);
    if (o.user_ns >= 0)
        close(o.user_ns);
    return rc;
}
