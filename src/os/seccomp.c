/* seccomp.c: installs the system-call filter of a jail.
 *
 * The keeper installs it last; commands inherit it. The programs are compiled from
 * os/seccomp_policy.h at build time: constants, on which an attacker has no influence.
 *
 * Invariants: no allocation and no lock, because a child between vfork and exec may call this;
 * no kernel header, because the keeper is built with musl alone. After an error there is no
 * filter, and the caller must stop. */
#include "os/seccomp.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_filters.inc"

/* <linux/seccomp.h> */
#define SET_MODE_FILTER 1u
#define FLAG_SPEC_ALLOW (1u << 2)
#define FILTER_VARIANTS (sizeof(filters) / sizeof(filters[0]))

_Static_assert(sizeof(csn_seccomp_insn) == 8, "the kernel's struct sock_filter");
_Static_assert(offsetof(csn_seccomp_program, insns) == sizeof(void *), "struct sock_fprog");
_Static_assert(FILTER_VARIANTS == CSN_SECCOMP_VARIANTS, "one program for each variant");

const csn_seccomp_program *csn_seccomp_find(uint32_t variant)
{
    if (variant >= FILTER_VARIANTS || filters[variant].len == 0)
        return NULL;
    return &filters[variant];
}

int csn_seccomp_install(uint32_t variant)
{
    const csn_seccomp_program *program = csn_seccomp_find(variant);

    if (!program)
        return -ENOTSUP;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -errno;
    /* Kernels before 5.16 otherwise disable speculative store bypass in every filtered process,
     * which is slow. The attack works within a process, and a jail separates processes; a
     * program inside that needs the protection can ask prctl for it. */
    if (syscall(SYS_seccomp, SET_MODE_FILTER, FLAG_SPEC_ALLOW, program) == 0)
        return 0;
    if (errno != EINVAL) /* before 4.17 the flag is unknown */
        return -errno;
    return syscall(SYS_seccomp, SET_MODE_FILTER, 0u, program) == 0 ? 0 : -errno;
}
