/* gitconfig.h: check whether a git config can make git run a program or write elsewhere.
 *
 * An allow-list: the keys that `git init`, `clone`, `remote`, `branch`, `submodule`, `worktree`
 * and `sparse-checkout` write are harmless. A config with any other key, or with bytes that are
 * not understood, is not harmless. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* ret_key (may be NULL): if not harmless, the key or the text that was not understood;
 * malloc'd, printable; NULL if out of memory. ret_worktree: the value of core.worktree, where
 * git checks out files, for the caller to check (malloc'd; NULL: not set). With ret_worktree
 * NULL the key is not harmless. */
bool csn_gitconfig_is_harmless(const char *text, size_t len, char **ret_key,
                               char **ret_worktree);
/* Calls fn for each file that a config includes under any condition, as written. For configs of
 * the user: text that is not understood is skipped. */
void csn_gitconfig_includes(const char *text, size_t len,
                            void (*fn)(void *ctx, const char *path), void *ctx);
/* A git-rebase-todo with commands that only move commits, without `exec`. */
bool csn_gittodo_is_harmless(const char *text, size_t len);
