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
typedef enum csn_gitconfig_use {
    CSN_GITCONFIG_INCLUDE, /* a further config, under any condition */
    CSN_GITCONFIG_HOOKS,   /* core.hooksPath */
    CSN_GITCONFIG_PROGRAM, /* any other key that may name a program; aliases are left out */
} csn_gitconfig_use;
/* Calls fn for each value that makes git read a further config or run something, as written.
 * For configs of the user: text that is not understood is skipped. */
void csn_gitconfig_uses(const char *text, size_t len,
                        void (*fn)(void *ctx, csn_gitconfig_use use, const char *value),
                        void *ctx);
/* A git-rebase-todo with commands that only move commits, without `exec`. */
bool csn_gittodo_is_harmless(const char *text, size_t len);
