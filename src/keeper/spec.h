/* spec.h: the spec of a keeper, with its role, lifetime and confinement; the first
 * message on its connection (CSN_MSG_SPEC). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keeper/boot/confine.h"
#include "keeper/protocol.h"
#include "os/cgroup.h"

#define CSN_SPEC_MAGIC     0x534e5343u /* "CSNS" */
#define CSN_SPEC_VERSION   10u
#define CSN_SPEC_ID_MAX    127u
#define CSN_SPEC_TEXT_MAX  8192u
#define CSN_SPEC_GIVEN_MAX 64u

#define CSN_SPEC_DETACHED (1u << 0) /* outlives its creator; listens on CSN_KEEPER_FD_OWNER */
#define CSN_SPEC_SWEEP    (1u << 1) /* not a keeper but a sweeper, see sweep.c */
#define CSN_SPEC_TAGGED   (1u << 2) /* SWEEP: also kill the processes, see `user` */
#define CSN_SPEC_SOCKETS  (1u << 3) /* not a keeper: creates the sockets of one command */
#define CSN_SPEC_GROUPED  (1u << 4) /* a CGROUPS message will come: enter these groups */
#define CSN_SPEC_ALL      0x1fu

#define CSN_SPEC_RECORD_CHECK_MS 20000u /* see record_check_ms */

#define CSN_SPEC_USER_LOW 0x70000000u /* lower user ids may belong to an account */

/* The descriptors a keeper or sweeper starts with; 0 to 2 are /dev/null. */
#define CSN_KEEPER_FD_CONTROL 3
#define CSN_KEEPER_FD_OWNER   4 /* pidfd of the owner; of a detached keeper: listening socket */

/* The keeper tags each command with a soft RLIMIT_RTTIME of tag_base + sequence, which its
 * descendants inherit (treekill.c). The base is a hash of the sandbox id: the processes that a
 * killed keeper leaves can be found by the id. */
#define CSN_TAG_MARK     (1ull << 62)
#define CSN_TAG_SEQ_BITS 24
#define CSN_TAG_SEQ_MASK ((1ull << CSN_TAG_SEQ_BITS) - 1)

typedef struct csn_keeper_spec {
    uint32_t flags;
    uint64_t lifetime_ms;     /* 0: none */
    uint64_t record_check_ms; /* detached: how often to check that its files exist; 0: never */
    uint64_t tag_base;
    const char *id;
    const char *socket; /* to unlink at the end, or NULL */
    const char
        *layers; /* not confined: the tree from which to remove what `id` made, or NULL */
    const char *remove[CSN_KEEPER_REMOVE_MAX + 1]; /* directories to remove at the end */
    const char *groups[CSN_CGROUP_KINDS + 1]; /* SWEEP: control groups to kill and remove */
    /* TAGGED: the user id that only this sandbox has, all of whose processes are killed; 0:
     * kill those with its tags. Root cannot always read tags, but can reserve a user id. */
    uint32_t user;
    uint32_t tags_as; /* TAGGED: the user that may read the tags; 0: the sweeper's own */
    csn_confinement confinement;
    csn_mount *mounts; /* owns confinement.mounts.list if that is on the heap */
} csn_keeper_spec;

uint64_t csn_spec_tag_base(const char *id);
void csn_spec_put(csn_packer *o, const csn_keeper_spec *spec);
/* Strings borrow from `data`. The list of mounts goes to `room` (CSN_MOUNTS_MAX entries), or to
 * the heap if that is NULL. 0, -EPROTO or -ENOMEM. Release the spec after 0. */
int csn_spec_get(const void *data, size_t len, csn_mount *room, csn_keeper_spec *ret);
void csn_spec_release(csn_keeper_spec *spec);
