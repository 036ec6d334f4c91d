/* cmd_help.c: `help` and `version`: what the program says about itself.
 *
 * `help NAME` prints what NAME --help prints, from the tables (help.c). Both work without any
 * sandbox, configuration or writable directory, because somebody who reads help may have none
 * of them working. --version and --help as first word end up here too (main.c). */
#include <string.h>

#include "cli/commands.h"

static int run_help(csn_cli *c, void *opts)
{
    char quoted[64];

    (void)opts;
    if (c->nargs == 0) {
        csn_cli_help_overview(stdout);
        return 0;
    }
    const csn_command *cmd = csn_cli_find(c->arg[0]);
    if (!cmd) {
        csn_args_quote(c->arg[0], quoted, sizeof(quoted));
        return csn_cli_usage(c, "caisson help lists the commands", "unknown command '%s'",
                             quoted);
    }
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
