/* audit_chain.h: the two files of an audit log and the hash chain of its lines, shared by the
 * writer (audit.c) and the readers (audit_verify.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/hash.h"
#include "core/audit.h"

#define CSN_AUDIT_NAME_MAX  256u
#define CSN_AUDIT_HEAD_MAX  256u
#define CSN_AUDIT_HEAD_SIZE 192u /* bytes of the text; spaces fill it up */

/* The location of a log: an open directory and two names in it. */
typedef struct csn_audit_place {
    int dir; /* -1: not open */
    char log[CSN_AUDIT_NAME_MAX];
    char head[CSN_AUDIT_NAME_MAX];
} csn_audit_place;

/* Content of the head file: number of lines, their bytes, hash of the last one ("" at first),
 * and the operations that have begun and have no line yet. */
typedef struct csn_audit_head {
    uint64_t lines, bytes, open;
    char hash[CSN_HASH_HEX];
} csn_audit_head;

/* Sets the names for the log `file` in the open directory `dir` and takes ownership of
 * `dir`. */
int csn_audit_place_set(csn_audit_place *p, int dir, const char *file); /* 0 or errno */
void csn_audit_place_close(csn_audit_place *p);
/* Opens a regular file without following symlinks. A descriptor or -errno. */
int csn_audit_open_at(const csn_audit_place *p, const char *name, int flags);

/* The text of a head file as last written. */
typedef struct csn_audit_head_text {
    size_t len; /* 0: not known */
    char text[CSN_AUDIT_HEAD_MAX];
} csn_audit_head_text;

int csn_audit_head_read(int fd, csn_audit_head *ret); /* 0 or errno; EBADMSG: not a head */
int csn_audit_head_write(int fd, const csn_audit_head *h, csn_audit_head_text *ret);
/* Does the file still hold exactly this text? */
bool csn_audit_head_is(int fd, const csn_audit_head_text *t);

/* What a line that was checked says about operations. */
typedef struct csn_audit_line_info {
    bool effect;  /* the line of an operation that was counted in csn_audit_head.open */
    uint64_t gap; /* a gap line: number of operations that have no line; else 0 */
} csn_audit_line_info;

/* Counts the operations in flight that end with a line. */
void csn_audit_head_ends(csn_audit_head *h, const csn_audit_line_info *line);
/* Checks that a line follows `after`. *ret_reason is NULL and `after` advances to the line, or
 * *ret_reason is why not. `sandbox` may be NULL. `len` is without the newline. Returns 0, or
 * ENOMEM: not checked. */
int csn_audit_line_check(const char *line, size_t len, const char *sandbox,
                         csn_audit_head *after, csn_audit_line_info *ret_info,
                         const char **ret_reason);
/* audit_line.c: writes the event as a JSON object, as the line after `last` of the sandbox
 * `id`. Without the hash. 0 or errno. */
int csn_audit_line_compose(const char *id, const csn_audit_head *last, const csn_audit_event *e,
                           csn_buf *line);
/* Adds its hash to the JSON object in `line`, and a newline. ret_hash is the hash. 0 or
 * errno. */
int csn_audit_line_seal(csn_buf *line, char ret_hash[CSN_HASH_HEX]);
