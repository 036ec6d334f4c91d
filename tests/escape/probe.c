/* probe.c: tries, from where it is run, what code in a jail must not be able to do.
 *
 * Run by the scripts of this directory, once inside a jail and once, as the control, without:
 * `probe ATTEMPT ARGS...`. It is static, so that it runs in whatever root it finds. It is the
 * attacker: nothing here may rely on the walls being there. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char seen[256];

void detail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(seen, sizeof(seen), format, args);
    va_end(args);
}

int number(const char *text)
{
    return (int)strtol(text, NULL, 0);
}

static int look_at_dir(int fd)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *e;
    int found = ENODATA;

    if (!dir)
        return errno;
    while (found != 0 && (e = readdir(dir)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            detail("has %s", e->d_name);
            found = 0;
        }
    closedir(dir);
    return found;
}

int look_at(int fd)
{
    struct stat st;
    char byte[40];

    if (fstat(fd, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return look_at_dir(dup(fd));
    ssize_t n = read(fd, byte, sizeof(byte));
    if (n > 0)
        detail("says %.*s",
               (int)strcspn(byte, "\n") < (int)n ? (int)strcspn(byte, "\n") : (int)n, byte);
    return n < 0 ? errno : n == 0 ? ENODATA : 0;
}

int read_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return errno;
    int rc = look_at(fd);
    close(fd);
    return rc;
}

/* ---- the other ABI ---- */

#if defined(__x86_64__)
static sigjmp_buf no_such_abi;

static void on_fault(int signo)
{
    siglongjmp(no_such_abi, signo);
}

long call_i386(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    int ret;

    /* A kernel without the gate faults. */
    signal(SIGSEGV, on_fault);
    if (sigsetjmp(no_such_abi, 1) != 0)
        return NO_I386;
    __asm__ volatile("int $0x80"
                     : "=a"(ret)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
                     : "memory", "cc", "r8", "r9", "r10", "r11");
    signal(SIGSEGV, SIG_DFL);
    return ret;
}
#else
long call_i386(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    (void)number, (void)a, (void)b, (void)c, (void)d;
    return NO_I386;
}
#endif

/* ---- saying it ---- */

const char *errno_name(int e)
{
    static const struct {
        int e;
        const char *name;
    } names[] = {
        {EPERM, "EPERM"},
        {ENOENT, "ENOENT"},
        {ESRCH, "ESRCH"},
        {ENXIO, "ENXIO"},
        {EBADF, "EBADF"},
        {EAGAIN, "EAGAIN"},
        {ENOMEM, "ENOMEM"},
        {EACCES, "EACCES"},
        {EBUSY, "EBUSY"},
        {EEXIST, "EEXIST"},
        {EXDEV, "EXDEV"},
        {ENODEV, "ENODEV"},
        {ENOTDIR, "ENOTDIR"},
        {EINVAL, "EINVAL"},
        {EMFILE, "EMFILE"},
        {ENOTTY, "ENOTTY"},
        {ENOSPC, "ENOSPC"},
        {EROFS, "EROFS"},
        {ENOSYS, "ENOSYS"},
        {ENODATA, "ENODATA"},
        {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
        {EOPNOTSUPP, "EOPNOTSUPP"},
        {EAFNOSUPPORT, "EAFNOSUPPORT"},
        {ENETUNREACH, "ENETUNREACH"},
        {ECONNREFUSED, "ECONNREFUSED"},
        {ENOKEY, "ENOKEY"},
        {EIO, "EIO"},
        {AS_ORDERED, "as-ordered"},
    };
    static char digits[16];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].e == e)
            return names[i].name;
    snprintf(digits, sizeof(digits), "E%d", e);
    return digits;
}

static const attempt *find(const char *name)
{
    static const attempt *const tables[] = {read_attempts,   write_attempts,  suid_attempts,
                                            share_attempts,  socket_attempts, rights_attempts,
                                            call_attempts,   bomb_attempts,   keeper_attempts,
                                            kernel_attempts, without_attempts};

    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const attempt *a = tables[t]; a->name; a++)
            if (strcmp(a->name, name) == 0)
                return a;
    return NULL;
}

int main(int argc, char **argv)
{
    const attempt *a = argc > 1 ? find(argv[1]) : NULL;

    if (!a || argc - 2 < a->args) {
        fprintf(stderr, "probe: %s: no such attempt, or too few words\n",
                argc > 1 ? argv[1] : "(none)");
        return 2;
    }
    int rc = a->run(argv + 2);
    if (rc == 0)
        printf("ESCAPED %s %s\n", a->name, seen);
    else if (rc > 0)
        printf("held %s\n", errno_name(rc));
    return fflush(stdout) == 0 ? 0 : 2;
}
