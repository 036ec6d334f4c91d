/* cmd_write.c: `write`: writes stdin to a file, or the files of a tar, all or none.
 *
 * The library writes a temporary file and renames it, so a reader never sees a partial file. An
 * interrupted write keeps the old file: a signal makes the source fail instead of ending the
 * program between two steps. The tar is untrusted: if one entry leaves the directory, the whole
 * tar is refused. */
#include <stddef.h>

#include "cli/commands.h"
#include "wire/result_json.h"

typedef struct write_opts {
    const char *if_hash;
    bool create_only, append, sync, tar, nofollow;
} write_opts;

static uint32_t flags_of(const write_opts *o)
{
    return (o->create_only ? CSN_FILE_CREATE : 0) | (o->append ? CSN_FILE_APPEND : 0) |
           (o->sync ? CSN_FILE_SYNC : 0) | (o->nofollow ? CSN_FILE_NOFOLLOW : 0);
}

static int check(csn_cli *c, void *opts)
{
    const write_opts *o = opts;

    if (o->tar && (o->append || o->if_hash))
        return csn_cli_usage(c, NULL, "--tar and %s exclude each other",
                             o->append ? "--append" : "--if-hash");
    if (!o->tar && c->nargs < 2)
        return csn_cli_usage(c, NULL, "missing argument PATH");
    if (o->create_only && o->append)
        return csn_cli_usage(c, NULL, "--create-only and --append exclude each other");
    return 0;
}

static int write_tar(csn_cli *c, const write_opts *o)
{
    const char *path = c->nargs > 1 ? c->arg[1] : NULL;
    csn_error *err = NULL;

    return csn_cli_finish(
        c, csn_write_tar(c->sb, path, csn_cli_read_stdin, NULL, flags_of(o), &err), &err);
}

static int run(csn_cli *c, void *opts)
{
    const write_opts *o = opts;
    csn_write_opts wo = {.size = sizeof(wo), .flags = flags_of(o), .if_hash = o->if_hash};
    csn_write_result *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    csn_cli_catch_signals(NULL);
    if (o->tar)
        return write_tar(c, o);
    if (csn_write_from(c->sb, c->arg[1], csn_cli_read_stdin, NULL, &wo, &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_write, r);
    else if (r->note)
        csn_cli_note(c, "%s: %s", r->resolved_path, r->note);
    csn_write_result_free(r);
    return status;
}

#define AT(field) offsetof(write_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 0, "create-only", AT(create_only), NULL, "fail if the file exists", NULL},
    {CSN_OPT_FLAG, 0, "append", AT(append), NULL, "add to the end of the file", NULL},
    {CSN_OPT_STR, 0, "if-hash", AT(if_hash), "SHA256", "only if the file still has this hash",
     NULL},
    {CSN_OPT_FLAG, 0, "tar", AT(tar), NULL, "stdin is a tar: many files, all or nothing", NULL},
    {CSN_OPT_FLAG, 0, "sync", AT(sync), NULL, "flush the file to disk before returning", NULL},
    {CSN_OPT_FLAG, 0, "nofollow", AT(nofollow), NULL, "refuse symlinks in the path", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_write = {
    .name = "write",
    .args = "ID [PATH]",
    .usage = "ID PATH [OPTIONS] < DATA | ID [PATH] --tar < TAR",
    .summary = "write a file from stdin",
    .intro =
        "Writes what comes on stdin to a file. The file is replaced in one step: readers\n"
        "see the old content or the new one, never half of it. Missing directories are\n"
        "made. With --tar stdin is a tar whose files are written below PATH, either all of\n"
        "them or none.",
    .examples = "  echo hello | caisson write $id notes/today.txt\n"
                "  caisson write $id config.json --if-hash $hash --json < config.json\n"
                "  tar c src | caisson write $id --tar\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(write_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
