/* cmd_list.c: `list`: prints the sandboxes of this user: detached ones, oldest first, then
 * attached ones.
 *
 * An attached sandbox (run, mcp) ends with its process and has no record. It is found by its
 * audit log, which its process has locked; one without a log at the default place is not
 * listed. The library call also removes the remains of crashed sandboxes. -q prints ids and
 * nothing else, for scripts; the format of the table may change. Workspace paths may contain
 * any byte and are printed with csn_cli_put_name. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_read.h"
#include "caisson/records.h"
#include "cli/commands.h"
#include "wire/result_json.h"

typedef struct list_opts {
    bool quiet, tree, forget;
} list_opts;

/* depth: of forks; the sandbox is `depth` forks away from one that was created. */
static void print_row(const csn_sandbox_entry *e, int depth)
{
    char when[CSN_HUMAN_SIZE];

    printf("%*s%-*s %-16s %-8s %-13s %-17s ", 2 * depth, "", 28 - 2 * depth, e->id,
           e->name ? e->name : "-", e->backend, e->state,
           csn_cli_human_time(e->created_ms, when));
    csn_cli_put_name(e->workspace ? e->workspace : "-");
    putchar('\n');
}

/* ---- attached sandboxes -------------------------------------------------------------- */

/* Takes the workspace from the first line of a log. ctx: a csn_arena pointer and the result. */
typedef struct first_line {
    csn_arena *arena;
    const char *workspace;
} first_line;

static int take_workspace(void *ctx, const char *line, size_t len)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;
    first_line *f = ctx;

    if (csn_json_parse(line, len, "line", &v, NULL) == CSN_OK && csn_jval_is_object(v)) {
        const char *target = csn_jval_string(csn_jval_get(v, "target"));
        f->workspace = target ? csn_arena_strdup(f->arena, target) : NULL;
    }
    return 1;
}

static bool has_id(const csn_sandbox_list *l, const char *id)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].id, id) == 0)
            return true;
    return false;
}

/* A sandbox of a process that runs has no record; its audit log is locked. The id has the
 * backend and the time of its creation: BACKEND-MILLISECONDS-RANDOM. */
static csn_sandbox_entry attached_entry(csn_arena *a, const char *id)
{
    first_line f = {.arena = a};
    size_t n = strcspn(id, "-");

    (void)csn_audit_read(id, take_workspace, &f, NULL);
    return (csn_sandbox_entry){.id = csn_arena_strdup(a, id),
                               .backend = csn_arena_printf(a, "%.*s", (int)n, id),
                               .state = "attached",
                               .workspace = f.workspace,
                               .created_ms = id[n] ? strtoll(id + n + 1, NULL, 10) : 0};
}

/* Adds the attached sandboxes to those of `l`. The logs were listed first: a sandbox that is
 * created between both is in `l`. */
static csn_sandbox_list with_attached(csn_arena *a, const csn_sandbox_list *l,
                                      const csn_audit_logs_result *logs)
{
    csn_sandbox_entry *all = csn_arena_array(a, l->count + logs->count + 1, sizeof(*all));
    size_t n = 0;

    for (; all && n < l->count; n++)
        all[n] = l->items[n];
    for (size_t i = 0; all && i < logs->count; i++) {
        if (!logs->items[i].in_use || has_id(l, logs->items[i].id))
            continue;
        all[n] = attached_entry(a, logs->items[i].id);
        n += all[n].id && all[n].backend;
    }
    return (csn_sandbox_list){.items = all ? all : l->items, .count = all ? n : l->count};
}

/* ---- trees of forks ------------------------------------------------------------------ */

#define DEPTH_MAX 12 /* deeper forks are printed at this depth */

static bool is_fork_of(const csn_sandbox_entry *e, const char *id)
{
    return e->forked_from && strcmp(e->forked_from, id) == 0;
}

/* Prints the forks of `id`, each followed by its own. A fork is younger than what it was made
 * from, and the list is in order of age: so this ends even for a forged record. */
static void print_forks(const csn_sandbox_list *l, size_t from, int depth)
{
    for (size_t i = from + 1; i < l->count; i++) {
        if (!is_fork_of(&l->items[i], l->items[from].id))
            continue;
        print_row(&l->items[i], depth);
        print_forks(l, i, depth < DEPTH_MAX ? depth + 1 : depth);
    }
}

/* False if the list has the sandbox from which the ith was forked, before it. */
static bool is_root(const csn_sandbox_list *l, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_fork_of(&l->items[i], l->items[k].id))
            return false;
    return true;
}

static void print_tree(const csn_sandbox_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!is_root(l, i))
            continue;
        print_row(&l->items[i], 0);
        print_forks(l, i, 1);
    }
}

static void print_list(const csn_sandbox_list *l, bool quiet, bool tree)
{
    if (l->count > 0 && !quiet)
        printf("%-28s %-16s %-8s %-13s %-17s %s\n", "ID", "NAME", "BACKEND", "STATE",
               "CREATED (UTC)", "WORKSPACE");
    if (tree) {
        print_tree(l);
        return;
    }
    for (size_t i = 0; i < l->count; i++) {
        if (quiet)
            printf("%s\n", l->items[i].id);
        else
            print_row(&l->items[i], 0);
    }
}

/* Removes the records in the state "unknown"; stderr says which. */
static csn_status forget_unknown(const csn_cli *c, const csn_sandbox_list *l, csn_error **err)
{
    csn_status st = CSN_OK;

    for (size_t i = 0; i < l->count && st == CSN_OK; i++) {
        if (strcmp(l->items[i].state, "unknown") != 0)
            continue;
        st = csn_forget(l->items[i].id, err);
        if (st == CSN_OK)
            csn_cli_note(c, "the record of %s was removed", l->items[i].id);
    }
    return st;
}

/* With --forget the list is read again: it has what is left. */
static csn_status read_list(const csn_cli *c, bool forget, csn_sandbox_list **ret,
                            csn_error **err)
{
    csn_status st = csn_sandboxes(ret, err);

    if (st < 0 || !forget)
        return st;
    st = forget_unknown(c, *ret, err);
    csn_sandbox_list_free(*ret);
    *ret = NULL;
    return st == CSN_OK ? csn_sandboxes(ret, err) : st;
}

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    const list_opts *o = opts;
    csn_audit_logs_result *logs = NULL;
    csn_sandbox_list *l = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    /* without the logs the list has the detached sandboxes */
    if (!o->quiet)
        (void)csn_audit_logs(&logs, NULL);
    if (read_list(c, o->forget, &l, &err) < 0) {
        csn_audit_logs_free(logs);
        return csn_cli_fail(c, err);
    }
    const csn_sandbox_list all = logs ? with_attached(a, l, logs) : *l;
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_sandboxes, &all);
    else
        print_list(&all, o->quiet, o->tree && !o->quiet);
    csn_sandbox_list_free(l);
    csn_audit_logs_free(logs);
    return status;
}

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 'q', "quiet", offsetof(list_opts, quiet), NULL,
     "only the ids of those that stay", NULL},
    {CSN_OPT_FLAG, 0, "tree", offsetof(list_opts, tree), NULL,
     "forks below the sandbox that they copied", NULL},
    {CSN_OPT_FLAG, 0, "forget", offsetof(list_opts, forget), NULL,
     "remove the records of unknown sandboxes", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_list = {
    .name = "list",
    .args = "",
    .usage = "[-q] [--tree] [--forget]",
    .summary = "list your sandboxes",
    .intro =
        "Lists the sandboxes that you created and did not destroy, oldest first, then those\n"
        "that end with their process (state attached), such as run. Removes what crashed\n"
        "sandboxes left behind.",
    .examples = "  caisson list\n"
                "  caisson list -q | xargs -r caisson destroy\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(list_opts),
    .run = run,
};
