/* cmd_completion.c: `completion`: prints the completion script for a shell.
 *
 * The build embeds the scripts of completions/. That of bash calls `completion words
 * [COMMAND]`, which lists the commands, or the options of one, from the tables of the parser;
 * the others call `completion reply -- WORD...` (completion_reply.c). Both print no errors and
 * open no sandbox, because they run while the user types. */
#include <string.h>

#include "cli/commands.h"
#include "cli/completion_reply.h"

static const char bash_script[] = {
#include "completion_bash.inc"
};
static const char zsh_script[] = {
#include "completion_zsh.inc"
};
static const char fish_script[] = {
#include "completion_fish.inc"
};

static const struct {
    const char *shell, *script;
} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

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
    if (strcmp(c->arg[0], "reply") == 0) {
        csn_completion_reply(c->arg + 1, c->nargs - 1);
        return 0;
    }
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && c->nargs == 1; i++) {
        if (strcmp(c->arg[0], scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return 0;
        }
    }
    if (c->nargs > 1)
        return csn_cli_usage(c, "caisson completion bash", "unexpected argument");
    return csn_cli_unknown_word(c, "a shell that is known here", c->arg[0], "bash|zsh|fish");
}

const csn_command csn_cmd_completion = {
    .name = "completion",
    .args = "SHELL [WORD]...",
    .usage = "bash | zsh | fish",
    .summary = "print the completion script for a shell",
    .intro = "Prints a script that completes commands, options and sandboxes in bash, zsh or\n"
             "fish.",
    .examples =
        "  source <(caisson completion bash)\n"
        "  caisson completion bash > ~/.local/share/bash-completion/completions/caisson\n"
        "  caisson completion zsh > ~/.zfunc/_caisson\n"
        "  caisson completion fish > ~/.config/fish/completions/caisson.fish\n",
    .flags = CSN_CMD_NO_JSON,
    .run = run,
};
