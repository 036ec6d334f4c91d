/* probe_write.c: ways to change a file that was not given, and files that outlive the jail with
 * more rights than whoever made them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define EXCHANGE 2u /* RENAME_EXCHANGE */

/* Opens for writing and writes nothing: the control does this to files of the system. ETXTBSY
 * comes after the permission. */
static int try_append(char **a)
{
    int fd = open(a[0], O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return errno == ETXTBSY ? 0 : errno;
    close(fd);
    return 0;
}

/* DIR: a new file in it */
static int try_create(char **a)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/csn-probe-%d", a[0], (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        return errno;
    close(fd);
    (void)unlink(path);
    return 0;
}

/* ---- changes to a planted file ---- */

static int change_mode(const char *path)
{
    return chmod(path, 0666);
}

static int change_owner(const char *path)
{
    return lchown(path, getuid(), getgid());
}

static int change_times(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0);
}

static int change_length(const char *path)
{
    return truncate(path, 1);
}

static int change_xattr(const char *path)
{
    return setxattr(path, "user.csn", "x", 1, 0);
}

static int change_content(const char *path)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    return fd < 0 || write(fd, "changed", 7) != 7 ? -1 : 0;
}

static int change_name(const char *path)
{
    char to[PATH_MAX];

    snprintf(to, sizeof(to), "%s.moved", path);
    return rename(path, to);
}

static int try_change(char **a)
{
    static const struct {
        const char *how;
        int (*run)(const char *path);
    } ways[] = {{"mode", change_mode},     {"owner", change_owner},     {"times", change_times},
                {"length", change_length}, {"xattr", change_xattr},     {"name", change_name},
                {"remove", unlink},        {"content", change_content}, {"rmdir", rmdir}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].how, a[0]) == 0)
            return ways[i].run(a[1]) < 0 ? errno : 0;
    return ENOSYS;
}

static int try_exchange(char **a)
{
    return syscall(SYS_renameat2, AT_FDCWD, a[0], AT_FDCWD, a[1], EXCHANGE) < 0 ? errno : 0;
}

static int try_rename(char **a)
{
    return rename(a[0], a[1]) < 0 ? errno : 0;
}

/* PID: the program a process runs. ETXTBSY comes after the permission. Who can do that owns the
 * next one who starts it. */
static int write_exe(char **a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%s/exe", a[0]);
    int fd = open(path, O_WRONLY | O_APPEND);
    if (fd < 0)
        return errno == ETXTBSY ? 0 : errno;
    close(fd);
    return 0;
}

/* Opened for reading while it runs, and through that again for writing when it has ended: the
 * first step must fail already. */
static int hold_exe(char **a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%s/exe", a[0]);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

const attempt write_attempts[] = {{"append", 1, try_append}, {"create", 1, try_create},
                                  {"change", 2, try_change}, {"exchange", 2, try_exchange},
                                  {"rename", 2, try_rename}, {"write-exe", 1, write_exe},
                                  {"hold-exe", 1, hold_exe}, {NULL, 0, NULL}};

/* ---- set-id bits and file capabilities ---- */

static int suid_chmod(const char *f)
{
    return (int)syscall(SYS_fchmodat, AT_FDCWD, f, 04755);
}

static int suid_old_chmod(const char *f)
{
#ifdef SYS_chmod
    return (int)syscall(SYS_chmod, f, 04755);
#else
    return suid_chmod(f);
#endif
}

static int suid_sgid(const char *f)
{
    return (int)syscall(SYS_fchmodat, AT_FDCWD, f, 02755);
}

static int suid_fchmod(const char *f)
{
    int fd = open(f, O_RDONLY);

    return fd < 0 ? -1 : fchmod(fd, 06755);
}

static int suid_fchmodat2(const char *f)
{
    return (int)syscall(SYS_fchmodat2, AT_FDCWD, f, 04755, 0);
}

/* The kernel looks at 16 bits of a mode; a filter that compares all of them is fooled. */
static int suid_high_bits(const char *f)
{
    return (int)syscall(SYS_fchmodat, AT_FDCWD, f, 0xabcd00000000ul | 04755ul);
}

static int suid_open(const char *f)
{
    (void)unlink(f);
    return open(f, O_WRONLY | O_CREAT | O_EXCL, 04755);
}

static int suid_creat(const char *f)
{
    (void)unlink(f);
    return creat(f, 04755);
}

static int suid_openat2(const char *f)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_WRONLY | O_CREAT | O_EXCL, 04755, 0};

    (void)unlink(f);
    return (int)syscall(SYS_openat2, AT_FDCWD, f, &how, sizeof(how));
}

static int suid_mknod(const char *f)
{
    (void)unlink(f);
    return mknod(f, S_IFREG | 04755, 0);
}

/* A type of 0 is a regular file as well. */
static int suid_mknodat(const char *f)
{
    (void)unlink(f);
    return mknodat(AT_FDCWD, f, 04755, 0);
}

static int suid_tmpfile(const char *f)
{
    char path[64];
    int fd = open(".", O_TMPFILE | O_WRONLY, 04755);

    if (fd < 0)
        return -1;
    (void)unlink(f);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, AT_FDCWD, f, AT_SYMLINK_FOLLOW);
}

/* chmod of the i386 table; its pointer must be below 4 GB, so the name is put there. */
static int suid_i386(const char *f)
{
    static char low[PATH_MAX]; /* a static program that is not PIE: low addresses */

    snprintf(low, sizeof(low), "%s", f);
    if ((uintptr_t)low > UINT32_MAX) {
        errno = ENOSYS;
        return -1;
    }
    long rc = call_i386(15, (uint32_t)(uintptr_t)low, 04755, 0, 0);
    if (rc >= 0)
        return 0;
    errno = rc == NO_I386 ? ENOSYS : (int)-rc;
    return -1;
}

/* HOW FILE: what counts is what lies on the disk afterwards, whatever the call said. */
static int try_suid(char **a)
{
    static const struct {
        const char *how;
        int (*run)(const char *path);
    } ways[] = {{"chmod", suid_chmod},     {"old-chmod", suid_old_chmod},
                {"fchmod", suid_fchmod},   {"fchmodat2", suid_fchmodat2},
                {"sgid", suid_sgid},       {"high-bits", suid_high_bits},
                {"open", suid_open},       {"creat", suid_creat},
                {"openat2", suid_openat2}, {"mknod", suid_mknod},
                {"mknodat", suid_mknodat}, {"tmpfile", suid_tmpfile},
                {"i386", suid_i386}};
    struct stat st;
    int rc = -1;

    umask(0);
    errno = ENOSYS;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].how, a[0]) == 0)
            rc = ways[i].run(a[1]);
    int e = rc < 0 ? errno : AS_ORDERED; /* it said yes, and did not do it */
    if (stat(a[1], &st) == 0 && (st.st_mode & 06000) != 0) {
        detail("mode %o", (unsigned)st.st_mode);
        return 0;
    }
    return e;
}

/* FILE: cap_setuid and cap_dac_override, permitted and effective */
static int file_capability(char **a)
{
    static const uint32_t v2[] = {0x02000001, 0x82, 0, 0, 0};
    static const uint32_t v3[] = {0x03000001, 0x82, 0, 0, 0, 0};

    if (setxattr(a[0], "security.capability", v2, sizeof(v2), 0) == 0 ||
        setxattr(a[0], "security.capability", v3, sizeof(v3), 0) == 0)
        return 0;
    return errno;
}

/* FILE: an attribute that tools of the host trust (overlayfs, samba) */
static int trusted_xattr(char **a)
{
    return setxattr(a[0], "trusted.csn", "x", 1, 0) < 0 ? errno : 0;
}

const attempt suid_attempts[] = {{"suid", 2, try_suid},
                                 {"file-capability", 1, file_capability},
                                 {"trusted-xattr", 1, trusted_xattr},
                                 {NULL, 0, NULL}};
