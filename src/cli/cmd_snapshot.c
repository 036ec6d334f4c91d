/* cmd_snapshot.c: `snapshot`, `snapshots`, `rollback`, `undo`, `discard`, `pause` and `resume`:
 * save, restore and suspend a sandbox.
 *
 * snapshot prints the name of the result and nothing else, for scripts. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "wire/workspace_json.h"

typedef struct discard_opts {
    bool yes;
} discard_opts;

static int run_snapshot(csn_cli *c, void *opts)
{
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    (void)opts;
    if (csn_snapshot_as(c->sb, c->arg[1], &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_snapshot, r);
    else
        printf("%s\n", r->name ? r->name : r->snapshot);
    csn_snapshot_result_free(r);
    return csn_cli_flush(c, status);
}

static int run_snapshots(csn_cli *c, void *opts)
{
    csn_snapshot_list *l = NULL;
    csn_error *err = NULL;
    char when[CSN_HUMAN_SIZE];
    int status = 0;

    (void)opts;
    if (csn_snapshots(c->sb, &l, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_snapshots, l);
    for (size_t i = 0; i < l->count && !c->json; i++) {
        const csn_snapshot_entry *e = &l->items[i];
        printf("%-17s %-7s %-10s ", csn_cli_human_time(e->created_ms, when),
               e->how ? e->how : "-", e->automatic ? "automatic" : "-");
        csn_cli_put_name(e->name);
        putchar('\n');
    }
    csn_snapshot_list_free(l);
    return status;
}

static int run_rollback(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_rollback(c->sb, c->arg[1], &err), &err);
}

static int run_undo(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    return csn_cli_finish(c, csn_undo(c->sb, &err), &err);
}

/* A person at a terminal is asked; a program is not. */
static bool confirmed(const csn_cli *c)
{
    char answer[16];

    if (c->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return true;
    fprintf(stderr, "Throw away all changes and snapshots of %s? [y/N] ", csn_id(c->sb));
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int run_discard(csn_cli *c, void *opts)
{
    const discard_opts *o = opts;
    csn_error *err = NULL;

    if (!o->yes && !confirmed(c))
        return csn_cli_fail_text(c, CSN_CANCELLED, "nothing was thrown away");
    return csn_cli_finish(c, csn_discard(c->sb, &err), &err);
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

static const csn_opt discard_options[] = {
    {CSN_OPT_FLAG, 'y', "yes", offsetof(discard_opts, yes), NULL, "do not ask", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_snapshot = {
    .name = "snapshot",
    .args = "ID [NAME]",
    .summary = "save the files of a sandbox",
    .intro =
        "Prints the name of the snapshot. On a copy-on-write workspace (--cow) rollback takes\n"
        "it, and saving takes the same time for any number of files if no command runs.\n"
        "On dagger and vercel the name is made up, and create --image takes it.",
    .examples = "  caisson snapshot $id before-refactoring\n"
                "  snapshot=$(caisson snapshot $id)\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_snapshot,
};

const csn_command csn_cmd_snapshots = {
    .name = "snapshots",
    .args = "ID",
    .summary = "list the snapshots of a sandbox",
    .intro =
        "Lists the snapshots of a copy-on-write workspace, oldest first: time (UTC), how it\n"
        "was made (frozen: nothing was copied), whether --undo made it, and its name.",
    .examples = "  caisson snapshots $id\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_snapshots,
};

const csn_command csn_cmd_rollback = {
    .name = "rollback",
    .args = "ID [SNAPSHOT]",
    .summary = "restore a snapshot of a sandbox",
    .intro =
        "Restores the files of the snapshot; later changes are lost. On a copy-on-write\n"
        "workspace the newest one is the default, or the host's files if there is none, and\n"
        "no command may run. Supported by dagger, too, which needs the name.",
    .examples = "  caisson rollback $id before-refactoring\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_rollback,
};

const csn_command csn_cmd_undo = {
    .name = "undo",
    .args = "ID",
    .summary = "take back the last command of a sandbox",
    .intro =
        "Restores the files that the sandbox had before its last command. Needs a sandbox\n"
        "that was created with --cow --undo. Each further undo goes back one command.",
    .examples = "  id=$(caisson create --cow --undo)\n"
                "  caisson exec $id -- rm -r src\n"
                "  caisson undo $id\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_undo,
};

const csn_command csn_cmd_discard = {
    .name = "discard",
    .args = "ID",
    .usage = "ID [-y]",
    .summary = "throw away all changes of a sandbox",
    .intro = "Throws away all changes and snapshots of a copy-on-write workspace: it is the\n"
             "directory on the host again. Asks first on a terminal.",
    .examples = "  caisson discard $id\n",
    .groups = {{"Options", discard_options, 0}},
    .opts_size = sizeof(discard_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_discard,
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
