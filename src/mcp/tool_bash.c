/* tool_bash.c: the tool `bash`: runs commands in a persistent shell.
 *
 * A command runs in the persistent shell if that is free, else in a separate shell in the same
 * directory: calls may overlap, and a client that sends one command after the other always gets
 * the same shell. Command output is untrusted: the library bounds it, and it is passed on as a
 * string. Invariant: a call that took the shell releases it, after the reply is sent and the
 * shell's directory is known. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "mcp/tool.h"
#include "wire/result_json.h"

#define SESSION      "mcp"
#define QUERY_CWD_MS 2000u

typedef struct bash_args {
    const char *command;
    uint64_t timeout_ms;
    bool background, restart;
    const char *cwd;
    const char *const *env, *const *allowed_domains, *const *package_managers;
    csn_arena *arena; /* of the lists */
} bash_args;

/* Such a command has a shell of its own: what it asks for must not stay in the session's. */
static bool is_apart(const bash_args *q)
{
    return q->cwd || q->env || q->allowed_domains || q->package_managers;
}

/* {NAME: value} as NAME=value. */
static csn_status get_env(const csn_jval *env, bash_args *q, csn_error **err)
{
    const char *name = NULL;
    size_t count = 0;

    while (csn_jval_member(env, count, &name))
        count++;
    const char **list = csn_arena_array(q->arena, count + 1, sizeof(*list));
    for (size_t i = 0; list && i < count; i++) {
        const char *value = csn_jval_string(csn_jval_member(env, i, &name));
        if (!value)
            return csn_fail(err, CSN_INVALID, "bash: 'env': '%s' has no text", name);
        if (!*name || strchr(name, '='))
            return csn_fail(err, CSN_INVALID, "bash: 'env': '%s' is not the name of a variable",
                            name);
        if (!(list[i] = csn_arena_printf(q->arena, "%s=%s", name, value)))
            list = NULL;
    }
    q->env = list;
    return list ? CSN_OK : csn_fail(err, CSN_NOMEM, "bash");
}

static csn_status parse_apart(csn_tool_call *c, bash_args *q, csn_error **err)
{
    const csn_jval *env = csn_jval_get(c->args, "env");
    csn_status st =
        csn_jget_strv(c->args, "allowed_domains", q->arena, &q->allowed_domains, err);

    if (st == CSN_OK)
        st = csn_jget_strv(c->args, "package_managers", q->arena, &q->package_managers, err);
    if (st == CSN_OK && env)
        st = get_env(env, q, err);
    if (st == CSN_OK && q->restart && is_apart(q))
        st = csn_fail(err, CSN_INVALID,
                      "bash: 'restart' is for the shell; cwd, env, allowed_domains and "
                      "package_managers are for a command of its own");
    return st;
}

static csn_status parse_args(csn_tool_call *c, bash_args *q, csn_error **err)
{
    q->timeout_ms = c->timeout_ms;
    csn_status st =
        csn_tool_args(c,
                      (csn_tool_arg[]){{"command", .text = &q->command},
                                       {"timeout", .number = &q->timeout_ms},
                                       {"run_in_background", .flag = &q->background},
                                       {"restart", .flag = &q->restart},
                                       {"cwd", .text = &q->cwd},
                                       {0}},
                      err);
    if (st == CSN_OK && !q->command[0] && !q->restart)
        st = csn_fail(err, CSN_INVALID, "bash: 'command' is empty");
    return st == CSN_OK ? parse_apart(c, q, err) : st;
}

/* The directory of a command outside of the shell: relative to that of the shell. malloc'd, or
 * NULL: the working directory. */
static char *cwd_apart(csn_tool_call *c, const bash_args *q)
{
    csn_autofree char *shell = csn_mcp_shell_cwd(c->session_sandbox);
    char *joined = NULL;

    if (!q->cwd)
        return CSN_STEAL(shell);
    if (!shell || q->cwd[0] == '/' || q->cwd[0] == '~')
        return strdup(q->cwd);
    return asprintf(&joined, "%s/%s", shell, q->cwd) < 0 ? NULL : joined;
}

/* ---- text for the model ----------------------------------------------------------------- */

/* Appends the output, with a mark where bytes were left out. */
static void put_stream(csn_buf *to, const csn_output *o)
{
    uint64_t dropped = o->total > o->len ? o->total - o->len : 0;
    size_t head = dropped > 0 && o->head < o->len ? (size_t)o->head : o->len;

    csn_buf_append(to, o->data ? o->data : "", o->data ? head : 0);
    if (dropped > 0)
        csn_buf_printf(to, "\n[... %" PRIu64 " bytes left out ...]\n", dropped);
    if (o->len > head)
        csn_buf_append(to, o->data + head, o->len - head);
}

static void start_line(csn_buf *to)
{
    if (to->len > 0 && to->data[to->len - 1] != '\n')
        csn_buf_putc(to, '\n');
}

static void put_ending(csn_buf *to, const csn_exec_result *r)
{
    if (!r->timed_out && !r->signal && r->exit_code == 0)
        return;
    start_line(to);
    if (r->timed_out)
        csn_buf_printf(to, "[timed out after %.0f ms and was ended]", r->duration_ms);
    else if (r->signal)
        csn_buf_printf(to, "[ended by %s%s%s]", r->signal, r->killed_by ? ", because of: " : "",
                       r->killed_by ? r->killed_by : "");
    else
        csn_buf_printf(to, "[exit code %d]", (int)r->exit_code);
}

static void put_text(csn_buf *to, const csn_exec_result *r, const char *note)
{
    csn_buf_append(to, r->out.data, r->out.len);
    if (r->err.len > 0) {
        start_line(to);
        csn_buf_puts(to, "[stderr]\n");
        csn_buf_append(to, r->err.data, r->err.len);
    }
    put_ending(to, r);
    for (size_t i = 0; i < r->denial_count; i++) {
        start_line(to);
        csn_buf_putc(to, '[');
        csn_tool_denial_text(to, &r->denials[i]);
        csn_buf_putc(to, ']');
    }
    if (r->unchecked) {
        start_line(to);
        csn_buf_puts(to, "[unchecked: not all changes in the workspace could be checked for "
                         "files that programs outside run; the next command tries again]");
    }
    if (note) {
        start_line(to);
        csn_buf_printf(to, "[note: %s]", note);
    }
    if (to->len == 0)
        csn_buf_puts(to, "(no output)");
}

static csn_status put_result(csn_tool_call *c, const csn_exec_result *got, const char *note,
                             csn_error **err)
{
    csn_autobuf out, errs, text;
    csn_exec_result r = *got;

    csn_buf_init(&out, CSN_MCP_ANSWER_MAX);
    csn_buf_init(&errs, CSN_MCP_ANSWER_MAX);
    csn_buf_init(&text, CSN_MCP_ANSWER_MAX);
    put_stream(&out, &got->out);
    put_stream(&errs, &got->err);
    r.out.data = out.data ? out.data : "";
    r.out.len = out.len;
    r.err.data = errs.data ? errs.data : "";
    r.err.len = errs.len;
    put_text(&text, &r, note);
    int e = out.err ? out.err : errs.err ? errs.err : text.err;
    if (e != 0)
        return csn_fail_errno(err, e, "bash: output");
    csn_tool_result_text(c->out, text.data, text.len);
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    csn_wire_exec_brief(j, &r);
    csn_json_kstr(j, "note", note);
    csn_json_object_end(j);
    return CSN_OK;
}

/* ---- running ---------------------------------------------------------------------------- */

static int count_output(void *ctx, int stream, const void *data, size_t len)
{
    atomic_uint_fast64_t *printed = ctx;

    (void)stream;
    (void)data;
    atomic_fetch_add_explicit(printed, len, memory_order_relaxed);
    return 0;
}

static csn_exec_opts options(csn_tool_call *c, const bash_args *q)
{
    return (csn_exec_opts){.size = sizeof(csn_exec_opts),
                           .flags = CSN_EXEC_KEEP_BOTH,
                           .timeout_ms = q->timeout_ms,
                           .output_max = c->output_max,
                           .env = q->env,
                           .allowed_domains = q->allowed_domains,
                           .package_managers = q->package_managers,
                           .on_output = c->printed ? count_output : NULL,
                           .on_output_ctx = c->printed,
                           .cancel = c->cancel};
}

/* An empty command only restarts the shell. */
static const char *command_of(const bash_args *q)
{
    return q->command[0] ? q->command : ":";
}

/* Runs after the reply. Asks the shell for its directory if the command may have changed it,
 * then releases the shell. */
static void release_shell(csn_tool_call *c)
{
    csn_exec_result *r = NULL;
    csn_error *err = NULL;

    if (c->query_cwd) {
        csn_status st = csn_sh(c->sb, "command pwd",
                               CSN_OPTS(csn_exec_opts, .session = SESSION,
                                        .timeout_ms = QUERY_CWD_MS, .output_max = CSN_PATH_MAX),
                               &r, &err);
        if (st == CSN_OK && r->exit_code == 0 && r->out.len > 1 && !r->truncated) {
            csn_autofree char *path = strndup(r->out.data, r->out.len - 1);
            csn_mcp_shell_cwd_set(c->session_sandbox, path);
        }
        csn_exec_result_free(r);
        csn_error_free(err);
    }
    csn_mcp_shell_give(c->session_sandbox);
}

static bool may_change_cwd(const char *command)
{
    static const char *const words[] = {"cd", "pushd", "popd", "source", ". ", "eval"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(command, words[i]))
            return true;
    return false;
}

static csn_status run_in_shell(csn_tool_call *c, const bash_args *q, csn_error **err)
{
    csn_autofree char *old_cwd = csn_mcp_shell_cwd(c->session_sandbox);
    csn_exec_opts o = options(c, q);
    csn_exec_result *r = NULL;
    const char *note = c->note;

    o.session = SESSION;
    if (q->restart)
        o.flags |= CSN_EXEC_RESTART;
    csn_status st = csn_sh(c->sb, command_of(q), &o, &r, err);
    if (st < 0)
        return st;
    if (r->interrupted || q->restart)
        csn_mcp_shell_cwd_set(c->session_sandbox, NULL);
    if (r->interrupted)
        note = "the shell was ended with the command; the next one starts in the working "
               "directory, without earlier variables";
    else if (q->restart && !q->command[0])
        note = "the shell was restarted";
    else if (r->truncated && !note)
        note = "to see all of the output, send it to a file and read that";
    c->query_cwd = !r->interrupted && ((old_cwd && !q->restart) || may_change_cwd(q->command));
    st = put_result(c, r, note, err);
    csn_exec_result_free(r);
    return st;
}

static csn_status run_separately(csn_tool_call *c, const bash_args *q, bool no_shell,
                                 csn_error **err)
{
    csn_autofree char *cwd = cwd_apart(c, q);
    csn_exec_opts o = options(c, q);
    csn_exec_result *r = NULL;
    const char *note = c->note;

    o.cwd = cwd;
    csn_status st = csn_sh(c->sb, command_of(q), &o, &r, err);
    /* The shell's directory may have been removed, or be one where no command may start
     * (local). */
    if (cwd && !q->cwd && (st == CSN_OUTSIDE || st == CSN_NOT_FOUND || st == CSN_DENIED)) {
        csn_error_free(*err);
        *err = NULL;
        o.cwd = NULL;
        st = csn_sh(c->sb, command_of(q), &o, &r, err);
        note = "the shell's directory is not usable for another command: this one ran in the "
               "working directory";
    }
    if (st < 0)
        return st;
    if (!no_shell && !note)
        note =
            "another command was using the shell: this one ran in a separate shell in the same "
            "directory, and its variables are not kept";
    st = put_result(c, r, note, err);
    csn_exec_result_free(r);
    return st;
}

static csn_status background(csn_tool_call *c, const bash_args *q, csn_error **err)
{
    csn_autofree char *cwd = cwd_apart(c, q);
    csn_process *p = NULL;
    char text[160];

    csn_status st = csn_start_sh(c->sb, q->command,
                                 CSN_OPTS(csn_exec_opts, .flags = CSN_EXEC_STDIN, .cwd = cwd,
                                          .env = q->env, .allowed_domains = q->allowed_domains,
                                          .package_managers = q->package_managers),
                                 &p, err);
    if (st < 0)
        return st;
    int64_t pid = csn_process_pid(p);
    csn_process_free(p);
    int n = snprintf(text, sizeof(text),
                     "Started in the background with pid %" PRId64
                     ". Use the tool process to read its output, feed or stop it.",
                     pid);
    csn_tool_result_text(c->out, text, (size_t)n);
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    csn_json_kstr(j, "stdout", "");
    csn_json_kstr(j, "stderr", "");
    csn_json_kint(j, "pid", pid);
    csn_json_kstr(j, "note", c->note ? c->note : text);
    csn_json_object_end(j);
    return CSN_OK;
}

csn_status csn_tool_bash(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *arena = csn_arena_new();
    bash_args q = {.command = "", .arena = arena};

    if (!arena)
        return csn_fail(err, CSN_NOMEM, "bash");
    csn_status st = parse_args(c, &q, err);
    if (st < 0)
        return st;
    if (q.background && q.command[0])
        return background(c, &q, err);
    if (is_apart(&q))
        return run_separately(c, &q, true, err);
    if (!csn_mcp_shell_take(c->session_sandbox, c->cancel, q.restart))
        return run_separately(c, &q, false, err);
    st = run_in_shell(c, &q, err);
    if (st == CSN_UNSUPPORTED && !q.restart) {
        csn_error_free(*err);
        *err = NULL;
        st = run_separately(c, &q, true, err);
    }
    csn_mcp_shell_finish(c->session_sandbox);
    c->after = release_shell;
    return st;
}
