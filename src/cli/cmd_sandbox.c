/* cmd_sandbox.c: the small verbs on a whole sandbox: cleanup, extend, cd.
 *
 * Each is one call of the library and an answer: silence, or {"ok":true} with --json. main.c
 * has connected the sandbox. What must hold: `cleanup` removes what is in the workspace and has
 * no undo, so it takes exactly one sandbox and no patterns; a wrong duration is found before
 * the sandbox is touched. */
#include "base/strv.h"
#include "cli/commands.h"

static int run_cleanup(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    if (csn_cleanup(c->sb, &err) < 0)
        return csn_cli_fail(c, err);
    return csn_cli_done(c);
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
    if (csn_extend(c->sb, ms, &err) < 0)
        return csn_cli_fail(c, err);
    return csn_cli_done(c);
}

static int run_cd(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    if (csn_set_workdir(c->sb, c->arg[1], &err) < 0)
        return csn_cli_fail(c, err);
    return csn_cli_done(c);
}

const csn_command csn_cmd_cleanup = {
    .name = "cleanup",
    .args = "ID",
    .summary = "empty the workspace of a sandbox",
    .intro =
        "Removes everything in the workspace; the directory itself stays. There is no undo.",
    .examples = "  caisson cleanup $id\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_cleanup,
};

const csn_command csn_cmd_extend = {
    .name = "extend",
    .args = "ID DURATION",
    .summary = "let a sandbox live longer",
    .intro = "The sandbox ends this long from now, whatever its lifetime was before.",
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
        "Sets the directory that commands start in and that relative paths are relative to,\n"
        "for every later call of every process that uses the sandbox.",
    .examples = "  caisson cd $id src\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_cd,
};
