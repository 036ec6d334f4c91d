/* cmd_exec.c: `exec`: runs a command in an existing sandbox.
 *
 * exec_opts.c does the work, as for run. If the sandbox does not exist, the exit status is 125,
 * so that scripts can tell this from a failure of the command. Several processes may use one
 * sandbox at the same time. */
#include "cli/commands.h"
#include "cli/exec_opts.h"

static int check(csn_cli *c, void *opts)
{
    return csn_exec_opts_check(c, opts);
}

static int run(csn_cli *c, void *opts)
{
    return csn_exec_opts_run(c, opts);
}

const csn_command csn_cmd_exec = {
    .name = "exec",
    .args = "ID",
    .usage = "ID [EXEC OPTIONS] (-c STRING | -- ARGV...)",
    .summary = "run a command in a sandbox",
    .intro =
        "Runs a command in a sandbox and passes its output on as it comes; with --json it\n"
        "is captured and printed with the details of the run. Words after -- are passed\n"
        "unchanged; -c runs a shell string. With -d the command stays in the background:\n"
        "the pid is printed, and ps, logs, kill and wait take it from there.\n"
        "\n"
        "Exit status: the command's own; 124 timeout; 125 caisson failed; 126 refused by\n"
        "policy or not executable; 127 not found; 128+n ended by signal n; 2 wrong usage of\n"
        "caisson.",
    .examples = "  caisson exec $id -- make test\n"
                "  caisson exec $id --cwd src --timeout 2m -c 'cargo build 2>&1 | tail'\n"
                "  echo data | caisson exec $id --stdin -- wc -c\n"
                "  pid=$(caisson exec $id -d -- python3 -m http.server 8000)\n"
                "  caisson exec $id -t -- vim notes.txt\n",
    .groups = {{"Exec options", csn_exec_opt_table, 0}},
    .opts_size = sizeof(csn_exec_cli),
    .flags = CSN_CMD_SANDBOX | CSN_CMD_REST | CSN_CMD_RUNS,
    .check = check,
    .run = run,
};
