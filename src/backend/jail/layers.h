/* layers.h: what holds in a jail, in words. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <caisson/backend.h>

#define CSN_JAIL_LAYERS_MAX 16u

/* What its keeper tells of the kernel. */
typedef struct csn_jail_told {
    uint64_t landlock_abi;
    bool nested_limited; /* the kernel counts user namespaces inside; else seccomp is alone */
} csn_jail_told;

/* All of a jail with every wall. `limits` is borrowed, and says how limits are kept. How many.
 */
size_t csn_jail_layers(const csn_jail_told *told, const char *limits,
                       csn_layer ret[CSN_JAIL_LAYERS_MAX]);
