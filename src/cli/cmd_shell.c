/* cmd_shell.c: `shell`: starts an interactive shell on this terminal, in a sandbox that exists
 * or in a new one that ends with the shell.
 *
 * bash if it exists, else sh. It is started as an argument vector, so that a list of allowed
 * commands needs to name only the shell, and it ends with this program. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "cli/exec_opts.h"
#include "cli/git_identity.h"
#include "cli/sandbox_opts.h"
#include "cli/tool_dirs.h"

typedef struct shell_opts {
    const char *cwd;
    char **env;
    csn_sandbox_opts sandbox;
} shell_opts;

/* The parser fills a struct of zeros. */
static bool is_any_set(const csn_sandbox_opts *o)
{
    const unsigned char *bytes = (const unsigned char *)o;

    for (size_t i = 0; i < sizeof(*o); i++)
        if (bytes[i] != 0)
            return true;
    return false;
}

static int check(csn_cli *c, void *opts)
{
    const shell_opts *o = opts;

    if (c->json)
        return csn_cli_usage(c, "caisson exec ID --json", "--json cannot be used with a shell");
    if (c->nargs > 0 && is_any_set(&o->sandbox))
        return csn_cli_usage(c, "without ID the options make a new sandbox",
                             "the options of a sandbox cannot be changed: '%s' exists",
                             c->arg[0]);
    return 0;
}

/* File calls of local see the workspace alone, and its commands the host. */
static bool has_bash(const csn_cli *c)
{
    csn_file_list *r = NULL;

    if (csn_str_starts(csn_id(c->sb), "local-"))
        return access("/bin/bash", X_OK) == 0;
    if (csn_stat(c->sb, "/bin/bash", 0, &r, NULL) < 0)
        return false;
    csn_file_list_free(r);
    return true;
}

static int run_shell(csn_cli *c, const shell_opts *o, uint64_t timeout)
{
    static const char *const bash[] = {"bash", "-i", NULL};
    static const char *const sh[] = {"sh", "-i", NULL};
    const csn_exec_cli x = {.cwd = o->cwd, .env = o->env, .timeout = timeout, .pty = true};

    c->argv = has_bash(c) ? bash : sh;
    return csn_exec_opts_run(c, &x);
}

/* The variables of the command line become the sandbox's, which may take the caller's values.
 */
static bool add_env(csn_arena *a, const shell_opts *o, csn_config *config)
{
    size_t had = csn_strv_len(config->env), n = csn_strv_len((const char *const *)o->env);
    const char **all = csn_arena_array(a, had + n + 1, sizeof(*all));

    for (size_t i = 0; all && i < had + n; i++)
        all[i] = i < had ? config->env[i] : o->env[i - had];
    config->env = all;
    return all != NULL;
}

static int run_in_new(csn_cli *c, shell_opts *o)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    csn_error *err = NULL;
    csn_config config;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    o->sandbox.timeout_ms = CSN_NO_LIMIT; /* of the shell, which ignores a file's */
    if (csn_sandbox_opts_config(&o->sandbox, a, &config, &err) < 0)
        return csn_cli_fail(c, err);
    if (!add_env(a, o, &config))
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    config.name = NULL; /* as run does */
    config.flags &= ~CSN_OPEN_DETACHED;
    if (csn_tool_dirs_add(c, a, &config, NULL, &err) < 0)
        return csn_cli_fail(c, err);
    if (csn_open(&config, &c->sb, &err) < 0)
        return csn_sandbox_opts_fail(c, &o->sandbox, &config, err);
    csn_sandbox_opts_warn(c, &config);
    csn_on_denial(c->sb, csn_cli_end_denial, c);
    csn_cli_git_identity(c, &config);
    csn_sandbox_opts_hint_repository(c, &config);
    const shell_opts own = {.cwd = o->cwd};
    int status = run_shell(c, &own, o->sandbox.given.timeout_ms);
    csn_close(c->sb);
    return status;
}

static int run(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    if (c->nargs == 0)
        return run_in_new(c, opts);
    if (csn_connect(c->arg[0], &c->sb, &err) < 0)
        return csn_cli_fail(c, err);
    int status = run_shell(c, opts, 0);
    csn_close(c->sb);
    return status;
}

#define AT(field) offsetof(shell_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_STR, 0, "cwd", AT(cwd), "PATH", "where the shell starts", NULL},
    {CSN_OPT_LIST, 0, "env", AT(env), "NAME=VALUE", "a variable for the shell", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_shell = {
    .name = "shell",
    .args = "[ID]",
    .usage = "[ID] [--cwd PATH] [--env NAME=VALUE] | [SANDBOX OPTIONS]",
    .summary = "an interactive shell in a sandbox, or in a new one",
    .intro =
        "Starts bash (or sh) on your terminal, in the sandbox ID or, without ID, in a new\n"
        "sandbox for the current directory. It ends with this command. What it started in\n"
        "the background stays in the sandbox ID until that is destroyed; a new sandbox is\n"
        "destroyed with the shell. The exit status is the shell's.",
    .examples = "  caisson shell\n"
                "  caisson shell --allow example.org --deny .env\n"
                "  caisson shell $id\n",
    .groups = {{"Options", options, 0},
               {"Sandbox options (without ID)", csn_sandbox_opt_table, AT(sandbox)}},
    .opts_size = sizeof(shell_opts),
    .flags = CSN_CMD_RUNS | CSN_CMD_NO_JSON,
    .check = check,
    .run = run,
};
