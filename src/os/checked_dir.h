/* checked_dir.h: opens a directory whose whole path is under the caller's control. */
#pragma once
#include <sys/types.h>

#include "base/limits.h"

typedef enum csn_dir_fault_kind {
    CSN_DIR_FAULT_NONE,     /* a system call failed */
    CSN_DIR_FAULT_LINK,     /* -ELOOP: a symlink that is not the system's */
    CSN_DIR_FAULT_OWNER,    /* -EPERM: it belongs to another user */
    CSN_DIR_FAULT_WRITABLE, /* -EPERM: other users can write to it */
} csn_dir_fault_kind;

/* The component of the path that was refused, and why. */
typedef struct csn_dir_fault {
    csn_dir_fault_kind kind;
    uid_t owner;
    char path[CSN_PATH_MAX + 260]; /* a path and one name */
} csn_dir_fault;

#define CSN_CHECKED_MAKE   (1u << 0) /* makes what is missing, with mode 0700 */
#define CSN_CHECKED_PARENT (1u << 1) /* the last component may be root's, as all others */

/* Opens the absolute `path` for reading.
 * Every component belongs to root or to the effective user, and only they can write to it; a
 * directory of root with the sticky bit (/tmp) is accepted. The last one belongs to the
 * effective user. A symlink is followed only if root placed it where systems have such links
 * (/home, /var/run), and never in the home directory. Returns a descriptor or -errno; `fault`
 * may be NULL. */
int csn_checked_dir_open(const char *path, unsigned flags, csn_dir_fault *fault);
