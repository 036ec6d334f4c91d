/* etc_files.h: adds the contents of /etc in a jail to its root template. */
#pragma once
#include <stdint.h>

#include "backend/jail/jail.h"
#include "backend/jail/rootfs_template.h"
#include "base/hash.h"

/* One bit for each directory of the table that the host has. */
uint32_t csn_etc_find_dirs(void);
void csn_etc_mount_dirs(csn_jail *j, uint32_t found);
/* Adds generated files, and mount points for the directories in `found`. */
void csn_etc_add_generated(csn_rootfs_template *t, const csn_jail *j, const char *home,
                           uint32_t found);
/* Adds copies of host files. hash: adds their identity and times to a template's key. */
void csn_etc_add_copies(csn_rootfs_template *t);
void csn_etc_hash(csn_hash *h);
