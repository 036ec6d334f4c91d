/* cmd_info.c: `info`: prints the properties of a sandbox and which isolation it enforces.
 *
 * Each layer is one kind of isolation: on, off, or weaker than its backend promises. Paths may
 * contain any byte and are printed with csn_cli_put_name. */
#include "cli/commands.h"
#include "wire/result_json.h"

static void line(const char *key, const char *value)
{
    printf("%-14s", key);
    csn_cli_put_name(value ? value : "-");
    putchar('\n');
}

/* One line for each directory. */
static void lines(const char *key, const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        line(i == 0 ? key : "", list[i]);
}

static void print_info(const csn_info_result *r)
{
    char when[CSN_HUMAN_SIZE];

    line("id", r->id);
    line("name", r->name);
    line("backend", r->backend);
    line("state", r->state);
    line("isolation", r->isolation);
    line("workspace", r->workspace);
    line("workdir", r->workdir);
    line("home", r->home);
    lines("writes", r->write_dirs);
    lines("reads", r->read_dirs);
    line("created", csn_cli_human_time(r->created_ms, when));
    line("expires", r->expires_ms ? csn_cli_human_time(r->expires_ms, when) : "never");
    if (r->keeper_pid > 0)
        printf("%-14s%lld\n", "keeper", (long long)r->keeper_pid);
    if (r->rg_path)
        line("ripgrep", r->rg_path);
    printf("%-14s", "can");
    for (const char *const *w = r->capabilities; w && *w; w++)
        printf("%s%s", *w, w[1] ? ", " : "");
    printf("\nlayers\n");
    for (size_t i = 0; i < r->layer_count; i++) {
        printf("  %-14s%-12s", r->layers[i].name, r->layers[i].status);
        csn_cli_put_name(r->layers[i].detail ? r->layers[i].detail : "");
        putchar('\n');
    }
    if (r->rule_count > 0)
        puts("rules");
    for (size_t i = 0; i < r->rule_count; i++) {
        fputs("  ", stdout);
        csn_cli_put_name(r->rules[i].rule);
        printf(": %s\n", r->rules[i].enforced);
    }
}

static int run(csn_cli *c, void *opts)
{
    csn_info_result *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    (void)opts;
    if (csn_info(c->sb, &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_info, r);
    else
        print_info(r);
    csn_info_free(r);
    return status;
}

const csn_command csn_cmd_info = {
    .name = "info",
    .args = "ID",
    .summary = "what a sandbox is and what it enforces",
    .intro = "Prints the directories of a sandbox, when it ends, what it can do, and for each\n"
             "layer of isolation whether it is on.",
    .examples = "  caisson info build\n"
                "  caisson info $id --json\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run,
};
