/* session_sandbox.h: the sandbox of one session, and its state between calls.
 *
 * The first call that needs the sandbox opens it. When it has ended (lifetime, kill), the next
 * call gets a new one. Thread-safe. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct csn_mcp_sandbox csn_mcp_sandbox;

/* `config` must outlive the result. Returns NULL if out of memory. */
csn_mcp_sandbox *csn_mcp_sandbox_new(const csn_config *config);
csn_mcp_sandbox *csn_mcp_sandbox_ref(csn_mcp_sandbox *s);
void csn_mcp_sandbox_unref(
    csn_mcp_sandbox *s); /* the last reference closes the sandbox; NULL is allowed */
/* Ends the sandbox; running calls end with CSN_GONE. */
void csn_mcp_sandbox_destroy(csn_mcp_sandbox *s);

/* The sandbox for one call, until csn_mcp_sandbox_release. *ret_new is set if it replaces the
 * sandbox of earlier calls. */
typedef struct csn_mcp_lease csn_mcp_lease;
csn_status csn_mcp_sandbox_acquire(csn_mcp_sandbox *s, csn_mcp_lease **ret, bool *ret_new,
                                   csn_error **err);
csn_sandbox *csn_mcp_lease_sandbox(csn_mcp_lease *l);
/* Call it when the sandbox has ended: the next call opens a new one. */
void csn_mcp_sandbox_is_gone(csn_mcp_sandbox *s, csn_mcp_lease *l);
void csn_mcp_sandbox_release(csn_mcp_sandbox *s, csn_mcp_lease *l);

/* Takes the persistent shell. Returns false if another call uses it. With `restart` it cancels
 * that call and waits for the shell. `cancel` lets a later restart cancel this call. */
bool csn_mcp_shell_take(csn_mcp_sandbox *s, csn_cancel *cancel, bool restart);
/* Call it before the reply is sent: from then on csn_mcp_shell_take waits, so that a client
 * that sends commands one after the other always gets the same shell. */
void csn_mcp_shell_finish(csn_mcp_sandbox *s);
void csn_mcp_shell_give(csn_mcp_sandbox *s);
/* Returns the last known directory of the shell, malloc'd; NULL: the working directory. Waits
 * for a call that has sent its reply and asks the shell. */
char *csn_mcp_shell_cwd(csn_mcp_sandbox *s);
void csn_mcp_shell_cwd_set(csn_mcp_sandbox *s,
                           const char *path); /* NULL: the working directory */

/* How many bytes of a process's output were shown: [0] stdout, [1] stderr. */
void csn_mcp_cursor_get(csn_mcp_sandbox *s, int64_t pid, uint64_t ret[2]);
void csn_mcp_cursor_set(csn_mcp_sandbox *s, int64_t pid, const uint64_t at[2]);
