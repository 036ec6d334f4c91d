/* call.c: runs one tools/call, from its arguments to its reply.
 *
 * The transport's thread looks up the tool; everything else runs on a thread of the pool,
 * because every tool may block. Invariant: a call gets exactly one reply, or none if it was
 * cancelled, and sends nothing after it. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "mcp/internal.h"
#include "mcp/tool.h"

static void call_free(csn_mcp_call *c)
{
    if (!c)
        return;
    csn_cancel_free(c->cancel);
    csn_rpc_release(&c->msg);
    pthread_mutex_destroy(&c->lock);
    free(c->token);
    free(c);
}

/* ---- replies -------------------------------------------------------------------------- */

static void answer(csn_mcp_call *c, const csn_buf *msg, int code)
{
    csn_mcp_progress_remove(c->session->server, c);
    csn_mcp_session_finish_call(c->session, c);
    pthread_mutex_lock(&c->lock);
    c->answered = true;
    bool none = atomic_load(&c->cancelled);
    pthread_mutex_unlock(&c->lock);
    c->out.done(c->out.ctx, none ? NULL : msg, none ? CSN_RPC_CANCELLED : code);
}

static void answer_result(csn_mcp_call *c, csn_tool_result *r)
{
    csn_autobuf msg;
    csn_json j;

    csn_buf_init(&msg, 2 * CSN_MCP_ANSWER_MAX);
    csn_rpc_result_begin(&j, &msg, c->msg.id);
    csn_json_object(&j);
    int e = csn_tool_result_write(r, &j);
    if (c->modern)
        csn_mcp_put_modern(&j, false);
    csn_json_object_end(&j);
    if (e == 0)
        e = csn_rpc_result_end(&j);
    if (e == 0) {
        answer(c, &msg, 0);
        return;
    }
    csn_buf_release(&msg);
    (void)csn_rpc_error(&msg, c->msg.id, CSN_RPC_INTERNAL,
                        e == ENOSPC ? "the reply would be too large" : "out of memory", NULL);
    answer(c, &msg, CSN_RPC_INTERNAL);
}

/* ---- running ---------------------------------------------------------------------------- */

static uint64_t output_max(const csn_config *config)
{
    uint64_t n = config->output_max ? config->output_max : CSN_MCP_OUTPUT_MAX;

    return n < CSN_MCP_OUTPUT_CEILING ? n : CSN_MCP_OUTPUT_CEILING;
}

static csn_status run_tool(csn_mcp_call *c, csn_tool_call *t, csn_error **err)
{
    csn_status st = csn_wire_tool_check(c->tool, c->args, err);

    return st < 0 ? st : csn_tool_find(c->tool->name)(t, err);
}

static void run(void *arg)
{
    csn_mcp_call *c = arg;
    csn_mcp_session *s = c->session;
    const csn_config *config = s->server->config;
    csn_mcp_lease *lease = NULL;
    csn_tool_result result;
    csn_error *err = NULL;
    bool is_new = false;

    csn_tool_result_init(&result);
    csn_status st = csn_mcp_sandbox_acquire(s->sandbox, &lease, &is_new, &err);
    csn_tool_call t = {
        .session_sandbox = s->sandbox,
        .sb = lease ? csn_mcp_lease_sandbox(lease) : NULL,
        .args = c->args,
        .cancel = c->cancel,
        .cancelled = &c->cancelled,
        .printed = c->token ? &c->printed : NULL,
        .timeout_ms = config->timeout_ms ? config->timeout_ms : CSN_MCP_TIMEOUT_MS,
        .output_max = output_max(config),
        .note = is_new ? "the sandbox had ended; this is a new one: files of the workspace are "
                         "there, processes and variables are not"
                       : NULL,
        .out = &result,
    };
    if (st == CSN_OK)
        st = run_tool(c, &t, &err);
    /* The call is not retried here: the command may have run in part. */
    if (st == CSN_GONE && !csn_error_hint(err))
        st = csn_error_advise(st, &err, "call again: the next call gets a new sandbox");
    if (st < 0)
        csn_tool_result_fail(&result, err);
    if (st == CSN_GONE && lease) /* before the reply: the client may call again at once */
        csn_mcp_sandbox_is_gone(s->sandbox, lease);
    answer_result(c, &result);
    csn_tool_result_release(&result);
    csn_error_free(err);
    if (t.after)
        t.after(&t);
    if (lease)
        csn_mcp_sandbox_release(s->sandbox, lease);
    csn_mcp_session_leave(s, c);
    call_free(c);
}

/* ---- starting -------------------------------------------------------------------------- */

static csn_mcp_call *call_new(csn_rpc_msg *m, const csn_mcp_out *out, bool modern)
{
    const csn_jval *meta = csn_jval_get(m->params, "_meta");
    const csn_jval *token = meta ? csn_jval_get(meta, "progressToken") : NULL;
    csn_mcp_call *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    pthread_mutex_init(&c->lock, NULL);
    c->out = *out;
    c->modern = modern;
    c->started_ns = csn_now_ns();
    if (csn_jval_is_string(token) || csn_jval_is_integer(token))
        c->token = csn_jval_dump(token);
    if (csn_cancel_new(&c->cancel, NULL) < 0) {
        call_free(c);
        return NULL;
    }
    c->msg = *m;
    *m = (csn_rpc_msg){0};
    return c;
}

/* Returns NULL, or the message of an error. */
static const char *check_params(const csn_rpc_msg *m, bool cow,
                                const csn_tool_schema **ret_tool, const csn_jval **ret_args)
{
    const char *name = csn_jval_string(csn_jval_get(m->params, "name"));

    *ret_args = csn_jval_get(m->params, "arguments");
    if (!name)
        return "\"name\" must be the name of a tool";
    if (*ret_args && !csn_jval_is_object(*ret_args))
        return "\"arguments\" must be an object";
    *ret_tool = csn_wire_tool_find(name);
    bool known = *ret_tool && (cow || !((*ret_tool)->hints & CSN_TOOL_COW));
    return known ? NULL : "unknown tool";
}

void csn_mcp_call_start(csn_mcp_session *s, csn_rpc_msg *m, const csn_mcp_out *out, bool modern)
{
    const csn_tool_schema *tool = NULL;
    const csn_jval *args = NULL;
    const char *wrong = check_params(m, s->server->cow, &tool, &args);

    if (wrong) {
        csn_mcp_answer_error(out, m->id, CSN_RPC_PARAMS, wrong, NULL);
        return;
    }
    csn_mcp_call *c = call_new(m, out, modern);
    if (!c) {
        csn_mcp_answer_error(out, m->id, CSN_RPC_INTERNAL, "out of memory", NULL);
        return;
    }
    c->tool = tool;
    c->args = args;
    if (!csn_mcp_session_enter(s, c)) {
        csn_mcp_answer_error(out, c->msg.id, CSN_RPC_INVALID,
                             "a request with this id is running", NULL);
        call_free(c);
        return;
    }
    if (c->token)
        csn_mcp_progress_add(s->server, c);
    if (!csn_pool_submit(s->server->pool, run, c)) {
        csn_autobuf msg;
        csn_buf_init(&msg, 4096);
        (void)csn_rpc_error(&msg, c->msg.id, CSN_RPC_BUSY, "too many calls at once", NULL);
        answer(c, &msg, CSN_RPC_BUSY);
        csn_mcp_session_leave(s, c);
        call_free(c);
    }
}
