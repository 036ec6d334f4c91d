/* userns.c: the second user namespace of a jail.
 *
 * Called by the keeper when the mounts are built and before it drops its capabilities. The
 * first namespace was made by the process that started us (os/spawn.c) and owns everything; the
 * second owns nothing and is where commands live. No further one can be made: the limit of the
 * first counts those below it, and the second uses it up. That wall stands beside seccomp,
 * which refuses to make any. */
#include "os/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/raw_syscall.h"

static int put_text(const char *path, const char *text)
{
    csn_autofd int fd = (int)csn_raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(text);

    if (fd < 0)
        return fd;
    long n = csn_raw(SYS_write, fd, text, len);
    return n == (long)len ? 0 : n < 0 ? (int)n : -EIO;
}

int csn_userns_limit(unsigned n)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", n);
    return put_text("/proc/sys/user/max_user_namespaces", text);
}

/* A number of the kernel's, or 0. */
static unsigned long get_number(const char *path)
{
    csn_autofd int fd = (int)csn_raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    char text[24] = "";
    long len = fd < 0 ? 0 : csn_raw(SYS_read, fd, text, sizeof(text));
    unsigned long n = 0;

    for (long i = 0; i < len && text[i] >= '0' && text[i] <= '9' && n < UINT32_MAX; i++)
        n = n * 10 + (unsigned long)(text[i] - '0');
    return n;
}

/* These are counted in each namespace up to the first one, for the user who made it: there they
 * meet what the same user has outside. */
void csn_userns_halve_inotify(void)
{
    static const char *const paths[][2] = {
        {"/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"},
        {"/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"}};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        unsigned long all = get_number(paths[i][0]);
        char text[24];
        snprintf(text, sizeof(text), "%lu", all / 2);
        if (all > 1)
            (void)put_text(paths[i][1], text);
    }
}

int csn_userns_descend(unsigned uid, unsigned gid)
{
    unsigned old_uid = geteuid(), old_gid = getegid();
    char map[64];

    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    snprintf(map, sizeof(map), "%u %u 1", uid, old_uid);
    int rc = put_text("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1", gid, old_gid);
    return rc < 0 ? rc : put_text("/proc/self/gid_map", map);
}
