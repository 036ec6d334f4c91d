/* mount.c: creates, copies and attaches detached mounts with open_tree, fsopen and move_mount.
 *
 * Invariants:
 *  - Every mount is nosuid, and nodev unless CSN_MOUNT_DEVICES asks for devices.
 *  - Every copy has private propagation. */
#include "os/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/mount_list.h"
#include "os/raw_syscall.h"

/* Not in the headers of musl. */
#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#define SYS_fsconfig   431
#define SYS_fsmount    432
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define TREE_CLONE      1u
#define TREE_CLOEXEC    ((unsigned)O_CLOEXEC)
#define TREE_RECURSIVE  0x8000u /* AT_RECURSIVE */
#define MOVE_FROM_EMPTY 0x00000004u
#define MOVE_TO_EMPTY   0x00000040u
#define FS_CLOEXEC      1u
#define FS_SET_STRING   1u
#define FS_CREATE       6u
#define ATTR_RDONLY     0x00000001ull
#define ATTR_NOSUID     0x00000002ull
#define ATTR_NODEV      0x00000004ull
#define ATTR_NOEXEC     0x00000008ull
#define ATTR_IDMAP      0x00100000ull

struct attr_v0 {
    uint64_t set, clear, propagation, userns_fd;
};

static uint64_t attrs(uint32_t flags)
{
    return ATTR_NOSUID | (flags & CSN_MOUNT_DEVICES ? 0 : ATTR_NODEV) |
           (flags & CSN_MOUNT_RDONLY ? ATTR_RDONLY : 0) |
           (flags & CSN_MOUNT_NOEXEC ? ATTR_NOEXEC : 0);
}

int csn_mount_set(int mount, uint32_t flags, bool recursive)
{
    struct attr_v0 a = {.set = attrs(flags), .propagation = MS_PRIVATE};
    unsigned at = AT_EMPTY_PATH | (recursive ? TREE_RECURSIVE : 0);

    return (int)csn_raw(SYS_mount_setattr, mount, "", at, &a, sizeof(a));
}

int csn_mount_clone(int at, const char *path, bool recursive)
{
    unsigned flags = TREE_CLONE | TREE_CLOEXEC | (recursive ? TREE_RECURSIVE : 0) |
                     (*path ? 0 : AT_EMPTY_PATH);

    return (int)csn_raw(SYS_open_tree, at, path, flags);
}

int csn_mount_attach(int mount, int at, const char *path)
{
    unsigned flags = MOVE_FROM_EMPTY | (*path ? 0 : MOVE_TO_EMPTY);

    return (int)csn_raw(SYS_move_mount, mount, "", at, path, flags);
}

int csn_mount_new_fs(const char *type, const char *const *options, uint32_t flags)
{
    csn_autofd int fs = (int)syscall(SYS_fsopen, type, FS_CLOEXEC);

    if (fs < 0)
        return -errno;
    for (; *options; options += 2)
        if (syscall(SYS_fsconfig, fs, FS_SET_STRING, options[0], options[1], 0) < 0)
            return -errno;
    if (syscall(SYS_fsconfig, fs, FS_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    long fd = syscall(SYS_fsmount, fs, FS_CLOEXEC, attrs(flags));
    return fd < 0 ? -errno : (int)fd;
}

int csn_mount_detached(const char *path, int userns, uint32_t flags)
{
    struct attr_v0 a = {.set = attrs(flags), .propagation = MS_PRIVATE};

    csn_autofd int copy = csn_mount_clone(AT_FDCWD, path, true);

    if (copy < 0)
        return copy;
    if (userns >= 0) {
        a.set |= ATTR_IDMAP;
        a.userns_fd = (uint64_t)(unsigned)userns;
    }
    if (syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH | TREE_RECURSIVE, &a, sizeof(a)) < 0)
        return -errno;
    return csn_steal_fd(&copy);
}
