/* userns.c: enters the second user namespace of a jail and limits further ones.
 *
 * The first namespace, made by os/spawn.c, owns the mounts, network and processes of the jail;
 * the second owns nothing, and commands run in it. The limit on the first namespace counts its
 * descendants, and the second uses it up: no further one can be made, independently of the
 * seccomp filter that refuses it too. */
#include "os/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/raw_syscall.h"

static int write_file(int proc, const char *path, const char *text)
{
    csn_autofd int fd = (int)csn_raw(SYS_openat, proc, path, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(text);

    if (fd < 0)
        return fd;
    long n = csn_raw(SYS_write, fd, text, len);
    return n == (long)len ? 0 : n < 0 ? (int)n : -EIO;
}

int csn_userns_limit(int proc, unsigned n)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", n);
    return write_file(proc, "sys/user/max_user_namespaces", text);
}

/* In an older kernel the setting is the whole host's, and uid 0 of the host could change it
 * without a capability. */
int csn_userns_limit_pids(int proc, unsigned n)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    char text[16];

    if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2 || major < 6 ||
        (major == 6 && minor < 14))
        return -EOPNOTSUPP;
    snprintf(text, sizeof(text), "%u", n);
    return write_file(proc, "sys/kernel/pid_max", text);
}

/* Returns the number in the file, or 0. */
static unsigned long read_number(int proc, const char *path)
{
    csn_autofd int fd = (int)csn_raw(SYS_openat, proc, path, O_RDONLY | O_CLOEXEC);
    char text[24] = "";
    long len = fd < 0 ? 0 : csn_raw(SYS_read, fd, text, sizeof(text));
    unsigned long n = 0;

    for (long i = 0; i < len && text[i] >= '0' && text[i] <= '9' && n < UINT32_MAX; i++)
        n = n * 10 + (unsigned long)(text[i] - '0');
    return n;
}

/* The kernel charges inotify use to the creator of each namespace up to the initial one, where
 * it counts together with that user's own use. */
void csn_userns_halve_inotify(int proc)
{
    static const char *const paths[][2] = {
        {"sys/fs/inotify/max_user_instances", "sys/user/max_inotify_instances"},
        {"sys/fs/inotify/max_user_watches", "sys/user/max_inotify_watches"}};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        unsigned long all = read_number(proc, paths[i][0]);
        char text[24];
        snprintf(text, sizeof(text), "%lu", all / 2);
        if (all > 1)
            (void)write_file(proc, paths[i][1], text);
    }
}

/* Objects of System V stay when their processes have ended, and the kernel's memory for them is
 * charged to no process. */
void csn_userns_limit_ipc(int proc, uint64_t shm_bytes)
{
    char text[24];

    (void)write_file(proc, "sys/kernel/msgmni", CSN_MSG_QUEUES);
    (void)write_file(proc, "sys/kernel/sem", CSN_SEMAPHORES);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)(shm_bytes / 4096 + 1));
    if (shm_bytes != 0)
        (void)write_file(proc, "sys/kernel/shmall", text);
}

/* The file shows ids of the parent namespace, which may be mapped in turn. */
bool csn_userns_root_may_be_global(void)
{
    csn_autofd int fd =
        (int)csn_raw(SYS_openat, AT_FDCWD, "/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    char text[64] = "";
    unsigned inside = 0, outside = 0;

    if (fd < 0 || csn_raw(SYS_read, fd, text, sizeof(text) - 1) <= 0)
        return true;
    return sscanf(text, "%u %u", &inside, &outside) != 2 || inside != 0 || outside == 0;
}

int csn_userns_enter_nested(int proc, unsigned uid, unsigned gid)
{
    unsigned old_uid = geteuid(), old_gid = getegid();
    char map[64];

    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    snprintf(map, sizeof(map), "%u %u 1", uid, old_uid);
    int rc = write_file(proc, "self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1", gid, old_gid);
    return rc < 0 ? rc : write_file(proc, "self/gid_map", map);
}
