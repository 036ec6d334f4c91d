/* spec.h: what a keeper is told once, at its start, in a sealed memfd. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keeper/proto.h"

#define CSN_SPEC_MAGIC   0x534e5343u /* "CSNS" */
#define CSN_SPEC_VERSION 1u
#define CSN_SPEC_MAX     (64u * 1024u)
#define CSN_SPEC_ID_MAX  127u

#define CSN_SPEC_DETACHED (1u << 0) /* outlives its starter; listens on descriptor 5 */
#define CSN_SPEC_ALL      0x1u

/* The descriptors a keeper is born with. 0-2 are /dev/null. */
#define CSN_KEEPER_FD_CONTROL 3
#define CSN_KEEPER_FD_SPEC    4
#define CSN_KEEPER_FD_OWNER   5 /* attached: pidfd of the owner; detached: listening socket */

/* Commands are marked for life with a soft RLIMIT_RTTIME of tag_base + sequence: see
 * treekill.c. The base is made of the sandbox's id, so that whoever knows the id can find what
 * a killed keeper left behind. */
#define CSN_TAG_MARK     (1ull << 62)
#define CSN_TAG_SEQ_BITS 24
#define CSN_TAG_SEQ_MASK ((1ull << CSN_TAG_SEQ_BITS) - 1)

typedef struct csn_keeper_spec {
    uint32_t flags;
    uint64_t lifetime_ms; /* 0: none */
    uint64_t tag_base;
    const char *id;
    const char *socket;                            /* path to unlink at the end, or NULL */
    const char *remove[CSN_KEEPER_REMOVE_MAX + 1]; /* directories to remove at the end */
} csn_keeper_spec;

uint64_t csn_spec_tag_base(const char *id);
void csn_spec_put(csn_wire_out *o, const csn_keeper_spec *spec);
/* Strings borrow from data. 0 or -EPROTO. */
int csn_spec_get(const void *data, size_t len, csn_keeper_spec *ret);
