/* cmd_mcp.c: `mcp`: serves a sandbox to an agent as MCP tools.
 *
 * Over stdio, stdout belongs to the protocol: all messages go to stderr. Invariants: a
 * configuration that cannot work is refused at the start, not at the agent's first call; the
 * HTTP server always requires a token. */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/sandbox_opts.h"
#include "mcp/mcp.h"

typedef struct mcp_opts {
    csn_sandbox_opts sandbox;
    const char *http, *token_file;
    char **hosts;
} mcp_opts;

static int check(csn_cli *c, void *opts)
{
    const mcp_opts *o = opts;

    if (o->http && !o->token_file)
        return csn_cli_usage(c,
                             "--token-file ~/.caisson-token creates the file if it is missing",
                             "--http needs --token-file");
    if (!o->http && (o->token_file || o->hosts))
        return csn_cli_usage(c, NULL, "--token-file and --allow-host need --http");
    return 0;
}

static void print_ready(void *ctx, const char *bound, int loopback)
{
    const csn_cli *c = ctx;

    csn_cli_note(c, "listening on http://%s/mcp", bound);
    if (!loopback)
        csn_cli_note(c,
                     "other machines can reach this address, and the traffic is not encrypted");
}

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    mcp_opts *o = opts;
    csn_error *err = NULL;
    csn_config config;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    o->sandbox.timeout_ms = CSN_MCP_TIMEOUT_MS;
    csn_status st = csn_sandbox_opts_config(&o->sandbox, a, &config, &err);
    if (st < 0)
        return csn_cli_fail(c, err);
    if (o->http)
        st = csn_mcp_http(&config,
                          &(csn_mcp_http_opts){.address = o->http,
                                               .token_file = o->token_file,
                                               .hosts = (const char *const *)o->hosts,
                                               .ready = print_ready,
                                               .ctx = c},
                          &err);
    else
        st = csn_mcp_stdio(&config, &err);
    if (st == CSN_INVALID && o->http && strstr(csn_error_message(err), "not ADDRESS:PORT")) {
        csn_error_replace_start(err, 0, "--http: ");
        return csn_cli_fail_value(c, err);
    }
    return st < 0 ? csn_sandbox_opts_fail(c, &o->sandbox, &config, err) : 0;
}

#define AT(field) offsetof(mcp_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_STR, 0, "http", AT(http), "ADDRESS:PORT",
     "serve HTTP clients at /mcp instead; port 0: any", NULL},
    {CSN_OPT_STR, 0, "token-file", AT(token_file), "FILE",
     "tokens that clients must show, one a line; made if missing", NULL},
    {CSN_OPT_LIST, 0, "allow-host", AT(hosts), "NAME",
     "a name that HTTP requests may be addressed to, besides the loopback's", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_mcp = {
    .name = "mcp",
    .args = "",
    .usage = "[SANDBOX OPTIONS] [--http ADDRESS:PORT --token-file FILE]",
    .summary = "serve a sandbox as the tools of an agent (MCP)",
    .intro =
        "Speaks the Model Context Protocol on standard input and output: agents such as\n"
        "Claude Code and Cursor start it and get a shell and file tools in a sandbox on the\n"
        "workspace. The sandbox is made at the first call and ends with the input. With\n"
        "--http it serves any number of clients; each session has a sandbox of its own, and\n"
        "so has each token for clients without sessions.",
    .examples = "  caisson mcp --workspace ~/project\n"
                "  claude mcp add caisson -- caisson mcp --workspace .\n"
                "  caisson mcp --http 127.0.0.1:8808 --token-file ~/.caisson-token\n",
    .groups = {{"Options", options, 0},
               {"Sandbox options", csn_sandbox_opt_table, AT(sandbox)}},
    .opts_size = sizeof(mcp_opts),
    .flags = CSN_CMD_NO_JSON,
    .check = check,
    .run = run,
};
