/* session_registry.h: keeps the sessions of the HTTP server, by token and session id.
 *
 * A client that sends initialize has its own session and sandbox; stateless clients share the
 * sandbox of their token. Nothing is shared between tokens. Thread-safe. */
#pragma once
#include <stdint.h>

#include "mcp/server.h"

typedef struct csn_mcp_registry csn_mcp_registry;

#define CSN_MCP_SESSION_ID 33 /* 128 bits in hex, and NUL */

csn_mcp_registry *csn_mcp_registry_new(csn_mcp_server *s,
                                       unsigned tokens); /* NULL: no memory */
/* Ends every session and sandbox and waits for them. Returns false if a call did not end. */
bool csn_mcp_registry_close(csn_mcp_registry *r, uint64_t ms);
void csn_mcp_registry_free(csn_mcp_registry *r); /* after a successful close */

/* Opens a session and returns a reference. CSN_TOO_LARGE: too many sessions. */
csn_status csn_mcp_registry_open(csn_mcp_registry *r, unsigned token,
                                 char ret_id[CSN_MCP_SESSION_ID], csn_mcp_session **ret,
                                 csn_error **err);
/* Returns a reference, or NULL if this token has no session of this id. */
csn_mcp_session *csn_mcp_registry_find(csn_mcp_registry *r, unsigned token, const char *id);
/* Ends the session and its sandbox. Returns false if there is no such session. */
bool csn_mcp_registry_end(csn_mcp_registry *r, unsigned token, const char *id);
/* Makes a session for one stateless request, in the sandbox of its token. */
csn_status csn_mcp_registry_stateless(csn_mcp_registry *r, unsigned token,
                                      csn_mcp_session **ret, csn_error **err);
/* Ends idle sessions. Call it periodically. */
void csn_mcp_registry_sweep(csn_mcp_registry *r);
