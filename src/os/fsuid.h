/* fsuid.h: touching files as another user, for the length of one call. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#define CSN_FSUID_GROUPS 64

typedef struct csn_fsuid {
    bool on;
    uid_t uid; /* of the thread before */
    gid_t gid;
    int groups; /* of the caller; put back afterwards */
    gid_t group[CSN_FSUID_GROUPS];
} csn_fsuid;

/* From now on this thread, and no other, is `uid` and `gid` wherever a file is touched, without
 * further groups and without the capabilities that pass over permissions. 0 or -errno; then it
 * is itself still. For privileged callers. */
int csn_fsuid_switch(csn_fsuid *g, uid_t uid, gid_t gid);
void csn_fsuid_restore(csn_fsuid *g);

/* Between these no thread changes its identity: for whoever starts a child that shares our
 * memory and has to write its own files in /proc. One at a time. The second may be called by
 * that child. */
void csn_fsuid_freeze(void);
void csn_fsuid_thaw(void);
