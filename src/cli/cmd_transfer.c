/* cmd_transfer.c: `import` and `export`: copy directories between host and sandbox.
 *
 * HOSTDIR - is a tar on stdin or stdout. Names and links are untrusted in both directions; the
 * library keeps both sides below their directories. Progress is printed on stderr if that is a
 * terminal and the transfer takes long. A signal cancels the transfer; the exit status reports
 * it. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/strv.h"
#include "cli/commands.h"

#define SHOW_AFTER_NS 500000000u
#define SHOW_EVERY_NS 100000000u

typedef struct progress {
    const char *verb;
    uint64_t entries, bytes;
    uint64_t next_ns;
    bool terminal, shown;
    const csn_cli *cli;
    bool kept; /* protected files are written as well */
    char **protected;
} progress;

/* Prints a note, or collects the paths for --json. */
static void on_protected(void *ctx, const char *path, const char *rule)
{
    progress *p = ctx;
    csn_autofree char *shown = csn_path_printable(path);

    if (p->shown)
        fputs("\r\033[K", stderr);
    if (p->cli->json)
        (void)csn_strv_push(&p->protected, path);
    else
        csn_cli_note(p->cli, "%s %s: %s", shown ? shown : "a file",
                     p->kept ? "is protected and was written" : "was left out", rule);
}

static void on_progress(void *ctx, uint64_t entries, uint64_t bytes)
{
    progress *p = ctx;
    char size[CSN_HUMAN_SIZE];

    p->entries = entries;
    p->bytes = bytes;
    if (!p->terminal)
        return;
    uint64_t now = csn_now_ns();
    if (now < p->next_ns)
        return;
    p->next_ns = now + SHOW_EVERY_NS;
    p->shown = true;
    fprintf(stderr, "\r%s: %" PRIu64 " entries, %s\033[K", p->verb, entries,
            csn_cli_human_size(bytes, size));
}

static int answer(const csn_cli *c, const progress *p)
{
    csn_answer a;

    if (!c->json)
        return 0;
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kbool(j, "ok", true);
    csn_json_kuint(j, "entries", p->entries);
    csn_json_kuint(j, "bytes", p->bytes);
    if (strcmp(p->verb, "export") == 0) {
        csn_json_key(j, "protected");
        csn_json_array(j);
        for (size_t i = 0; p->protected && p->protected[i]; i++)
            csn_json_str(j, p->protected[i]);
        csn_json_array_end(j);
    }
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

/* *out_error is the errno of a failed write of the tar to stdout. */
static csn_status transfer(csn_cli *c, bool in, const csn_transfer_opts *to, int *out_error,
                           csn_error **err)
{
    const char *host = in ? c->arg[1] : c->arg[2];
    const char *path = in ? (c->nargs > 2 ? c->arg[2] : ".") : c->arg[1];
    bool tar = strcmp(host, "-") == 0;

    if (in && tar)
        return csn_import_tar(c->sb, path, csn_cli_read_stdin, NULL, to, err);
    if (in)
        return csn_import(c->sb, host, path, to, err);
    if (tar)
        return csn_export_tar(c->sb, path, csn_cli_write_stdout, out_error, to, err);
    return csn_export(c->sb, path, host, to, err);
}

static int check_export(csn_cli *c, void *opts)
{
    (void)opts;
    if (strcmp(c->arg[2], "-") == 0 && (c->json || isatty(STDOUT_FILENO)))
        return csn_cli_usage(c, "redirect stdout to a file or a pipe",
                             "a tar on stdout cannot be %s",
                             c->json ? "combined with --json" : "written to a terminal");
    return 0;
}

typedef struct export_opts {
    bool include_protected;
} export_opts;

/* x: NULL for an import. */
static int run_transfer(csn_cli *c, const export_opts *x)
{
    const bool in = x == NULL;
    progress p = {.verb = c->cmd->name, .terminal = isatty(STDERR_FILENO), .cli = c};
    csn_cancel *cancel = NULL;
    csn_error *err = NULL;
    int out_error = 0, status;

    if (csn_cancel_new(&cancel, &err) < 0)
        return csn_cli_fail(c, err);
    csn_cli_catch_signals(cancel);
    p.next_ns = csn_now_ns() + SHOW_AFTER_NS;
    csn_transfer_opts to = {.size = sizeof(to),
                            .on_progress = on_progress,
                            .on_progress_ctx = &p,
                            .cancel = cancel};
    if (!in) {
        p.kept = x->include_protected || strcmp(c->arg[2], "-") == 0;
        to.flags = x->include_protected ? CSN_TRANSFER_PROTECTED : 0;
        to.on_protected = on_protected;
        to.on_protected_ctx = &p;
    }
    csn_status st = transfer(c, in, &to, &out_error, &err);
    if (p.shown)
        fputs("\r\033[K", stderr);
    if (out_error == EPIPE) {
        csn_error_free(err);
        status = CSN_EXIT_BROKEN_PIPE;
    } else if (st < 0) {
        status = csn_cli_fail(c, err);
    } else if (out_error != 0) {
        status = csn_cli_write_failed(c, out_error);
    } else {
        status = answer(c, &p);
    }
    csn_strv_free(p.protected);
    csn_cli_catch_signals(NULL);
    csn_cancel_free(cancel);
    return status;
}

static int run_import(csn_cli *c, void *opts)
{
    (void)opts;
    return run_transfer(c, NULL);
}

static int run_export(csn_cli *c, void *opts)
{
    return run_transfer(c, opts);
}

static const csn_opt export_options[] = {
    {CSN_OPT_FLAG, 0, "include-protected", offsetof(export_opts, include_protected), NULL,
     "write protected files too", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_import = {
    .name = "import",
    .args = "ID HOSTDIR [PATH]",
    .usage = "ID (HOSTDIR | -) [PATH]",
    .summary = "copy a host directory into a sandbox",
    .intro =
        "Copies what is in HOSTDIR to PATH in the sandbox (default: the working directory).\n"
        "With - instead of HOSTDIR it takes a tar from stdin. Symlinks stay symlinks;\n"
        "devices, sockets and fifos are left out.",
    .examples = "  caisson import $id ./fixtures tests/fixtures\n"
                "  curl -L $url | caisson import $id - vendor\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_import,
};

const csn_command csn_cmd_export = {
    .name = "export",
    .args = "ID PATH HOSTDIR",
    .usage = "ID PATH (HOSTDIR | -)",
    .summary = "copy a directory out of a sandbox",
    .intro = "Copies the directory PATH of the sandbox to HOSTDIR, which is made if it is\n"
             "missing. With - instead of HOSTDIR it writes a tar to stdout. Symlinks stay\n"
             "symlinks, set-id bits are dropped; devices, sockets and fifos are left out.\n"
             "So are protected files, which programs of the host would run (git hooks, shell\n"
             "start files), with a note for each; a tar contains them.",
    .examples = "  caisson export $id dist ./dist\n"
                "  caisson export $id . - | gzip > work.tar.gz\n",
    .groups = {{"Options", export_options, 0}},
    .opts_size = sizeof(export_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check_export,
    .run = run_export,
};
