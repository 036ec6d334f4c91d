/* fsuid.h: file access as another user, for the length of one call. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#define CSN_FSUID_GROUPS 64

typedef struct csn_fsuid {
    bool on;
    uid_t uid; /* to be restored */
    gid_t gid;
    int groups;
    unsigned caps[2]; /* effective ones, to be restored if uid is 0 */
    bool dropped;
    gid_t group[CSN_FSUID_GROUPS];
} csn_fsuid;

/* Makes the calling thread access files as `uid` and `gid`, without supplementary groups and
 * without the capabilities that override permissions, also as uid 0. For privileged callers.
 * Returns 0, or -errno with nothing changed. */
int csn_fsuid_switch(csn_fsuid *g, uid_t uid, gid_t gid);
void csn_fsuid_restore(csn_fsuid *g);

/* True if this process may become such a user, which is not uid 0. */
bool csn_fsuid_may_become(uid_t uid);

/* Between these calls no thread switches: needed to start a vfork child that writes its own
 * files in /proc. One caller at a time; the child may call the second. */
void csn_fsuid_freeze(void);
void csn_fsuid_thaw(void);
