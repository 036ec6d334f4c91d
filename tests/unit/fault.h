/* fault.h: one system call of this process fails from now on, or ends it.
 *
 * By a seccomp filter, which cannot be taken off: for bodies that run in a child (child.h). The
 * code under test is the one that ships, down to the system call. */
#pragma once
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u
#endif

#define FAULT_KILL    (1u << 16) /* as `error`: the process dies there */
#define FAULT_TMPFILE 020000000u /* the bit of O_TMPFILE that no other flag of open has */

/* The system call `nr` fails with `error`; with `arg` >= 0 only when that argument has a bit of
 * `mask` (openat: O_CREAT) or, mask 0, is above 2 (write: not to our own output). */
typedef struct fault {
    int nr, arg;
    uint32_t mask;
    unsigned error; /* 0: ENOSPC */
} fault;

/* -1: there are no filters here. */
static inline int fault_inject(const fault *f)
{
    uint32_t end = f->error & FAULT_KILL ? SECCOMP_RET_KILL_PROCESS
                                         : SECCOMP_RET_ERRNO | (f->error ? f->error : ENOSPC);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)f->nr, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, args) +
                                               (f->arg < 0 ? 0 : (uint32_t)f->arg) * 8),
        f->arg < 0 ? (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0)
        : f->mask  ? (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, f->mask, 0, 2)
                   : (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 2, 0, 2),
        BPF_STMT(BPF_RET | BPF_K, end),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}
