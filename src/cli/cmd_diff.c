/* cmd_diff.c: `diff`: prints what a sandbox changed in its copy-on-write workspace.
 *
 * The patch is written as it is to a pipe or file, so that `git apply` takes it; on a terminal
 * it is printed in visible form, because files of the sandbox may contain escape sequences. */
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/changes_view.h"
#include "cli/commands.h"
#include "wire/workspace_json.h"

#define STAT_MAX (256u * 1024u * 1024u)

typedef struct diff_opts {
    bool stat, name_only, patch;
} diff_opts;

static int check(csn_cli *c, void *opts)
{
    const diff_opts *o = opts;

    if (o->stat + o->name_only + o->patch > 1)
        return csn_cli_usage(c, NULL, "--stat, --name-only and --patch exclude each other");
    if (c->json && (o->stat || o->name_only))
        return csn_cli_usage(c, "--json has names and counts",
                             "--json excludes --stat and --name-only");
    return 0;
}

static int print_stat(const csn_cli *c, const csn_diff_result *r)
{
    csn_autobuf text;

    csn_buf_init(&text, STAT_MAX);
    csn_view_stat(&text, r->changes, r->count, csn_cli_on_terminal());
    if (text.err)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    fwrite(text.data, 1, text.len, stdout);
    return 0;
}

static void print_names(const csn_diff_result *r)
{
    for (size_t i = 0; i < r->count; i++) {
        csn_cli_put_name(r->changes[i].path);
        putchar('\n');
    }
}

static int print(csn_cli *c, const diff_opts *o, const csn_diff_result *r)
{
    if (c->json)
        return CSN_CLI_JSON(c, csn_wire_diff, r);
    if (o->stat)
        return print_stat(c, r);
    if (o->name_only)
        print_names(r);
    else if (csn_cli_on_terminal())
        csn_cli_put_lines(r->patch ? r->patch : "", r->patch_len);
    else if (r->patch)
        fwrite(r->patch, 1, r->patch_len, stdout);
    size_t held = csn_view_held(r->changes, r->count);
    if (held > 0 && !o->name_only)
        csn_cli_note(c, "%zu protected %s: commit holds %s back; diff --stat says why", held,
                     held == 1 ? "file" : "files", held == 1 ? "it" : "them");
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    const diff_opts *o = opts;
    csn_diff_opts d = {.size = sizeof(d), .paths = c->nargs > 1 ? c->arg + 1 : NULL};
    csn_diff_result *r = NULL;
    csn_error *err = NULL;

    if (c->json)
        d.flags = CSN_DIFF_COUNTS | CSN_DIFF_HASHES | (o->patch ? CSN_DIFF_PATCH : 0);
    else if (!o->name_only)
        d.flags = o->stat ? CSN_DIFF_COUNTS : CSN_DIFF_PATCH;
    if (csn_diff(c->sb, &d, &r, &err) < 0)
        return csn_cli_fail(c, err);
    int status = print(c, o, r);
    csn_diff_result_free(r);
    return status;
}

#define AT(field) offsetof(diff_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 0, "stat", AT(stat), NULL, "one line per file, with its lines", NULL},
    {CSN_OPT_FLAG, 0, "name-only", AT(name_only), NULL, "paths and nothing else", NULL},
    {CSN_OPT_FLAG, 'p', "patch", AT(patch), NULL,
     "a patch for git apply; the default, and with --json a member", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_diff = {
    .name = "diff",
    .args = "ID [PATH]...",
    .usage = "ID [--stat | --name-only | --patch] [PATH...]",
    .summary = "show what a sandbox changed in its workspace",
    .intro =
        "Compares the copy-on-write workspace of a sandbox (--cow) with the directory on the\n"
        "host, which it has not changed. With PATH, only that file or directory, relative to\n"
        "the workspace. Letters of --stat: A added, D deleted, M modified, T another type,\n"
        "m only mode, time or attributes. Binary files are shown by size and hash.",
    .examples = "  caisson diff $id --stat\n"
                "  caisson diff $id src | git apply --stat\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(diff_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
