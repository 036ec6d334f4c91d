/* cmd_list.c: `list`: prints the detached sandboxes of this user, oldest first.
 *
 * The library call also removes the remains of crashed sandboxes. -q prints ids and nothing
 * else, for scripts; the format of the table may change. Workspace paths may contain any byte
 * and are printed with csn_cli_put_name. */
#include <stddef.h>

#include "cli/commands.h"
#include "wire/result_json.h"

typedef struct list_opts {
    bool quiet;
} list_opts;

static void print_row(const csn_sandbox_entry *e)
{
    char when[CSN_HUMAN_SIZE];

    printf("%-28s %-16s %-8s %-13s %-17s ", e->id, e->name ? e->name : "-", e->backend,
           e->state, csn_cli_human_time(e->created_ms, when));
    csn_cli_put_name(e->workspace ? e->workspace : "-");
    putchar('\n');
}

static int run(csn_cli *c, void *opts)
{
    const list_opts *o = opts;
    csn_sandbox_list *l = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (csn_sandboxes(&l, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json) {
        status = CSN_CLI_JSON(c, csn_wire_sandboxes, l);
    } else {
        if (l->count > 0 && !o->quiet)
            printf("%-28s %-16s %-8s %-13s %-17s %s\n", "ID", "NAME", "BACKEND", "STATE",
                   "CREATED (UTC)", "WORKSPACE");
        for (size_t i = 0; i < l->count; i++) {
            if (o->quiet)
                printf("%s\n", l->items[i].id);
            else
                print_row(&l->items[i]);
        }
    }
    csn_sandbox_list_free(l);
    return status;
}

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 'q', "quiet", offsetof(list_opts, quiet), NULL, "only the ids", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_list = {
    .name = "list",
    .args = "",
    .usage = "[-q]",
    .summary = "list your sandboxes",
    .intro = "Lists the sandboxes that you created and did not destroy, oldest first. Removes\n"
             "what crashed sandboxes left behind.",
    .examples = "  caisson list\n"
                "  caisson list -q | xargs -r caisson destroy\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(list_opts),
    .run = run,
};
