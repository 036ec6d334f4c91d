/* etc_files.h: adds the contents of /etc in a jail to its root template. */
#pragma once
#include <stdint.h>

#include "backend/jail/jail.h"
#include "backend/jail/rootfs_template.h"
#include "base/hash.h"

#define CSN_ETC_MAX 48u

/* Differs if a file has changed. */
typedef struct csn_etc_sign {
    uint64_t dev, ino, size;
    int64_t mtime, mtime_ns, ctime, ctime_ns;
} csn_etc_sign;

/* What the host's /etc has of the tables (policy/etc_places.h). Strings are in the arena. */
typedef struct csn_etc {
    const char *dirs[CSN_ETC_MAX];
    size_t dir_count;
    const char *files[CSN_ETC_MAX];
    csn_etc_sign signs[CSN_ETC_MAX]; /* of the files */
    size_t file_count;
} csn_etc;

/* NULL: out of memory. */
csn_etc *csn_etc_find(const csn_jail *j);
void csn_etc_mount_dirs(csn_jail *j, const csn_etc *etc);
/* Adds generated files, and mount points for the directories. */
void csn_etc_add_generated(csn_rootfs_template *t, const csn_jail *j, const char *home,
                           const csn_etc *etc);
/* Adds copies of the host's files. hash: adds their identity and times to a template's key. */
void csn_etc_add_copies(csn_rootfs_template *t, const csn_etc *etc);
void csn_etc_hash(csn_hash *h, const csn_etc *etc);
