/* etc_files.h: /etc of a jail, as entries of its frame. */
#pragma once
#include <stdint.h>

#include "backend/jail/jail.h"
#include "backend/jail/rootfs_template.h"
#include "base/hash.h"

/* Which directories of the host's will be mounted there, a bit each. */
uint32_t csn_etc_find_dirs(void);
void csn_etc_mount_dirs(csn_jail *j, uint32_t found);
/* What is not the host's, and places for those. */
void csn_etc_own(csn_rootfs_template *f, const csn_jail *j, const char *home, uint32_t found);
/* Files of the host's; and, without reading them, whether they are still the same. */
void csn_etc_files(csn_rootfs_template *f);
void csn_etc_sign(csn_hash *h);
