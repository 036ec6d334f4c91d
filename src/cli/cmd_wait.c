/* cmd_wait.c: `wait`: waits until a port is open or a process has written a given text.
 *
 * For scripts that start a server with exec -d. The default timeout is 30 seconds; exit status
 * 1 means that the timeout passed. */
#include <stddef.h>

#include "cli/commands.h"

#define TIMEOUT_MS 30000u

typedef struct wait_opts {
    uint64_t port, timeout;
    const char *log;
} wait_opts;

static int check(csn_cli *c, void *opts)
{
    const wait_opts *o = opts;

    if (!o->port == !o->log)
        return csn_cli_usage(c, NULL, "give either --port or --log");
    if (o->port > UINT16_MAX)
        return csn_cli_usage(c, NULL, "--port takes 1 to 65535, not '%s'",
                             csn_args_typed(c->args, "port", 0));
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    const wait_opts *o = opts;
    uint64_t ms = o->timeout ? o->timeout : TIMEOUT_MS;
    csn_error *err = NULL;

    csn_status st = o->port ? csn_wait_port(c->sb, (uint16_t)o->port, ms, &err)
                            : csn_wait_log(c->sb, o->log, ms, &err);
    return csn_cli_finish(c, st, &err);
}

#define AT(field) offsetof(wait_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_COUNT, 0, "port", AT(port), "N", "until something listens on this port", NULL},
    {CSN_OPT_STR, 0, "log", AT(log), "TEXT", "until a background process wrote this", NULL},
    {CSN_OPT_DURATION, 0, "timeout", AT(timeout), "DURATION", "give up after this, default 30s",
     NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_wait = {
    .name = "wait",
    .args = "ID",
    .usage = "ID (--port N | --log TEXT) [--timeout DURATION]",
    .summary = "wait for a port or a line of output",
    .intro = "Returns as soon as something listens on the sandbox's port, or as soon as any\n"
             "background process has written the text. Exit status 1 when it took too long.",
    .examples = "  caisson exec $id -d -- python3 -m http.server 8000\n"
                "  caisson wait $id --port 8000 --timeout 10s\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(wait_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
