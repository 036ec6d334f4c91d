/* spec.h: what a keeper is told once: at its start, in a sealed memfd, or a little later, as
 * the first message on its connection. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keeper/boot/confine.h"
#include "keeper/proto.h"
#include "os/cgroup.h"

#define CSN_SPEC_MAGIC     0x534e5343u /* "CSNS" */
#define CSN_SPEC_VERSION   5u
#define CSN_SPEC_MAX       (64u * 1024u)
#define CSN_SPEC_ID_MAX    127u
#define CSN_SPEC_TEXT_MAX  8192u
#define CSN_SPEC_GIVEN_MAX 64u

#define CSN_SPEC_DETACHED (1u << 0) /* outlives its starter; listens on descriptor 5 */
#define CSN_SPEC_SWEEP    (1u << 1) /* not a keeper: removes what one leaves, see sweep.c */
#define CSN_SPEC_TAGGED   (1u << 2) /* SWEEP: also ends the processes: see `user` */
#define CSN_SPEC_SOCKETS  (1u << 3) /* not a keeper: makes the sockets of one command */
#define CSN_SPEC_GROUPED  (1u << 4) /* DOORS will come: it enters its control groups */
#define CSN_SPEC_ALL      0x1fu

#define CSN_SPEC_USER_LOW 0x70000000u /* nobody below is without account, for sure */

/* The descriptors a keeper is born with. 0-2 are /dev/null. */
#define CSN_KEEPER_FD_CONTROL 3
#define CSN_KEEPER_FD_SPEC    4 /* or /dev/null: it comes as a message */
#define CSN_KEEPER_FD_OWNER   5 /* attached: pidfd of the owner; detached: listening socket */
/* A sweeper has the same ones; its owner is always a pidfd. */

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
    const char
        *groups[CSN_CGROUP_KINDS + 1]; /* control groups to end and remove; sweeper only */
    /* TAGGED: a user of this sandbox alone, all of whose processes are to end; 0: those with
     * its tags are. A root caller may not always read tags, and has users to spare. */
    uint32_t user;
    csn_confinement walls;
    csn_mount *mounts; /* after csn_spec_get without room: owns walls.mounts.list */
} csn_keeper_spec;

uint64_t csn_spec_tag_base(const char *id);
void csn_spec_put(csn_packer *o, const csn_keeper_spec *spec);
/* Strings borrow from data, the list of mounts from room (CSN_MOUNTS_MAX), if that is not NULL.
 * 0, -EPROTO or -ENOMEM. Release it when it was 0. */
int csn_spec_get(const void *data, size_t len, csn_mount *room, csn_keeper_spec *ret);
void csn_spec_release(csn_keeper_spec *spec);
