/* cmd_watch.c: `watch`: prints file events, one per line, until stopped.
 *
 * Each event is flushed at once, because the reader is usually a pipe. Invariants: a watch
 * without events still notices that its reader closed stdout; lost events are reported
 * (overflow). File names are untrusted and printed with csn_cli_put_name. */
#include <stddef.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "wire/result_json.h"

#define READER_CHECK_MS 500u /* interval between checks that stdout has a reader */

typedef struct watch_opts {
    uint64_t max, timeout;
    bool recursive;
} watch_opts;

static int print_event(const csn_cli *c, const csn_event *e)
{
    if (c->json)
        return CSN_CLI_JSON(c, csn_wire_event, e);
    printf("%-8s ", csn_wire_event_name(e->kind));
    csn_cli_put_name(e->path);
    if (e->is_dir)
        putchar('/');
    putchar('\n');
    return csn_cli_flush(c, 0);
}

/* The next wait in ms, at most READER_CHECK_MS; 0 after the deadline. */
static uint64_t next_wait(uint64_t deadline)
{
    int left = csn_deadline_poll_ms(deadline);

    return left < 0 || left > (int)READER_CHECK_MS ? READER_CHECK_MS : (uint64_t)left;
}

static int follow(csn_cli *c, csn_watch *w, const watch_opts *o)
{
    uint64_t deadline = o->timeout ? csn_deadline_in(o->timeout) : 0;
    uint64_t seen = 0;
    csn_event e;

    while (o->max == 0 || seen < o->max) {
        uint64_t wait = next_wait(deadline);
        csn_error *err = NULL;
        csn_status st = wait > 0 ? csn_watch_next(w, wait, &e, &err) : CSN_OK;
        if (wait == 0)
            return 0;
        if (st == CSN_TIMEOUT) {
            csn_error_free(err);
            if (csn_cli_reader_gone())
                return CSN_EXIT_BROKEN_PIPE;
            continue;
        }
        if (st < 0)
            return csn_cli_fail(c, err);
        int failed = print_event(c, &e);
        if (failed)
            return failed;
        seen++;
    }
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    const watch_opts *o = opts;
    csn_watch *w = NULL;
    csn_error *err = NULL;
    const char *path = c->nargs > 1 ? c->arg[1] : ".";

    if (csn_watch_open(c->sb, path, o->recursive ? CSN_FILE_RECURSIVE : 0, &w, &err) < 0)
        return csn_cli_fail(c, err);
    int status = follow(c, w, o);
    csn_watch_free(w);
    return status;
}

#define AT(field) offsetof(watch_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 'r', "recursive", AT(recursive), NULL, "everything below as well", NULL},
    {CSN_OPT_COUNT, 0, "max", AT(max), "N", "stop after this many events", NULL},
    {CSN_OPT_DURATION, 0, "timeout", AT(timeout), "DURATION", "stop after this long", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_watch = {
    .name = "watch",
    .args = "ID [PATH]",
    .summary = "follow changes of files",
    .intro =
        "Prints a line for each file that is created, modified, deleted or renamed in a\n"
        "directory (default: the working directory) until it is stopped or the sandbox ends.\n"
        "The line overflow means that events were lost: look again. With --json one object a\n"
        "line.",
    .examples = "  caisson watch $id src -r\n"
                "  caisson watch $id --max 1 --timeout 1m --json\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(watch_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run,
};
