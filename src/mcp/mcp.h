/* mcp.h: the MCP server as programs start it. */
#pragma once
#include "caisson/caisson.h"

/* Serves one client on standard input and output until the input ends, its reader is gone or a
 * signal asks to stop. The sandbox has ended when it returns. CSN_OK for every orderly end. */
csn_status csn_mcp_stdio(const csn_config *config, csn_error **err);

typedef struct csn_mcp_http_opts {
    const char *address;      /* "127.0.0.1:8080"; port 0: any */
    const char *token_file;   /* see httpd/access.h */
    const char *const *hosts; /* further names we may be called by, or NULL */
    /* It listens now; `bound` is where. */
    void (*ready)(void *ctx, const char *bound, int loopback);
    void *ctx;
} csn_mcp_http_opts;

/* Serves any number of clients over HTTP, at /mcp, until a signal asks to stop. Every sandbox
 * has ended when it returns. */
csn_status csn_mcp_http(const csn_config *config, const csn_mcp_http_opts *opts,
                        csn_error **err);
