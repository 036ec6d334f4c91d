/* seccomp.h: the system-call filter of a jail.
 *
 * The policy is the table in os/seccomp_policy.h, which tools/gen-seccomp.c compiles at build
 * time. Installing a program is two system calls without allocation or library, and may be done
 * between clone and exec. */
#pragma once
#include <stdint.h>

/* Variants: bits, which index the table of programs. */
#define CSN_SECCOMP_DEFAULT 0u
/* Allows nested namespaces (for bwrap, a jail or a browser inside): only the kernel checks
 * unshare, setns, clone3 and the mount calls, apart from their newer flags, and which ids
 * exist, because each namespace maps others. */
#define CSN_SECCOMP_USERNS 1u
/* Refuses set-user-id and set-group-id bits. For an id-mapped workspace of a root caller: a
 * setuid file made inside would be setuid root for every user of the host. openat2 answers
 * ENOSYS, because its mode is behind a pointer. Leases are refused too: root's commands may own
 * files of the system. */
#define CSN_SECCOMP_NOSUID 2u
/* Refuses all sockets but connected pairs, and System V ipc: for a jail without network and ipc
 * namespaces. Unix sockets too: nothing else restricts the path they connect to, and services
 * of the user such as dbus or docker run commands. */
#define CSN_SECCOMP_NO_SOCKETS 4u
#define CSN_SECCOMP_VARIANTS   8u

/* The kernel's struct sock_filter, which musl does not have. */
typedef struct csn_seccomp_insn {
    uint16_t code;
    uint8_t jt, jf; /* instructions to skip when the test is true, and false */
    uint32_t k;
} csn_seccomp_insn;

/* The kernel's struct sock_fprog. */
typedef struct csn_seccomp_program {
    uint16_t len;
    const csn_seccomp_insn *insns;
} csn_seccomp_program;

/* In a static program these stand for the ids of the process that installs it. */
#define CSN_SECCOMP_OWN_UID 0x6f776e75u
#define CSN_SECCOMP_OWN_GID 0x6f776e67u

/* Returns the static program of a variant, or NULL if the variant does not exist or this
 * architecture has no policy. */
const csn_seccomp_program *csn_seccomp_find(uint32_t variant);

/* Installs the filter for the calling thread and its children, for good; sets no_new_privs.
 * Without CSN_SECCOMP_USERNS and CSN_SECCOMP_NO_SOCKETS the effective ids of the caller must be
 * the only ones that its user namespace maps: calls that set others are refused. A second call
 * adds a second filter. Returns 0, or -errno: -ENOTSUP without such a program,
 * -ENOSYS when the kernel has no seccomp, -EINVAL when it has no filters. */
int csn_seccomp_install(uint32_t variant);
