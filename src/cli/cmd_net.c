/* cmd_net.c: `net`: prints or replaces the network rules of a running sandbox.
 *
 * Without rules it prints the present ones and the latest connections; with any rule it
 * replaces all of them in one call. Programs inside the sandbox choose the host names in
 * events; these are printed with csn_cli_put_name. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "wire/result_json.h"

typedef struct net_opts {
    const char *net;
    char **allow, **deny, **packages;
    uint64_t since;
} net_opts;

static void print_list(const char *key, const char *const *v)
{
    if (!v[0])
        return;
    printf("%-14s", key);
    for (; *v; v++) {
        csn_cli_put_name(*v);
        putchar(v[1] ? ' ' : '\n');
    }
}

static void print_event(const csn_net_event *e)
{
    char when[CSN_HUMAN_SIZE];
    const char *host = e->host ? e->host : e->address ? e->address : "?";

    printf("%s  %-5s %-8s ", csn_cli_human_time(e->time_ms, when), e->verdict, e->kind);
    csn_cli_put_name(host);
    if (e->port)
        printf(":%" PRIu64, e->port);
    if (strcmp(e->kind, "close") == 0)
        printf("  %" PRIu64 " out, %" PRIu64 " in, %" PRIu64 " ms", e->up, e->down,
               e->duration_ms);
    if (e->count > 1)
        printf("  (%" PRIu64 " times)", e->count);
    if (strcmp(e->verdict, "deny") == 0 && e->why) {
        printf("  ");
        csn_cli_put_name(e->why);
    }
    if (e->hint) {
        printf("; --allow ");
        csn_cli_put_name(e->hint);
    }
    putchar('\n');
}

static void print_network(const csn_net_result *r)
{
    printf("%-14s%s%s", "mode", r->mode, r->detail ? ": " : "");
    csn_cli_put_name(r->detail ? r->detail : "");
    putchar('\n');
    printf("%-14s%s\n", "network", r->network);
    print_list("allow", r->net_allow);
    print_list("deny", r->net_deny);
    print_list("packages", r->packages);
    if (r->lost > 0)
        printf("%" PRIu64 " older events were dropped\n", r->lost);
    for (uint32_t i = 0; i < r->event_count; i++)
        print_event(&r->events[i]);
}

static int show(csn_cli *c, const net_opts *o)
{
    csn_net_result *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (csn_network(c->sb, o->since, &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_network, r);
    else
        print_network(r);
    csn_network_free(r);
    return status;
}

static int run(csn_cli *c, void *opts)
{
    const net_opts *o = opts;
    csn_error *err = NULL;

    if (!o->net && !o->allow && !o->deny && !o->packages)
        return show(c, o);
    const csn_net_opts rules = {.size = sizeof(rules),
                                .network = o->net,
                                .net_allow = (const char *const *)o->allow,
                                .net_deny = (const char *const *)o->deny,
                                .packages = (const char *const *)o->packages};
    return csn_cli_finish(c, csn_network_set(c->sb, &rules, &err), &err);
}

#define AT(field) offsetof(net_opts, field)
static const csn_opt options[] = {
    {CSN_OPT_STR, 0, "net", AT(net), "none|all", "network without --allow", "none|all"},
    {CSN_OPT_LIST, 0, "allow", AT(allow), "HOST[:PORT]", "a host that may be reached", NULL},
    {CSN_OPT_LIST, 0, "deny", AT(deny), "HOST[:PORT]", "a host that may not be reached", NULL},
    {CSN_OPT_LIST, 0, "packages", AT(packages), "NAME", "hosts of a package manager", NULL},
    {CSN_OPT_U64, 0, "since", AT(since), "N", "only events from this number on", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_net = {
    .name = "net",
    .args = "ID",
    .usage = "ID [--since N] | ID [--net none|all] [--allow HOST[:PORT]]... [--deny HOST]...",
    .summary = "the network rules of a sandbox, and its connections",
    .intro =
        "Shows the rules and the latest connections. Rules on the command line replace all\n"
        "rules of the sandbox at once, and connections that they do not allow are closed.\n"
        "Published ports and host ports stay. The sandbox must have been made with network\n"
        "rules.",
    .examples = "  caisson net $id\n"
                "  caisson net $id --allow example.org:443 --deny ads.example.org\n"
                "  caisson net $id --net none\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(net_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run,
};
