/* tree.h: whole directories: list, walk, remove. Iterative, a handful of descriptors however
 * deep the tree is, and no symlink is ever followed. Functions return 0 or -errno. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

/* One entry. `target` is the text of a symlink, else NULL. Non-zero stops. */
typedef int (*csn_tree_fn)(void *ctx, const char *path, const struct stat *st,
                           const char *target);

/* Every entry of the open directory `fd`, by name. fd stays the caller's; it must not be
 * O_PATH. */
int csn_tree_list(int fd, csn_tree_fn fn, void *ctx);
/* Every entry below it, by path from it; directories before what is in them. What cannot be
 * read (permission, gone meanwhile, path over PATH_MAX) is left out. */
int csn_tree_walk(int fd, csn_tree_fn fn, void *ctx);
/* Removes `name` in the directory `dir` and all below it. Stops at the first failure. */
int csn_tree_remove(int dir, const char *name);
/* The same, also where directories of our own may not be changed (mode 0500). */
int csn_tree_destroy(int dir, const char *name);
/* Removes everything in the open directory `fd` (not O_PATH), which stays; as destroy does. */
int csn_tree_empty(int fd);
