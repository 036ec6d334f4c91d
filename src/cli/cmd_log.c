/* cmd_log.c: `log`: prints or verifies the audit log of a sandbox.
 *
 * The lines are hash-chained JSON and are printed unchanged, with or without --json, so that a
 * reader can check them; on a terminal invisible characters become escapes of JSON. --verify
 * recomputes the chain and finds any edit, cut or reordering, and operations that have no
 * recorded result; the exit status is 1 if it finds one. The sandbox need not exist any
 * more. */
#include <inttypes.h>
#include <stddef.h>

#include "cli/commands.h"
#include "wire/result_json.h"

typedef struct log_opts {
    bool verify;
} log_opts;

static int print_line(void *ctx, const char *line, size_t len)
{
    (void)ctx;
    csn_cli_put_json(line, len);
    putchar('\n');
    return ferror(stdout);
}

static int verify(csn_cli *c)
{
    csn_audit_report *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (csn_audit_verify(c->arg[0], &r, &err) < 0)
        return csn_cli_fail_value(c, err);
    if (c->json) {
        status = CSN_CLI_JSON(c, csn_wire_audit_report, r);
    } else if (r->ok) {
        printf("ok, %" PRIu64 " lines\n", r->lines);
    } else if (r->bad_line > 0) {
        printf("bad, line %" PRIu64 ": %s\n", r->bad_line, r->reason ? r->reason : "broken");
    } else {
        printf("bad: %s\n", r->reason ? r->reason : "broken");
    }
    if (!r->ok && status == 0)
        status = CSN_EXIT_FAILED;
    csn_audit_report_free(r);
    return status;
}

static int run(csn_cli *c, void *opts)
{
    const log_opts *o = opts;
    csn_error *err = NULL;

    if (o->verify)
        return verify(c);
    if (csn_audit_read(c->arg[0], print_line, NULL, &err) < 0)
        return csn_cli_fail_value(c, err);
    return 0;
}

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 0, "verify", offsetof(log_opts, verify), NULL,
     "check the chain of hashes instead", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_log = {
    .name = "log",
    .args = "ID",
    .usage = "ID [--verify]",
    .summary = "the audit log of a sandbox",
    .intro = "Prints the operations on a sandbox, one JSON object per line: time, operation,\n"
             "target, verdict, result. The log lies outside the sandbox and outlives it. With\n"
             "--verify: \"ok, N lines\", or with exit status 1 the first line that was\n"
             "tampered with, or the number of operations without a recorded result.",
    .examples = "  caisson log $id\n"
                "  caisson log $id --verify\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(log_opts),
    .run = run,
};
