/* cmd_create.c: `create`: makes a detached sandbox and prints its id.
 *
 * Invariants: stdout gets the id and nothing else, so that id=$(caisson create) works; no
 * process of the sandbox inherits stdout, so the substitution ends. If the id cannot be
 * printed, the sandbox is destroyed, because the user could not find it. */
#include <stddef.h>

#include "base/arena.h"
#include "cli/commands.h"
#include "cli/git_identity.h"
#include "cli/sandbox_opts.h"
#include "cli/tool_dirs.h"

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    csn_error *err = NULL;
    csn_config config;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    if (csn_sandbox_opts_config(opts, a, &config, &err) < 0)
        return csn_cli_fail(c, err);
    config.flags |= CSN_OPEN_DETACHED;
    if (csn_tool_dirs_add(c, a, &config, NULL, &err) < 0)
        return csn_cli_fail(c, err);
    if (csn_open(&config, &c->sb, &err) < 0)
        return csn_sandbox_opts_fail(c, opts, &config, err);
    csn_sandbox_opts_warn(c, &config);
    csn_cli_git_identity(c, &config);
    int status = csn_cli_print_id(c, c->sb, config.name,
                                  config.deny || config.deny_missing_ok || config.rules);
    if (status != 0)
        csn_destroy(c->sb, NULL);
    csn_close(c->sb);
    return status;
}

static const csn_opt own_options[] = {
    {CSN_OPT_STR, 0, "name", offsetof(csn_sandbox_opts, values.name), "NAME",
     "a name to use instead of the id", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_create = {
    .name = "create",
    .args = "",
    .usage = "[SANDBOX OPTIONS] [--name NAME]",
    .summary = "make a sandbox that stays, and print its id",
    .intro =
        "Makes a sandbox and prints its id, nothing else. It stays after this command and\n"
        "can be used by every process of this user, by id or by name, until it is destroyed\n"
        "or its lifetime ends. Options set what it may do; they cannot be changed\n"
        "afterwards.",
    .examples = "  id=$(caisson create --workspace ~/project)\n"
                "  caisson create --name build --backend local --lifetime 1h\n"
                "  caisson create --policy agent.json --deny .env --json\n",
    .groups = {{"Sandbox options", csn_sandbox_opt_table, 0}, {"Name", own_options, 0}},
    .opts_size = sizeof(csn_sandbox_opts),
    .run = run,
};
