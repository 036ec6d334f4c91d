/* raw_syscall.h: system calls that leave errno alone.
 *
 * Two processes that share memory share errno: a child between vfork and exec, or a keeper's
 * helper, must not write to it while the other process may be about to read it. */
#pragma once
#include <errno.h>
#include <sched.h>
#include <unistd.h>

/* Sanitizers record each thread in shared memory and mistake the child for the thread that made
 * it, so code of a child must not be instrumented. clang's thread sanitizer needs an attribute
 * of its own; without it, it still counts function entries and exits. */
#if defined(__has_attribute)
#if __has_attribute(disable_sanitizer_instrumentation)
#define CSN_NO_SANITIZE                                                                        \
    __attribute__((disable_sanitizer_instrumentation,                                          \
                   no_sanitize("address", "undefined", "thread")))
#endif
#endif
#ifndef CSN_NO_SANITIZE
#define CSN_NO_SANITIZE __attribute__((no_sanitize("address", "undefined", "thread")))
#endif
#define CSN_IN_CHILD CSN_NO_SANITIZE __attribute__((noinline))

/* The kernel's result, or -errno. */
CSN_NO_SANITIZE static inline long csn_raw6(long n, long a, long b, long c, long d, long e,
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
    long ret = syscall(n, a, b, c, d, e, f); /* sets errno; not tested on any machine */

    return ret < 0 ? -errno : ret;
#endif
}

/* csn_raw(SYS_x, up to six words): pointers and descriptors are passed as they are. */
#define CSN_RAW_PICK(n, a, b, c, d, e, f, ...)                                                 \
    csn_raw6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define csn_raw(...) CSN_RAW_PICK(__VA_ARGS__, 0L, 0L, 0L, 0L, 0L, 0L, 0L)

/* Runs fn(arg) in a new process on a stack that ends at `stack`; pidfd is for CLONE_PIDFD. Its
 * pid, or -errno. Unlike clone(), sanitizers do not intercept it. */
CSN_NO_SANITIZE static inline long csn_raw_clone(int (*fn)(void *), void *stack,
                                                 unsigned long flags, void *arg, int *pidfd)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    register int (*r9)(void *) __asm__("r9") = fn;
    register void *r12 __asm__("r12") = arg;
    long ret;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t" /* end of the call chain, for unwinders */
                     "mov %%r12, %%rdi\n\t"
                     "call *%%r9\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov $60, %%eax\n\t" /* exit */
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "a"(56L), "D"(flags), "S"(stack), "d"(pidfd), "r"(r10), "r"(r8), "r"(r9),
                       "r"(r12)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = 220;
    register unsigned long x0 __asm__("x0") = flags;
    register void *x1 __asm__("x1") = stack;
    register int *x2 __asm__("x2") = pidfd;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register int (*x5)(void *) __asm__("x5") = fn;
    register void *x6 __asm__("x6") = arg;

    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x6\n\t"
                     "blr x5\n\t"
                     "mov x8, #93\n\t"
                     "svc 0\n\t"
                     "brk #1\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x6)
                     : "memory");
    return (long)x0;
#else
    int ret = clone(fn, stack, (int)flags, arg, pidfd); /* sets errno, as above */

    return ret < 0 ? -errno : ret;
#endif
}
