/* tree.h: lists, walks and removes directories. Iterative, few descriptors at any depth, and no
 * symlink is followed. Functions return 0 or -errno. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

/* One entry. `target` is that of a symlink, else NULL. Non-zero stops. */
typedef int (*csn_tree_fn)(void *ctx, const char *path, const struct stat *st,
                           const char *target);

/* Visits every entry of the open directory `fd`, which must not be O_PATH. */
int csn_tree_list(int fd, csn_tree_fn fn, void *ctx);
/* Visits every entry below it by its relative path, directories before their contents. Entries
 * that cannot be read (permission, removed meanwhile, path over PATH_MAX) are skipped. */
int csn_tree_walk(int fd, csn_tree_fn fn, void *ctx);
/* Removes `name` in the directory `dir` and everything below it; stops at the first failure. */
int csn_tree_remove(int dir, const char *name);
/* The same, also in own directories that are not writable (mode 0500). */
int csn_tree_remove_force(int dir, const char *name);
/* Removes the contents of the open directory `fd` (not O_PATH), as csn_tree_remove_force
 * does. */
int csn_tree_empty(int fd);
