/* cmd_help.c: `help` and `version`: print help texts and the version.
 *
 * `help NAME` prints what NAME --help prints, from the tables (help.c). Both work without a
 * sandbox, a configuration or a writable directory. */
#include <string.h>

#include "cli/commands.h"

/* The title of the group that begins with this command, or NULL. */
static const char *title_at(const csn_command *cmd)
{
    for (const csn_cli_group *g = csn_cli_groups; g->title; g++)
        if (g->first == cmd)
            return g->title;
    return NULL;
}

void csn_cli_help_overview(FILE *to)
{
    fputs("usage: caisson COMMAND [ARGUMENTS]\n"
          "\n"
          "  caisson run -- make test             one command in a sandbox of its own\n"
          "  id=$(caisson create)                 a sandbox that stays; ID: its id or name\n"
          "  caisson help COMMAND                 more about a command\n",
          to);
    for (size_t i = 0; csn_cli_commands[i]; i++) {
        const char *title = title_at(csn_cli_commands[i]);
        if (title)
            fprintf(to, "\n%s:\n", title);
        fprintf(to, "  %-11s %s\n", csn_cli_commands[i]->name, csn_cli_commands[i]->summary);
    }
    fputs(
        "\nExit status: 0 done, 1 failed, 2 wrong usage; run and exec: see caisson help run\n",
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
