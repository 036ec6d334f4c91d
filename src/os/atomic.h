/* atomic.h: new content appears under a name in one step, or not at all.
 *
 * Content goes to a temporary file in the same directory, which then takes the name. Where the
 * file system can (O_TMPFILE), that file has no name of its own while it is written: a process
 * that is killed leaves nothing. `dir` may be an O_PATH descriptor and is the same in all calls
 * for one file; names are plain. Functions return 0 or -errno. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define CSN_TEMP_PREFIX ".csn-"
#define CSN_TEMP_SIZE   20 /* short: the target may have 255 bytes */

typedef struct csn_temp {
    int fd;                   /* open for writing; -1: closed */
    char name[CSN_TEMP_SIZE]; /* "" when it has none (yet, or any more) */
} csn_temp;

#define CSN_TEMP_NONE ((csn_temp){.fd = -1})

/* A random name that nothing has. */
int csn_temp_name(char ret_name[CSN_TEMP_SIZE]);

/* A new empty file. Without a name if that can be had; it lives by its descriptor then. */
int csn_temp_create(csn_temp *ret, int dir, mode_t mode);
/* One that has a name from the start, and may be closed. */
int csn_temp_create_named(csn_temp *ret, int dir, mode_t mode);
/* Everything is in it: a descriptor that it does not live by is closed. */
void csn_temp_written(csn_temp *t);
/* Closes it and removes its name, if it has one. NONE may be dropped. */
void csn_temp_drop(csn_temp *t, int dir);

/* Writes everything. A limit on file sizes is -EFBIG and never the death of the process:
 * SIGXFSZ is held back and taken from the queue. ret_done (may be NULL) says how much went out.
 */
int csn_write_full(int fd, const void *data, size_t len, size_t *ret_done);

#define CSN_TEMP_FRESH (1u << 0) /* only if nothing has the name: -EEXIST */
#define CSN_TEMP_OVER  (1u << 1) /* something had it a moment ago: spares an attempt */

/* Gives the temporary file the name. To be dropped afterwards, however it went. */
int csn_temp_publish(csn_temp *t, int dir, const char *name, unsigned how);

/* As publish, but can be undone: what had the name before is under the temporary one
 * afterwards, until the drop. *ret_swapped says whether something had it. -EISDIR or
 * -EMEDIUMTYPE when that was no file. */
int csn_temp_swap(csn_temp *t, int dir, const char *name, bool fresh, bool *ret_swapped);
void csn_temp_unswap(csn_temp *t, int dir, const char *name, bool swapped);
