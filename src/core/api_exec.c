/* api_exec.c: csn_exec and csn_sh: run one command and build its result.
 *
 * The backend runs the command and pushes bytes into a sink; output limits, merging and the
 * live callback are the same for every backend. Output is untrusted: it is bounded and never
 * interpreted. A non-zero exit status is a result; an error means that the command could not be
 * started. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/strv.h"
#include "core/api_exec.h"
#include "core/api_network.h"
#include "core/cancel.h"
#include "core/command_record.h"
#include "core/denials.h"
#include "core/exec_probe.h"
#include "core/internal.h"
#include "core/layers.h"
#include "core/result.h"
#include "text/capture.h"
#include "text/plain.h"

#define EXEC_FLAGS                                                                             \
    (CSN_EXEC_MERGE | CSN_EXEC_KEEP_TAIL | CSN_EXEC_KEEP_BOTH | CSN_EXEC_STDIN_FD |            \
     CSN_EXEC_RESTART | CSN_EXEC_SUDO | CSN_EXEC_PTY)

/* The sink of one command. */
typedef struct collector {
    csn_capture out, err, merged;
    csn_output_fn live;
    void *live_ctx;
    bool one_stream; /* CSN_EXEC_MERGE: stderr goes to `out` too */
    bool terminal;   /* and `out` is what a terminal shows */
    bool stopped;    /* the callback returned non-zero */
} collector;

static int collect(void *ctx, int stream, const void *data, size_t len)
{
    collector *c = ctx;
    bool is_err = stream == CSN_STDERR && !c->one_stream;
    int own = csn_capture_write(is_err ? &c->err : &c->out, data, len);
    int both = c->one_stream ? own : csn_capture_write(&c->merged, data, len);

    if (c->live && data && len > 0) {
        if (c->live(c->live_ctx, is_err ? CSN_STDERR : CSN_STDOUT, data, len) != 0)
            c->stopped = true;
        return c->stopped ? CSN_SINK_STOP : CSN_SINK_MORE; /* the callback gets every byte */
    }
    return own == CSN_SINK_COUNT && both == CSN_SINK_COUNT ? CSN_SINK_COUNT : CSN_SINK_MORE;
}

static void collector_init(collector *c, const csn_exec_opts *o, uint64_t max)
{
    csn_keep keep = o->flags & CSN_EXEC_KEEP_BOTH   ? CSN_KEEP_BOTH
                    : o->flags & CSN_EXEC_KEEP_TAIL ? CSN_KEEP_TAIL
                                                    : CSN_KEEP_HEAD;

    *c = (collector){.live = o->on_output,
                     .live_ctx = o->on_output_ctx,
                     .one_stream = (o->flags & CSN_EXEC_MERGE) != 0,
                     .terminal = (o->flags & CSN_EXEC_PTY) && (o->flags & CSN_EXEC_MERGE)};
    csn_capture_init(&c->out, (size_t)max, keep);
    csn_capture_init(&c->err, (size_t)max, keep);
    csn_capture_init(&c->merged, (size_t)max, keep);
}

static void collector_release(collector *c)
{
    csn_capture_release(&c->out);
    csn_capture_release(&c->err);
    csn_capture_release(&c->merged);
}

static csn_status check_backend(const csn_sandbox *sb, const csn_exec_opts *o, csn_error **err)
{
    const char *missing = NULL;

    if ((o->flags & CSN_EXEC_SUDO) && !(sb->ops->caps & CSN_CAP_SUDO))
        missing = "sudo";
    else if (o->session && !(sb->ops->caps & CSN_CAP_SESSION))
        missing = "persistent shell sessions";
    else if ((o->allowed_domains || o->package_managers) && !sb->ops->network)
        missing = "network rules of one call";
    if (!missing)
        return CSN_OK;
    csn_status st =
        csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no %s", sb->ops->name, missing);
    return o->flags & CSN_EXEC_SUDO
               ? csn_error_advise(st, err,
                                  "e2b and vercel have machines of their own, with sudo; "
                                  "here commands keep the rights of their user")
               : st;
}

csn_status csn_exec_check(const csn_sandbox *sb, const csn_exec_opts *o, const char *command,
                          csn_error **err)
{
    if ((o->flags & CSN_EXEC_KEEP_TAIL) && (o->flags & CSN_EXEC_KEEP_BOTH))
        return csn_fail(err, CSN_INVALID, "keep either the tail or both ends, not each");
    if ((o->flags & CSN_EXEC_STDIN_FD) && o->stdin_data)
        return csn_fail(err, CSN_INVALID, "stdin is given twice: as bytes and as a descriptor");
    if ((o->flags & CSN_EXEC_STDIN_FD) && o->stdin_fd < 0)
        return csn_fail(err, CSN_INVALID, "stdin_fd is %d", o->stdin_fd);
    if (o->session && !command)
        return csn_fail(err, CSN_INVALID, "a session runs shell strings, not an argument list");
    if ((o->flags & CSN_EXEC_RESTART) && !o->session)
        return csn_fail(err, CSN_INVALID, "restart needs the name of a session");
    if (o->session && (o->allowed_domains || o->package_managers))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "a session has the network of its sandbox: allowed_domains and "
                        "package_managers are for commands of their own");
    if (o->output_max > CSN_OUTPUT_MAX_CEILING && o->output_max != CSN_NO_LIMIT)
        return csn_fail(err, CSN_TOO_LARGE, "output_max is over %u bytes",
                        CSN_OUTPUT_MAX_CEILING);
    return check_backend(sb, o, err);
}

static bool is_home(const char *assignment)
{
    return csn_str_starts(assignment, "HOME=");
}

/* Builds a malloc'd array of borrowed strings: the sandbox's variables (for backends without
 * CSN_CAP_ENV), then those of the call, without HOME, which no call may change. */
csn_status csn_exec_environ(const csn_sandbox *sb, const char *const *call, const char ***ret,
                            csn_error **err)
{
    const char *const *base = (const char *const *)sb->env;
    const char **v = calloc(csn_strv_len(base) + csn_strv_len(call) + 1, sizeof(*v));
    size_t n = 0;

    if (!v)
        return csn_fail(err, CSN_NOMEM, "environment");
    for (size_t i = 0; base && base[i]; i++)
        if (!is_home(base[i]))
            v[n++] = base[i];
    for (size_t i = 0; call && call[i]; i++) {
        const char *eq = strchr(call[i], '=');
        if (!eq || eq == call[i]) {
            free(v);
            return csn_fail(err, CSN_INVALID, "env: '%s' is not NAME=value", call[i]);
        }
        if (!is_home(call[i]))
            v[n++] = call[i];
    }
    *ret = v;
    return CSN_OK;
}

csn_status csn_exec_shell(csn_call *c, const char **ret, csn_error **err)
{
    csn_sandbox *sb = c->sb;

    pthread_mutex_lock(&sb->lock);
    const char *known = sb->shell;
    pthread_mutex_unlock(&sb->lock);
    if (!known) {
        bool bash = false;
        csn_error *why = NULL;
        csn_status st = csn_probe_bash(&c->fs, &bash, &why);
        pthread_mutex_lock(&sb->lock);
        if (st == CSN_OK)
            sb->shell = bash ? "bash" : "sh";
        /* With a backend that runs one command at a time, another thread may have found the
         * shell while this probe waited and failed. */
        known = sb->shell;
        pthread_mutex_unlock(&sb->lock);
        if (known || !err)
            csn_error_free(why);
        else
            *err = why;
        if (!known)
            return st;
    }
    *ret = known;
    return CSN_OK;
}

uint64_t csn_exec_output_max(const csn_sandbox *sb, const csn_exec_opts *o)
{
    uint64_t max = o->output_max            ? o->output_max
                   : sb->config->output_max ? sb->config->output_max
                                            : CSN_OUTPUT_MAX_DEFAULT;

    return max > CSN_OUTPUT_MAX_CEILING ? CSN_OUTPUT_MAX_CEILING : max;
}

static uint64_t timeout_of(const csn_sandbox *sb, const csn_exec_opts *o)
{
    return o->timeout_ms            ? o->timeout_ms
           : sb->config->timeout_ms ? sb->config->timeout_ms
                                    : CSN_TIMEOUT_MS_DEFAULT;
}

static const char *killed_by(const csn_exec_end *end)
{
    switch (end->how) {
    case CSN_END_TIMEOUT:
        return "timeout";
    case CSN_END_CANCEL:
        return "cancel";
    case CSN_END_MEMORY:
        return "memory";
    case CSN_END_PIDS:
        return "pids";
    case CSN_END_CPU:
        return "cpu";
    case CSN_END_DISK:
        return "disk";
    case CSN_END_POLICY:
        return "policy";
    default:
        return end->signal != 0 ? "signal" : NULL;
    }
}

static int fill_output(csn_arena *a, const csn_capture *c, csn_output *ret)
{
    size_t len = csn_capture_size(c);
    char *data = csn_arena_alloc(a, len + 1);

    if (!data)
        return ENOMEM;
    size_t head = csn_capture_copy(c, data);
    *ret = (csn_output){.data = data, .len = len, .total = c->total, .head = head};
    return 0;
}

/* Adds the message of a command that did not start, or whose connection was lost, to stderr. */
static void explain_spawn(collector *c, const csn_exec_end *end)
{
    size_t len = strlen(end->message);

    if ((end->how != CSN_END_SPAWN && end->how != CSN_END_LOST) || len == 0)
        return;
    bool line = c->terminal && end->message[len - 1] == '\n';
    collect(c, CSN_STDERR, end->message, line ? len - 1 : len);
    if (line)
        collect(c, CSN_STDERR, "\r\n", 2);
}

static int fill_result(csn_exec_result *r, csn_call *c, collector *col, const csn_exec_end *end)
{
    csn_arena *a = csn_result_arena(r);

    explain_spawn(col, end);
    r->size = sizeof(*r);
    r->exit_code = end->signal != 0 ? -1 : end->exit_code;
    r->signal = csn_signal_name(end->signal);
    r->killed_by = killed_by(end);
    r->timed_out = end->how == CSN_END_TIMEOUT;
    r->interrupted = r->timed_out || end->how == CSN_END_CANCEL;
    r->failed = r->exit_code != 0;
    r->unchecked = end->unchecked;
    r->cpu_ms = (double)end->cpu_ns / 1e6;
    r->peak_memory = end->peak_memory;
    r->duration_ms = (double)(csn_now_ns() - c->started_ns) / 1e6;
    r->truncated = csn_capture_truncated(&col->out) || csn_capture_truncated(&col->err) ||
                   csn_capture_truncated(&col->merged) || end->how == CSN_END_LOST;
    r->truncated_by = r->truncated ? "bytes" : NULL;
    if (col->out.failed || col->err.failed || col->merged.failed)
        return ENOMEM; /* a failed allocation must not look like empty output */
    if (fill_output(a, &col->out, &r->out) != 0 || fill_output(a, &col->err, &r->err) != 0)
        return ENOMEM;
    if (col->one_stream)
        r->merged = r->out;
    else if (fill_output(a, &col->merged, &r->merged) != 0)
        return ENOMEM;
    r->sandbox = csn_arena_strdup(a, c->sb->id);
    if (!r->sandbox)
        return ENOMEM;
    r->layer_count = c->sb->layer_count;
    return csn_layers_copy(a, c->sb->layers, c->sb->layer_count, &r->layers);
}

/* Asks the backend to explain a command that failed by itself, or that did not end in time: it
 * may have waited for what it was refused. Limits and cancels have their own explanation. A
 * failure to explain is ignored. */
static void explain_failure(csn_call *c, const csn_exec_req *req, const csn_exec_end *end,
                            const csn_exec_result *r)
{
    bool by_itself = end->how == CSN_END_EXITED || end->how == CSN_END_SPAWN;
    bool crashed = end->signal != 0 && end->signal != SIGSYS;

    if ((!(r->failed && by_itself && !crashed) && !r->timed_out) || !c->sb->ops->explain)
        return;
    csn_output out = r->out;
    csn_autofree char *plain = req->flags & CSN_EXEC_PTY ? malloc(out.len + 1) : NULL;
    if (plain) {
        size_t head = (size_t)out.head;
        uint64_t cut = out.total - out.len;
        out.len = csn_plain_text(out.data, out.len, plain, &head);
        out = (csn_output){plain, out.len, out.len + cut, head};
    }
    (void)c->sb->ops->explain(c->sb->state, req, end, &out, &r->err, NULL);
}

static int fill_denials(csn_call *c, const csn_exec_req *req, const csn_exec_end *end,
                        const csn_exec_opts *o, csn_denials *found, csn_exec_result *r)
{
    csn_denials_add_limit(found, end);
    csn_denials_add_env(found, o->env);
    explain_failure(c, req, end, r);
    csn_denials_add_unrouted(found, end);
    r->denials = found->items;
    r->denial_count = found->count;
    return found->failed ? ENOMEM : 0;
}

/* Joins the call's cwd to the working directory. A backend without CSN_CAP_SPAWN cannot tell a
 * missing directory from a failed command, so the core checks the directory first. */
static csn_status exec_cwd(csn_call *c, const char *asked, const char **ret, csn_error **err)
{
    csn_status st = csn_call_path(c, asked, ret, err);

    if (st == CSN_OK && !(c->sb->ops->caps & CSN_CAP_SPAWN))
        st = csn_fs_check_dir(&c->fs, *ret, 0, asked, err);
    return st < 0 ? csn_wrap(st, err, "cwd") : st;
}

csn_status csn_exec_request(csn_call *c, const csn_exec_opts *o, csn_exec_req *req,
                            char **ret_workdir, csn_error **err)
{
    req->size = sizeof(*req);
    req->session = o->session;
    req->input_fd = o->flags & CSN_EXEC_STDIN_FD ? o->stdin_fd : -1;
    req->cancel_fds[0] = csn_cancel_fd(o->cancel);
    req->cancel_fds[1] = c->sb->stop_fd;
    if (o->cwd)
        return exec_cwd(c, o->cwd, &req->cwd, err);
    req->cwd = *ret_workdir = csn_sandbox_workdir(c->sb);
    if (o->session)
        req->flags |= CSN_EXEC_STAY;
    return CSN_OK;
}

static csn_status run_in_backend(csn_call *c, csn_exec_req *req, const csn_exec_opts *o,
                                 collector *col, csn_exec_end *end, csn_error **err)
{
    csn_memory_source mem = {.data = o->stdin_data, .left = o->stdin_len};
    csn_source input = {.read = csn_memory_read, .ctx = &mem};
    csn_sink sink = {.write = collect, .ctx = col};

    req->input = o->stdin_data ? &input : NULL;
    req->deadline_ns = csn_deadline_in(timeout_of(c->sb, o));
    *end = (csn_exec_end){.size = sizeof(*end), .exit_code = -1};
    csn_status st = c->sb->ops->exec(c->sb->state, req, &sink, end, err);
    req->input = NULL;
    return st;
}

/* Runs bash, or sh if there is no bash. A backend with CSN_CAP_SPAWN reports a missing program,
 * so bash is tried directly; other backends are probed once, and so are all of them when the
 * stdin is a descriptor: the first attempt could consume some of it. */
static csn_status run_shell(csn_call *c, csn_exec_req *req, const char **argv,
                            const csn_exec_opts *o, collector *col, csn_exec_end *end,
                            csn_error **err)
{
    csn_sandbox *sb = c->sb;

    if (!(sb->ops->caps & CSN_CAP_SPAWN) || req->input_fd >= 0) {
        csn_status st = csn_exec_shell(c, &argv[0], err);
        return st < 0 ? st : run_in_backend(c, req, o, col, end, err);
    }
    pthread_mutex_lock(&sb->lock);
    if (sb->shell)
        argv[0] = sb->shell;
    pthread_mutex_unlock(&sb->lock);
    csn_status st = run_in_backend(c, req, o, col, end, err);
    if (st < 0 || end->how != CSN_END_SPAWN || end->exit_code != 127 ||
        strcmp(argv[0], "sh") == 0)
        return st;
    pthread_mutex_lock(&sb->lock);
    sb->shell = argv[0] = "sh";
    pthread_mutex_unlock(&sb->lock);
    return run_in_backend(c, req, o, col, end, err);
}

static csn_status check_terminal(const csn_sandbox *sb, const csn_exec_opts *o, csn_error **err)
{
    if (!(o->flags & CSN_EXEC_PTY))
        return CSN_OK;
    if (o->session)
        return csn_fail(err, CSN_INVALID, "a session has no terminal");
    if (!(sb->ops->caps & CSN_CAP_PTY))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend '%s' has terminals for background processes only",
                        sb->ops->name);
    return CSN_OK;
}

static csn_status exec_inner(csn_call *c, const char *const *argv, const char *command,
                             const csn_exec_opts *o, csn_exec_result *r, csn_error **err)
{
    csn_autofree const char **env = NULL;
    csn_autofree char *workdir = NULL;
    CSN_CLEANUP(csn_strv_freep) char **net_allow = NULL;
    csn_denials found = {.arena = csn_result_arena(r)};
    csn_live_denials told = {&found, o->on_denial, o->on_denial_ctx};
    const csn_deny_sink denials = {csn_denials_add, &found};
    const csn_deny_sink live = {csn_denials_add_live, &told};
    const char *shell[] = {"bash", "-c", command, NULL};
    csn_exec_req req = {
        .flags = o->flags & (CSN_EXEC_MERGE | CSN_EXEC_RESTART | CSN_EXEC_SUDO | CSN_EXEC_PTY),
        .argv = command ? shell : argv,
        .command = command,
        .rows = o->rows,
        .cols = o->cols,
        .denials = &denials,
        .live_denials = o->on_denial ? &live : NULL};
    csn_exec_end end;
    collector col;

    csn_status st = csn_exec_check(c->sb, o, command, err);
    if (st == CSN_OK)
        st = check_terminal(c->sb, o, err);
    if (st == CSN_OK)
        st = csn_policy_command(c->sb->policy, command, argv, o->env, err);
    if (st == CSN_OK)
        st = csn_exec_environ(c->sb, o->env, &env, err);
    if (st == CSN_OK)
        st = csn_exec_request(c, o, &req, &workdir, err);
    if (st == CSN_OK)
        st = csn_network_restrict(c->sb, o, &net_allow, err);
    if (st < 0)
        return st;
    req.env = env;
    req.net_allow = (const char *const *)net_allow;
    collector_init(&col, o, csn_exec_output_max(c->sb, o));
    st = command ? run_shell(c, &req, shell, o, &col, &end, err)
                 : run_in_backend(c, &req, o, &col, &end, err);
    if (st == CSN_OK &&
        (fill_result(r, c, &col, &end) != 0 || fill_denials(c, &req, &end, o, &found, r) != 0))
        st = csn_fail(err, CSN_NOMEM, "result of the command");
    collector_release(&col);
    c->event.denials = found.items;
    c->event.denial_count = found.count;
    if (st == CSN_OK) {
        c->event.has_exit_code = r->exit_code >= 0;
        c->event.exit_code = r->exit_code;
        c->event.killed_by = r->killed_by;
        c->event.bytes = r->merged.total;
    }
    return st;
}

csn_status csn_exec_begin(csn_call *c, csn_sandbox *sb, const csn_exec_call *what,
                          const csn_exec_opts *opts, csn_exec_opts *ret_opts, csn_error **err)
{
    const char *op = what->op;
    csn_status st = csn_opts_take(opts, ret_opts, sizeof(*ret_opts), "command options", err);

    if (st == CSN_OK && !what->command && (!what->argv || !what->argv[0]))
        st = csn_fail(err, CSN_INVALID, "%s: no command given", op);
    if (st == CSN_OK)
        st = csn_flags_check(ret_opts->flags, what->flags, op, err);
    if (st == CSN_OK)
        st = csn_call_begin(c, sb, op, what->command, err);
    if (st < 0)
        return csn_error_note(st, err, op, NULL);
    c->event.argv = what->command ? NULL : what->argv;
    c->event.env = ret_opts->env;
    return CSN_OK;
}

static csn_status exec_any(csn_sandbox *sb, const char *const *argv, const char *command,
                           const csn_exec_opts *opts, csn_exec_result **ret, csn_error **err)
{
    const csn_exec_call what = {"exec", EXEC_FLAGS, argv, command};
    csn_call c;
    csn_exec_opts o;

    if (!ret)
        return csn_fail(err, CSN_INVALID, "exec: no place for the result given");
    csn_status st = csn_exec_begin(&c, sb, &what, opts, &o, err);
    if (st < 0)
        return st;
    csn_exec_result *r = csn_result_new(sizeof(*r));
    csn_command_record *record = NULL;
    st = r ? csn_command_record_begin(&c, &record, err) : csn_fail(err, CSN_NOMEM, "exec");
    if (st == CSN_OK)
        st = exec_inner(&c, argv, command, &o, r, err);
    csn_command_record_end(&c, record);
    (void)csn_network_log(sb, NULL); /* the command has run; what is not logged is a gap */
    st = csn_call_return(&c, st, r, ret, err);
    csn_command_record_free(record);
    return st;
}

csn_status csn_exec(csn_sandbox *sb, const char *const *argv, const csn_exec_opts *opts,
                    csn_exec_result **ret, csn_error **err)
{
    return exec_any(sb, argv, NULL, opts, ret, err);
}

csn_status csn_sh(csn_sandbox *sb, const char *command, const csn_exec_opts *opts,
                  csn_exec_result **ret, csn_error **err)
{
    return exec_any(sb, NULL, command, opts, ret, err);
}

void csn_exec_result_free(csn_exec_result *r)
{
    csn_result_free(r);
}
