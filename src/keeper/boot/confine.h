/* confine.h: what stands between a jail's commands and the host, as orders for its keeper.
 *
 * Part of the spec (spec.h). Which walls are to be built is a set; one that was asked for and
 * cannot be built is a failure, and the keeper serves nobody. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "os/gateway_net.h"
#include "os/mount_list.h"

/* In the order in which they are built. The namespaces are made by whoever starts the keeper;
 * what is named here is what the keeper does in them. */
typedef enum csn_confine_step {
    CSN_CONFINE_NAMESPACES = 0, /* user, pid, ipc, uts, cgroup: a host name of its own */
    CSN_CONFINE_NESTED,         /* no further user namespace */
    CSN_CONFINE_MOUNTS,         /* a root file system of its own */
    CSN_CONFINE_NET,            /* a network of its own: loopback */
    CSN_CONFINE_LIMITS,
    CSN_CONFINE_KEYRING,
    CSN_CONFINE_LANDLOCK,
    CSN_CONFINE_USER, /* a second user namespace, which owns nothing */
    CSN_CONFINE_CAPS, /* capabilities, no_new_privs */
    CSN_CONFINE_SECCOMP,
} csn_confine_step;
#define CSN_CONFINE_STEPS       10u
#define CSN_CONFINE_BIT(w)      (1u << (w))
#define CSN_CONFINE_ALL         ((1u << CSN_CONFINE_STEPS) - 1)
#define CSN_NESTED_USERNS_LIMIT 1u /* user namespaces below the first: the second, no more */

typedef struct csn_confinement {
    uint32_t on;       /* CSN_CONFINE_BIT; 0: no walls at all, the rest is not looked at */
    uint32_t uid, gid; /* of commands, inside */
    uint32_t seccomp;  /* CSN_SECCOMP_* */
    uint32_t given;    /* detached mounts that will come by message, before anything is built */
    uint32_t no_tcp;   /* Landlock refuses TCP: for a jail without a network namespace */
    uint64_t pids_max, nofile_max; /* 0: as it is */
    uint64_t data_max;             /* private memory of one command's process; 0: as it is */
    uint64_t memory_max;       /* of all processes together, watched by the keeper; 0: not */
    csn_gateway_net_order net; /* what the network has beside loopback */
    csn_rootfs mounts;         /* the list is the spec's, see csn_spec_get */
} csn_confinement;
