/* session_registry.h: the conversations of a server that has many clients, and whose sandbox is
 * whose.
 *
 * Clients of the revisions with initialize have a session each, with a sandbox of its own;
 * clients of the stateless one share the sandbox of their token. Nothing is shared between
 * tokens. Safe from any thread. */
#pragma once
#include <stdint.h>

#include "mcp/server.h"

typedef struct csn_mcp_registry csn_mcp_registry;

#define CSN_MCP_SESSION_ID 33 /* 128 bits in hex, and the NUL */

csn_mcp_registry *csn_mcp_registry_new(csn_mcp_server *s,
                                       unsigned tokens); /* NULL: no memory */
/* Ends every session and sandbox, and waits for them. false: some calls cannot be ended. */
bool csn_mcp_registry_close(csn_mcp_registry *h, uint64_t ms);
void csn_mcp_registry_free(csn_mcp_registry *h); /* after a close that was complete */

/* A new session, with a reference for the caller. CSN_TOO_LARGE: there are enough. */
csn_status csn_mcp_registry_open(csn_mcp_registry *h, unsigned token,
                                 char ret_id[CSN_MCP_SESSION_ID], csn_mcp_session **ret,
                                 csn_error **err);
/* A reference, or NULL: there is none of this id for this token. */
csn_mcp_session *csn_mcp_registry_find(csn_mcp_registry *h, unsigned token, const char *id);
/* Ends it with its sandbox. false: as above. */
bool csn_mcp_registry_end(csn_mcp_registry *h, unsigned token, const char *id);
/* A session for one stateless request, in the sandbox of its token. */
csn_status csn_mcp_registry_stateless(csn_mcp_registry *h, unsigned token,
                                      csn_mcp_session **ret, csn_error **err);
/* Ends sessions that nobody used for long. Call it now and then. */
void csn_mcp_registry_sweep(csn_mcp_registry *h);
