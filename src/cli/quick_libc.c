/* quick_libc.c: functions the quick program needs that musl does not have.
 *
 * Two are system calls. The others are the checks that glibc's headers put into the archives of
 * jansson and libmd when the distribution built them: the same questions, asked here, and the
 * same answer to a write that would not fit. Their names are the compiler's, not ours. */
#include "cli/quick_libc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int __snprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, ...);
int __vsnprintf_chk(char *to, size_t size, int flag, size_t room, const char *format,
                    va_list args);
char *__strncpy_chk(char *to, const char *from, size_t size, size_t room);
ssize_t __read_chk(int fd, void *to, size_t size, size_t room);

static void must_fit(size_t size, size_t room)
{
    if (size > room)
        abort();
}

int __vsnprintf_chk(char *to, size_t size, int flag, size_t room, const char *format,
                    va_list args)
{
    (void)flag;
    must_fit(size, room);
    return vsnprintf(to, size, format, args);
}

int __snprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = __vsnprintf_chk(to, size, flag, room, format, args);
    va_end(args);
    return n;
}

char *__strncpy_chk(char *to, const char *from, size_t size, size_t room)
{
    must_fit(size, room);
    size_t n = strnlen(from, size);
    memcpy(to, from, n);
    memset(to + n, 0, size - n);
    return to;
}

ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
    must_fit(size, room);
    return read(fd, to, size);
}

#ifdef CSN_QUICK_RENAMEAT2
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
#endif

#ifdef CSN_QUICK_STATX
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}
#endif
