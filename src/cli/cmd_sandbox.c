/* cmd_sandbox.c: `cleanup`, `extend` and `cd`: empty the workspace, set the lifetime, set the
 * working directory.
 *
 * `cleanup` cannot be undone, so it takes exactly one sandbox and no patterns. A wrong duration
 * is refused before the sandbox is connected. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/strv.h"
#include "cli/commands.h"

typedef struct cleanup_opts {
    bool force;
} cleanup_opts;

static bool confirmed(const csn_info_result *info)
{
    char answer[16], shown[512];

    csn_args_quote(info->workspace ? info->workspace : info->workdir, shown, sizeof(shown));
    fprintf(stderr, "Remove everything in %s? [y/N] ", shown);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* A person at a terminal is asked; a program is not. */
static int ask(csn_cli *c)
{
    csn_info_result *info = NULL;
    csn_error *err = NULL;

    if (c->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return 0;
    if (csn_info(c->sb, &info, &err) < 0)
        return csn_cli_fail(c, err);
    bool yes = confirmed(info);
    csn_info_free(info);
    return yes ? 0 : csn_cli_fail_text(c, CSN_CANCELLED, "nothing was removed");
}

static int run_cleanup(csn_cli *c, void *opts)
{
    const cleanup_opts *o = opts;
    csn_error *err = NULL;
    int status = o->force ? 0 : ask(c);

    if (status != 0)
        return status;
    return csn_cli_finish(c, csn_cleanup_with(c->sb, o->force ? CSN_CLEANUP_FORCE : 0, &err),
                          &err);
}

static int check_extend(csn_cli *c, void *opts)
{
    uint64_t ms = 0;
    char quoted[64];

    (void)opts;
    if (!csn_parse_duration_ms(c->arg[1], &ms) || ms == 0) {
        csn_args_quote(c->arg[1], quoted, sizeof(quoted));
        return csn_cli_usage(c, "such as 30s, 10m or 1h", "'%s' is not a duration", quoted);
    }
    return 0;
}

static int run_extend(csn_cli *c, void *opts)
{
    csn_error *err = NULL;
    uint64_t ms = 0;

    (void)opts;
    csn_parse_duration_ms(c->arg[1], &ms);
    return csn_cli_finish(c, csn_extend(c->sb, ms, &err), &err);
}

static int run_cd(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_set_workdir(c->sb, c->arg[1], &err), &err);
}

static const csn_opt cleanup_options[] = {
    {CSN_OPT_FLAG, 0, "force", offsetof(cleanup_opts, force), NULL,
     "do not ask; also a directory that existed before", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_cleanup = {
    .name = "cleanup",
    .args = "ID",
    .summary = "empty the workspace of a sandbox",
    .intro =
        "Removes everything in the workspace; the directory itself stays. There is no undo.\n"
        "Asks first on a terminal. A directory that the sandbox did not make with\n"
        "--create-workspace is emptied only with --force.",
    .examples = "  caisson cleanup $id\n"
                "  caisson cleanup $id --force\n",
    .groups = {{"Options", cleanup_options, 0}},
    .opts_size = sizeof(cleanup_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_cleanup,
};

const csn_command csn_cmd_extend = {
    .name = "extend",
    .args = "ID DURATION",
    .summary = "set the time until a sandbox ends",
    .intro = "The sandbox ends after DURATION from now, whatever its lifetime was before.",
    .examples = "  caisson extend $id 10m\n",
    .flags = CSN_CMD_SANDBOX,
    .check = check_extend,
    .run = run_extend,
};

const csn_command csn_cmd_cd = {
    .name = "cd",
    .args = "ID PATH",
    .summary = "set the working directory of a sandbox",
    .intro =
        "Sets the directory in which commands start and to which relative paths refer, for\n"
        "all later calls of all processes that use the sandbox.",
    .examples = "  caisson cd $id src\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_cd,
};
