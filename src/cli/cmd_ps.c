/* cmd_ps.c: `ps` and `kill`: list and signal the background processes of a sandbox.
 *
 * Only processes started with exec -d are listed; the sandbox keeps their exit code and output
 * after they end. Invariant: `kill` signals through the sandbox and never by a pid of this
 * host, so a wrong number cannot hit an unrelated process. Command lines are untrusted and
 * escaped. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/strv.h"
#include "cli/commands.h"
#include "cli/pid.h"
#include "wire/result_json.h"

static bool parse_pid(const char *text, int64_t *ret)
{
    uint64_t pid = 0;

    if (!csn_parse_u64(text, &pid) || pid == 0 || pid > INT32_MAX)
        return false;
    *ret = (int64_t)pid;
    return true;
}

int csn_cli_check_pid(csn_cli *c)
{
    char quoted[64];
    int64_t pid;

    if (parse_pid(c->arg[1], &pid))
        return 0;
    csn_args_quote(c->arg[1], quoted, sizeof(quoted));
    return csn_cli_usage(c, "caisson ps ID lists them", "'%s' is not a pid", quoted);
}

int csn_cli_open_process(const csn_cli *c, csn_process **ret)
{
    csn_error *err = NULL;
    int64_t pid = 0;

    parse_pid(c->arg[1], &pid);
    if (csn_process_open(c->sb, pid, ret, &err) < 0)
        return csn_cli_fail(c, err);
    return 0;
}

/* id: of its sandbox, or NULL to print no id. */
static void print_row(const char *id, const csn_process_info *p)
{
    char how[48], out[CSN_HUMAN_SIZE], when[CSN_HUMAN_SIZE];

    if (strcmp(p->state, "running") == 0)
        snprintf(how, sizeof(how), "running");
    else if (p->signal)
        snprintf(how, sizeof(how), "%s", p->signal);
    else if (p->exit_code >= 0)
        snprintf(how, sizeof(how), "exit %d", p->exit_code);
    else
        snprintf(how, sizeof(how), "%s", p->state);
    if (id)
        printf("%-28s ", id);
    printf("%8" PRId64 "  %-10s  %-16s  %-11s  ", p->pid, how,
           csn_cli_human_time(p->started_ms, when),
           csn_cli_human_size(p->out_total + p->err_total, out));
    csn_cli_put_text(p->command, strlen(p->command));
    putchar('\n');
}

static void print_table(const char *id, const csn_process_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        print_row(id, &l->items[i]);
}

static void print_heading(bool with_id)
{
    if (with_id)
        printf("%-28s ", "ID");
    printf("%8s  %-10s  %-16s  %-11s  %s\n", "PID", "STATE", "STARTED (UTC)", "OUTPUT",
           "COMMAND");
}

/* Lists the processes of one of several sandboxes. One that ended meanwhile has none. Returns 0
 * or an exit status. */
static int ps_of(csn_cli *c, const char *id, csn_process_list **ret)
{
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;
    csn_cli plain = *c;

    plain.json = false; /* the answer has the other sandboxes; errors go to stderr only */
    csn_status st = csn_connect(id, &sb, &err);
    if (st == CSN_OK)
        st = csn_processes(sb, ret, &err);
    csn_close(sb);
    if (st == CSN_OK)
        return 0;
    if (st != CSN_GONE && st != CSN_NOT_FOUND)
        return csn_cli_fail(&plain, err);
    csn_error_free(err);
    return 0;
}

static void put_processes(csn_json *j, const char *id, const csn_process_list *l)
{
    csn_json_object(j);
    csn_json_kstr(j, "sandbox", id);
    csn_json_key(j, "processes");
    csn_wire_processes(j, l);
    csn_json_object_end(j);
}

/* A sandbox that does not answer is reported, and the others are still listed. */
static int ps_all(csn_cli *c)
{
    csn_sandbox_list *all = NULL;
    csn_error *err = NULL;
    int status = 0, written = 0;
    bool any = false;
    csn_answer a;

    if (csn_sandboxes(&all, &err) < 0)
        return csn_cli_fail(c, err);
    csn_json *j = c->json ? csn_answer_begin(&a) : NULL;
    if (j)
        csn_json_array(j);
    for (size_t i = 0; i < all->count; i++) {
        csn_process_list *l = NULL;
        int failed = ps_of(c, all->items[i].id, &l);
        status = failed ? failed : status;
        if (l && j) {
            put_processes(j, all->items[i].id, l);
        } else if (l && l->count > 0) {
            if (!any)
                print_heading(true);
            any = true;
            print_table(all->items[i].id, l);
        }
        csn_process_list_free(l);
    }
    csn_sandbox_list_free(all);
    if (j) {
        csn_json_array_end(j);
        written = csn_answer_end(c, &a);
    }
    return written ? written : status;
}

static int run_ps(csn_cli *c, void *opts)
{
    csn_process_list *l = NULL;
    csn_error *err = NULL;
    int status = 0;

    (void)opts;
    if (c->nargs == 0)
        return ps_all(c);
    if (csn_processes(c->sb, &l, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json) {
        status = CSN_CLI_JSON(c, csn_wire_processes, l);
    } else if (l->count > 0) {
        print_heading(false);
        print_table(NULL, l);
    }
    csn_process_list_free(l);
    return status;
}

/* Returns 0 if the argument is not a signal. */
static int signal_of(const csn_cli *c)
{
    return c->nargs > 2 ? csn_signal_number(c->arg[2]) : SIGTERM;
}

static int check_kill(csn_cli *c, void *opts)
{
    (void)opts;
    if (signal_of(c) == 0)
        return csn_cli_unknown_word(c, "a signal", c->arg[2],
                                    "TERM|KILL|INT|HUP|QUIT|STOP|CONT|USR1|USR2");
    return csn_cli_check_pid(c);
}

static int run_kill(csn_cli *c, void *opts)
{
    csn_process *p = NULL;
    csn_error *err = NULL;

    (void)opts;
    int status = csn_cli_open_process(c, &p);
    if (status)
        return status;
    csn_status st = csn_process_signal(p, signal_of(c), &err);
    csn_process_free(p);
    return csn_cli_finish(c, st, &err);
}

const csn_command csn_cmd_ps = {
    .name = "ps",
    .args = "[ID]",
    .summary = "list the background processes of a sandbox, or of all",
    .intro =
        "Lists the processes started with exec -d. Those that ended have their exit code.\n"
        "Without ID: of all your sandboxes, with a column for the id.",
    .examples = "  caisson ps\n"
                "  caisson ps $id\n"
                "  caisson ps $id --json\n",
    .flags = CSN_CMD_SANDBOX,
    .run = run_ps,
};

const csn_command csn_cmd_kill = {
    .name = "kill",
    .args = "ID PID [SIGNAL]",
    .summary = "send a signal to a background process",
    .intro =
        "Sends a signal (default TERM) to a background process and its group; TERM and KILL\n"
        "reach everything it started. SIGNAL is a name, with or without SIG, or a number.",
    .examples = "  caisson kill $id 4711\n"
                "  caisson kill $id 4711 INT\n",
    .flags = CSN_CMD_SANDBOX,
    .check = check_kill,
    .run = run_kill,
};
