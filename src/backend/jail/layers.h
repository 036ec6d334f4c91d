/* layers.h: describes a jail's layers for `info`. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <caisson/backend.h>

#define CSN_JAIL_LAYERS_MAX 16u

/* Features of the kernel, as READY reports them, and what was requested. */
typedef struct csn_jail_kernel {
    uint64_t landlock_abi;
    bool nested_limited; /* the kernel limits nested user namespaces, besides seccomp */
    bool nested;         /* --nested: they are allowed */
    bool cow;            /* the workspace is copy-on-write */
    bool cow_copy;       /* by a copy, because an overlay is not possible */
} csn_jail_kernel;

/* Fills the layers of a jail with namespaces and returns their number. `limits` is the text of
 * that layer and is borrowed. */
size_t csn_jail_layers(const csn_jail_kernel *kernel, const char *limits,
                       csn_layer ret[CSN_JAIL_LAYERS_MAX]);
