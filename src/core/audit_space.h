/* audit_space.h: keeps disk space free for the lines of operations in flight.
 *
 * The file system must have room for a line when its operation ends, however full it has become
 * meanwhile. Blocks are therefore allocated in advance and given up when a line does not fit.
 * They are in one file, audit/reserve, for all logs of a user: reserving them in each log and
 * freeing them when it is closed costs more than opening a sandbox (ftruncate on ext4). A log
 * at a path of the caller has them behind the text of its head file. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "core/audit_chain.h"

/* Enough for eight of the longest lines, or for hundreds of ordinary ones. */
#define CSN_AUDIT_SPACE (8u * CSN_AUDIT_LINE_MAX)

typedef struct csn_audit_space {
    int fd;           /* the file with the blocks; -1: not open */
    off_t text;       /* bytes of the file that stay when they are given up */
    bool owned;       /* fd is closed with this */
    bool unsupported; /* the file system cannot allocate in advance */
} csn_audit_space;

/* Makes sure that the blocks are there. head_fd is used for a log at a path of the caller
 * (`shared` is false). 0, or why not: ENOSPC, EDQUOT, EROFS ... */
int csn_audit_space_reserve(csn_audit_space *s, const csn_audit_place *p, bool shared,
                            int head_fd);
/* Gives the blocks up. False: there are none. */
bool csn_audit_space_release(csn_audit_space *s);
void csn_audit_space_close(csn_audit_space *s);
