/* session_registry.h: the sessions of a server with many clients.
 *
 * A client of the revisions with initialize has its own session and sandbox; stateless clients
 * share the sandbox of their token. Nothing is shared between tokens. Thread-safe. */
#pragma once
#include <stdint.h>

#include "mcp/server.h"

typedef struct csn_mcp_registry csn_mcp_registry;

#define CSN_MCP_SESSION_ID 33 /* 128 bits in hex, and NUL */

csn_mcp_registry *csn_mcp_registry_new(csn_mcp_server *s,
                                       unsigned tokens); /* NULL: no memory */
/* Ends every session and sandbox and waits for them. false: some calls did not end. */
bool csn_mcp_registry_close(csn_mcp_registry *r, uint64_t ms);
void csn_mcp_registry_free(csn_mcp_registry *r); /* after a successful close */

/* Opens a session and returns a reference. CSN_TOO_LARGE: too many sessions. */
csn_status csn_mcp_registry_open(csn_mcp_registry *r, unsigned token,
                                 char ret_id[CSN_MCP_SESSION_ID], csn_mcp_session **ret,
                                 csn_error **err);
/* Returns a reference; NULL: this token has no session of this id. */
csn_mcp_session *csn_mcp_registry_find(csn_mcp_registry *r, unsigned token, const char *id);
/* Ends the session and its sandbox. false: there is none. */
bool csn_mcp_registry_end(csn_mcp_registry *r, unsigned token, const char *id);
/* A session for one stateless request, in the sandbox of its token. */
csn_status csn_mcp_registry_stateless(csn_mcp_registry *r, unsigned token,
                                      csn_mcp_session **ret, csn_error **err);
/* Ends idle sessions. To be called periodically. */
void csn_mcp_registry_sweep(csn_mcp_registry *r);
