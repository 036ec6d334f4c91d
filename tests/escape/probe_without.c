/* probe_without.c: runs a command on a host that seems to lack something.
 *
 * `probe without LAYER COMMAND...`: a filter makes the system calls of that layer fail, as a
 * kernel or a container that refuses them would, and the command inherits it. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

/* The kernel's headers are not among those of a static libc. */
struct insn {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};
struct program {
    uint16_t len;
    const struct insn *insns;
};

#define LOAD        0x20 /* BPF_LD | BPF_W | BPF_ABS */
#define JEQ         0x15
#define JSET        0x45
#define RET         0x06
#define ALLOW       0x7fff0000u
#define FAIL(e)     (0x00050000u | (uint32_t)(e))
#define NUMBER      0u               /* offset of the call's number */
#define ARG(n)      (16u + 8u * (n)) /* low half, little endian */
#define FILTER_MODE 2
#define SET_SECCOMP 22
#define CLONE_USER  0x10000000u
#define CLONE_NET   0x40000000u
#define ROWS_MAX    8

/* A call that fails: always, or when an argument has a bit (mask) or a value. */
typedef struct row {
    uint32_t call;
    int error;
    int arg; /* -1: whatever the arguments */
    uint32_t mask, value;
} row;

typedef struct layer {
    const char *name;
    row rows[ROWS_MAX];
} layer;

/* clang-format off */
static const layer layers[] = {
    {"userns", {{SYS_clone, EPERM, 0, CLONE_USER, 0}, {SYS_unshare, EPERM, 0, CLONE_USER, 0},
                {435 /* clone3 */, ENOSYS, -1, 0, 0}}},
    {"userns-limit", {{SYS_clone, ENOSPC, 0, CLONE_USER, 0}, {SYS_unshare, ENOSPC, 0, CLONE_USER, 0},
                      {435, ENOSYS, -1, 0, 0}}},
    {"second-userns", {{SYS_unshare, EPERM, 0, CLONE_USER, 0}}},
    {"netns", {{SYS_clone, EPERM, 0, CLONE_NET, 0}, {SYS_unshare, EPERM, 0, CLONE_NET, 0},
               {435, ENOSYS, -1, 0, 0}}},
    {"netfilter", {{SYS_socket, EPROTONOSUPPORT, 2, 0, 12 /* NETLINK_NETFILTER */}}},
    {"landlock", {{444, ENOSYS, -1, 0, 0}, {445, ENOSYS, -1, 0, 0}, {446, ENOSYS, -1, 0, 0}}},
    {"landlock-off", {{444, EOPNOTSUPP, -1, 0, 0}}},
    {"landlock-last", {{446, E2BIG, -1, 0, 0}}},
    {"seccomp", {{SYS_seccomp, ENOSYS, -1, 0, 0}, {SYS_prctl, EINVAL, 0, 0, SET_SECCOMP}}},
    {"mounts", {{430 /* fsopen */, EPERM, -1, 0, 0}}},
    {"old-kernel", {{428, ENOSYS, -1, 0, 0}, {429, ENOSYS, -1, 0, 0}, {430, ENOSYS, -1, 0, 0},
                    {442, ENOSYS, -1, 0, 0}}},
    {"readonly", {{442 /* mount_setattr */, EPERM, -1, 0, 0}}},
    {"pivot", {{SYS_pivot_root, EPERM, -1, 0, 0}}},
    {"umount", {{SYS_umount2, EPERM, -1, 0, 0}}},
    {"limits", {{SYS_prlimit64, EPERM, 1, 0, 6 /* RLIMIT_NPROC */}}},
    {"keyring", {{SYS_keyctl, EPERM, -1, 0, 0}}},
    {"nnp", {{SYS_prctl, EPERM, 0, 0, 38 /* PR_SET_NO_NEW_PRIVS */}}},
    {"capset", {{SYS_capset, EPERM, -1, 0, 0}}},
    {"hostname", {{SYS_sethostname, EPERM, -1, 0, 0}}},
    {"openat2", {{437, ENOSYS, -1, 0, 0}}},
    {"births", {{332 /* statx */, EIO, 3, 0x800 /* STATX_BTIME */, 0}}},
    {"nothing", {{0xffffu, EPERM, -1, 0, 0}}},
};
/* clang-format on */

static size_t put_row(struct insn *out, const row *r)
{
    size_t n = 0;
    uint8_t skip = r->arg < 0 ? 1 : 3; /* to the next row */

    out[n++] = (struct insn){LOAD, 0, 0, NUMBER};
    out[n++] = (struct insn){JEQ, 0, skip, r->call};
    if (r->arg >= 0) {
        out[n++] = (struct insn){LOAD, 0, 0, ARG((unsigned)r->arg)};
        out[n++] = (struct insn){r->mask ? JSET : JEQ, 0, 1, r->mask ? r->mask : r->value};
    }
    out[n++] = (struct insn){RET, 0, 0, FAIL(r->error)};
    return n;
}

static int without(char **a)
{
    struct insn insns[ROWS_MAX * 5 + 1];
    const layer *l = NULL;
    size_t n = 0;

    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        if (strcmp(layers[i].name, a[0]) == 0)
            l = &layers[i];
    if (!l) {
        fprintf(stderr, "probe: no layer %s\n", a[0]);
        exit(2);
    }
    for (size_t i = 0; i < ROWS_MAX && l->rows[i].error != 0; i++)
        n += put_row(insns + n, &l->rows[i]);
    insns[n++] = (struct insn){RET, 0, 0, ALLOW};
    const struct program p = {(uint16_t)n, insns};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 ||
        prctl(SET_SECCOMP, FILTER_MODE, &p, 0L, 0L) < 0) {
        fprintf(stderr, "probe: no filter: %s\n", errno_name(errno));
        exit(2);
    }
    execvp(a[1], a + 1);
    exit(127);
}

const attempt without_attempts[] = {{"without", 2, without}, {NULL, 0, NULL}};
