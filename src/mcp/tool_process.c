/* tool_process.c: the tool `process`: controls background processes started by bash.
 *
 * The sandbox keeps output in bounded ring buffers; the session remembers how many bytes were
 * shown, so that each call returns only new output. Waiting is done in short steps, because
 * output comes on two streams and the call may be cancelled. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/strv.h"
#include "mcp/tool.h"
#include "wire/result_json.h"

#define STEP_MS  50u
#define STOP_MS  5000u
#define KILL_MS  2000u
#define WRITE_MS 5000u

CSN_DEFINE_CLEANUP(csn_process, csn_process_free)
CSN_DEFINE_CLEANUP(csn_process_list, csn_process_list_free)

typedef struct process_args {
    const char *action, *input, *signal;
    uint64_t pid, timeout_ms;
    bool timeout_given, close_input;
} process_args;

typedef struct output {
    csn_buf text[2]; /* stdout, stderr */
    uint64_t dropped;
    bool more, end[2];
} output;

static csn_status parse_args(csn_tool_call *c, process_args *q, csn_error **err)
{
    csn_status st = csn_tool_args(c,
                                  (csn_tool_arg[]){{"action", .text = &q->action},
                                                   {"pid", .number = &q->pid},
                                                   {"timeout", .number = &q->timeout_ms},
                                                   {"input", .text = &q->input},
                                                   {"signal", .text = &q->signal},
                                                   {"close_input", .flag = &q->close_input},
                                                   {0}},
                                  err);
    q->timeout_given = csn_jval_get(c->args, "timeout") != NULL;
    if (st == CSN_OK && strcmp(q->action, "list") != 0 && q->pid == 0)
        st = csn_fail(err, CSN_INVALID, "process: 'pid' is missing for %s", q->action);
    if (st == CSN_OK && strcmp(q->action, "input") == 0 && !q->input && !q->close_input)
        st = csn_fail(err, CSN_INVALID, "process: 'input' is missing");
    return st;
}

/* ---- output ----------------------------------------------------------------------------- */

/* Appends the output of one stream from *at on, up to max bytes. */
static csn_status drain(csn_process *p, int stream, uint64_t *at, uint64_t wait_ms, size_t max,
                        output *s, csn_error **err)
{
    csn_buf *to = &s->text[stream - 1];

    for (;;) {
        csn_log_chunk *chunk = NULL;
        csn_status st = csn_process_logs(p, stream, *at, wait_ms, &chunk, err);
        if (st < 0)
            return st;
        size_t room = max - to->len, n = chunk->len < room ? chunk->len : room;
        int e = csn_buf_append(to, chunk->data, n);
        s->dropped += chunk->dropped;
        s->more |= n < chunk->len;
        s->end[stream - 1] = chunk->end && n == chunk->len;
        bool again = e == 0 && n > 0 && n == chunk->len && !chunk->end && to->len < max;
        *at = chunk->offset + n;
        csn_log_chunk_free(chunk);
        if (e != 0)
            return csn_fail_errno(err, e, "process: output");
        if (!again)
            return CSN_OK;
        wait_ms = 0;
    }
}

static csn_status collect(csn_tool_call *c, csn_process *p, uint64_t wait_ms, output *s,
                          csn_error **err)
{
    uint64_t deadline = csn_deadline_in(wait_ms), at[2];
    int64_t pid = csn_process_pid(p);
    csn_status st;

    csn_mcp_cursor_get(c->session_sandbox, pid, at);
    for (;;) {
        int left = csn_deadline_poll_ms(deadline);
        uint64_t step = wait_ms == 0 || left <= 0 ? 0 : STEP_MS;
        st = drain(p, CSN_STDOUT, &at[0], step, c->output_max, s, err);
        if (st == CSN_OK)
            st = drain(p, CSN_STDERR, &at[1], 0, c->output_max, s, err);
        if (st < 0 || s->text[0].len > 0 || s->text[1].len > 0 || (s->end[0] && s->end[1]) ||
            step == 0 || atomic_load(c->cancelled))
            break;
    }
    if (st == CSN_OK)
        csn_mcp_cursor_set(c->session_sandbox, pid, at);
    return st;
}

/* ---- results ---------------------------------------------------------------------------- */

static const csn_process_info *entry_of(const csn_process_list *l, int64_t pid)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].pid == pid)
            return &l->items[i];
    return NULL;
}

static void put_entry(csn_buf *to, const csn_process_info *p)
{
    csn_buf_printf(to, "%s%" PRId64 " %s", to->len ? "\n" : "", p->pid, p->state);
    if (p->signal)
        csn_buf_printf(to, " (%s)", p->signal);
    else if (p->exit_code >= 0)
        csn_buf_printf(to, " (exit code %d)", (int)p->exit_code);
    csn_buf_printf(to, ": %s", p->command);
}

static void put_stream(csn_buf *to, const char *title, const csn_buf *stream)
{
    if (stream->len == 0)
        return;
    csn_buf_puts(to, title);
    csn_buf_append(to, stream->data, stream->len);
}

static void put_note(csn_buf *to, const output *s)
{
    if (s->dropped > 0)
        csn_buf_printf(to, "%" PRIu64 " bytes of older output were discarded", s->dropped);
    if (s->more)
        csn_buf_printf(to, "%sthere is more: ask for output again", to->len ? "; " : "");
}

static csn_status put_list_result(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_process_list_freep) csn_process_list *l = NULL;
    csn_autobuf text;

    csn_buf_init(&text, CSN_MCP_ANSWER_MAX);
    csn_status st = csn_processes(c->sb, &l, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < l->count; i++)
        put_entry(&text, &l->items[i]);
    if (l->count == 0)
        csn_buf_puts(&text, "There are no background processes.");
    if (text.err != 0)
        return csn_fail_errno(err, text.err, "process: list");
    csn_tool_result_text(c->out, text.data, text.len);
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    csn_json_key(j, "processes");
    csn_wire_processes(j, l);
    csn_json_kstr(j, "note", c->note);
    csn_json_object_end(j);
    return CSN_OK;
}

static csn_status put_process_result(csn_tool_call *c, int64_t pid, const output *s,
                                     csn_error **err)
{
    CSN_CLEANUP(csn_process_list_freep) csn_process_list *l = NULL;
    csn_autobuf text, note;

    csn_buf_init(&text, CSN_MCP_ANSWER_MAX);
    csn_buf_init(&note, 1024);
    csn_status st = csn_processes(c->sb, &l, err);
    if (st < 0)
        return st;
    const csn_process_info *p = entry_of(l, pid);
    if (!p)
        return csn_fail(err, CSN_NOT_FOUND, "process %" PRId64 " no longer exists", pid);
    put_entry(&text, p);
    put_stream(&text, "\n[stdout]\n", &s->text[0]);
    put_stream(&text, "\n[stderr]\n", &s->text[1]);
    put_note(&note, s);
    if (note.len > 0)
        csn_buf_printf(&text, "\n[note: %s]", note.data);
    if (text.err != 0)
        return csn_fail_errno(err, text.err, "process: reply");
    csn_tool_result_text(c->out, text.data, text.len);
    csn_json *j = csn_tool_result_data(c->out);
    csn_json_object(j);
    csn_json_key(j, "processes");
    csn_json_array(j);
    csn_wire_process(j, p);
    csn_json_array_end(j);
    csn_json_key(j, "stdout");
    csn_json_strn(j, s->text[0].data ? s->text[0].data : "", s->text[0].len);
    csn_json_key(j, "stderr");
    csn_json_strn(j, s->text[1].data ? s->text[1].data : "", s->text[1].len);
    csn_json_kstr(j, "note", note.len > 0 ? note.data : c->note);
    csn_json_object_end(j);
    return CSN_OK;
}

/* ---- actions ---------------------------------------------------------------------------- */

static csn_status write_input(csn_process *p, const process_args *q, csn_error **err)
{
    csn_status st = CSN_OK;

    if (q->input && q->input[0])
        st = csn_process_write(p, q->input, strlen(q->input), WRITE_MS, err);
    if (st == CSN_OK && q->close_input)
        st = csn_process_close_stdin(p, err);
    return st;
}

/* Returns true if the process has ended. */
static bool wait_end(csn_tool_call *c, csn_process *p, uint64_t ms)
{
    uint64_t deadline = csn_deadline_in(ms);

    for (;;) {
        csn_status st = csn_process_wait(p, STEP_MS, NULL, NULL);
        if (st != CSN_TIMEOUT)
            return true;
        if (csn_deadline_poll_ms(deadline) <= 0 || atomic_load(c->cancelled))
            return false;
    }
}

static csn_status stop(csn_tool_call *c, csn_process *p, const process_args *q, csn_error **err)
{
    int signo = q->signal ? csn_signal_number(q->signal) : SIGTERM;

    if (signo == 0)
        return csn_fail(err, CSN_INVALID, "process: unknown signal '%s'", q->signal);
    csn_status st = csn_process_signal(p, signo, err);
    if (st < 0 || wait_end(c, p, q->timeout_given ? q->timeout_ms : STOP_MS))
        return st;
    if (signo != SIGTERM)
        return CSN_OK;
    st = csn_process_signal(p, SIGKILL, err);
    if (st == CSN_OK)
        (void)wait_end(c, p, KILL_MS);
    return st;
}

csn_status csn_tool_process(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_process_freep) csn_process *p = NULL;
    process_args q = {.action = ""};
    output s = {.more = false};

    csn_status st = parse_args(c, &q, err);
    if (st < 0)
        return st;
    if (strcmp(q.action, "list") == 0)
        return put_list_result(c, err);
    st = csn_process_open(c->sb, (int64_t)q.pid, &p, err);
    if (st < 0)
        return st;
    csn_buf_init(&s.text[0], c->output_max);
    csn_buf_init(&s.text[1], c->output_max);
    if (strcmp(q.action, "input") == 0)
        st = write_input(p, &q, err);
    else if (strcmp(q.action, "stop") == 0)
        st = stop(c, p, &q, err);
    if (st == CSN_OK)
        st = collect(c, p, strcmp(q.action, "output") == 0 ? q.timeout_ms : 0, &s, err);
    if (st == CSN_OK)
        st = put_process_result(c, (int64_t)q.pid, &s, err);
    csn_buf_release(&s.text[0]);
    csn_buf_release(&s.text[1]);
    return st;
}
