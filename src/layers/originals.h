/* originals.h: what the base had when a sandbox first changed a file, for three-way merges.
 *
 * An overlay copies a file when a command first changes it, and keeps no trace of the version
 * that it copied. These functions keep it: a directory, private to the user, with one record
 * per path. A record is made once, when the version is certain: the host's file has not changed
 * since the sandbox's came to be. Otherwise the record says "unknown", for good. Records are
 * replaced only after a commit, when the base's version becomes the original.
 *
 *   NAME        SHA-256 of the path, in hex: a header (csn_change_side) and the content
 *   collected   when csn_originals_collect was last complete
 *   pending     paths that a commit is about to write
 *
 * Paths are relative to the base, without `.`, `..` and doubled slashes. They are resolved
 * below it without following links. Commands control the layer. Records are written atomically.
 * Functions return 0 or -errno. */
#pragma once
#include "layers/commit.h"

/* After a command: makes the missing records for all regular files of the directory `layer`
 * (the layer that is written to) that are regular files in the base, too.
 *
 * began: taken before the command with CLOCK_REALTIME_COARSE, which is the clock of inodes. A
 * host's file with a later ctime, or with one later than the birth of the sandbox's file, may
 * have changed after it was copied: "unknown".
 *
 * max: how many records to make at most. Returns 1 if some are left for the next call, and 0
 * if all are made. *ret_made (may be NULL): how many were. The cost follows what changed since
 * the last complete call, and the number of directories that base and layer both have. Call it
 * before the layer is frozen. */
int csn_originals_collect(int dir, int layer, int base, struct timespec began, size_t max,
                          size_t *ret_made);

/* Before a file call changes `path` for the first time: keeps the base's present version, if it
 * is a regular file and has no record. */
int csn_original_take(int dir, int base, const char *path);

/* *ret: what is known, in any case. ret->content has the content alone, and is at its start; -1
 * if the file had more than CSN_ORIGINAL_MAX bytes, could not be read, or is no regular file.
 * The caller closes it. The times are 0 if the file was written to in the instant when it was
 * kept, since a later change may have the same: then only the content can be compared. A
 * damaged record is one that is not known. */
int csn_original_find(int dir, const char *path, csn_original *ret);

/* True if the base still has the known original. Compares identity, size and times, not the
 * content. */
bool csn_original_is_current(const csn_original *o, const csn_change_side *now);

/* After a commit: the base's present version, of any type or absent, becomes the original. */
int csn_original_replace(int dir, int base, const char *path);

/* originals_pending.c. Before a commit: notes whose originals it replaces; after they are
 * replaced. */
int csn_originals_intend(int dir, const csn_commit_plan *plan);
void csn_originals_intend_end(int dir);
/* Replaces what a killed commit has noted, where sandbox and host are equal now. After
 * csn_commit_recover. Costs one system call if there is nothing noted. */
csn_status csn_originals_settle(int dir, const csn_layer_stack *stack, csn_error **err);

/* Removes all records. */
int csn_originals_clear(int dir);
