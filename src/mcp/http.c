/* http.c: serves MCP over streamable HTTP, at the endpoint /mcp.
 *
 * Host, token and content type are checked before the body is read. The body is parsed on a
 * thread of the MCP server, never on one of the HTTP server. The response is one JSON document,
 * or a stream of events if progress is reported before it.
 *
 * Invariant: every accepted request is answered exactly once and is in the list of exchanges
 * until then, so on_disconnect never finds a freed exchange. admit() refuses every request
 * without a valid token. Sessions, connections and running requests are divided equally between
 * the tokens, so that the holder of one cannot use up those of another. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/condvar.h"
#include "base/error.h"
#include "base/list.h"
#include "httpd/access.h"
#include "httpd/httpd.h"
#include "mcp/mcp.h"
#include "mcp/session_registry.h"
#include "mcp/stop.h"

#define ENDPOINT   "/mcp"
#define THREADS    2
#define SWEEP_MS   10000
#define END_MS     4000u
#define HDR_ID     "Mcp-Session-Id"
#define HDR_REV    "MCP-Protocol-Version"
#define HDR_METHOD "Mcp-Method"
#define HDR_NAME   "Mcp-Name"

typedef struct service service;

typedef struct exchange {
    struct exchange *next, **link;
    service *sv;
    csn_httpd_req *req;
    unsigned token;
    csn_mcp_session *session;
    char id[CSN_RPC_ID_MAX];
    char new_session[CSN_MCP_SESSION_ID]; /* "": none opened */
    bool modern, bad_claim, streaming;
} exchange;

struct service {
    const csn_httpd_api *api;
    csn_httpd_access *access;
    csn_mcp_server *server;
    csn_mcp_registry *registry;
    pthread_mutex_t lock; /* protects the list */
    pthread_cond_t empty;
    exchange *exchanges;
};

static const csn_httpd_header json_type[] = {{"Content-Type", "application/json"},
                                             {NULL, NULL}};

/* ---- request heads -------------------------------------------------------------- */

static bool contains(const char *list, const char *word)
{
    return list && strcasestr(list, word);
}

static bool refuse(csn_httpd_refusal *refusal, int status, const csn_httpd_header *headers,
                   const char *body)
{
    *refusal = (csn_httpd_refusal){.status = status, .headers = headers, .body = body};
    return false;
}

static bool admit_post(const csn_httpd_api *api, csn_httpd_req *r, csn_httpd_refusal *refusal)
{
    const char *type = api->header(r, "Content-Type", NULL);
    const char *accept = api->header(r, "Accept", NULL);
    const char *coding = api->header(r, "Content-Encoding", NULL);
    size_t n = type ? strcspn(type, "; \t") : 0;

    if (n != strlen("application/json") || strncasecmp(type, "application/json", n) != 0 ||
        (coding && strcasecmp(coding, "identity") != 0))
        return refuse(refusal, 415, NULL, NULL);
    if (accept && !contains(accept, "*/*") &&
        !(contains(accept, "application/json") && contains(accept, "text/event-stream")))
        return refuse(refusal, 406, NULL, NULL);
    return true;
}

static bool admit(void *ctx, csn_httpd_req *r, csn_httpd_refusal *refusal)
{
    static const csn_httpd_header challenge[] = {{"WWW-Authenticate", "Bearer"}, {NULL, NULL}};
    static const csn_httpd_header allow[] = {{"Allow", "POST, DELETE"}, {NULL, NULL}};
    service *sv = ctx;
    const csn_httpd_api *api = sv->api;
    unsigned origins = 0, tokens = 0;
    const char *origin = api->header(r, "Origin", &origins);
    const char *authorization = api->header(r, "Authorization", &tokens);

    int status = csn_httpd_access_host(sv->access, api->header(r, "Host", NULL), origin);
    if (status != 0 || origins > 1)
        return refuse(refusal, 403, NULL, NULL);
    int token = tokens == 1 ? csn_httpd_access_token(sv->access, authorization) : -1;
    if (token < 0)
        return refuse(refusal, 401, challenge, NULL);
    if (!api->claim(r, (unsigned)token))
        return refuse(refusal, 503, NULL, NULL);
    if (strcmp(api->path(r), ENDPOINT) != 0)
        return refuse(refusal, 404, NULL, NULL);
    api->set_data(r, (void *)(uintptr_t)token);
    if (strcmp(api->method(r), "DELETE") == 0)
        return true;
    if (strcmp(api->method(r), "POST") != 0)
        return refuse(refusal, 405, allow, NULL);
    return admit_post(api, r, refusal);
}

/* ---- exchanges -------------------------------------------------------------------------- */

/* The requests of one token that may run or wait. Beside other tokens no request waits for a
 * thread: the shares together are the threads. */
static unsigned share(const service *sv)
{
    unsigned tokens = csn_httpd_access_tokens(sv->access);

    return tokens > 1 ? CSN_MCP_CALLS_MAX / tokens : CSN_MCP_CALLS_MAX + CSN_MCP_QUEUE_MAX;
}

/* Returns NULL if the token has its share already, or without memory. */
static exchange *exchange_new(service *sv, csn_httpd_req *r)
{
    exchange *x = calloc(1, sizeof(*x));
    unsigned count = 0;

    if (!x)
        return NULL;
    x->sv = sv;
    x->req = r;
    x->token = (unsigned)(uintptr_t)sv->api->data(r);
    pthread_mutex_lock(&sv->lock);
    for (const exchange *o = sv->exchanges; o; o = o->next)
        count += o->token == x->token;
    bool room = count < share(sv);
    if (room)
        CSN_LIST_PUSH(&sv->exchanges, x, next, link);
    pthread_mutex_unlock(&sv->lock);
    if (!room)
        free(x);
    return room ? x : NULL;
}

/* Call it after the response was sent: shut_down waits until the list is empty. */
static void exchange_free(exchange *x)
{
    pthread_mutex_lock(&x->sv->lock);
    CSN_LIST_REMOVE(x, next, link);
    if (!x->sv->exchanges)
        pthread_cond_broadcast(&x->sv->empty);
    pthread_mutex_unlock(&x->sv->lock);
    csn_mcp_session_unref(x->session);
    free(x);
}

static void reply(exchange *x, int status, const csn_buf *msg)
{
    const csn_httpd_header with_id[] = {
        {"Content-Type", "application/json"}, {HDR_ID, x->new_session}, {NULL, NULL}};
    csn_httpd_req *r = x->req;
    const csn_httpd_api *api = x->sv->api;

    api->reply(r, status,
               x->new_session[0] ? with_id
               : msg             ? json_type
                                 : NULL,
               msg ? msg->data : "", msg ? msg->len : 0);
    exchange_free(x);
}

static void reply_error(exchange *x, int status, const char *id, int code, const char *message)
{
    csn_autobuf msg;

    csn_buf_init(&msg, 65536);
    int e = csn_rpc_error(&msg, id, code, message, NULL);
    reply(x, status, e == 0 ? &msg : NULL);
}

/* ---- outgoing messages --------------------------------------------------------------- */

static bool push_event(exchange *x, const csn_buf *msg)
{
    csn_autobuf event;

    csn_buf_init(&event, msg->len + 64);
    return csn_buf_puts(&event, "event: message\ndata: ") == 0 &&
           csn_buf_append(&event, msg->data, msg->len) == 0 &&
           csn_buf_puts(&event, "\n\n") == 0 && x->sv->api->push(x->req, event.data, event.len);
}

/* A notification before the result turns the response into a stream. */
static void out_send(void *ctx, const csn_buf *msg)
{
    static const csn_httpd_header events[] = {{"Content-Type", "text/event-stream"},
                                              {NULL, NULL}};
    exchange *x = ctx;

    if (!x->streaming)
        x->sv->api->stream(x->req, 200, events);
    x->streaming = true;
    (void)push_event(x, msg);
}

static int status_of(const exchange *x, int code)
{
    if (code == CSN_RPC_VERSION || code == CSN_RPC_CAPABILITY || code == CSN_RPC_HEADER ||
        (x->bad_claim && code == CSN_RPC_PARAMS))
        return 400;
    if (code == CSN_RPC_METHOD && x->modern)
        return 404;
    return code == CSN_RPC_BUSY ? 503 : 200;
}

static void out_done(void *ctx, const csn_buf *msg, int code)
{
    exchange *x = ctx;

    /* initialize failed: the client never receives the id of the session. */
    if (x->new_session[0] && code != 0) {
        (void)csn_mcp_registry_end(x->sv->registry, x->token, x->new_session);
        x->new_session[0] = '\0';
    }
    if (x->streaming) {
        if (msg)
            (void)push_event(x, msg);
        x->sv->api->finish(x->req);
        exchange_free(x);
    } else if (msg) {
        reply(x, status_of(x, code), msg);
    } else if (code == CSN_RPC_CANCELLED) {
        reply_error(x, 200, x->id, code, "the request was cancelled");
    } else {
        reply(x, 202, NULL);
    }
}

/* ---- incoming messages --------------------------------------------------------------- */

/* True if the header occurs once and equals the value in the body. */
static bool header_matches(exchange *x, const char *header, const char *body)
{
    unsigned count = 0;
    const char *value = x->sv->api->header(x->req, header, &count);

    return value && body && count == 1 && strcmp(value, body) == 0;
}

/* Takes over the reference. on_disconnect may read x->session from another thread. */
static void attach(exchange *x, csn_mcp_session *s)
{
    pthread_mutex_lock(&x->sv->lock);
    x->session = s;
    pthread_mutex_unlock(&x->sv->lock);
}

/* Returns NULL, or what is wrong with the headers of a stateless request. */
static const char *check_modern(exchange *x, const csn_rpc_msg *m)
{
    const char *claim = csn_mcp_claim(m);

    if (!claim)
        return NULL; /* csn_mcp_take refuses the message */
    if (!header_matches(x, HDR_REV, claim))
        return HDR_REV " is missing or differs from the message";
    if (!header_matches(x, HDR_METHOD, m->method))
        return HDR_METHOD " is missing or differs from the message";
    if (strcmp(m->method, "tools/call") == 0 &&
        !header_matches(x, HDR_NAME, csn_jval_string(csn_jval_get(m->params, "name"))))
        return HDR_NAME " is missing or differs from the message";
    return NULL;
}

static bool claims_modern(exchange *x, const csn_rpc_msg *m)
{
    const char *rev = x->sv->api->header(x->req, HDR_REV, NULL);

    return csn_mcp_is_modern(m) || (rev && strcmp(rev, CSN_MCP_MODERN) == 0);
}

static bool take_modern(exchange *x, const csn_rpc_msg *m)
{
    csn_error *err = NULL;
    csn_mcp_session *s = NULL;
    const char *wrong = m->kind == CSN_RPC_REQUEST ? check_modern(x, m) : NULL;

    pthread_mutex_lock(&x->sv->lock);
    x->modern = true;
    pthread_mutex_unlock(&x->sv->lock);
    x->bad_claim = !csn_mcp_claim_complete(m);
    if (wrong) {
        reply_error(x, 400, m->id, CSN_RPC_HEADER, wrong);
        return false;
    }
    if (m->kind == CSN_RPC_REQUEST && !csn_mcp_is_modern(m)) {
        reply_error(x, 400, m->id, CSN_RPC_PARAMS, "params._meta does not name the revision");
        return false;
    }
    if (csn_mcp_registry_stateless(x->sv->registry, x->token, &s, &err) < 0) {
        reply_error(x, 503, m->id, CSN_RPC_INTERNAL, csn_error_message(err));
        csn_error_free(err);
        return false;
    }
    attach(x, s);
    return true;
}

static bool open_session(exchange *x, const csn_rpc_msg *m)
{
    csn_error *err = NULL;
    csn_mcp_session *s = NULL;
    csn_status st = csn_mcp_registry_open(x->sv->registry, x->token, x->new_session, &s, &err);

    if (st == CSN_OK) {
        attach(x, s);
        return true;
    }
    reply_error(x, 503, m->id, CSN_RPC_BUSY, csn_error_message(err));
    csn_error_free(err);
    return false;
}

/* Finds the session of a message. Returns false if the message was refused and the response
 * sent. */
static bool take_legacy(exchange *x, const csn_rpc_msg *m)
{
    const csn_httpd_api *api = x->sv->api;
    const char *rev = api->header(x->req, HDR_REV, NULL);
    const char *session = api->header(x->req, HDR_ID, NULL);
    bool first = m->kind == CSN_RPC_REQUEST && strcmp(m->method, "initialize") == 0;

    if (first && !session)
        return open_session(x, m);
    if (!session) {
        reply_error(x, 400, m->id, CSN_RPC_INVALID,
                    HDR_ID " is missing: send initialize first");
        return false;
    }
    attach(x, csn_mcp_registry_find(x->sv->registry, x->token, session));
    if (!x->session) {
        reply_error(x, 404, m->id, CSN_RPC_SESSION, "unknown session: send initialize");
        return false;
    }
    if (rev && !csn_mcp_speaks(rev)) {
        reply_error(x, 400, m->id, CSN_RPC_VERSION, "unsupported protocol revision");
        return false;
    }
    return true;
}

static void post(exchange *x)
{
    csn_mcp_out out = {.send = out_send, .done = out_done, .ctx = x};
    csn_rpc_msg m;
    csn_rpc_fault why;
    size_t len = 0;
    const char *text = x->sv->api->body(x->req, &len);

    if (!csn_rpc_parse(text, len, &m, &why)) {
        reply_error(x, 400, why.id, why.code, why.message);
        return;
    }
    memcpy(x->id, m.id, sizeof(x->id));
    if (claims_modern(x, &m) ? take_modern(x, &m) : take_legacy(x, &m))
        csn_mcp_take(x->session, &m, &out);
    else
        csn_rpc_release(&m);
}

static void end_session(exchange *x)
{
    const char *session = x->sv->api->header(x->req, HDR_ID, NULL);

    if (!session)
        reply_error(x, 400, "", CSN_RPC_INVALID, HDR_ID " is missing");
    else if (csn_mcp_registry_end(x->sv->registry, x->token, session))
        reply(x, 200, NULL);
    else
        reply_error(x, 404, "", CSN_RPC_SESSION, "unknown session: send initialize");
}

static void run(void *arg)
{
    exchange *x = arg;

    if (strcmp(x->sv->api->method(x->req), "DELETE") == 0)
        end_session(x);
    else
        post(x);
}

static void handle(void *ctx, csn_httpd_req *r)
{
    service *sv = ctx;
    exchange *x = exchange_new(sv, r);

    if (!x)
        sv->api->reply(r, 503, NULL, "", 0);
    else if (!csn_mcp_server_submit(sv->server, run, x))
        reply_error(x, 503, "", CSN_RPC_BUSY, "too many requests at once");
}

/* A stateless client cancels by disconnecting. In a session, a lost connection does not cancel
 * the call. */
static void on_disconnect(void *ctx, csn_httpd_req *r)
{
    service *sv = ctx;

    pthread_mutex_lock(&sv->lock);
    for (exchange *x = sv->exchanges; x; x = x->next)
        if (x->req == r && x->modern && x->session)
            csn_mcp_session_cancel(x->session);
    pthread_mutex_unlock(&sv->lock);
}

/* ---- serving ---------------------------------------------------------------------------- */

static void wait_stop(service *sv, int stop)
{
    struct pollfd p = {.fd = stop, .events = POLLIN};

    for (;;) {
        int n = poll(&p, 1, SWEEP_MS);
        if (n > 0 || (n < 0 && errno != EINTR))
            return;
        csn_mcp_registry_sweep(sv->registry);
    }
}

/* Returns false if a call did not end. */
static bool shut_down(service *sv)
{
    uint64_t until = csn_deadline_in(END_MS);
    bool all = csn_mcp_registry_close(sv->registry, END_MS);

    pthread_mutex_lock(&sv->lock);
    for (exchange *x = sv->exchanges; x; x = x->next)
        if (x->session)
            csn_mcp_session_cancel(x->session);
    while (sv->exchanges)
        if (!csn_cond_wait_until(&sv->empty, &sv->lock, until))
            break;
    all &= !sv->exchanges;
    pthread_mutex_unlock(&sv->lock);
    return all;
}

static void service_release(service *sv)
{
    csn_mcp_registry_free(sv->registry);
    csn_mcp_server_free(sv->server);
    csn_httpd_access_free(sv->access);
    pthread_cond_destroy(&sv->empty);
    pthread_mutex_destroy(&sv->lock);
}

static csn_status prepare(service *sv, const csn_config *config, const csn_mcp_http_opts *o,
                          const char *bound, csn_error **err)
{
    csn_status st = csn_httpd_load(&sv->api, err);

    if (st == CSN_OK)
        st = csn_httpd_access_new(o->token_file, o->hosts, bound, &sv->access, err);
    if (st == CSN_OK)
        st = csn_mcp_server_new(config, &sv->server, err);
    if (st < 0)
        return st;
    sv->registry = csn_mcp_registry_new(sv->server, csn_httpd_access_tokens(sv->access));
    return sv->registry ? CSN_OK : csn_fail(err, CSN_NOMEM, "mcp");
}

/* Connections leave half of the descriptors to sandboxes. */
static unsigned conns_max(void)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur / 2 >= CSN_HTTP_CONNS_MAX)
        return CSN_HTTP_CONNS_MAX;
    return lim.rlim_cur / 2 > 16 ? (unsigned)(lim.rlim_cur / 2) : 16;
}

static csn_status serve(service *sv, int *fd, int stop, const csn_mcp_http_opts *o,
                        const char *bound, bool loopback, csn_error **err)
{
    csn_httpd *httpd = NULL;
    csn_httpd_config hc = {.listen_fd = *fd,
                           .body_max = CSN_RPC_BYTES_MAX,
                           .conns_max = conns_max(),
                           .owners = csn_httpd_access_tokens(sv->access),
                           .arrive_ms = CSN_HTTP_ARRIVE_MS,
                           .idle_s = CSN_HTTP_IDLE_S,
                           .threads = THREADS,
                           .admit = admit,
                           .handle = handle,
                           .disconnected = on_disconnect,
                           .ctx = sv};

    csn_status st = sv->api->start(&hc, &httpd, err);
    if (st < 0)
        return st;
    (void)csn_steal_fd(fd);
    o->ready(o->ctx, bound, loopback);
    wait_stop(sv, stop);
    sv->api->quiesce(httpd);
    if (!shut_down(sv))
        return CSN_UNAVAILABLE;
    sv->api->stop(httpd);
    return CSN_OK;
}

csn_status csn_mcp_http(const csn_config *config, const csn_mcp_http_opts *o, csn_error **err)
{
    service sv = {.api = NULL};
    char bound[CSN_HTTPD_ADDRESS_MAX];
    bool loopback = false;
    csn_autofd int fd = -1;

    int stop = csn_mcp_stop_fd();
    if (stop < 0)
        return csn_fail_errno(err, -stop, "mcp");
    csn_status st = csn_httpd_listen(o->address, &fd, bound, &loopback, err);
    if (st < 0)
        return st;
    pthread_mutex_init(&sv.lock, NULL);
    csn_cond_init(&sv.empty);
    st = prepare(&sv, config, o, bound, err);
    if (st == CSN_OK)
        st = serve(&sv, &fd, stop, o, bound, loopback, err);
    /* A call that did not end still uses the memory: leave it to process exit. */
    if (st == CSN_UNAVAILABLE && !(err && *err))
        return CSN_OK;
    service_release(&sv);
    return st;
}
