/* methods.c: handles the methods of MCP, for the stateless revision and those with sessions.
 *
 * A message whose _meta names the stateless revision follows that revision; any other message
 * belongs to a session that began with initialize. Both may arrive on one connection. Every
 * method but tools/call replies at once. */
#include <string.h>

#include "base/cleanup.h"
#include "mcp/internal.h"

#define KEY_VERSION "io.modelcontextprotocol/protocolVersion"
#define KEY_CLIENT  "io.modelcontextprotocol/clientCapabilities"
#define KEY_SERVER  "io.modelcontextprotocol/serverInfo"
#define TTL_MS      300000 /* the tool list never changes */
#define SMALL_MAX   (1024u * 1024u)

static const char *const versions[] = {CSN_MCP_LATEST, "2025-06-18", "2025-03-26",
                                       "2024-11-05",   "2024-10-07", NULL};

/* ---- replies ---------------------------------------------------------------------------- */

void csn_mcp_answer_error(const csn_mcp_out *out, const char *id, int code, const char *message,
                          const char *data)
{
    csn_autobuf msg;

    csn_buf_init(&msg, SMALL_MAX);
    int e = csn_rpc_error(&msg, id, code, message, data);
    out->done(out->ctx, e == 0 ? &msg : NULL, code);
}

static void put_implementation(csn_json *j)
{
    csn_json_object(j);
    csn_json_kstr(j, "name", "caisson");
    csn_json_kstr(j, "title", "Caisson sandbox");
    csn_json_kstr(j, "version", csn_version());
    csn_json_object_end(j);
}

static void put_capabilities(csn_json *j)
{
    csn_json_key(j, "capabilities");
    csn_json_object(j);
    csn_json_key(j, "tools");
    csn_json_object(j);
    csn_json_kbool(j, "listChanged", false);
    csn_json_object_end(j);
    csn_json_object_end(j);
}

void csn_mcp_put_modern(csn_json *j, bool cacheable)
{
    csn_json_kstr(j, "resultType", "complete");
    if (cacheable) {
        csn_json_kint(j, "ttlMs", TTL_MS);
        csn_json_kstr(j, "cacheScope", "private");
    }
    csn_json_key(j, "_meta");
    csn_json_object(j);
    csn_json_key(j, KEY_SERVER);
    put_implementation(j);
    csn_json_object_end(j);
}

/* ---- methods ---------------------------------------------------------------------------- */

typedef struct request {
    csn_mcp_session *s;
    csn_rpc_msg *m;
    const csn_mcp_out *out;
    bool modern;
} request;

static void begin_result(const request *q, csn_json *j, csn_buf *msg)
{
    csn_buf_init(msg, SMALL_MAX);
    csn_rpc_result_begin(j, msg, q->m->id);
    csn_json_object(j);
}

static void end_result(const request *q, csn_json *j, const csn_buf *msg)
{
    csn_json_object_end(j);
    if (csn_rpc_result_end(j) == 0)
        q->out->done(q->out->ctx, msg, 0);
    else
        csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_INTERNAL, "out of memory", NULL);
}

static void ping(const request *q)
{
    csn_autobuf msg;
    csn_json j;

    begin_result(q, &j, &msg);
    end_result(q, &j, &msg);
}

static void initialize(const request *q)
{
    const char *asked = csn_jval_string(csn_jval_get(q->m->params, "protocolVersion"));
    const char *version = CSN_MCP_LATEST;
    csn_autobuf msg;
    csn_json j;

    csn_buf_init(&msg, 0);
    if (!asked) {
        csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_PARAMS,
                             "\"protocolVersion\" must be a string", NULL);
        return;
    }
    for (size_t i = 0; versions[i]; i++)
        if (strcmp(versions[i], asked) == 0)
            version = versions[i];
    pthread_mutex_lock(&q->s->lock);
    bool repeated = q->s->version != NULL;
    if (!repeated)
        q->s->version = version;
    pthread_mutex_unlock(&q->s->lock);
    if (repeated) {
        csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_INVALID,
                             "this session is initialized already", NULL);
        return;
    }
    begin_result(q, &j, &msg);
    csn_json_kstr(&j, "protocolVersion", version);
    put_capabilities(&j);
    csn_json_key(&j, "serverInfo");
    put_implementation(&j);
    csn_json_kstr(&j, "instructions", q->s->server->instructions.data);
    end_result(q, &j, &msg);
}

static void discover(const request *q)
{
    csn_autobuf msg;
    csn_json j;

    begin_result(q, &j, &msg);
    csn_json_key(&j, "supportedVersions");
    csn_json_array(&j);
    csn_json_str(&j, CSN_MCP_MODERN);
    csn_json_array_end(&j);
    put_capabilities(&j);
    csn_json_kstr(&j, "instructions", q->s->server->instructions.data);
    csn_mcp_put_modern(&j, true);
    end_result(q, &j, &msg);
}

static void list_tools(const request *q)
{
    const csn_buf *tools = &q->s->server->tools;
    csn_autobuf msg;
    csn_json j;

    csn_buf_init(&msg, 0);
    if (csn_jval_get(q->m->params, "cursor")) {
        csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_PARAMS,
                             "unknown cursor: the list has one page", NULL);
        return;
    }
    begin_result(q, &j, &msg);
    csn_json_key(&j, "tools");
    csn_json_raw(&j, tools->data, tools->len);
    if (q->modern)
        csn_mcp_put_modern(&j, true);
    end_result(q, &j, &msg);
}

static void call_tool(const request *q)
{
    csn_mcp_call_start(q->s, q->m, q->out, q->modern);
}

#define LEGACY        1u
#define MODERN        2u
#define UNINITIALIZED 4u /* allowed before initialize */

static const struct {
    const char *name;
    unsigned when;
    void (*run)(const request *q);
} methods[] = {
    {"initialize", LEGACY | UNINITIALIZED, initialize},
    {"ping", LEGACY | UNINITIALIZED, ping},
    {"tools/list", LEGACY | MODERN, list_tools},
    {"tools/call", LEGACY | MODERN, call_tool},
    {"server/discover", MODERN, discover},
};

/* ---- stateless revision ------------------------------------------------------------- */

const char *csn_mcp_claim(const csn_rpc_msg *m)
{
    const csn_jval *meta = csn_jval_get(m->params, "_meta");

    return meta ? csn_jval_string(csn_jval_get(meta, KEY_VERSION)) : NULL;
}

bool csn_mcp_is_modern(const csn_rpc_msg *m)
{
    const csn_jval *meta = csn_jval_get(m->params, "_meta");

    return (meta && csn_jval_has(meta, KEY_VERSION)) ||
           (m->method && strcmp(m->method, "server/discover") == 0);
}

bool csn_mcp_claim_complete(const csn_rpc_msg *m)
{
    const csn_jval *meta = csn_jval_get(m->params, "_meta");

    return csn_mcp_claim(m) && csn_jval_is_object(csn_jval_get(meta, KEY_CLIENT));
}

bool csn_mcp_speaks(const char *version)
{
    for (size_t i = 0; versions[i]; i++)
        if (strcmp(versions[i], version) == 0)
            return true;
    return false;
}

/* Returns false if the message was refused and the reply sent. */
static bool check_claim(const request *q)
{
    const char *version = csn_mcp_claim(q->m);
    csn_autobuf data;
    csn_json j;

    csn_buf_init(&data, SMALL_MAX);
    if (!csn_mcp_claim_complete(q->m)) {
        csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_PARAMS,
                             "params._meta must have " KEY_VERSION " and " KEY_CLIENT, NULL);
        return false;
    }
    if (strcmp(version, CSN_MCP_MODERN) == 0)
        return true;
    csn_json_begin(&j, &data);
    csn_json_object(&j);
    csn_json_key(&j, "supported");
    csn_json_array(&j);
    csn_json_str(&j, CSN_MCP_MODERN);
    csn_json_array_end(&j);
    csn_json_kstr(&j, "requested", version);
    csn_json_object_end(&j);
    csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_VERSION, "unsupported protocol revision",
                         csn_json_end(&j) == 0 ? data.data : NULL);
    return false;
}

/* ---- messages ---------------------------------------------------------------------- */

static void handle_request(const request *q)
{
    unsigned when = q->modern ? MODERN : LEGACY;

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(methods[i].name, q->m->method) != 0 || !(methods[i].when & when))
            continue;
        if (q->modern && !check_claim(q))
            return;
        if (!q->modern && !(methods[i].when & UNINITIALIZED) &&
            !csn_mcp_session_version(q->s)) {
            csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_INVALID,
                                 "not initialized: send initialize first", NULL);
            return;
        }
        methods[i].run(q);
        return;
    }
    csn_mcp_answer_error(q->out, q->m->id, CSN_RPC_METHOD, "unknown method", NULL);
}

static void handle_notification(csn_mcp_session *s, const csn_rpc_msg *m)
{
    if (strcmp(m->method, "notifications/cancelled") != 0)
        return;
    const csn_jval *id = csn_jval_get(m->params, "requestId");
    if (!csn_jval_is_string(id) && !csn_jval_is_integer(id))
        return;
    csn_autofree char *text = csn_jval_dump(id);
    if (text)
        csn_mcp_session_cancel_id(s, text);
}

void csn_mcp_take(csn_mcp_session *s, csn_rpc_msg *m, const csn_mcp_out *out)
{
    if (m->kind == CSN_RPC_REQUEST) {
        const request q = {.s = s, .m = m, .out = out, .modern = csn_mcp_is_modern(m)};
        handle_request(&q);
    } else {
        if (m->kind == CSN_RPC_NOTIFICATION)
            handle_notification(s, m);
        out->done(out->ctx, NULL, 0);
    }
    csn_rpc_release(m);
}

void csn_mcp_refuse(const csn_rpc_fault *why, const csn_mcp_out *out)
{
    csn_mcp_answer_error(out, why->id, why->code, why->message, NULL);
}
