/* help.c: prints help texts from the tables that the parser uses.
 *
 * The introduction and the examples of a subcommand are in its cmd_*.c. A test checks that the
 * manual names every option. An option that two groups of a subcommand have (run) is printed
 * once, with the help of the group that the parser searches first. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define COLUMN 30 /* column where the explanation of an option starts */

/* True if an earlier group has the same option; the parser uses the first one. */
static bool shown_before(const csn_command *cmd, size_t group, const csn_opt *o)
{
    for (size_t g = 0; g < group; g++)
        for (const csn_opt *p = cmd->groups[g].opts; p->kind != CSN_OPT_END; p++)
            if (o->name && p->name && strcmp(o->name, p->name) == 0)
                return true;
    return false;
}

static void print_option(const char *name, char brief, const char *metavar, const char *help)
{
    char left[80];
    int n = 0;

    if (brief && name)
        n = snprintf(left, sizeof(left), "  -%c, --%s", brief, name);
    else if (brief)
        n = snprintf(left, sizeof(left), "  -%c", brief);
    else
        n = snprintf(left, sizeof(left), "  --%s", name);
    if (metavar)
        n += snprintf(left + n, sizeof(left) - (size_t)n, " %s", metavar);
    if (n >= COLUMN)
        printf("%s\n%*s%s\n", left, COLUMN, "", help);
    else
        printf("%-*s%s\n", COLUMN, left, help);
}

static void print_group(const csn_command *cmd, size_t g)
{
    printf("\n%s:\n", cmd->groups[g].title);
    for (const csn_opt *o = cmd->groups[g].opts; o->kind != CSN_OPT_END; o++)
        if (o->help && !shown_before(cmd, g, o))
            print_option(o->name, o->brief, o->metavar, o->help);
}

void csn_cli_help_command(const csn_command *cmd)
{
    if (cmd->usage)
        printf("usage: caisson %s %s\n", cmd->name, cmd->usage);
    else
        printf("usage: caisson %s%s%s%s\n", cmd->name, cmd->args[0] ? " " : "", cmd->args,
               cmd->groups[0].opts ? " [OPTIONS]" : "");
    printf("\n%s\n", cmd->intro);
    for (size_t g = 0; g < CSN_ARGS_GROUPS && cmd->groups[g].opts; g++)
        print_group(cmd, g);
    printf("\nAlways:\n");
    if (!(cmd->flags & CSN_CMD_NO_JSON))
        print_option("json", 0, NULL, "one JSON value on stdout, errors too");
    print_option("help", 'h', NULL, "this text");
    if (cmd->examples)
        printf("\nExamples:\n%s", cmd->examples);
}
