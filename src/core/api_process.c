/* api_process.c: csn_start and csn_process_*: background processes.
 *
 * A csn_process is a pid and its sandbox. The backend owns the process, so another program can
 * open it by pid. The backend keeps output in bounded rings, which are read by byte offset. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "core/api_exec.h"
#include "core/command_record.h"
#include "core/denials.h"
#include "core/internal.h"
#include "core/result.h"

#define START_FLAGS                                                                            \
    (CSN_EXEC_MERGE | CSN_EXEC_STDIN_FD | CSN_EXEC_SUDO | CSN_EXEC_PTY | CSN_EXEC_STDIN |      \
     CSN_EXEC_TIED)
#define LOG_CHUNK_MAX (64u * 1024u)
#define WAIT_STEP_MS  200
#define WATCH_STEP_MS 20 /* between two searches of csn_wait_log */

struct csn_process {
    csn_sandbox *sb;
    int64_t pid;
    void *tie; /* the backend's, for CSN_EXEC_TIED */
};

static csn_status need_background(const csn_sandbox *sb, csn_error **err)
{
    if (sb->ops->processes)
        return CSN_OK;
    return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no background processes",
                    sb->ops->name);
}

/* ---- starting -----------------------------------------------------------------------------
 */

static csn_status start_check(const csn_sandbox *sb, const csn_exec_opts *o,
                              const char *command, csn_error **err)
{
    csn_status st = need_background(sb, err);

    if (st < 0)
        return st;
    if (o->session || o->on_output || o->on_denial || o->stdin_data)
        return csn_fail(err, CSN_INVALID,
                        "a background process takes no session, callback or stdin bytes");
    if (o->allowed_domains || o->package_managers)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "a background process has the network of its sandbox: allowed_domains "
                        "and package_managers are for commands that are waited for");
    if ((o->flags & CSN_EXEC_STDIN_FD) && (o->flags & (CSN_EXEC_STDIN | CSN_EXEC_PTY)))
        return csn_fail(err, CSN_INVALID, "stdin is given twice");
    return csn_exec_check(sb, o, command, err);
}

static csn_status start_in_backend(csn_call *c, csn_exec_req *req, const csn_exec_opts *o,
                                   csn_process *p, csn_error **err)
{
    csn_autofree char *workdir = NULL;

    req->flags = o->flags;
    req->rows = o->rows;
    req->cols = o->cols;
    req->deadline_ns = o->timeout_ms ? csn_deadline_in(o->timeout_ms) : 0;
    csn_status st = csn_exec_request(c, o, req, &workdir, err);
    if (st < 0)
        return st;
    return c->sb->ops->processes->start(c->sb->state, req, csn_exec_output_max(c->sb, o),
                                        &p->pid, &p->tie, err);
}

static csn_status start_inner(csn_call *c, const char *const *argv, const char *command,
                              const csn_exec_opts *o, csn_process *p, csn_error **err)
{
    csn_autofree const char **env = NULL;
    const char *shell_argv[] = {"bash", "-c", command, NULL};
    csn_exec_req req = {.argv = command ? shell_argv : argv, .command = command};

    csn_status st = start_check(c->sb, o, command, err);
    if (st == CSN_OK)
        st = csn_policy_command(c->sb->policy, command, argv, o->env, err);
    if (st == CSN_OK)
        st = csn_exec_environ(c->sb, o->env, &env, err);
    if (st == CSN_OK && command)
        st = csn_exec_shell(c, &shell_argv[0], err);
    if (st < 0)
        return st;
    req.env = env;
    return start_in_backend(c, &req, o, p, err);
}

static csn_status start_any(csn_sandbox *sb, const char *const *argv, const char *command,
                            const csn_exec_opts *opts, csn_process **ret, csn_error **err)
{
    const csn_exec_call what = {"start", START_FLAGS, argv, command};
    csn_call c;
    csn_exec_opts o;

    if (!ret)
        return csn_fail(err, CSN_INVALID, "start: no place for the process given");
    csn_status st = csn_exec_begin(&c, sb, &what, opts, &o, err);
    if (st < 0)
        return st;
    csn_process *p = calloc(1, sizeof(*p));
    if (p)
        p->sb = sb;
    csn_command_record *record = NULL; /* a process that goes on has no list of changes */
    st = p ? csn_command_record_begin(&c, &record, err) : csn_fail(err, CSN_NOMEM, "start");
    csn_command_record_free(record);
    if (st == CSN_OK)
        st = start_inner(&c, argv, command, &o, p, err);
    st = csn_call_end(&c, st, err);
    if (st < 0) {
        csn_process_free(p);
        return st;
    }
    *ret = p;
    return CSN_OK;
}

csn_status csn_start(csn_sandbox *sb, const char *const *argv, const csn_exec_opts *opts,
                     csn_process **ret, csn_error **err)
{
    return start_any(sb, argv, NULL, opts, ret, err);
}

csn_status csn_start_sh(csn_sandbox *sb, const char *command, const csn_exec_opts *opts,
                        csn_process **ret, csn_error **err)
{
    return start_any(sb, NULL, command, opts, ret, err);
}

int64_t csn_process_pid(const csn_process *p)
{
    return p ? p->pid : 0;
}

void csn_process_free(csn_process *p)
{
    if (!p)
        return;
    if (p->tie && p->sb->ops->processes->release_tied)
        p->sb->ops->processes->release_tied(p->tie);
    free(p);
}

/* ---- listing and waiting ------------------------------------------------------------------
 */

typedef struct gather {
    csn_arena *arena;
    csn_process_info *items;
    size_t count, cap;
    int err;
} gather;

static int gather_one(void *ctx, const csn_process_info *info)
{
    gather *g = ctx;

    if (g->count == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 8;
        csn_process_info *more = csn_arena_array(g->arena, cap, sizeof(*more));
        if (!more) {
            g->err = ENOMEM;
            return 1;
        }
        if (g->count > 0)
            memcpy(more, g->items, g->count * sizeof(*more));
        g->items = more;
        g->cap = cap;
    }
    csn_process_info *to = &g->items[g->count++];
    *to = *info;
    to->command = csn_arena_strdup(g->arena, info->command);
    to->state = csn_arena_strdup(g->arena, info->state);
    to->signal = csn_arena_strdup(g->arena, info->signal);
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const csn_process_info *x = a, *y = b;

    if (x->started_ms != y->started_ms)
        return x->started_ms < y->started_ms ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static csn_status query(csn_call *c, int64_t pid, uint64_t wait_ms, csn_process_list **ret,
                        csn_error **err)
{
    csn_status st = need_background(c->sb, err);

    if (st < 0)
        return st;
    csn_process_list *l = csn_result_new(sizeof(*l));
    if (!l)
        return csn_fail(err, CSN_NOMEM, "processes");
    gather g = {.arena = csn_result_arena(l)};
    st = c->sb->ops->processes->list(c->sb->state, pid, wait_ms, gather_one, &g, err);
    if (st == CSN_OK && g.err != 0)
        st = csn_fail(err, CSN_NOMEM, "processes");
    if (st == CSN_OK && pid != 0 && g.count == 0)
        st = csn_fail(err, CSN_NOT_FOUND, "no process %lld in this sandbox", (long long)pid);
    if (st < 0) {
        csn_result_free(l);
        return st;
    }
    if (g.count > 1)
        qsort(g.items, g.count, sizeof(*g.items), by_start);
    l->items = g.items;
    l->count = g.count;
    *ret = l;
    return CSN_OK;
}

csn_status csn_processes(csn_sandbox *sb, csn_process_list **ret, csn_error **err)
{
    csn_call c;
    csn_process_list *l = NULL;
    csn_status st =
        ret ? csn_call_begin(&c, sb, "processes", NULL, err)
            : csn_fail(err, CSN_INVALID, "processes: no place for the result given");

    if (st < 0)
        return st;
    c.quiet = true;
    st = query(&c, 0, 0, &l, err);
    return csn_call_return(&c, st, l, ret, err);
}

csn_status csn_process_open(csn_sandbox *sb, int64_t pid, csn_process **ret, csn_error **err)
{
    csn_call c;
    csn_process_list *l = NULL;
    csn_process *p = NULL;
    csn_status st = csn_call_begin(&c, sb, "process", NULL, err);

    if (st < 0)
        return st;
    c.quiet = true;
    st = pid > 0 ? query(&c, pid, 0, &l, err)
                 : csn_fail(err, CSN_INVALID, "%lld is not a process", (long long)pid);
    if (st == CSN_OK && !(p = calloc(1, sizeof(*p))))
        st = csn_fail(err, CSN_NOMEM, "process");
    csn_result_free(l);
    st = csn_call_end(&c, st, err);
    if (st < 0) {
        free(p);
        return st;
    }
    *p = (csn_process){.sb = sb, .pid = pid};
    *ret = p;
    return CSN_OK;
}

/* Waits in short steps, so that closing the sandbox does not have to wait for the process. */
static csn_status wait_for_end(csn_call *c, int64_t pid, uint64_t timeout_ms,
                               csn_process_list **ret, csn_error **err)
{
    struct pollfd stop = {.fd = c->sb->stop_fd, .events = POLLIN};
    uint64_t deadline = csn_deadline_in(timeout_ms);

    for (;;) {
        int left = csn_deadline_poll_ms(deadline);
        uint64_t step = left < 0 || left > WAIT_STEP_MS ? WAIT_STEP_MS : (uint64_t)left;
        csn_status st = query(c, pid, step, ret, err);
        if (st < 0 || strcmp((*ret)->items[0].state, "running") != 0)
            return st;
        csn_result_free(CSN_STEAL(*ret));
        if (left == 0)
            return csn_fail(err, CSN_TIMEOUT, "process %lld still runs", (long long)pid);
        if (poll(&stop, 1, 0) > 0)
            return csn_fail(err, CSN_CANCELLED, "the sandbox is closing");
    }
}

static csn_status rescan(csn_call *c, csn_process_list *l, csn_error **err)
{
    csn_denials found = {.arena = csn_result_arena(l)};
    const csn_deny_sink sink = {csn_denials_add, &found};

    if (!c->sb->ops->processes->rescan)
        return CSN_OK;
    c->sb->ops->processes->rescan(c->sb->state, &sink);
    l->denials = found.items;
    l->denial_count = found.count;
    c->event.denials = found.items;
    c->event.denial_count = found.count;
    c->quiet = c->quiet && found.count == 0; /* what was moved away is logged */
    return found.failed ? csn_fail(err, CSN_NOMEM, "wait") : CSN_OK;
}

csn_status csn_process_wait(csn_process *p, uint64_t timeout_ms, csn_process_list **ret,
                            csn_error **err)
{
    csn_call c;
    csn_process_list *l = NULL;

    if (!p)
        return csn_fail(err, CSN_INVALID, "wait: no process given");
    csn_status st = csn_call_begin(&c, p->sb, "wait", NULL, err);
    if (st < 0)
        return st;
    c.quiet = true;
    st = wait_for_end(&c, p->pid, timeout_ms, &l, err);
    if (st == CSN_OK && ret)
        st = rescan(&c, l, err);
    return csn_call_return(&c, st, l, ret, err);
}

void csn_process_list_free(csn_process_list *l)
{
    csn_result_free(l);
}

/* ---- output -------------------------------------------------------------------------------
 */

static int append_chunk(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    return data && csn_buf_append(ctx, data, len) == 0 ? CSN_SINK_MORE : CSN_SINK_STOP;
}

static csn_status read_logs(csn_sandbox *sb, int64_t pid, int stream, uint64_t offset,
                            uint64_t wait_ms, csn_buf *out, csn_log_chunk *chunk,
                            csn_error **err)
{
    csn_sink sink = {.write = append_chunk, .ctx = out};

    csn_buf_init(out, 16 * LOG_CHUNK_MAX);
    *chunk = (csn_log_chunk){.offset = offset};
    return sb->ops->processes->logs(sb->state, pid, stream, offset, wait_ms, &sink, chunk, err);
}

static csn_status follow_logs(csn_process *p, int stream, uint64_t offset, uint64_t wait_ms,
                              csn_buf *bytes, csn_log_chunk *chunk, csn_error **err)
{
    struct pollfd stop = {.fd = p->sb->stop_fd, .events = POLLIN};
    uint64_t deadline = csn_deadline_in(wait_ms);

    for (;;) {
        int left = csn_deadline_poll_ms(deadline);
        uint64_t step = left < 0 || left > WAIT_STEP_MS ? WAIT_STEP_MS : (uint64_t)left;
        csn_status st = read_logs(p->sb, p->pid, stream, offset, step, bytes, chunk, err);
        if (st < 0 || bytes->len > 0 || chunk->end || left == 0 || poll(&stop, 1, 0) > 0)
            return st;
        csn_buf_release(bytes);
    }
}

static csn_status logs_inner(csn_process *p, int stream, uint64_t offset, uint64_t wait_ms,
                             csn_log_chunk **ret, csn_error **err)
{
    csn_autobuf bytes;
    csn_log_chunk chunk;

    csn_buf_init(&bytes, 0);
    csn_status st = need_background(p->sb, err);
    if (st == CSN_OK && stream != CSN_STDOUT && stream != CSN_STDERR)
        st = csn_fail(err, CSN_INVALID, "logs: stream %d is neither stdout nor stderr", stream);
    if (st == CSN_OK)
        st = follow_logs(p, stream, offset, wait_ms, &bytes, &chunk, err);
    if (st < 0)
        return st;
    csn_log_chunk *r = csn_result_new(sizeof(*r));
    if (r) {
        *r = chunk;
        r->data =
            csn_arena_memdup(csn_result_arena(r), bytes.data ? bytes.data : "", bytes.len);
        r->len = bytes.len;
    }
    if (!r || !r->data) {
        csn_result_free(r);
        return csn_fail(err, CSN_NOMEM, "logs");
    }
    *ret = r;
    return CSN_OK;
}

csn_status csn_process_logs(csn_process *p, int stream, uint64_t offset, uint64_t wait_ms,
                            csn_log_chunk **ret, csn_error **err)
{
    csn_call c;
    csn_log_chunk *r = NULL;

    if (!p || !ret)
        return csn_fail(err, CSN_INVALID, "logs: no process given");
    csn_status st = csn_call_begin(&c, p->sb, "logs", NULL, err);
    if (st < 0)
        return st;
    c.quiet = true;
    st = logs_inner(p, stream, offset, wait_ms, &r, err);
    return csn_call_return(&c, st, r, ret, err);
}

void csn_log_chunk_free(csn_log_chunk *c)
{
    csn_result_free(c);
}

/* ---- signal, stdin and resize ----------------------------------------------------------- */

static csn_status begin_on(csn_process *p, csn_call *c, const char *op, csn_error **err)
{
    if (!p)
        return csn_fail(err, CSN_INVALID, "%s: no process given", op);
    return csn_call_begin(c, p->sb, op, NULL, err);
}

csn_status csn_process_signal(csn_process *p, int signo, csn_error **err)
{
    csn_call c;
    csn_status st = begin_on(p, &c, "signal", err);

    if (st < 0)
        return st;
    if (signo <= 0 || signo > 64)
        st = csn_fail(err, CSN_INVALID, "%d is not a signal", signo);
    else
        st = p->sb->ops->processes->signal(p->sb->state, p->pid, signo, err);
    return csn_call_end(&c, st, err);
}

static csn_status feed(csn_process *p, const char *op, const void *data, size_t len,
                       uint64_t timeout_ms, csn_error **err)
{
    csn_call c;
    csn_status st = begin_on(p, &c, op, err);

    if (st < 0)
        return st;
    st = p->sb->ops->processes->feed
             ? p->sb->ops->processes->feed(p->sb->state, p->pid, data, len, timeout_ms, err)
             : csn_fail(err, CSN_UNSUPPORTED,
                        "this backend cannot write to the stdin of a process");
    return csn_call_end(&c, st, err);
}

csn_status csn_process_write(csn_process *p, const void *data, size_t len, uint64_t timeout_ms,
                             csn_error **err)
{
    if (len == 0)
        return CSN_OK;
    if (!data)
        return csn_fail(err, CSN_INVALID, "write to process: no data given");
    return feed(p, "stdin", data, len, timeout_ms ? timeout_ms : CSN_TIMEOUT_MS_DEFAULT, err);
}

csn_status csn_process_close_stdin(csn_process *p, csn_error **err)
{
    return feed(p, "close_stdin", NULL, 0, CSN_TIMEOUT_MS_DEFAULT, err);
}

csn_status csn_process_resize(csn_process *p, uint16_t rows, uint16_t cols, csn_error **err)
{
    csn_call c;
    csn_status st = begin_on(p, &c, "resize", err);

    if (st < 0)
        return st;
    c.quiet = true;
    if (rows == 0 || cols == 0)
        st = csn_fail(err, CSN_INVALID, "%u x %u is not a terminal size", rows, cols);
    else if (!p->sb->ops->processes->resize)
        st = csn_fail(err, CSN_UNSUPPORTED, "this backend has no terminals");
    else
        st = p->sb->ops->processes->resize(p->sb->state, p->pid, rows, cols, err);
    return csn_call_end(&c, st, err);
}

/* ---- csn_wait_port and csn_wait_log ----------------------------------------------------- */

csn_status csn_wait_port(csn_sandbox *sb, uint16_t port, uint64_t timeout_ms, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "wait_port", NULL, err);

    if (st < 0)
        return st;
    if (port == 0)
        st = csn_fail(err, CSN_INVALID, "0 is not a port");
    else if (!sb->ops->processes || !sb->ops->processes->wait_port)
        st = csn_fail(err, CSN_UNSUPPORTED, "backend '%s' cannot watch ports", sb->ops->name);
    else
        st = sb->ops->processes->wait_port(
            sb->state, port, timeout_ms ? timeout_ms : CSN_TIMEOUT_MS_DEFAULT, err);
    return csn_call_end(&c, st, err);
}

/* *ret_found: a kept log contains the text. *ret_running: a process still runs and may write
 * it. */
static csn_status search_logs(csn_call *c, const char *text, bool *ret_found, bool *ret_running,
                              csn_error **err)
{
    csn_process_list *l = NULL;
    csn_status st = query(c, 0, 0, &l, err);

    *ret_found = *ret_running = false;
    for (size_t i = 0; st == CSN_OK && i < l->count && !*ret_found; i++) {
        *ret_running |= strcmp(l->items[i].state, "running") == 0;
        for (int s = CSN_STDOUT; s <= CSN_STDERR && st == CSN_OK && !*ret_found; s++) {
            csn_autobuf all;
            csn_log_chunk chunk = {.end = 0};
            uint64_t at = 0, before;
            csn_buf_init(&all, CSN_OUTPUT_MAX_CEILING);
            do { /* the ring is read in chunks */
                csn_autobuf part;
                before = at;
                st = read_logs(c->sb, l->items[i].pid, s, at, 0, &part, &chunk, err);
                if (st == CSN_OK && part.len > 0)
                    (void)csn_buf_append(&all, part.data, part.len);
                at = chunk.offset + part.len;
            } while (st == CSN_OK && at > before && at < chunk.total);
            *ret_found = all.len > 0 && memmem(all.data, all.len, text, strlen(text)) != NULL;
        }
    }
    csn_process_list_free(l);
    return st;
}

static csn_status wait_log_inner(csn_call *c, const char *text, uint64_t timeout_ms,
                                 csn_error **err)
{
    uint64_t deadline = csn_deadline_in(timeout_ms ? timeout_ms : CSN_TIMEOUT_MS_DEFAULT);
    csn_status st = need_background(c->sb, err);

    if (st == CSN_OK && (!text || !*text))
        st = csn_fail(err, CSN_INVALID, "wait: no text given");
    while (st == CSN_OK) {
        bool found, running;
        bool last = csn_deadline_poll_ms(deadline) == 0;
        st = search_logs(c, text, &found, &running, err);
        if (st < 0 || found)
            return st;
        if (last || !running)
            return csn_fail(err, CSN_TIMEOUT, "no process wrote '%s'%s", text,
                            running ? "" : " and none is running");
        struct pollfd stop = {.fd = c->sb->stop_fd, .events = POLLIN};
        if (poll(&stop, 1, WATCH_STEP_MS) > 0)
            return csn_fail(err, CSN_CANCELLED, "the sandbox is closing");
    }
    return st;
}

csn_status csn_wait_log(csn_sandbox *sb, const char *text, uint64_t timeout_ms, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "wait_log", text, err);

    if (st < 0)
        return st;
    return csn_call_end(&c, wait_log_inner(&c, text, timeout_ms, err), err);
}
