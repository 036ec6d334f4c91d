/* copy_tree.h: copies a workspace, or an upper layer, where an overlay cannot be used or may
 * not be frozen.
 *
 * The source is under the control of commands or of the user and may change meanwhile: no link
 * is followed, no special file is opened, depth costs memory only, and entries that vanish are
 * left out. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define CSN_COPY_LAYER (1u << 0) /* an upper layer: see csn_tree_copy */

typedef enum csn_copy_how {
    CSN_COPY_REFLINKED = 1, /* all content is shared with the source; also if there is none */
    CSN_COPY_COPIED,        /* bytes were copied */
} csn_copy_how;

typedef struct csn_tree_copied {
    csn_copy_how how;
    uint64_t entries;  /* that were made */
    uint64_t special;  /* sockets, fifos, devices that were left out */
    uint64_t other_fs; /* directories and files that are mount points or on another file system;
                          left out */
} csn_tree_copied;

/* Copies the contents of the directory `from` (not O_PATH) into the empty directory `to`, and
 * the attributes of `from` itself to it.
 *
 * Copied are regular files (by reference where the file system can, else with their holes),
 * symbolic links, directories, hard links among these, modes, times of modification, attributes
 * user.* and POSIX ACLs, and with root the owners. Without CSN_COPY_LAYER, sockets, fifos,
 * devices and attributes user.overlay.* are left out, and set-user-ID and set-group-ID bits of
 * files are cleared. With it, all is kept but devices other than whiteouts, and file
 * capabilities as far as the caller may set them.
 *
 * Files and directories of the caller whose mode denies reading are copied too; the source's
 * mode is changed for that moment. Those of others are -EACCES: no entry is left out silently.
 * -E2BIG: a directory has more than CSN_LAYER_CHANGES_MAX entries. After a failure `to` has a
 * part of the copy: remove it.
 *
 * ret (may be NULL): what was done. Returns 0 or -errno. */
int csn_tree_copy(int from, int to, unsigned flags, csn_tree_copied *ret);
