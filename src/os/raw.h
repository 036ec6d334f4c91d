/* raw.h: system calls that leave errno alone.
 *
 * errno is memory. Code that runs beside somebody it shares memory with (os/beside.h) must not
 * write to it: the other may be about to read why a call of its own failed. Static programs
 * include it. */
#pragma once
#include <errno.h>
#include <unistd.h>

/* Nor may sanitizers: they keep notes of each thread in memory that is shared as well, and the
 * other is the same thread to them. clang's thread sanitizer leaves functions alone only when
 * it is told so by a name of its own; else it still counts who enters and who leaves. */
#if defined(__has_attribute)
#if __has_attribute(disable_sanitizer_instrumentation)
#define CSN_UNWATCHED                                                                          \
    __attribute__((disable_sanitizer_instrumentation,                                          \
                   no_sanitize("address", "undefined", "thread")))
#endif
#endif
#ifndef CSN_UNWATCHED
#define CSN_UNWATCHED __attribute__((no_sanitize("address", "undefined", "thread")))
#endif
#define CSN_IN_CHILD CSN_UNWATCHED __attribute__((noinline))

/* What the kernel says: a result, or -errno. All words, as the kernel takes them. */
CSN_UNWATCHED static inline long csn_raw6(long n, long a, long b, long c, long d, long e,
                                          long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
    long ret = syscall(n, a, b, c, d, e, f); /* with errno: a machine nobody has tried */

    return ret < 0 ? -errno : ret;
#endif
}

/* csn_raw(SYS_x, up to six words): pointers and descriptors are passed as they are. */
#define CSN_RAW_PICK(n, a, b, c, d, e, f, ...)                                                 \
    csn_raw6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define csn_raw(...) CSN_RAW_PICK(__VA_ARGS__, 0L, 0L, 0L, 0L, 0L, 0L, 0L)
