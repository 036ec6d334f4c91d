/* seccomp.c: installs the system-call filter of a jail.
 *
 * The keeper installs it last; commands inherit it. The programs are compiled from
 * os/seccomp_policy.h at build time: constants, on which an attacker has no influence, but for
 * the ids of this process, which are filled in.
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
#define JUMP_IF_EQUAL   0x15 /* BPF_JMP | BPF_JEQ | BPF_K */
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

/* Only a comparison holds an id; a mask or an address may have the same number by chance. */
static void fill_in_ids(const csn_seccomp_program *from, csn_seccomp_insn *to)
{
    const uint32_t uid = geteuid(), gid = getegid();

    for (size_t i = 0; i < from->len; i++) {
        to[i] = from->insns[i];
        if (to[i].code == JUMP_IF_EQUAL && to[i].k == CSN_SECCOMP_OWN_UID)
            to[i].k = uid;
        else if (to[i].code == JUMP_IF_EQUAL && to[i].k == CSN_SECCOMP_OWN_GID)
            to[i].k = gid;
    }
}

int csn_seccomp_install(uint32_t variant)
{
    const csn_seccomp_program *found = csn_seccomp_find(variant);
    csn_seccomp_insn insns[FILTER_LONGEST];

    if (!found)
        return -ENOTSUP;
    fill_in_ids(found, insns);
    const csn_seccomp_program program = {found->len, insns};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -errno;
    /* Kernels before 5.16 otherwise disable speculative store bypass in every filtered process,
     * which is slow. The attack works within a process, and a jail separates processes; a
     * program inside that needs the protection can ask prctl for it. */
    if (syscall(SYS_seccomp, SET_MODE_FILTER, FLAG_SPEC_ALLOW, &program) == 0)
        return 0;
    if (errno != EINVAL) /* before 4.17 the flag is unknown */
        return -errno;
    return syscall(SYS_seccomp, SET_MODE_FILTER, 0u, &program) == 0 ? 0 : -errno;
}
