/* commit_internal.h: what the files of csn_commit_* share. */
#pragma once
#include "layers/commit.h"
#include "layers/journal.h"

/* "cannot VERB PATH: REASON", with the path in printable form. */
csn_status csn_commit_fail(csn_error **err, int error, const char *verb, const char *path);

/* CSN_CONFLICT: `side` ("the host") changed a path after the plan; nothing was written. */
csn_status csn_commit_stale(csn_error **err, const char *side, const char *path);

/* The order of changes: bytewise per component. */
int csn_path_compare(const char *a, size_t alen, const char *b, size_t blen);
/* The item of a path with `len` bytes, or NULL. */
const csn_commit_item *csn_plan_find(const csn_commit_plan *p, const char *path, size_t len);
/* Is the path to be removed, or replaced by something that is no directory? */
bool csn_item_removes(const csn_commit_item *i);
/* Has the directory `path` of the base an entry that the plan does not remove? Returns 1, 0 or
 * -errno. *ret_item (may be NULL): the item of that entry; NULL: it is not among the changes.
 */
int csn_plan_has_remainder(const csn_commit_plan *p, int base, const char *path,
                           const csn_commit_item **ret_item);

/* Compares the three versions of one path and sets verdict, why, merged and mode, without
 * regard to rules. item->host is what `dir` (-1: missing) has under `name`. */
csn_status csn_item_compare(const csn_commit_request *r, csn_arena *arena,
                            csn_commit_item *item, int dir, const char *name, csn_error **err);

/* ---- content: commit_content.c ---- */

/* Reads at most `max` bytes of a file from its start: 0, -EFBIG or another -errno. */
int csn_content_read(int fd, size_t max, csn_buf *ret);
/* Compares two files from their start: 1 equal, 0 different, or -errno. */
int csn_content_equal(int a, int b);
/* Copies a file with its holes, by reference where the file systems can. */
int csn_content_copy(int from, int to);

/* ---- operations: commit_ops.c, commit_stage.c ---- */

/* Translates a plan into operations, in the order of their execution. */
csn_status csn_ops_make(const csn_commit_request *r, const csn_commit_plan *plan,
                        csn_oplist *ret, csn_error **err);
/* Makes the temporary files of all operations, durable. The caller removes them on failure. */
csn_status csn_ops_stage(const csn_commit_request *r, const csn_commit_plan *plan,
                         csn_oplist *l, csn_error **err);
