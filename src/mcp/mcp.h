/* mcp.h: the MCP server as programs start it. */
#pragma once
#include "caisson/caisson.h"

/* Serves one client on standard input and output until the input ends, its reader is gone or a
 * signal asks to stop. The sandbox has ended when it returns. CSN_OK for every orderly end. */
csn_status csn_mcp_stdio(const csn_config *config, csn_error **err);
