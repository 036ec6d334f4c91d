/* entry.h: opens and compares entries of layers. Internal to src/layers.
 *
 * Commands made these entries and may replace them at any time. Nothing here follows a link or
 * blocks on a fifo. Functions return -errno on failure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* One tree: a layer, or the base. */
typedef struct csn_entry_tree {
    int root;    /* its directory */
    bool unlock; /* a layer: an entry whose mode denies its owner is opened all the same. The
                    mode is changed for the time of the call and restored. */
} csn_entry_tree;

int csn_entry_stat(const csn_entry_tree *t, int dir, const char *name, struct stat *ret);
/* flags: O_RDONLY or O_PATH, and O_DIRECTORY. O_NOFOLLOW, O_NONBLOCK and O_CLOEXEC are added.
 * Call fstat to see what was opened. */
int csn_entry_open(const csn_entry_tree *t, int dir, const char *name, int flags);
/* Opens what the O_PATH descriptor `fd` names. flags: O_RDONLY, and O_DIRECTORY. -EACCES: that
 * is neither a regular file nor a directory. */
int csn_entry_reopen(const csn_entry_tree *t, int fd, int flags);
/* The same as csn_entry_open for a path of any length below the root, without following links.
 */
int csn_entry_open_path(const csn_entry_tree *t, const char *path, int flags);
/* The value of an attribute of an open file or directory: its length or -errno. */
ssize_t csn_entry_get_xattr(const csn_entry_tree *t, int fd, const char *name, char *buf,
                            size_t len);

/* A character device 0/0: the entry is removed. */
bool csn_entry_is_whiteout(const struct stat *st);
/* Does the open directory hide those below it? 1, 0 or -errno. */
int csn_entry_is_opaque(const csn_entry_tree *t, int fd);

#define CSN_ENTRY_BUFFER (256u * 1024u) /* working space of a comparison */

/* 1: equal, 0: not. The descriptors are open for reading. Content is read from where they
 * are. */
int csn_entry_same_content(int a, int b, char buf[CSN_ENTRY_BUFFER]);
/* Compares user.* (without user.overlay.*), POSIX ACLs and file capabilities. Other security
 * attributes are labels that the host's policy assigns by place. An attribute that may not be
 * read on one of the sides is left out. */
int csn_entry_same_xattrs(const csn_entry_tree *ta, int a, const csn_entry_tree *tb, int b,
                          char buf[CSN_ENTRY_BUFFER]);
