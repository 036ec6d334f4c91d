/* ignore.h: the rules of .gitignore files: nested, negated, anchored, for directories only. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

#define CSN_IGNORE_FILE     ".gitignore"
#define CSN_IGNORE_FILE_MAX (1024u * 1024u)

typedef struct csn_ignore csn_ignore;

/* All paths given later are relative to a directory that is `prefix` ("" or with a slash at the
 * end) below the one to which rules may be anchored. NULL: out of memory. */
csn_ignore *csn_ignore_new(const char *prefix);
void csn_ignore_free(csn_ignore *ig);
CSN_DEFINE_CLEANUP(csn_ignore, csn_ignore_free)

/* Adds the text of an ignore file of directory `dir`, which is "" or ends with a slash;
 * `above`: it counts from the top of the prefix. Files of outer directories come first. Lines
 * that are no valid pattern match nothing. 0 or -ENOMEM. */
int csn_ignore_add(csn_ignore *ig, const char *dir, bool above, const char *text, size_t len);
/* The number of files added; and back to such a number. */
size_t csn_ignore_mark(const csn_ignore *ig);
void csn_ignore_reset(csn_ignore *ig, size_t mark);

/* Is this entry ignored? The directories above it are not looked at: an ignored directory hides
 * all below it, so a walk does not enter it. `.git` is always ignored. */
bool csn_ignore_match(const csn_ignore *ig, const char *path, bool is_dir);
/* The same for an entry or any directory above it. */
bool csn_ignore_hides(const csn_ignore *ig, const char *path, bool is_dir);
