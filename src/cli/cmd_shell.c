/* cmd_shell.c: `shell`: starts an interactive shell in a sandbox on this terminal.
 *
 * bash if it exists, else sh. It is started as an argument vector, so that a list of allowed
 * commands needs to name only the shell, and it is tied to this process, so that it ends with
 * the terminal. */
#include <stddef.h>

#include "cli/commands.h"
#include "cli/exec_opts.h"

typedef struct shell_opts {
    const char *cwd;
    char **env;
} shell_opts;

static int check(csn_cli *c, void *opts)
{
    (void)opts;
    if (c->json)
        return csn_cli_usage(c, "caisson exec ID --json", "--json cannot be used with a shell");
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    static const char *const bash[] = {"bash", "-i", NULL};
    static const char *const sh[] = {"sh", "-i", NULL};
    const shell_opts *o = opts;
    csn_exec_opts eo = {.size = sizeof(eo),
                        .flags = CSN_EXEC_PTY | CSN_EXEC_TIED,
                        .cwd = o->cwd,
                        .env = (const char *const *)o->env};
    csn_process *p = NULL;
    csn_error *err = NULL;

    csn_cli_terminal_size(&eo.rows, &eo.cols);
    csn_status st = csn_start(c->sb, bash, &eo, &p, &err);
    if (st == CSN_NOT_FOUND) {
        csn_error_free(err);
        err = NULL;
        st = csn_start(c->sb, sh, &eo, &p, &err);
    }
    if (st < 0)
        return csn_cli_fail(c, err);
    return csn_cli_terminal(c, p, 0);
}

#define AT(field) offsetof(shell_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_STR, 0, "cwd", AT(cwd), "PATH", "where the shell starts", NULL},
    {CSN_OPT_LIST, 0, "env", AT(env), "NAME=VALUE", "a variable for the shell", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_shell = {
    .name = "shell",
    .args = "ID",
    .summary = "an interactive shell in a sandbox",
    .intro =
        "Starts bash (or sh) in the sandbox on your terminal. It ends with this command;\n"
        "what it started in the background stays until the sandbox is destroyed. The exit\n"
        "status is the shell's.",
    .examples = "  caisson shell $id\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(shell_opts),
    .flags = CSN_CMD_SANDBOX | CSN_CMD_RUNS | CSN_CMD_NO_JSON,
    .check = check,
    .run = run,
};
