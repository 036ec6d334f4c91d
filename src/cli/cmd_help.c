/* cmd_help.c: `help` and `version`: print help texts and the version.
 *
 * `help NAME` prints what NAME --help prints, from the tables (help.c). Both work without a
 * sandbox, a configuration or a writable directory. */
#include <string.h>

#include "cli/commands.h"

void csn_cli_help_overview(FILE *to)
{
    fputs("usage: caisson COMMAND [ARGUMENTS]\n"
          "\n"
          "Sandboxes for programs you do not trust: run commands and work on files in a place\n"
          "of their own, the same way on every backend. ID is an id or a name.\n"
          "\n",
          to);
    for (size_t i = 0; csn_cli_commands[i]; i++)
        fprintf(to, "  %-11s %s\n", csn_cli_commands[i]->name, csn_cli_commands[i]->summary);
    fputs("\n"
          "One command in a sandbox of its own:   caisson run -- make test\n"
          "A sandbox that stays:                  id=$(caisson create); caisson exec $id -c "
          "'ls'\n"
          "More about one command:                caisson help COMMAND\n"
          "Exit status: 0 done, 1 failed, 2 wrong usage; run and exec: see caisson help run\n",
          to);
}

static int run_help(csn_cli *c, void *opts)
{
    (void)opts;
    if (c->nargs == 0) {
        csn_cli_help_overview(stdout);
        return 0;
    }
    const csn_command *cmd = csn_cli_find(c->arg[0]);
    if (!cmd)
        return csn_cli_unknown_command(c->arg[0]);
    csn_cli_help_command(cmd);
    return 0;
}

static int run_version(csn_cli *c, void *opts)
{
    csn_answer a;

    (void)opts;
    if (!c->json) {
        printf("caisson %s\n", csn_version());
        return 0;
    }
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kstr(j, "version", csn_version());
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

const csn_command csn_cmd_version = {
    .name = "version",
    .args = "",
    .summary = "print the version",
    .intro = "Prints the version of caisson.",
    .run = run_version,
};

const csn_command csn_cmd_help = {
    .name = "help",
    .args = "[COMMAND]",
    .summary = "explain a command",
    .intro = "Explains a command, or lists all of them.",
    .examples = "  caisson help exec\n",
    .flags = CSN_CMD_NO_JSON,
    .run = run_help,
};
