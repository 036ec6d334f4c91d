/* mcp.h: runs the MCP server, over stdio or HTTP. */
#pragma once
#include "caisson/caisson.h"

/* Serves one client on standard input and output until the input ends, the client stops reading
 * or a termination signal arrives. The sandbox has ended on return. */
csn_status csn_mcp_stdio(const csn_config *config, csn_error **err);

typedef struct csn_mcp_http_opts {
    const char *address;      /* "127.0.0.1:8080"; port 0: any */
    const char *token_file;   /* see httpd/access.h */
    const char *const *hosts; /* additional accepted host names, or NULL */
    /* Called when the server listens on `bound`. */
    void (*ready)(void *ctx, const char *bound, int loopback);
    void *ctx;
} csn_mcp_http_opts;

/* Serves any number of clients over HTTP, at /mcp, until a termination signal arrives. Every
 * sandbox has ended on return. */
csn_status csn_mcp_http(const csn_config *config, const csn_mcp_http_opts *opts,
                        csn_error **err);
