/* cmd_mcp.c: `mcp`: a sandbox as the tools of an agent.
 *
 * The agent's program starts this command and speaks to it over standard input and output, so
 * nothing here prints but on stderr. What must hold: a configuration that can never work is
 * refused at once, where the user sees it, and not at the agent's first call. */
#include "base/arena.h"
#include "cli/commands.h"
#include "cli/sandbox_opts.h"
#include "mcp/mcp.h"

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    csn_error *err = NULL;
    csn_config config;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    if (csn_sandbox_opts_config(opts, a, &config, &err) < 0)
        return csn_cli_fail(c, err);
    if (csn_mcp_stdio(&config, &err) < 0)
        return csn_cli_fail(c, err);
    return 0;
}

const csn_command csn_cmd_mcp = {
    .name = "mcp",
    .args = "",
    .usage = "[SANDBOX OPTIONS]",
    .summary = "serve a sandbox as the tools of an agent (MCP)",
    .intro = "Speaks the Model Context Protocol on standard input and output: agents such as "
             "Claude\n"
             "Code and Cursor start it and get a shell and file tools in a sandbox on the\n"
             "workspace. The sandbox is made at the first call and ends with the input.",
    .examples = "  caisson mcp --workspace ~/project\n"
                "  claude mcp add caisson -- caisson mcp --workspace .\n",
    .groups = {{"Sandbox options", csn_sandbox_opt_table, 0}},
    .opts_size = sizeof(csn_sandbox_opts),
    .flags = CSN_CMD_NO_JSON,
    .run = run,
};
