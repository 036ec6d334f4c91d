/* patch.h: writes the change of one file as a patch for `git apply`. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "text/linediff.h"

#define CSN_PATCH_CONTEXT 3u /* unchanged lines around a change, by default */

/* A file before or after the change. */
typedef struct csn_patch_file {
    const char *path; /* relative, as git names it: "src/x.c". Any bytes but NUL */
    uint32_t mode;    /* st_mode: S_IFREG or S_IFLNK, and permissions */
    csn_text content; /* of a symbolic link: its target */
} csn_patch_file;

typedef enum csn_patch_kind {
    CSN_PATCH_SAME, /* nothing that git records differs */
    CSN_PATCH_ADDED,
    CSN_PATCH_DELETED,
    CSN_PATCH_MODIFIED, /* content, and perhaps the mode or the path */
    CSN_PATCH_MODE,     /* only the executable bit, and perhaps the path */
    CSN_PATCH_RENAMED,  /* only the path */
    CSN_PATCH_RETYPED,  /* file to symbolic link or back; a deletion and an addition */
} csn_patch_kind;

/* For --stat. Both counts are 0 for a binary change. */
typedef struct csn_patch_stat {
    uint64_t added, removed; /* lines */
    bool binary;
} csn_patch_stat;

/* git knows three modes: 100644, 100755 (executable by the owner) and 120000 (link). Other
 * permission bits make no change. Either file may be NULL (it does not exist), not both. */
csn_patch_kind csn_patch_kind_of(const csn_patch_file *before, const csn_patch_file *after);

/* Appends the patch to *out: "diff --git", the extended headers, the hunks with `context`
 * unchanged lines (git apply needs --unidiff-zero for 0). Appends nothing for CSN_PATCH_SAME.
 * Patches of several files may follow each other in one buffer, each path at most once.
 *
 * A change is binary if one of its contents is (csn_text_is_binary). Its patch has the line
 * "Binary files A and B differ" and comments with size and SHA-256 of both contents; it cannot
 * be applied: `git apply` refuses the whole patch file, unless --exclude=PATH leaves it out.
 *
 * *ret_stat (may be NULL) gets the counts of the lines with - and +. On failure *out and
 * *ret_stat are untouched: CSN_INVALID (path empty, absolute or with an empty, "." or ".."
 * component; neither a file nor a link), CSN_TOO_LARGE (ceiling of out), CSN_NOMEM. */
csn_status csn_patch_write(const csn_patch_file *before, const csn_patch_file *after,
                           unsigned context, csn_buf *out, csn_patch_stat *ret_stat,
                           csn_error **err);

/* Only the counts, the same as csn_patch_write's. CSN_INVALID or CSN_NOMEM. */
csn_status csn_patch_count(const csn_patch_file *before, const csn_patch_file *after,
                           csn_patch_stat *ret, csn_error **err);

/* Appends `prefix` and path as git prints a name: as they are, or in double quotes with C
 * escapes if the path has control characters, '"', '\\' or bytes above 0x7e. 0 or errno. */
int csn_patch_put_path(csn_buf *out, const char *prefix, const char *path);
