/* atomic.h: replaces the content of a name in one step, or not at all.
 *
 * Content goes to a temporary file in the same directory, which then takes the name. With
 * O_TMPFILE it has no name while it is written, so a killed process leaves nothing. `dir` may
 * be O_PATH and is the same in all calls for one file; names have no slash. Functions return 0
 * or -errno. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define CSN_TEMP_PREFIX ".csn-"
#define CSN_TEMP_SIZE   20 /* short: the target may have 255 bytes */

typedef struct csn_temp {
    int fd;                   /* open for writing; -1: closed */
    char name[CSN_TEMP_SIZE]; /* "" while the file has no name */
} csn_temp;

#define CSN_TEMP_NONE ((csn_temp){.fd = -1})

/* Makes a random name. */
int csn_temp_name(char ret_name[CSN_TEMP_SIZE]);

/* Creates an empty file, without a name where the file system allows it; such a file exists
 * only as long as its descriptor. */
int csn_temp_create(csn_temp *ret, int dir, mode_t mode);
/* Creates a file that has a name from the start and may be closed. */
int csn_temp_create_named(csn_temp *ret, int dir, mode_t mode);
/* The content is complete: closes the descriptor if the file has a name. */
void csn_temp_complete(csn_temp *t);
/* Closes the file and unlinks its name, if any. Accepts CSN_TEMP_NONE. */
void csn_temp_drop(csn_temp *t, int dir);

/* Writes all bytes. RLIMIT_FSIZE gives -EFBIG and no SIGXFSZ. *ret_done (may be NULL): the
 * bytes written, also after a failure. */
int csn_write_full(int fd, const void *data, size_t len, size_t *ret_done);

#define CSN_TEMP_EXCL    (1u << 0) /* -EEXIST if the name exists */
#define CSN_TEMP_REPLACE (1u << 1) /* the name exists: do not try to create it */

/* Gives the temporary file the name. Call csn_temp_drop afterwards in any case. */
int csn_temp_publish(csn_temp *t, int dir, const char *name, unsigned how);

/* As publish, but reversible: a file that had the name is kept under the temporary name until
 * csn_temp_drop, and *ret_swapped is true. -EISDIR or -EMEDIUMTYPE: the name is not a file. */
int csn_temp_swap(csn_temp *t, int dir, const char *name, bool fresh, bool *ret_swapped);
void csn_temp_unswap(csn_temp *t, int dir, const char *name, bool swapped);
