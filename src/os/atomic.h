/* atomic.h: new content appears under a name in one step, or not at all.
 *
 * Content goes to a temporary file in the same directory, which then takes the name. `dir` may
 * be an O_PATH descriptor; names are plain. Functions return 0 (or a descriptor) or -errno. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define CSN_TEMP_PREFIX ".csn-"
#define CSN_TEMP_SIZE   20 /* short: the target may have 255 bytes */

/* A new empty file of a random name; open for writing. */
int csn_temp_create(int dir, mode_t mode, char ret_name[CSN_TEMP_SIZE]);

/* Writes everything. A limit on file sizes is -EFBIG and never the death of the process:
 * SIGXFSZ is held back and taken from the queue. ret_done (may be NULL) says how much went out.
 */
int csn_write_full(int fd, const void *data, size_t len, size_t *ret_done);

/* Gives the temporary file the name; fresh: only if nothing has it (-EEXIST). */
int csn_temp_publish(int dir, const char *temp, const char *name, bool fresh);

/* As publish, but can be undone: what had the name before is under the temporary one
 * afterwards. *ret_swapped says whether something had it. -EISDIR or -EMEDIUMTYPE when that was
 * no file. */
int csn_temp_swap(int dir, const char *temp, const char *name, bool fresh, bool *ret_swapped);
void csn_temp_unswap(int dir, const char *temp, const char *name, bool swapped);
