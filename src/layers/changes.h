/* changes.h: what a stack of overlay layers changes in its base.
 *
 * A copy-on-write workspace is an overlay (mounted with `userxattr`): the base is a directory
 * of the host, each layer above it an upper directory. A layer has a regular file, link, fifo
 * or socket where the sandbox made or changed one, a character device 0/0 (a whiteout) where it
 * removed one, and a directory with the attribute user.overlay.opaque=y where nothing below
 * shows through.
 *
 * The walk reads the directories, not the mount: it sees every change, costs O(changes), and
 * needs no process inside. Commands control the contents of layers and may change them while
 * the walk runs: it follows no link, opens nothing but directories and regular files, and holds
 * descriptors instead of building paths. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "caisson/caisson.h"

#define CSN_LAYERS_MAX 30u /* above the base; see os/overlay.h */

typedef struct csn_layer_stack {
    int base;                   /* O_PATH or O_RDONLY of the host's directory */
    size_t count;               /* of layers; may be 0 */
    int layers[CSN_LAYERS_MAX]; /* O_RDONLY | O_DIRECTORY; the newest is the first */
} csn_layer_stack;

void csn_layer_stack_close(csn_layer_stack *s);

/* One side of a change. */
typedef struct csn_change_side {
    uint32_t mode; /* st_mode; 0: absent */
    uint64_t size;
    uint64_t dev, ino, nlink;
    struct timespec mtime, ctime;
} csn_change_side;

typedef struct csn_layer_change {
    const char *path; /* relative to the base, without leading slash; any bytes but NUL */
    csn_change_kind kind;
    csn_change_side before, after; /* in the base; in the stack */
    size_t layer;                  /* which layer has `after`, if it is not absent */
} csn_layer_change;

typedef struct csn_layer_changes {
    csn_layer_change *v; /* sorted by path, bytewise per component: a directory precedes its
                            contents */
    size_t count;
} csn_layer_changes;

/* Lists the differences between base and stack. paths: only what is one of these or lies below
 * one of them (NULL or empty: all); CSN_INVALID if one is absolute or has a component `..`,
 * CSN_NOT_FOUND if it exists on neither side. A path that is replaced or removed with its
 * contents has a row for each path below. Files with equal content, mode, attributes and time
 * are no change, whatever their layer says. The workspace's own directory has no row.
 *
 * The base is only read. A file of it that the caller may not read counts as modified if a
 * layer has it; a directory that it may not read and that a layer hides is CSN_DENIED. More
 * than CSN_LAYER_CHANGES_MAX rows, or a path of CSN_LAYER_PATH_MAX bytes, is CSN_TOO_LARGE.
 *
 * Entries that commands move while the walk is below them may be missing from the list. */
csn_status csn_layer_changes_list(const csn_layer_stack *s, const char *const *paths,
                                  csn_layer_changes *ret, csn_error **err);
void csn_layer_changes_release(csn_layer_changes *c);

/* Opens a regular file of a change for reading (after: in its layer, else: in the base),
 * without following links; checks that it is the inode of the change. Returns a descriptor or
 * -errno; -ESTALE: it is another file now; -EINVAL: that side is no regular file. In a layer, a
 * file whose mode denies its owner is read too; the mode is changed for that moment. */
int csn_layer_open(const csn_layer_stack *s, const csn_layer_change *c, bool after);
/* The text of a symbolic link: malloc'd, or NULL with errno set (as above). */
char *csn_layer_readlink(const csn_layer_stack *s, const csn_layer_change *c, bool after);
