/* alloc.c: the wrapped allocators; see alloc.h. */
#include "fault/alloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long left; /* until one fails; 0: not armed */
static bool all_after, failed;

void csn_alloc_arm(unsigned long nth, bool all)
{
    left = nth;
    all_after = all;
    failed = false;
}

bool csn_alloc_disarm(void)
{
    left = 0;
    return failed;
}

static bool fails_now(void)
{
    if (left == 0)
        return false;
    if (left > 1) {
        left--;
        return false;
    }
    if (!all_after)
        left = 0;
    failed = true;
    errno = ENOMEM;
    return true;
}

/* The linker sends every call of NAME to __wrap_NAME, and __real_NAME to NAME. */
#define WRAP(type, name, params, args)                                                         \
    extern type __real_##name params;                                                          \
    type __wrap_##name params;                                                                 \
    type __wrap_##name params                                                                  \
    {                                                                                          \
        return fails_now() ? NULL : __real_##name args;                                        \
    }

WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t m), (n, m))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(void *, reallocarray, (void *p, size_t n, size_t m), (p, n, m))
WRAP(char *, strdup, (const char *s), (s))
WRAP(char *, strndup, (const char *s, size_t n), (s, n))
WRAP(char *, __strdup, (const char *s), (s))
WRAP(char *, __strndup, (const char *s, size_t n), (s, n))
WRAP(FILE *, open_memstream, (char **p, size_t *n), (p, n))

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap);
int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
    return fails_now() ? -1 : __real_vasprintf(ret, fmt, ap);
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = __wrap_vasprintf(ret, fmt, ap);
    va_end(ap);
    return n;
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap)
{
    (void)flag;
    return __wrap_vasprintf(ret, fmt, ap);
}

int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
    va_list ap;

    (void)flag;
    va_start(ap, fmt);
    int n = __wrap_vasprintf(ret, fmt, ap);
    va_end(ap);
    return n;
}
