/* confine.h: what stands between a jail's commands and the host, as orders for its keeper.
 *
 * Part of the spec (spec.h). Which walls are to be built is a set; one that was asked for and
 * cannot be built is a failure, and the keeper serves nobody. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "os/rootfs.h"
#include "os/gateway_net.h"

/* In the order in which they are built. The namespaces are made by whoever starts the keeper;
 * what is named here is what the keeper does in them. */
typedef enum csn_wall {
    CSN_WALL_NAMESPACES = 0, /* user, pid, ipc, uts, cgroup: a host name of its own */
    CSN_WALL_NESTED,         /* no further user namespace */
    CSN_WALL_MOUNTS,         /* a root file system of its own */
    CSN_WALL_NET,            /* a network of its own: loopback */
    CSN_WALL_LIMITS,
    CSN_WALL_KEYRING,
    CSN_WALL_LANDLOCK,
    CSN_WALL_USER, /* a second user namespace, which owns nothing */
    CSN_WALL_CAPS, /* capabilities, no_new_privs */
    CSN_WALL_SECCOMP,
} csn_wall;
#define CSN_WALLS              10u
#define CSN_WALL_BIT(w)        (1u << (w))
#define CSN_WALLS_ALL          ((1u << CSN_WALLS) - 1)
#define CSN_WALLS_NESTED_LIMIT 1u /* user namespaces below the first: the second, no more */

typedef struct csn_walls {
    uint32_t on;       /* CSN_WALL_BIT; 0: no walls at all, the rest is not looked at */
    uint32_t uid, gid; /* of commands, inside */
    uint32_t seccomp;  /* CSN_SECCOMP_* */
    uint32_t given;    /* detached mounts that will come by message, before anything is built */
    uint32_t no_tcp;   /* Landlock refuses TCP: for a jail without a network namespace */
    uint64_t pids_max, nofile_max; /* 0: as it is */
    uint64_t data_max;             /* private memory of one command's process; 0: as it is */
    uint64_t memory_max; /* of all processes together, watched by the keeper; 0: not */
    csn_netin_order net; /* what the network has beside loopback */
    csn_mounts mounts;   /* the list is the spec's, see csn_spec_get */
} csn_walls;
