/* calls_files.c: what programs do to files, in the working directory and in /tmp. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "calls.h"

#define PAGE 4096

static int make_file(const char *name, const char *text)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd >= 0 && write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return -1;
    return fd;
}

static int holds(const char *name, const char *text)
{
    char buf[64] = "";
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

    close(fd);
    return n >= 0 && strcmp(buf, text) == 0;
}

/* As package managers and compilers do: written here, put there. */
static int rename_across(void)
{
    TRY(mkdir("from", 0755) == 0 && mkdir("to", 0755) == 0 && mkdir("from/dir", 0755) == 0);
    TRY(make_file("from/f", "new") >= 0 && make_file("to/f", "old") >= 0);
    TRY(rename("from/f", "to/f") == 0 && holds("to/f", "new"));
    TRY(rename("from/dir", "to/dir") == 0);
    return 0;
}

static int rename_flags(void)
{
    TRY(mkdir("d", 0755) == 0 && make_file("a", "a") >= 0 && make_file("d/b", "b") >= 0);
    TRY(renameat2(AT_FDCWD, "a", AT_FDCWD, "d/b", RENAME_EXCHANGE) == 0 && holds("a", "b"));
    TRY(renameat2(AT_FDCWD, "a", AT_FDCWD, "d/b", RENAME_NOREPLACE) < 0 && errno == EEXIST);
    return 0;
}

static int hard_link(void)
{
    struct stat st;

    TRY(mkdir("d", 0755) == 0 && make_file("a", "x") >= 0 && link("a", "d/b") == 0);
    TRY(stat("d/b", &st) == 0 && st.st_nlink == 2 && holds("d/b", "x"));
    return 0;
}

static int symbolic_link(void)
{
    char to[16] = "";

    TRY(make_file("a", "x") >= 0 && symlink("a", "l") == 0 && symlink("nowhere", "m") == 0);
    TRY(readlink("l", to, sizeof(to)) == 1 && holds("l", "x"));
    TRY(open("m", O_RDONLY | O_CLOEXEC) < 0 && errno == ENOENT);
    TRY(fchownat(AT_FDCWD, "m", getuid(), getgid(), AT_SYMLINK_NOFOLLOW) == 0);
    return 0;
}

static int mapped_file(void)
{
    int fd = make_file("m", "");
    int status;

    TRY(fd >= 0 && ftruncate(fd, PAGE) == 0);
    char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRY(p != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0) {
        p[0] = 'x';
        _exit(msync(p, PAGE, MS_SYNC) != 0);
    }
    TRY(waitpid(pid, &status, 0) == pid && status == 0 && p[0] == 'x');
    return 0;
}

static int locks(void)
{
    struct flock all = {.l_type = F_WRLCK};
    int a = make_file("l", "x"), b = open("l", O_RDWR | O_CLOEXEC);

    TRY(a >= 0 && b >= 0 && flock(a, LOCK_EX) == 0);
    TRY(flock(b, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK && flock(a, LOCK_UN) == 0);
    TRY(fcntl(a, F_SETLK, &all) == 0 && lockf(a, F_TLOCK, 0) == 0);
    all.l_pid = 0;
    all.l_type = F_UNLCK;
    TRY(fcntl(a, F_SETLK, &all) == 0);
    all.l_type = F_WRLCK;
    TRY(fcntl(a, F_OFD_SETLK, &all) == 0);
    TRY(fcntl(b, F_OFD_SETLK, &all) < 0 && errno == EAGAIN);
    return 0;
}

static int inotify(void)
{
    char buf[512] __attribute__((aligned(8)));
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    struct pollfd pf = {.fd = fd, .events = POLLIN};

    TRY(fd >= 0 && inotify_add_watch(fd, ".", IN_CREATE | IN_MOVED_TO) > 0);
    TRY(make_file("new", "") >= 0 && poll(&pf, 1, 10000) == 1);
    TRY(read(fd, buf, sizeof(buf)) > 0);
    return strcmp(((struct inotify_event *)buf)->name, "new") != 0;
}

static int unnamed_file(void)
{
    static const char *const dirs[] = {".", "/tmp"};
    char self[64];

    for (size_t i = 0; i < 2; i++) {
        int fd = open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        TRY(fd >= 0 && write(fd, "x", 1) == 1);
        snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
        TRY(linkat(AT_FDCWD, self, AT_FDCWD, i ? "/tmp/named" : "named", AT_SYMLINK_FOLLOW) ==
            0);
    }
    TRY(holds("named", "x") && holds("/tmp/named", "x"));
    return 0;
}

/* Not every file system has them; that is not the jail's doing. */
static int attributes(void)
{
    char value[8] = "";
    int fd = make_file("a", "");

    if (fsetxattr(fd, "user.kind", "test", 4, 0) < 0 && errno == EOPNOTSUPP)
        return 0;
    TRY(setxattr("a", "user.kind", "test", 4, 0) == 0);
    TRY(getxattr("a", "user.kind", value, sizeof(value)) == 4 && memcmp(value, "test", 4) == 0);
    TRY(listxattr("a", NULL, 0) > 0 && removexattr("a", "user.kind") == 0);
    return 0;
}

static int sparse(void)
{
    struct stat st;
    int fd = make_file("s", "");

    TRY(fd >= 0 && ftruncate(fd, 1 << 30) == 0 && pwrite(fd, "x", 1, 1 << 29) == 1);
    TRY(fstat(fd, &st) == 0 && st.st_blocks < 4096 && st.st_size == 1 << 30);
    TRY(posix_fallocate(fd, 0, 1 << 20) == 0);
    TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 16) == 0 ||
        errno == EOPNOTSUPP);
    TRY(lseek(fd, 0, SEEK_DATA) >= 0);
    return 0;
}

static int copies(void)
{
    off_t from = 0;
    int a = make_file("a", "0123456789"), b = make_file("b", "");
    int p[2];

    TRY(a >= 0 && b >= 0 && pipe2(p, O_CLOEXEC) == 0);
    TRY(sendfile(b, a, &from, 10) == 10 && holds("b", "0123456789"));
    from = 0;
    TRY(copy_file_range(a, &from, b, NULL, 10, 0) == 10);
    from = 0;
    TRY(splice(a, &from, p[1], NULL, 10, 0) == 10 && splice(p[0], NULL, b, NULL, 10, 0) == 10);
    return 0;
}

static int times_and_modes(void)
{
    const struct timespec t[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
    struct stat st;
    struct statx sx;

    TRY(make_file("f", "x") >= 0 && chmod("f", 0751) == 0 && stat("f", &st) == 0);
    TRY((st.st_mode & 07777) == 0751 && st.st_uid == getuid() && st.st_gid == getgid());
    TRY(utimensat(AT_FDCWD, "f", t, 0) == 0 && stat("f", &st) == 0 && st.st_mtime == 2000);
    TRY(statx(AT_FDCWD, "f", 0, STATX_ALL, &sx) == 0 && sx.stx_size == 1);
    TRY(chown("f", getuid(), getgid()) == 0 && faccessat(AT_FDCWD, "f", X_OK, AT_EACCESS) == 0);
    TRY(mkdir("sticky", 0755) == 0 && chmod("sticky", 01777) == 0);
    return 0;
}

static int durable(void)
{
    int fd = make_file("f", "x"), dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    TRY(fd >= 0 && dir >= 0 && fsync(fd) == 0 && fdatasync(fd) == 0 && fsync(dir) == 0);
    TRY(syncfs(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    TRY(sync_file_range(fd, 0, 1, SYNC_FILE_RANGE_WRITE) == 0 && readahead(fd, 0, 1) == 0);
    return 0;
}

static int direct(void)
{
    void *p = aligned_alloc(PAGE, PAGE);
    int fd = open("f", O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0644);

    TRY(p && (fd >= 0 || errno == EINVAL)); /* a tmpfs before Linux 6.6 has none */
    memset(p, 'x', PAGE);
    TRY(fd < 0 || write(fd, p, PAGE) == PAGE);
    free(p);
    return 0;
}

static int file_systems(void)
{
    static const char *const dirs[] = {".", "/tmp", "/", "/usr", "/dev/shm", "/proc"};
    struct statvfs v;

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        TRY(statvfs(dirs[i], &v) == 0);
    return 0;
}

static int devices(void)
{
    char buf[16];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC),
        zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    int full = open("/dev/full", O_RDWR | O_CLOEXEC),
        rnd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

    TRY(null >= 0 && zero >= 0 && full >= 0 && rnd >= 0);
    TRY(write(null, "x", 1) == 1 && read(null, buf, 1) == 0 && read(zero, buf, 16) == 16);
    TRY(write(full, "x", 1) < 0 && errno == ENOSPC && read(rnd, buf, 16) == 16);
    TRY(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0) != MAP_FAILED);
    return 0;
}

/* openat2 may be missing, as it is with an old kernel; then it must say so and nothing else. */
static int open_beneath(void)
{
    struct {
        unsigned long long flags, mode, resolve;
    } how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = 0x08 /* RESOLVE_BENEATH */};

    TRY(make_file("f", "x") >= 0);
    TRY(syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof(how)) >= 0 || errno == ENOSYS);
    return 0;
}

const use file_uses[] = {{"rename across directories", rename_across},
                         {"rename, exchanging and not replacing", rename_flags},
                         {"hard links", hard_link},
                         {"symbolic links", symbolic_link},
                         {"a file mapped and shared", mapped_file},
                         {"flock, record locks, locks of open files", locks},
                         {"inotify", inotify},
                         {"O_TMPFILE, and a name for it", unnamed_file},
                         {"extended attributes of the user", attributes},
                         {"sparse files and fallocate", sparse},
                         {"sendfile, splice, copy_file_range", copies},
                         {"times, modes and owners", times_and_modes},
                         {"fsync and its relatives", durable},
                         {"O_DIRECT", direct},
                         {"statvfs", file_systems},
                         {"devices", devices},
                         {"openat2, or an honest ENOSYS", open_beneath},
                         {NULL, NULL}};
