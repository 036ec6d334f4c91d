/* cmd_snapshot.c: `snapshot`, `rollback`, `fork`, `pause` and `resume`: save, restore, copy and
 * suspend a sandbox.
 *
 * snapshot and fork print the name of the result and nothing else, for scripts. A fork whose id
 * cannot be printed is destroyed. */
#include <stddef.h>

#include "cli/commands.h"

typedef struct fork_opts {
    const char *name;
} fork_opts;

static int run_snapshot(csn_cli *c, void *opts)
{
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;
    csn_answer a;

    (void)opts;
    if (csn_snapshot(c->sb, &r, &err) < 0)
        return csn_cli_fail(c, err);
    int status = 0;
    if (!c->json) {
        printf("%s\n", r->snapshot);
        status = csn_cli_flush(c, 0);
    } else {
        csn_json *j = csn_answer_begin(&a);
        csn_json_object(j);
        csn_json_kstr(j, "snapshot", r->snapshot);
        csn_json_object_end(j);
        status = csn_answer_end(c, &a);
    }
    csn_snapshot_result_free(r);
    return status;
}

static int run_rollback(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_rollback(c->sb, c->arg[1], &err), &err);
}

static int run_fork(csn_cli *c, void *opts)
{
    const fork_opts *o = opts;
    csn_sandbox *other = NULL;
    csn_error *err = NULL;

    if (csn_fork(c->sb, o->name, &other, &err) < 0)
        return csn_cli_fail(c, err);
    int status = csn_cli_print_id(c, other, o->name, false);
    if (status != 0)
        csn_destroy(other, NULL);
    csn_close(other);
    return status;
}

static int run_pause(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_pause(c->sb, &err), &err);
}

static int run_resume(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_resume(c->sb, &err), &err);
}

static const csn_opt fork_options[] = {
    {CSN_OPT_STR, 0, "name", offsetof(fork_opts, name), "NAME",
     "a name to use instead of the id", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_snapshot = {
    .name = "snapshot",
    .args = "ID",
    .summary = "save the files of a sandbox",
    .intro =
        "Prints the name of the snapshot, which create --image takes. Supported by dagger\n"
        "and vercel.",
    .examples = "  snapshot=$(caisson snapshot $id)\n"
                "  caisson create --backend dagger --image \"$snapshot\"\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_snapshot,
};

const csn_command csn_cmd_rollback = {
    .name = "rollback",
    .args = "ID SNAPSHOT",
    .summary = "restore a snapshot of a sandbox",
    .intro = "Restores the files of the snapshot; later changes are lost. Supported by dagger.",
    .examples = "  caisson rollback $id \"$snapshot\"\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_rollback,
};

const csn_command csn_cmd_fork = {
    .name = "fork",
    .args = "ID",
    .usage = "ID [--name NAME]",
    .summary = "copy a sandbox in its present state",
    .intro = "Prints the id of the copy. Supported by dagger; with other backends create a\n"
             "sandbox from a snapshot.",
    .examples = "  other=$(caisson fork $id)\n",
    .groups = {{"Options", fork_options, 0}},
    .opts_size = sizeof(fork_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_fork,
};

const csn_command csn_cmd_pause = {
    .name = "pause",
    .args = "ID",
    .summary = "suspend a sandbox",
    .intro = "Suspends all processes and the lifetime until resume, or any other command that\n"
             "uses the sandbox. Supported by e2b.",
    .examples = "  caisson pause $id\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_pause,
};

const csn_command csn_cmd_resume = {
    .name = "resume",
    .args = "ID",
    .summary = "resume a paused sandbox",
    .intro = "The lifetime starts again. Supported by e2b.",
    .examples = "  caisson resume $id\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_resume,
};
