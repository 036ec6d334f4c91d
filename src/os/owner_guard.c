/* owner_guard.c: the filter and the process that decide about attributes of files.
 *
 * The command is hostile: its memory, descriptors and working directory change while a call is
 * decided. Each is read once. What a path leads to is opened, and the check and the change use
 * that descriptor. Links in /proc (/proc/self/fd/N) are not followed, since they would be those
 * of this process.
 *
 * Invariants: an attribute changes only on a file whose path is below a root, as the kernel
 * reports it; set-id bits are refused by the jail's own filter (seccomp.h), whose refusal takes
 * precedence. If this process has ended, the calls answer ENOSYS.
 *
 * No kernel header: the keeper is built with musl alone. */
#include "os/owner_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "os/seccomp.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define SYS_fchmodat2_     452
#define SYS_setxattrat_    463
#define SYS_removexattrat_ 466
#define SYS_file_setattr_  469

/* ---- the filter ---- */

#define SET_MODE_FILTER    1u
#define FLAG_SPEC_ALLOW    (1u << 2)
#define FLAG_NEW_LISTENER  (1u << 3)
#define FLAG_WAIT_KILLABLE (1u << 5) /* since 5.19: signals do not restart the call */
#define RET_ALLOW          0x7fff0000u
#define RET_USER_NOTIF     0x7fc00000u
#define RET_ERRNO(e)       (0x00050000u | (e))

#define AT_CALL 0u
#define AT_ABI  4u
#define AT_ARG1 24u /* low half of the second argument; the kernel ignores the rest */

#if defined(__x86_64__)
#define ABI 0xc000003eu
#elif defined(__aarch64__)
#define ABI 0xc00000b7u
#else /* unsupported */
#define ABI 0u
#endif
#define X32 0x40000000u /* set in the numbers of x32 calls only */

/* File systems have ioctls that change a file, or make one in a directory, for the owner of a
 * descriptor that can only read. Of their types only these, which read or need a writable
 * descriptor, are allowed. */
#define IOC_TYPE       0xff00u
#define IOC_GETFLAGS   0x80086601u
#define IOC_FIEMAP     0xc020660bu
#define IOC_FSGETXATTR 0x801c581fu
#define IOC_CLONE      0x40049409u
#define IOC_CLONERANGE 0x4020940du
#define IOC_DEDUPE     0xc0189436u

/* clang-format off */
#define LOAD(at)         {0x20, 0, 0, (at)}
#define UNLESS(v, skip)  {0x15, 0, (skip), (v)}
#define RETURN(v)        {0x06, 0, 0, (v)}
#define CALL(nr, answer) UNLESS(nr, 1), RETURN(answer)
#define MASK(v)          {0x54, 0, 0, (v)}

static const csn_seccomp_insn insns[] = {
    LOAD(AT_ABI),
    {0x15, 1, 0, ABI},
    RETURN(RET_ERRNO(ENOSYS)),
    LOAD(AT_CALL),
    {0x45, 0, 1, X32},
    RETURN(RET_ERRNO(ENOSYS)),
    CALL(SYS_fchmod, RET_USER_NOTIF),
    CALL(SYS_fchmodat, RET_USER_NOTIF),
    CALL(SYS_fchmodat2_, RET_USER_NOTIF),
    CALL(SYS_fchown, RET_USER_NOTIF),
    CALL(SYS_fchownat, RET_USER_NOTIF),
    CALL(SYS_utimensat, RET_USER_NOTIF),
#ifdef SYS_chmod
    CALL(SYS_chmod, RET_USER_NOTIF),
    CALL(SYS_chown, RET_USER_NOTIF),
    CALL(SYS_lchown, RET_USER_NOTIF),
    CALL(SYS_utime, RET_ERRNO(ENOSYS)), /* libcs use utimensat */
    CALL(SYS_utimes, RET_ERRNO(ENOSYS)),
    CALL(SYS_futimesat, RET_ERRNO(ENOSYS)),
#endif
    CALL(SYS_setxattr, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_lsetxattr, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_fsetxattr, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_removexattr, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_lremovexattr, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_fremovexattr, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_setxattrat_, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_removexattrat_, RET_ERRNO(EOPNOTSUPP)),
    CALL(SYS_file_setattr_, RET_ERRNO(EOPNOTSUPP)),
    {0x15, 1, 0, SYS_ioctl},
    RETURN(RET_ALLOW),
    LOAD(AT_ARG1),
    CALL(IOC_GETFLAGS, RET_ALLOW),
    CALL(IOC_FIEMAP, RET_ALLOW),
    CALL(IOC_FSGETXATTR, RET_ALLOW),
    CALL(IOC_CLONE, RET_ALLOW),
    CALL(IOC_CLONERANGE, RET_ALLOW),
    CALL(IOC_DEDUPE, RET_ALLOW),
    MASK(IOC_TYPE),
    CALL('f' << 8, RET_ERRNO(EPERM)), /* ext4, all of VFS */
    CALL('v' << 8, RET_ERRNO(EPERM)), /* ext4 */
    CALL('X' << 8, RET_ERRNO(EPERM)), /* xfs, all of VFS */
    CALL(0x94 << 8, RET_ERRNO(EPERM)), /* btrfs, all of VFS */
    CALL(0xf5 << 8, RET_ERRNO(EPERM)), /* f2fs */
    RETURN(RET_ALLOW),
};
/* clang-format on */

int csn_owner_guard_install(void)
{
    const csn_seccomp_program p = {sizeof(insns) / sizeof(insns[0]), insns};
    const unsigned flags = FLAG_NEW_LISTENER | FLAG_SPEC_ALLOW;

    if (ABI == 0)
        return -ENOTSUP;
    int fd = (int)syscall(SYS_seccomp, SET_MODE_FILTER, (long)(flags | FLAG_WAIT_KILLABLE), &p);
    if (fd < 0 && errno == EINVAL)
        fd = (int)syscall(SYS_seccomp, SET_MODE_FILTER, (long)flags, &p);
    return fd < 0 ? -errno : fd;
}

/* ---- what the call names ---- */

struct notif {
    uint64_t id;
    uint32_t pid, flags;
    int32_t nr;
    uint32_t arch;
    uint64_t ip, args[6];
};
struct notif_resp {
    uint64_t id;
    int64_t value;
    int32_t error;
    uint32_t flags;
};
struct open_how_ {
    uint64_t flags, mode, resolve;
};
_Static_assert(sizeof(struct notif) == 80 && sizeof(struct notif_resp) == 24,
               "the kernel's structures");
#define NOTIF_RECV     0xc0502100ul
#define NOTIF_SEND     0xc0182101ul
#define NOTIF_ID_VALID 0x40082102ul
#define NO_MAGICLINKS  0x02u
#define AT_EMPTY_PATH_ 0x1000
#define AT_NOFOLLOW    0x100
#define COPY_PAGE      4096u

/* A call of one of the three kinds: path or descriptor, and what is to change. */
typedef struct change {
    enum { MODE, OWNER, TIMES } kind;
    int dir;       /* AT_FDCWD, or a descriptor of the caller */
    uint64_t path; /* in the caller's memory; 0: the descriptor itself */
    bool nofollow, empty_path;
    unsigned mode, uid, gid;
    uint64_t times; /* in the caller's memory; 0: now */
} change;

static void set_flags(change *c, uint64_t flags)
{
    c->nofollow = (flags & AT_NOFOLLOW) != 0;
    c->empty_path = (flags & AT_EMPTY_PATH_) != 0;
}

/* 0, or -errno for a call that this process does not know. */
static int decode(const struct notif *q, change *c)
{
    const uint64_t *a = q->args;

    *c = (change){.kind = MODE, .dir = (int)a[0], .path = a[1], .mode = (unsigned)a[2]};
    switch (q->nr) {
    case SYS_fchmod:
        *c = (change){.kind = MODE, .dir = (int)a[0], .mode = (unsigned)a[1]};
        return 0;
    case SYS_fchmodat2_:
        set_flags(c, a[3]);
        return 0;
    case SYS_fchmodat:
        return 0;
    case SYS_fchown:
        *c = (change){
            .kind = OWNER, .dir = (int)a[0], .uid = (unsigned)a[1], .gid = (unsigned)a[2]};
        return 0;
    case SYS_fchownat:
        *c = (change){.kind = OWNER,
                      .dir = (int)a[0],
                      .path = a[1],
                      .uid = (unsigned)a[2],
                      .gid = (unsigned)a[3]};
        set_flags(c, a[4]);
        return 0;
    case SYS_utimensat:
        *c = (change){.kind = TIMES, .dir = (int)a[0], .path = a[1], .times = a[2]};
        set_flags(c, a[3]);
        return 0;
#ifdef SYS_chmod
    case SYS_chmod:
        *c = (change){.kind = MODE, .dir = AT_FDCWD, .path = a[0], .mode = (unsigned)a[1]};
        return 0;
    case SYS_chown:
    case SYS_lchown:
        *c = (change){.kind = OWNER,
                      .dir = AT_FDCWD,
                      .path = a[0],
                      .nofollow = q->nr == SYS_lchown,
                      .uid = (unsigned)a[1],
                      .gid = (unsigned)a[2]};
        return 0;
#endif
    default:
        return -ENOSYS;
    }
}

/* By the file, since container engines refuse process_vm_readv. */
static int copy(pid_t pid, uint64_t from, void *to, size_t len)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = pread(fd, to, len, (off_t)from);
    return n == (ssize_t)len ? 0 : n < 0 && errno != EIO ? -errno : -EFAULT;
}

/* Page by page: the string may end before an unmapped page. */
static int copy_path(pid_t pid, uint64_t from, char path[PATH_MAX])
{
    for (size_t len = 0; len < PATH_MAX;) {
        size_t part = COPY_PAGE - (size_t)((from + len) % COPY_PAGE);
        if (part > PATH_MAX - len)
            part = PATH_MAX - len;
        int rc = copy(pid, from + len, path + len, part);
        if (rc < 0)
            return rc;
        if (memchr(path + len, '\0', part))
            return 0;
        len += part;
    }
    return -ENAMETOOLONG;
}

/* The caller's descriptor or working directory, as O_PATH. */
static int open_base(pid_t pid, int dir)
{
    char path[48];

    if (dir == AT_FDCWD)
        snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    else
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, dir);
    int fd = open(path, O_PATH | O_CLOEXEC);
    return fd >= 0 ? fd : errno == ENOENT ? -EBADF : -errno;
}

static int open_target(const struct notif *q, const change *c)
{
    char path[PATH_MAX];
    struct open_how_ how = {.flags = O_PATH | O_CLOEXEC | (c->nofollow ? O_NOFOLLOW : 0),
                            .resolve = NO_MAGICLINKS};
    csn_autofd int base = open_base((pid_t)q->pid, c->dir);

    if (base < 0 || c->path == 0)
        return csn_steal_fd(&base);
    int rc = copy_path((pid_t)q->pid, c->path, path);
    if (rc < 0)
        return rc;
    if (path[0] == '\0')
        return c->empty_path ? csn_steal_fd(&base) : -ENOENT;
    int fd = (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

/* ---- the decision and the change ---- */

static bool is_below(int fd, const char *const *roots, size_t count)
{
    char link[48], path[PATH_MAX];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    for (size_t i = 0; i < count; i++)
        if (csn_path_below(path, roots[i]))
            return true;
    return false;
}

static int apply(int fd, const change *c, pid_t pid)
{
    struct {
        int64_t sec, nsec;
    } times[2];
    char link[48];
    struct stat st;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (c->kind == MODE)
        return fchmodat(AT_FDCWD, link, c->mode & 07777, 0) < 0 ? -errno : 0;
    if (c->kind == OWNER)
        return fchownat(fd, "", c->uid, c->gid, AT_EMPTY_PATH_) < 0 ? -errno : 0;
    int rc = c->times != 0 ? copy(pid, c->times, times, sizeof(times)) : 0;
    if (rc < 0)
        return rc;
    if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
        return 0; /* the kernel cannot change the times of a link by its descriptor */
    return syscall(SYS_utimensat, AT_FDCWD, link, c->times != 0 ? times : NULL, 0) < 0 ? -errno
                                                                                       : 0;
}

static int decide(int listener, const struct notif *q, const char *const *roots, size_t count)
{
    change c;
    int rc = decode(q, &c);

    if (rc < 0)
        return rc;
    csn_autofd int fd = open_target(q, &c);
    /* Until here the pid may have been reused. */
    if (syscall(SYS_ioctl, listener, NOTIF_ID_VALID, &q->id) < 0)
        return -EINTR;
    if (fd < 0)
        return fd;
    return is_below(fd, roots, count) ? apply(fd, &c, (pid_t)q->pid) : -EPERM;
}

int csn_owner_guard_serve(int listener, const char *const *roots, size_t count)
{
    for (;;) {
        struct pollfd pf = {.fd = listener, .events = POLLIN};
        struct notif q = {0};

        if (poll(&pf, 1, -1) < 0 && errno != EINTR)
            return -errno;
        if (pf.revents & (POLLHUP | POLLERR | POLLNVAL))
            return 0;
        if (!(pf.revents & POLLIN) || syscall(SYS_ioctl, listener, NOTIF_RECV, &q) < 0)
            continue;
        const struct notif_resp resp = {.id = q.id,
                                        .error = decide(listener, &q, roots, count)};
        (void)syscall(SYS_ioctl, listener, NOTIF_SEND, &resp); /* the caller may be gone */
    }
}
