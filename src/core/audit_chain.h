/* audit_chain.h: the two files of an audit log and the links between its lines; shared by the
 * writer (audit.c) and the readers (audit_verify.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/hash.h"
#include "caisson/caisson.h"

#define CSN_AUDIT_NAME_MAX 256u
#define CSN_AUDIT_HEAD_MAX 256u

/* Where a log lives: a held directory and two names in it. */
typedef struct csn_audit_place {
    int dir; /* -1: not open */
    char log[CSN_AUDIT_NAME_MAX];
    char head[CSN_AUDIT_NAME_MAX];
} csn_audit_place;

/* Content of the head file: lines, their bytes, the hash of the last ("" at first). */
typedef struct csn_audit_head {
    uint64_t lines, bytes;
    char hash[CSN_HASH_HEX];
} csn_audit_head;

/* The names of `file` (its last component) in an open directory; the directory is taken. */
int csn_audit_place_set(csn_audit_place *p, int dir, const char *file); /* 0 or errno */
void csn_audit_place_close(csn_audit_place *p);
/* Opens a regular file without following symlinks. A descriptor or -errno. */
int csn_audit_open_at(const csn_audit_place *p, const char *name, int flags);

/* The text of a head file, as it was written last. */
typedef struct csn_audit_head_text {
    size_t len; /* 0: not known */
    char text[CSN_AUDIT_HEAD_MAX];
} csn_audit_head_text;

int csn_audit_head_read(int fd, csn_audit_head *ret); /* 0 or errno; EBADMSG when it is none */
int csn_audit_head_write(int fd, const csn_audit_head *h, csn_audit_head_text *ret);
/* Does the file still hold exactly this text? */
bool csn_audit_head_is(int fd, const csn_audit_head_text *t);

/* *ret_reason: why the line does not follow `after`, or NULL; then `after` becomes the line's.
 * `sandbox` may be NULL. `len` is without the newline. 0, or ENOMEM: not checked. */
int csn_audit_line_check(const char *line, size_t len, const char *sandbox,
                         csn_audit_head *after, const char **ret_reason);
/* Ends the open object in `line` with its hash and a newline; ret_hash gets it. 0 or errno. */
int csn_audit_line_seal(csn_buf *line, char ret_hash[CSN_HASH_HEX]);
