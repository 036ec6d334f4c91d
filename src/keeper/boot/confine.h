/* confine.h: the part of the spec (spec.h) that orders how a keeper confines itself.
 *
 * If an ordered step fails, the keeper exits. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "os/gateway_net.h"
#include "os/mount_list.h"

/* In the order in which the keeper runs them. The clone has created the namespaces. */
typedef enum csn_confine_step {
    CSN_CONFINE_NAMESPACES = 0, /* a host name of its own */
    CSN_CONFINE_NESTED,         /* no further user namespaces */
    CSN_CONFINE_MOUNTS,         /* a root file system of its own */
    CSN_CONFINE_NET,            /* a network namespace with loopback */
    CSN_CONFINE_LIMITS,
    CSN_CONFINE_KEYRING,
    CSN_CONFINE_LANDLOCK,
    CSN_CONFINE_USER, /* a second user namespace, which owns no other */
    CSN_CONFINE_CAPS, /* capabilities, no_new_privs */
    CSN_CONFINE_SECCOMP,
} csn_confine_step;
#define CSN_CONFINE_STEPS       10u
#define CSN_CONFINE_BIT(w)      (1u << (w))
#define CSN_CONFINE_ALL         ((1u << CSN_CONFINE_STEPS) - 1)
#define CSN_NESTED_USERNS_LIMIT 1u   /* user namespaces below the first */
#define CSN_NESTED_USERNS_MANY  256u /* the same with `nested` */

typedef struct csn_confinement {
    uint32_t on;                   /* CSN_CONFINE_BIT; 0: none, the rest is not used */
    uint32_t uid, gid;             /* of commands, inside */
    uint32_t seccomp;              /* CSN_SECCOMP_* */
    uint32_t given;                /* detached mounts that will come in MOUNTS messages */
    uint32_t no_tcp;               /* Landlock refuses TCP: the jail has no network namespace */
    uint32_t guard;                /* boot/guard.h decides about attributes of files */
    uint32_t pid_max;              /* of the pid namespace; 0: unchanged */
    uint32_t nested;               /* commands may make namespaces and mounts */
    uint64_t pids_max, nofile_max; /* 0: unchanged */
    uint64_t data_max;             /* RLIMIT_DATA of commands; 0: unchanged */
    uint64_t memory_max;           /* of all processes, see meter.c; 0: not enforced */
    uint64_t disk_max,
        disk_files;            /* of the workspace's layers, see disk_meter.c; 0: likewise */
    const char *disk_dir;      /* what that measures; NULL: the layers below the overlay */
    csn_gateway_net_order net; /* the network besides loopback */
    csn_rootfs mounts;         /* see csn_spec_get for its list */
} csn_confinement;
