/* names.h: what a walk over a hostile tree asks a set of rules about names.
 *
 * The rules (policy/protected_names) know names and no file system; the walk (search/changed)
 * knows the file system and no names. `at` is the rules' own memory of which directory an entry
 * is in: the walk starts with 0, keeps it for each directory and never looks inside. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct csn_name_rules_step {
    uint32_t at;      /* what the entries in it are asked with, if it is a directory */
    uint8_t marks;    /* what its being here says about the directory it is in */
    uint8_t rule;     /* which rule speaks, where wanted or wanted_link */
    bool wanted;      /* report it, unless it is a directory */
    bool wanted_link; /* report it if it is a symlink */
    bool skip;        /* do not enter it */
} csn_name_rules_step;

typedef struct csn_name_rules {
    /* One entry of a directory that is `at`. Called for every name of the tree: the common
     * "nothing" must be found in a few comparisons. */
    csn_name_rules_step (*step)(uint32_t at, const char *name, size_t len);
    /* The directory was read to its end and this is the sum of the marks: what is it really?
     * An answer that is not `at` makes the walk read it once more with that. */
    uint32_t (*settle)(uint32_t at, uint8_t marks);
} csn_name_rules;
