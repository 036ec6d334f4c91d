/* cmd_log.c: `log`: prints, follows, verifies and removes audit logs.
 *
 * --json prints the hash-chained lines unchanged, so that a reader can check them; on a
 * terminal invisible characters become escapes of JSON. Without it each line becomes one line
 * for people (log_line.c). --verify recomputes the chain and finds any edit, cut or reordering,
 * and operations that have no recorded result; the exit status is 1 if it finds one. The
 * sandbox need not exist any more.
 *
 * Invariant: --prune removes only logs whose sandbox has ended; the library checks that. */
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "caisson/records.h"
#include "cli/commands.h"
#include "cli/log_line.h"
#include "wire/result_json.h"

#define FOLLOW_MS 300 /* between two looks at a log that is followed */

CSN_DEFINE_CLEANUP(csn_audit_logs_result, csn_audit_logs_free)

typedef struct log_opts {
    const char *file;
    uint64_t older, larger;
    bool verify, follow, prune;
} log_opts;

static int check(csn_cli *c, void *opts)
{
    const log_opts *o = opts;

    if (o->file && c->nargs > 0)
        return csn_cli_usage(c, NULL, "--file and ID exclude each other");
    if (o->verify && o->follow)
        return csn_cli_usage(c, NULL, "--verify and --follow exclude each other");
    if (!o->prune && (o->older || o->larger))
        return csn_cli_usage(c, NULL, "%s needs --prune", o->older ? "--older" : "--larger");
    if (!o->prune)
        return 0;
    if (o->file || o->verify || o->follow || c->nargs > 0)
        return csn_cli_usage(c, "it removes logs of all ended sandboxes",
                             "--prune takes --older and --larger only");
    if (o->older == CSN_NO_LIMIT || o->larger == CSN_NO_LIMIT)
        return csn_cli_usage(
            c, "such as --older 7d or --larger 100M", "%s takes an amount above 0, not '%s'",
            o->older == CSN_NO_LIMIT ? "--older" : "--larger",
            csn_args_typed(c->args, o->older == CSN_NO_LIMIT ? "older" : "larger", 0));
    if (!o->older && !o->larger)
        return csn_cli_usage(c, "such as --older 7d or --larger 100M",
                             "--prune needs --older or --larger");
    return 0;
}

/* ---- which log ----------------------------------------------------------------------- */

/* A log by the id of its sandbox or by its path. */
typedef struct place {
    char *name; /* malloc'd */
    bool is_file;
} place;

static int choose(csn_cli *c, const log_opts *o, place *ret)
{
    CSN_CLEANUP(csn_audit_logs_freep) csn_audit_logs_result *l = NULL;
    csn_error *err = NULL;
    const char *name = o->file ? o->file : c->nargs > 0 ? c->arg[0] : NULL;

    if (!name) {
        if (csn_audit_logs(&l, &err) < 0)
            return csn_cli_fail(c, err);
        if (l->count == 0)
            return csn_cli_fail_text(c, CSN_NOT_FOUND, "there is no audit log yet");
        name = l->items[l->count - 1].id;
    }
    *ret = (place){.name = strdup(name), .is_file = o->file || strchr(name, '/')};
    return ret->name ? 0 : csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
}

/* ---- printing ------------------------------------------------------------------------ */

typedef struct printer {
    const csn_cli *c;
    uint64_t seen, skip; /* lines of this pass, and those that were printed before */
    bool ended;          /* the line of the end was printed */
    char id[128];        /* of the sandbox, from its lines */
} printer;

static int print_line(void *ctx, const char *line, size_t len)
{
    printer *p = ctx;

    if (++p->seen <= p->skip)
        return 0;
    p->skip = p->seen;
    csn_log_line l;
    csn_log_line_read(line, len, &l);
    if (l.sandbox && strlen(l.sandbox) < sizeof(p->id))
        memcpy(p->id, l.sandbox, strlen(l.sandbox) + 1);
    p->ended = p->ended || strcmp(l.op, "destroy") == 0;
    if (p->c->json) {
        csn_cli_put_json(line, len);
        putchar('\n');
    } else {
        csn_log_line_print(&l);
    }
    csn_log_line_release(&l);
    return ferror(stdout);
}

static int print(csn_cli *c, const log_opts *o, const place *from)
{
    const char *name = from->name;
    printer p = {.c = c};
    csn_error *err = NULL;

    if (!c->json && c->nargs == 0 && !o->file)
        printf("sandbox %s\n", name);
    for (;;) {
        p.seen = 0;
        csn_status st = from->is_file ? csn_audit_read_file(name, print_line, &p, &err)
                                      : csn_audit_read(name, print_line, &p, &err);
        if (st < 0)
            return csn_cli_fail_value(c, err);
        int status = csn_cli_flush(c, 0);
        if (status != 0 || !o->follow || p.ended)
            return status;
        if (csn_cli_reader_gone())
            return CSN_EXIT_BROKEN_PIPE;
        if (!from->is_file && p.id[0]) /* a name ends with its sandbox */
            name = p.id;
        poll(NULL, 0, FOLLOW_MS);
    }
}

/* ---- --verify ------------------------------------------------------------------------ */

static int verify(csn_cli *c, const place *from)
{
    csn_audit_report *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    csn_status st = from->is_file ? csn_audit_verify_file(from->name, &r, &err)
                                  : csn_audit_verify(from->name, &r, &err);
    if (st < 0)
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

/* ---- --prune ------------------------------------------------------------------------- */

typedef struct pruned {
    uint64_t logs, bytes;
} pruned;

/* Removes one log; one that is in use stays and is no error. Returns 0 or an exit status. */
static int remove_log(csn_cli *c, const csn_audit_log *l, pruned *sum)
{
    csn_error *err = NULL;

    csn_status st = csn_audit_remove(l->id, &err);
    if (st == CSN_OK) {
        sum->logs++;
        sum->bytes += l->bytes;
        return 0;
    }
    if (st != CSN_CONFLICT && st != CSN_NOT_FOUND)
        return csn_cli_fail(c, err);
    csn_error_free(err);
    return 0;
}

static int prune(csn_cli *c, const log_opts *o)
{
    CSN_CLEANUP(csn_audit_logs_freep) csn_audit_logs_result *l = NULL;
    char text[CSN_HUMAN_SIZE];
    csn_error *err = NULL;
    pruned sum = {0};
    uint64_t all = 0;
    int status = 0;
    csn_answer a;

    if (csn_audit_logs(&l, &err) < 0)
        return csn_cli_fail(c, err);
    int64_t now = csn_wall_ms();
    for (size_t i = 0; i < l->count; i++)
        all += l->items[i].bytes;
    for (size_t i = 0; i < l->count && status == 0; i++) { /* the oldest first */
        const csn_audit_log *one = &l->items[i];
        bool old =
            o->older && one->written_ms < now && (uint64_t)(now - one->written_ms) >= o->older;
        if (old || (o->larger && all - sum.bytes > o->larger))
            status = remove_log(c, one, &sum);
    }
    if (status != 0)
        return status;
    if (!c->json) {
        printf("%" PRIu64 " logs removed, %s\n", sum.logs, csn_cli_human_size(sum.bytes, text));
        return 0;
    }
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kuint(j, "removed", sum.logs);
    csn_json_kuint(j, "bytes", sum.bytes);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

static int run(csn_cli *c, void *opts)
{
    const log_opts *o = opts;
    place from = {0};

    if (o->prune)
        return prune(c, o);
    int status = choose(c, o, &from);
    if (status == 0)
        status = o->verify ? verify(c, &from) : print(c, o, &from);
    free(from.name);
    return status;
}

#define AT(field) offsetof(log_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 0, "verify", AT(verify), NULL, "check the chain of hashes instead", NULL},
    {CSN_OPT_FLAG, 'f', "follow", AT(follow), NULL, "print new lines until the sandbox ends",
     NULL},
    {CSN_OPT_STR, 0, "file", AT(file), "FILE", "a log that --audit FILE wrote", NULL},
    {CSN_OPT_FLAG, 0, "prune", AT(prune), NULL, "remove logs of ended sandboxes instead", NULL},
    {CSN_OPT_DURATION, 0, "older", AT(older), "DURATION", "with --prune: last written before",
     NULL},
    {CSN_OPT_SIZE, 0, "larger", AT(larger), "SIZE",
     "with --prune: the oldest, until the rest is smaller", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_log = {
    .name = "log",
    .args = "[ID]",
    .usage = "[ID | --file FILE] [--follow | --verify] | --prune [--older DURATION] "
             "[--larger SIZE]",
    .summary = "what was done in a sandbox: the audit log",
    .intro =
        "Prints the operations on a sandbox, one a line: time, operation, result, duration\n"
        "and target. Without ID: of the sandbox that was used last, also if it was a run.\n"
        "--json prints the lines as they are stored, one JSON object each. The log lies\n"
        "outside the sandbox and outlives it. With --verify: \"ok, N lines\", or with exit\n"
        "status 1 the first line that was tampered with, or the number of operations without\n"
        "a recorded result.",
    .examples = "  caisson log\n"
                "  caisson log $id --json\n"
                "  caisson log --verify --file audit.jsonl\n"
                "  caisson log --prune --older 7d --larger 100M\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(log_opts),
    .check = check,
    .run = run,
};
