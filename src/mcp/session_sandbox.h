/* session_sandbox.h: the sandbox behind one conversation, and what is remembered about it
 * between calls.
 *
 * Made without starting anything; the first call that needs the sandbox starts it. One that has
 * ended (its lifetime, a kill) is replaced by a new one at the next call. Safe from any thread.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct csn_mcp_sandbox csn_mcp_sandbox;

/* Everything in `config` must outlive the room. NULL: out of memory. */
csn_mcp_sandbox *csn_mcp_sandbox_new(const csn_config *config);
csn_mcp_sandbox *csn_mcp_sandbox_ref(csn_mcp_sandbox *r);
void csn_mcp_sandbox_unref(
    csn_mcp_sandbox *r); /* the last one closes the sandbox; NULL is fine */
/* Ends everything in it now; calls that are inside end with CSN_GONE. */
void csn_mcp_sandbox_destroy(csn_mcp_sandbox *r);

/* The sandbox for the length of one call, until leave. `ret_new` tells that
 * the sandbox of earlier calls is gone and this is another. */
typedef struct csn_mcp_lease csn_mcp_lease;
csn_status csn_mcp_sandbox_acquire(csn_mcp_sandbox *r, csn_mcp_lease **ret, bool *ret_new,
                                   csn_error **err);
csn_sandbox *csn_mcp_lease_sandbox(csn_mcp_lease *l);
/* It was found to have ended: whoever enters from now on gets a new one, and is told. */
void csn_mcp_sandbox_is_gone(csn_mcp_sandbox *r, csn_mcp_lease *l);
void csn_mcp_sandbox_release(csn_mcp_sandbox *r, csn_mcp_lease *l);

/* The one persistent shell: false when somebody else is in it. With `restart` whoever is in it
 * is stopped, and it is ours. `cancel` is what stops us. */
bool csn_mcp_shell_take(csn_mcp_sandbox *r, csn_cancel *cancel, bool restart);
/* Before the answer: whoever asks for it from now on waits until it is given back, so that a
 * client which sends one command after the other always has the same shell. */
void csn_mcp_shell_finish(csn_mcp_sandbox *r);
void csn_mcp_shell_give(csn_mcp_sandbox *r);
/* Where it was last seen; NULL: the sandbox's working directory. malloc'd. */
char *csn_mcp_shell_cwd(csn_mcp_sandbox *r);
void csn_mcp_shell_cwd_set(csn_mcp_sandbox *r, const char *path); /* NULL: as at the start */

/* How far the output of a process has been shown: [0] stdout, [1] stderr. */
void csn_mcp_cursor_get(csn_mcp_sandbox *r, int64_t pid, uint64_t ret[2]);
void csn_mcp_cursor_set(csn_mcp_sandbox *r, int64_t pid, const uint64_t at[2]);
