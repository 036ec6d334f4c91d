/* probe_read.c: ways to the content of a file that was not given. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define HANDLE_MAX 128u

static int try_read(char **a)
{
    return read_path(a[0]);
}

/* For what must not even be read in the control, such as the kernel's log, which reading
 * empties. */
static int try_open(char **a)
{
    int fd = open(a[0], O_RDONLY | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int try_stat(char **a)
{
    struct stat st;

    return lstat(a[0], &st) < 0 ? errno : 0;
}

static int read_opath(char **a)
{
    char path[64];
    int fd = open(a[0], O_PATH);

    if (fd < 0)
        return errno;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return read_path(path);
}

/* DIR FILE: a directory that may be entered is enough for what is below it. */
static int read_fchdir(char **a)
{
    int fd = open(a[0], O_PATH);

    if (fd < 0 || fchdir(fd) < 0)
        return errno;
    return read_path(a[1]);
}

static int read_climb(char **a)
{
    static const char *const starts[] = {
        "/", "/proc/self/root", "/proc/thread-self/root", "/proc/self/cwd", "/dev/fd", "."};
    char path[PATH_MAX];
    int rc = ENOENT;

    for (size_t i = 0; rc != 0 && i < sizeof(starts) / sizeof(starts[0]); i++) {
        snprintf(path, sizeof(path), "%s/../../../../../../../../../../../..%s", starts[i],
                 a[0]);
        rc = read_path(path);
    }
    return rc;
}

static int read_chroot(char **a)
{
    int root = open("/", O_PATH | O_DIRECTORY), rc;

    if (mkdir("chroot-trick", 0755) < 0 && errno != EEXIST)
        return errno;
    rc = chroot("chroot-trick") < 0 ? errno : 0;
    if (rc == 0 && fchdir(root) < 0)
        rc = errno;
    for (int i = 0; rc == 0 && i < 32; i++)
        rc = chdir("..") < 0 ? errno : 0;
    if (rc == 0 && chroot(".") < 0)
        rc = errno;
    return rc != 0 ? rc : read_path(a[0]);
}

/* PID FILE: the mount namespace of another process */
static int read_setns(char **a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%s/ns/mnt", a[0]);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || setns(fd, 0) < 0)
        return errno;
    return read_path(a[1]);
}

/* Whichever process there is, through its root, directory and open files. */
static int read_procs(char **a)
{
    DIR *proc = opendir("/proc");
    const struct dirent *e;
    char path[PATH_MAX];
    int rc = ENOENT;

    if (!proc)
        return errno;
    while (rc != 0 && (e = readdir(proc))) {
        snprintf(path, sizeof(path), "/proc/%s/root%s", e->d_name, a[0]);
        if ((rc = read_path(path)) == 0)
            break;
        snprintf(path, sizeof(path), "/proc/%s/cwd/../../../../../../..%s", e->d_name, a[0]);
        rc = read_path(path);
    }
    closedir(proc);
    return rc;
}

/* Opens everything a directory has: fd and map_files of a process. */
static int open_each(char **a)
{
    DIR *dir = opendir(a[0]);
    const struct dirent *e;
    int rc = ENODATA;

    if (!dir)
        return errno;
    while (rc != 0 && (e = readdir(dir))) {
        if (e->d_name[0] == '.')
            continue;
        int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_NONBLOCK);
        rc = fd < 0 ? errno : 0;
        detail("opened %s", e->d_name);
        if (fd >= 0)
            close(fd);
    }
    closedir(dir);
    return rc;
}

/* ---- handles: the numbers by which a file system knows its files ---- */

struct handle {
    uint32_t bytes;
    int32_t type;
    unsigned char data[HANDLE_MAX];
};

/* Helper: prints the handle of a file, which an attacker would guess. */
static int make_handle(char **a)
{
    struct handle h = {.bytes = HANDLE_MAX};
    int mount;

    if (syscall(SYS_name_to_handle_at, AT_FDCWD, a[0], &h, &mount, 0) < 0)
        return errno;
    printf("%d", h.type);
    for (uint32_t i = 0; i < h.bytes; i++)
        printf(":%u", h.data[i]);
    printf("\n");
    return SAID;
}

/* DIR HANDLE: any directory of that file system will do */
static int read_handle(char **a)
{
    struct handle h = {0};
    int dir = open(a[0], O_RDONLY | O_DIRECTORY);
    char *p = a[1];

    if (dir < 0)
        return errno;
    h.type = (int32_t)strtol(p, &p, 10);
    while (*p == ':' && h.bytes < HANDLE_MAX)
        h.data[h.bytes++] = (unsigned char)strtoul(p + 1, &p, 10);
    long fd = syscall(SYS_open_by_handle_at, dir, &h, O_RDONLY);
    return fd < 0 ? errno : look_at((int)fd);
}

static int name_handle(char **a)
{
    struct handle h = {.bytes = HANDLE_MAX};
    int mount;

    return syscall(SYS_name_to_handle_at, AT_FDCWD, a[0], &h, &mount, 0) < 0 ? errno : 0;
}

/* ---- links made inside ---- */

static int read_symlink(char **a)
{
    (void)unlink("made-link");
    if (symlink(a[0], "made-link") < 0)
        return errno;
    int rc = read_path("made-link");
    (void)unlink("made-link");
    return rc;
}

static int read_hardlink(char **a)
{
    char by_fd[64];
    int fd = open(a[0], O_PATH), rc = 0;

    (void)unlink("made-hard");
    snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, a[0], AT_FDCWD, "made-hard", 0) < 0 &&
        linkat(AT_FDCWD, by_fd, AT_FDCWD, "made-hard", AT_SYMLINK_FOLLOW) < 0 &&
        linkat(fd, "", AT_FDCWD, "made-hard", AT_EMPTY_PATH) < 0)
        rc = errno;
    if (rc == 0)
        rc = read_path("made-hard");
    (void)unlink("made-hard");
    return rc;
}

/* A device node of one's own. /dev/zero stands for the disk: harmless where it works. */
static int read_mknod(char **a)
{
    (void)a;
    (void)unlink("made-device");
    if (mknod("made-device", S_IFCHR | 0600, makedev(1, 5)) < 0)
        return errno;
    int rc = read_path("made-device");
    (void)unlink("made-device");
    return rc;
}

/* ---- the memory of others ---- */

static int try_ptrace(char **a)
{
    pid_t pid = number(a[0]);

    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return errno;
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return 0;
}

/* EFAULT comes after the permission: the address is a guess, the door is open. */
static int vm_errno(ssize_t n)
{
    return n >= 0 || errno == EFAULT ? 0 : errno;
}

static int vm_read(char **a)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};

    return vm_errno(process_vm_readv(number(a[0]), &here, 1, &there, 1, 0));
}

static int vm_write(char **a)
{
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {(void *)8, 1}; /* never mapped */

    return vm_errno(process_vm_writev(number(a[0]), &here, 1, &there, 1, 0));
}

static int open_mem(char **a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%s/mem", a[0]);
    int fd = open(path, O_RDWR);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int steal_fds(char **a)
{
    long pidfd = syscall(SYS_pidfd_open, number(a[0]), 0);
    int rc = EBADF;

    if (pidfd < 0)
        return errno;
    for (int i = 0; rc != 0 && i < 64; i++)
        rc = syscall(SYS_pidfd_getfd, pidfd, i, 0) < 0 ? errno : 0;
    return rc;
}

static int signal_pid(char **a)
{
    return kill(number(a[0]), 0) < 0 ? errno : 0;
}

const attempt read_attempts[] = {{"read", 1, try_read},
                                 {"open", 1, try_open},
                                 {"stat", 1, try_stat},
                                 {"read-opath", 1, read_opath},
                                 {"read-fchdir", 2, read_fchdir},
                                 {"read-climb", 1, read_climb},
                                 {"read-chroot", 1, read_chroot},
                                 {"read-setns", 2, read_setns},
                                 {"read-procs", 1, read_procs},
                                 {"open-each", 1, open_each},
                                 {"make-handle", 1, make_handle},
                                 {"read-handle", 2, read_handle},
                                 {"name-handle", 1, name_handle},
                                 {"read-symlink", 1, read_symlink},
                                 {"read-hardlink", 1, read_hardlink},
                                 {"read-mknod", 0, read_mknod},
                                 {"ptrace", 1, try_ptrace},
                                 {"vm-read", 1, vm_read},
                                 {"vm-write", 1, vm_write},
                                 {"open-mem", 1, open_mem},
                                 {"steal-fds", 1, steal_fds},
                                 {"signal", 1, signal_pid},
                                 {NULL, 0, NULL}};
