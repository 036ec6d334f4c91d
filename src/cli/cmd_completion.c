/* cmd_completion.c: `completion`: prints the completion script for bash.
 *
 * The build embeds completions/caisson.bash. The script calls `completion words [COMMAND]`,
 * which lists the commands, or the options of one, from the tables of the parser. It prints no
 * errors and opens no sandbox, because it runs while the user types. */
#include <string.h>

#include "cli/commands.h"

static const char bash_script[] = {
#include "completion_bash.inc"
};

static void print_words(const csn_command *cmd)
{
    for (size_t g = 0; g < CSN_ARGS_GROUPS && cmd->groups[g].opts; g++) {
        for (const csn_opt *o = cmd->groups[g].opts; o->kind != CSN_OPT_END; o++) {
            if (!o->help)
                continue;
            if (o->brief)
                printf("-%c\n", o->brief);
            if (o->name)
                printf("--%s\n", o->name);
        }
    }
    if (!(cmd->flags & CSN_CMD_NO_JSON))
        puts("--json");
    puts("--help");
}

static int words(csn_cli *c)
{
    const csn_command *cmd = c->nargs > 1 ? csn_cli_find(c->arg[1]) : NULL;

    if (c->nargs > 1 && !cmd)
        return CSN_EXIT_FAILED;
    if (cmd) {
        print_words(cmd);
        return 0;
    }
    for (size_t i = 0; csn_cli_commands[i]; i++)
        puts(csn_cli_commands[i]->name);
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    (void)opts;
    if (strcmp(c->arg[0], "words") == 0)
        return words(c);
    if (strcmp(c->arg[0], "bash") == 0 && c->nargs == 1) {
        fputs(bash_script, stdout);
        return 0;
    }
    return csn_cli_unknown_word(c, "a shell that is known here", c->arg[0], "bash");
}

const csn_command csn_cmd_completion = {
    .name = "completion",
    .args = "SHELL [COMMAND]",
    .usage = "bash",
    .summary = "print the completion script for bash",
    .intro = "Prints a script that completes commands, options and sandboxes in bash.",
    .examples =
        "  source <(caisson completion bash)\n"
        "  caisson completion bash > ~/.local/share/bash-completion/completions/caisson\n",
    .flags = CSN_CMD_NO_JSON,
    .run = run,
};
