/* main.c: main() of the full program, and its table of all subcommands.
 *
 * The program is named caisson-full, or caisson where no small program is built (main_small.c).
 * Rows are in the order of help, by task; each is defined in a cmd_*.c. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/commands.h"

const csn_command *const csn_cli_commands[] = {
    /* Run something */
    &csn_cmd_run,
    &csn_cmd_exec,
    &csn_cmd_shell,
    /* Sandboxes that stay */
    &csn_cmd_create,
    &csn_cmd_list,
    &csn_cmd_info,
    &csn_cmd_destroy,
    &csn_cmd_cleanup,
    &csn_cmd_extend,
    &csn_cmd_cd,
    &csn_cmd_pause,
    &csn_cmd_resume,
    /* Changes */
    &csn_cmd_diff,
    &csn_cmd_commit,
    &csn_cmd_discard,
    &csn_cmd_snapshot,
    &csn_cmd_snapshots,
    &csn_cmd_rollback,
    &csn_cmd_undo,
    &csn_cmd_fork,
    &csn_cmd_race,
    /* Files */
    &csn_cmd_read,
    &csn_cmd_cat,
    &csn_cmd_write,
    &csn_cmd_edit,
    &csn_cmd_rm,
    &csn_cmd_mkdir,
    &csn_cmd_mv,
    &csn_cmd_stat,
    &csn_cmd_ls,
    &csn_cmd_glob,
    &csn_cmd_grep,
    &csn_cmd_import,
    &csn_cmd_export,
    &csn_cmd_watch,
    /* Processes */
    &csn_cmd_ps,
    &csn_cmd_logs,
    &csn_cmd_kill,
    &csn_cmd_wait,
    /* Network */
    &csn_cmd_net,
    /* Policy and records */
    &csn_cmd_policy,
    &csn_cmd_init,
    &csn_cmd_trust,
    &csn_cmd_untrust,
    &csn_cmd_why,
    &csn_cmd_log,
    &csn_cmd_aside,
    /* Servers */
    &csn_cmd_mcp,
    /* caisson itself */
    &csn_cmd_doctor,
    &csn_cmd_version,
    &csn_cmd_help,
    &csn_cmd_completion,
    NULL,
};

const csn_cli_group csn_cli_groups[] = {
    {"Run something", &csn_cmd_run},
    {"Sandboxes that stay", &csn_cmd_create},
    {"Try, compare, keep or throw away", &csn_cmd_diff},
    {"Files", &csn_cmd_read},
    {"Processes", &csn_cmd_ps},
    {"Network", &csn_cmd_net},
    {"Policy and records", &csn_cmd_policy},
    {"Servers", &csn_cmd_mcp},
    {"caisson itself", &csn_cmd_doctor},
    {NULL, NULL},
};

const csn_command *csn_cli_find(const char *name)
{
    for (size_t i = 0; csn_cli_commands[i]; i++)
        if (strcmp(csn_cli_commands[i]->name, name) == 0)
            return csn_cli_commands[i];
    return NULL;
}

int csn_cli_unknown_command(const char *name)
{
    const char *names[sizeof(csn_cli_commands) / sizeof(csn_cli_commands[0])];
    char quoted[128], message[160], hint[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        names[i] = csn_cli_commands[i] ? csn_cli_commands[i]->name : NULL;
    const char *near = csn_nearest(name, names);
    csn_args_quote(name, quoted, sizeof(quoted));
    snprintf(message, sizeof(message), "unknown command '%s'", quoted);
    snprintf(hint, sizeof(hint), "did you mean %s?", near ? near : "");
    csn_cli_message(NULL, message, near ? hint : "caisson help lists the commands");
    return CSN_EXIT_USAGE;
}

/* With a buffer, so that it is one write. */
static int no_command(void)
{
    static char buffer[16384];

    setvbuf(stderr, buffer, _IOFBF, sizeof(buffer));
    csn_cli_help_overview(stderr);
    fflush(stderr);
    return CSN_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return no_command();
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const csn_command *cmd = csn_cli_find(name);
    return cmd ? csn_cli_dispatch(cmd, argc - 2, argv + 2) : csn_cli_unknown_command(name);
}
