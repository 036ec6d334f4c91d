/* cmd_file.c: `rm`, `mkdir` and `mv`: remove, create and rename files.
 *
 * Paths come from scripts and models and may contain any byte but NUL. This file passes them
 * unchanged to the library, which resolves them and checks the policy. A tree is removed only
 * with -r. */
#include <stddef.h>

#include "cli/commands.h"

typedef struct rm_opts {
    bool recursive;
} rm_opts;

static int run_rm(csn_cli *c, void *opts)
{
    const rm_opts *o = opts;
    csn_error *err = NULL;

    return csn_cli_finish(
        c, csn_delete(c->sb, c->arg[1], o->recursive ? CSN_FILE_RECURSIVE : 0, &err), &err);
}

static int run_mkdir(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_mkdir(c->sb, c->arg[1], 0, &err), &err);
}

static int run_mv(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_rename(c->sb, c->arg[1], c->arg[2], 0, &err), &err);
}

static const csn_opt rm_options[] = {
    {CSN_OPT_FLAG, 'r', "recursive", offsetof(rm_opts, recursive), NULL,
     "a directory and everything in it", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_rm = {
    .name = "rm",
    .args = "ID PATH",
    .usage = "ID PATH [-r]",
    .summary = "remove a file, or a tree with -r",
    .intro =
        "Removes a file, a symlink (never what it points to) or an empty directory; with -r\n"
        "a directory with everything in it.",
    .examples = "  caisson rm $id build -r\n",
    .groups = {{"Options", rm_options, 0}},
    .opts_size = sizeof(rm_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_rm,
};

const csn_command csn_cmd_mkdir = {
    .name = "mkdir",
    .args = "ID PATH",
    .summary = "make a directory",
    .intro = "Makes a directory and its missing parents.",
    .examples = "  caisson mkdir $id src/parser/tests\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_mkdir,
};

const csn_command csn_cmd_mv = {
    .name = "mv",
    .args = "ID FROM TO",
    .summary = "rename or move a file",
    .intro = "Renames a file or directory atomically. TO is the new name, not a directory to\n"
             "move into.",
    .examples = "  caisson mv $id draft.txt final.txt\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_mv,
};
