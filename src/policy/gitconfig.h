/* gitconfig.h: does a git config name something that git would run, or send work elsewhere?
 *
 * An allow-list: what `git init`, `clone`, `remote`, `branch`, `submodule`, `worktree` and
 * `sparse-checkout` write is harmless; any other key, and any byte that is not understood, is
 * not. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* ret_key (may be NULL): for a config that is not harmless, the key or what was not understood;
 * malloc'd, printable; NULL when there is no memory.
 * ret_worktree: core.worktree sends what git checks out to that directory. Its value is handed
 * out here for the caller to judge (malloc'd; NULL: not set); with ret_worktree NULL the key is
 * not harmless. */
bool csn_gitconfig_is_harmless(const char *text, size_t len, char **ret_key,
                               char **ret_worktree);
/* Each file that a config includes, whatever the condition, as it is written there. For configs
 * of the user's own: what is not understood is passed over. */
void csn_gitconfig_includes(const char *text, size_t len,
                            void (*fn)(void *ctx, const char *path), void *ctx);
/* A git-rebase-todo: only commands that move commits; no `exec`. */
bool csn_gittodo_is_harmless(const char *text, size_t len);
