/* place.h: identifies a directory at its place in a tree.
 *
 * Two directories have the same place only if device, inode, birth time, parent, name and the
 * state of the rules are the same. An attacker chooses names and has some influence on inode
 * numbers, so the identity is a cryptographic hash of all of them. */
#pragma once
#include <stdint.h>

#include "search/scan_cache.h"

typedef struct csn_place {
    uint64_t dev, ino, parent_dev, parent_ino;
    int64_t born_sec, born_nsec; /* 0 if unknown; inode numbers are reused */
    uint64_t state;              /* of the rules, see base/name_rules.h */
} csn_place;

/* As an entry of a set; name is of length len. */
csn_scan_cache_dir csn_place_id(const csn_place *p, const char *name, size_t len);
