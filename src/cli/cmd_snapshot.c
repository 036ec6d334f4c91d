/* cmd_snapshot.c: a sandbox as a whole: snapshot, rollback, fork, pause, resume.
 *
 * main.c has connected the sandbox. What must hold: snapshot and fork print what names the
 * result and nothing else, for scripts; a fork whose id cannot be printed is destroyed again.
 */
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
    if (csn_rollback(c->sb, c->arg[1], &err) < 0)
        return csn_cli_fail(c, err);
    return csn_cli_done(c);
}

static int answer_fork(csn_cli *c, const csn_sandbox *sb, const char *name)
{
    csn_answer a;

    if (!c->json) {
        printf("%s\n", csn_id(sb));
        return csn_cli_flush(c, 0);
    }
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kstr(j, "id", csn_id(sb));
    csn_json_kstr(j, "name", name);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

static int run_fork(csn_cli *c, void *opts)
{
    const fork_opts *o = opts;
    csn_sandbox *other = NULL;
    csn_error *err = NULL;

    if (csn_fork(c->sb, o->name, &other, &err) < 0)
        return csn_cli_fail(c, err);
    int status = answer_fork(c, other, o->name);
    if (status != 0)
        csn_destroy(other, NULL);
    csn_close(other);
    return status;
}

static int run_pause(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    if (csn_pause(c->sb, &err) < 0)
        return csn_cli_fail(c, err);
    return csn_cli_done(c);
}

static int run_resume(csn_cli *c, void *opts)
{
    csn_error *err = NULL;

    (void)opts;
    if (csn_resume(c->sb, &err) < 0)
        return csn_cli_fail(c, err);
    return csn_cli_done(c);
}

static const csn_opt fork_options[] = {
    {CSN_OPT_STR, 0, "name", offsetof(fork_opts, name), "NAME",
     "a name to use instead of the id", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_snapshot = {
    .name = "snapshot",
    .args = "ID",
    .summary = "keep the files of a sandbox as they are now",
    .intro = "Prints what names the snapshot: --image of create begins with it. Only for\n"
             "backends that have snapshots: dagger and vercel.",
    .examples = "  snapshot=$(caisson snapshot $id)\n"
                "  caisson create --backend dagger --image \"$snapshot\"\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_snapshot,
};

const csn_command csn_cmd_rollback = {
    .name = "rollback",
    .args = "ID SNAPSHOT",
    .summary = "go back to a snapshot of a sandbox",
    .intro = "The files become those of the snapshot; what was done since is gone. Only for\n"
             "dagger.",
    .examples = "  caisson rollback $id \"$snapshot\"\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_rollback,
};

const csn_command csn_cmd_fork = {
    .name = "fork",
    .args = "ID",
    .usage = "ID [--name NAME]",
    .summary = "make another sandbox that begins as this one is now",
    .intro = "Prints the id of the other. Only for dagger; elsewhere, create one from a\n"
             "snapshot.",
    .examples = "  other=$(caisson fork $id)\n",
    .groups = {{"Options", fork_options, 0}},
    .opts_size = sizeof(fork_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run_fork,
};

const csn_command csn_cmd_pause = {
    .name = "pause",
    .args = "ID",
    .summary = "stop a sandbox without ending it",
    .intro = "Nothing inside runs and no lifetime passes until it is resumed, by resume or by\n"
             "any other command that uses it. Only for e2b.",
    .examples = "  caisson pause $id\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_pause,
};

const csn_command csn_cmd_resume = {
    .name = "resume",
    .args = "ID",
    .summary = "let a paused sandbox go on",
    .intro = "Its lifetime begins anew. Only for e2b.",
    .examples = "  caisson resume $id\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_resume,
};
