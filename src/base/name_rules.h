/* name_rules.h: the interface between a walk over a hostile tree and a set of rules about
 * names.
 *
 * The rules (policy/protected_names) see only names; the walk (search/changed) sees only the
 * file system. `at` is the state of the rules for one directory: the
 * walk starts with 0, stores one per directory and does not interpret it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct csn_name_rules_step {
    uint32_t at;      /* the state for its entries, if it is a directory */
    uint8_t marks;    /* evidence about the directory that contains it */
    uint8_t rule;     /* the rule that matched, if wanted or wanted_link */
    bool wanted;      /* report it, unless it is a directory */
    bool wanted_link; /* report it if it is a symlink */
    bool refers;      /* report it even if it did not change: it refers to other files */
    bool refers_link; /* the same, if it is a symlink */
} csn_name_rules_step;

typedef struct csn_name_rules {
    /* One entry of a directory with state `at`. Called for every name of the tree, so the
     * common case of no match must take few comparisons. */
    csn_name_rules_step (*step)(uint32_t at, const char *name, size_t len);
    /* The state of the directory once all of its marks are known. If it is not `at`, the walk
     * reads the directory again with the new state. */
    uint32_t (*classify)(uint32_t at, uint8_t marks);
} csn_name_rules;
