/* seccomp.h: the system-call wall of a jail.
 *
 * The policy is the table in os/seccomp_policy.h. The build compiles it (tools/gen-seccomp.c),
 * so here are only finished programs for the kernel: installing one is two system calls, with
 * no allocation and no library, and may be done between clone and exec. */
#pragma once
#include <stdint.h>

/* What a sandbox asked for beyond the default. The values index the table of programs. */
#define CSN_SECCOMP_DEFAULT 0u
/* Namespaces may be nested: unshare, setns, clone3 and the mount family are left to the
 * kernel's own checks (for bwrap, podman or a browser inside). */
#define CSN_SECCOMP_USERNS 1u
/* No file gets a set-user-id or set-group-id bit. For a jail whose files carry another owner on
 * disk than inside (an idmapped workspace of a root caller): a setuid file made inside would be
 * setuid root for every user of the host. openat2 answers ENOSYS, its mode cannot be seen. */
#define CSN_SECCOMP_NOSUID 2u
/* No sockets but connected pairs, and no System V ipc: for a jail without network and ipc
 * namespaces. Unix sockets too, because nothing else on such a host can say to which path they
 * connect, and behind one of the user's is somebody who runs commands (dbus, docker). */
#define CSN_SECCOMP_ALONE    4u
#define CSN_SECCOMP_VARIANTS 8u

/* One instruction of classic BPF: the kernel's struct sock_filter, which musl does not have. */
typedef struct csn_seccomp_insn {
    uint16_t code;
    uint8_t jt, jf; /* how many instructions to skip when the test holds, and when not */
    uint32_t k;
} csn_seccomp_insn;

/* The kernel's struct sock_fprog. */
typedef struct csn_seccomp_program {
    uint16_t len;
    const csn_seccomp_insn *insns;
} csn_seccomp_program;

/* The program of a variant (CSN_SECCOMP_* bits), static. NULL: no such variant, or no policy
 * for the processor this was built for. */
const csn_seccomp_program *csn_seccomp_find(uint32_t variant);

/* Puts the calling thread, and all it starts from now on, behind the wall; sets no_new_privs.
 * It cannot be undone; a second call adds a second wall. 0, or -errno: -ENOTSUP when there is
 * no such program, -ENOSYS when the kernel has no seccomp, -EINVAL when it has no filters. */
int csn_seccomp_install(uint32_t variant);
