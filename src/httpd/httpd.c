/* httpd.c: an HTTP server on libmicrohttpd, built as the module caisson-httpd.so.
 *
 * No other file uses libmicrohttpd. An attacker that reaches the port controls every byte.
 * libmicrohttpd parses; the framing is checked again before a request is admitted, because
 * ambiguous framing (two lengths, length and chunks) enables request smuggling. No callback
 * blocks: a request waiting for its response and a stream without data are suspended. A watcher
 * thread closes connections whose request does not arrive in time and notices clients that
 * disconnect while suspended. Clients without a token can open connections too: when there are
 * too many, the oldest that no owner has claimed is closed, so that one peer cannot keep the
 * others out.
 *
 * Invariants: connection and handler each hold a reference to a request; while a connection is
 * suspended, only the response functions touch it. */
#include "httpd/httpd.h"

#include <microhttpd.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/condvar.h"
#include "base/error.h"
#include "base/list.h"

#define CONN_MEMORY (48u * 1024u) /* per connection; bounds the head */
#define STREAM_MAX  (160u * 1024u * 1024u)
#define STREAM_LAG  (1024u * 1024u) /* push fails if the client has more unread bytes */
#define BLOCK       (32u * 1024u)
#define WATCH_MS    500
#define UNCLAIMED   64u /* connections that are never claimed, so that new ones can arrive */
#define HALF_NS     2000000000u /* time to finish a request after the client half-closed */

typedef enum state { ARRIVING, WAITING, ANSWERED } state;

struct csn_httpd_req {
    csn_httpd *httpd;
    struct MHD_Connection *connection;
    char *method, *path;
    csn_buf body;
    void *data;
    pthread_mutex_t lock; /* protects the following */
    unsigned refs;
    state state;
    struct MHD_Response *response;
    int status;
    csn_buf stream;
    size_t sent;
    bool streaming, finished, suspended, disconnected;
};

/* A connection in the list of the watcher thread. */
typedef struct conn {
    struct conn *next, **link;
    int fd;
    uint64_t arriving_ns; /* when its request began to arrive; 0: no request is arriving */
    csn_httpd_req *waiting;
    unsigned owner; /* plus 1; 0: unclaimed */
    bool closing;
} conn;

struct csn_httpd {
    csn_httpd_config config;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* protects the following */
    pthread_cond_t wake;
    pthread_t watcher;
    bool stopping;
    conn *conns; /* the newest first */
};

/* ---- requests --------------------------------------------------------------------------- */

static void req_unref(csn_httpd_req *r)
{
    pthread_mutex_lock(&r->lock);
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    csn_buf_release(&r->body);
    csn_buf_release(&r->stream);
    pthread_mutex_destroy(&r->lock);
    free(r->method);
    free(r->path);
    free(r);
}

static csn_httpd_req *req_new(csn_httpd *f, struct MHD_Connection *connection,
                              const char *method, const char *path)
{
    csn_httpd_req *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->httpd = f;
    r->connection = connection;
    r->refs = 1;
    pthread_mutex_init(&r->lock, NULL);
    csn_buf_init(&r->body, f->config.body_max);
    csn_buf_init(&r->stream, STREAM_MAX);
    r->method = strdup(method);
    r->path = strdup(path);
    if (r->method && r->path)
        return r;
    req_unref(r);
    return NULL;
}

static const char *api_method(const csn_httpd_req *r)
{
    return r->method;
}

static const char *api_path(const csn_httpd_req *r)
{
    return r->path;
}

static const char *api_body(const csn_httpd_req *r, size_t *ret_len)
{
    *ret_len = r->body.len;
    return r->body.data ? r->body.data : "";
}

static void api_set_data(csn_httpd_req *r, void *data)
{
    r->data = data;
}

static void *api_data(const csn_httpd_req *r)
{
    return r->data;
}

typedef struct header_query {
    const char *name, *first;
    unsigned count;
} header_query;

static enum MHD_Result collect_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    header_query *q = cls;

    (void)kind;
    if (strcasecmp(key, q->name) != 0)
        return MHD_YES;
    if (q->count++ == 0)
        q->first = value ? value : "";
    return MHD_YES;
}

static const char *api_header(csn_httpd_req *r, const char *name, unsigned *ret_count)
{
    header_query q = {.name = name};

    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, collect_header, &q);
    if (ret_count)
        *ret_count = q.count;
    return q.first;
}

/* ---- responses ----------------------------------------------------------------------- */

static void add_headers(struct MHD_Response *response, const csn_httpd_header *headers)
{
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    for (; headers && headers->name; headers++)
        MHD_add_response_header(response, headers->name, headers->value);
}

/* Clears r->response: the response of a stream holds a reference to the request. */
static struct MHD_Response *take_response(csn_httpd_req *r)
{
    pthread_mutex_lock(&r->lock);
    struct MHD_Response *response = r->response;
    r->response = NULL;
    pthread_mutex_unlock(&r->lock);
    return response;
}

/* Resumes the connection with its response. A response of NULL closes it. */
static void set_response(csn_httpd_req *r, int status, struct MHD_Response *response)
{
    pthread_mutex_lock(&r->lock);
    bool here = !r->disconnected;
    r->response = here ? response : NULL;
    r->status = status;
    r->state = ANSWERED;
    pthread_mutex_unlock(&r->lock);
    if (here)
        MHD_resume_connection(r->connection);
    else if (response)
        MHD_destroy_response(response);
}

static void api_reply(csn_httpd_req *r, int status, const csn_httpd_header *headers,
                      const void *body, size_t len)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, (void *)body, MHD_RESPMEM_MUST_COPY);

    if (response)
        add_headers(response, headers);
    set_response(r, status, response);
    req_unref(r);
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    csn_httpd_req *r = cls;
    ssize_t n = 0;

    (void)pos;
    pthread_mutex_lock(&r->lock);
    size_t left = r->stream.len - r->sent;
    if (left > 0) {
        n = (ssize_t)(left < max ? left : max);
        memcpy(buf, r->stream.data + r->sent, (size_t)n);
        r->sent += (size_t)n;
        if (r->sent == r->stream.len)
            r->sent = r->stream.len = 0;
    } else if (r->finished) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        r->suspended = true;
        MHD_suspend_connection(r->connection);
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

static void free_stream(void *cls)
{
    req_unref(cls);
}

static void api_stream(csn_httpd_req *r, int status, const csn_httpd_header *headers)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, r, free_stream);

    pthread_mutex_lock(&r->lock);
    r->streaming = true;
    r->refs += response != NULL;
    pthread_mutex_unlock(&r->lock);
    if (response)
        add_headers(response, headers);
    set_response(r, status, response);
}

/* Call it with the lock held. */
static void wake_stream(csn_httpd_req *r)
{
    if (!r->suspended || r->disconnected)
        return;
    r->suspended = false;
    MHD_resume_connection(r->connection);
}

static bool api_push(csn_httpd_req *r, const void *data, size_t len)
{
    pthread_mutex_lock(&r->lock);
    size_t unsent_len = r->stream.len - r->sent;
    bool ok = !r->disconnected && unsent_len < STREAM_LAG &&
              csn_buf_append(&r->stream, data, len) == 0;
    if (ok)
        wake_stream(r);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

static void api_finish(csn_httpd_req *r)
{
    pthread_mutex_lock(&r->lock);
    r->finished = true;
    wake_stream(r);
    pthread_mutex_unlock(&r->lock);
    req_unref(r);
}

/* Refuses a request before its body is read, and closes the connection. */
static enum MHD_Result refuse(struct MHD_Connection *connection,
                              const csn_httpd_refusal *refusal)
{
    const char *body = refusal->body ? refusal->body : "";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(body), (void *)body, MHD_RESPMEM_MUST_COPY);

    if (!response)
        return MHD_NO;
    add_headers(response, refusal->headers);
    MHD_add_response_header(response, "Connection", "close");
    if (refusal->body)
        MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result ok = MHD_queue_response(connection, (unsigned)refusal->status, response);
    MHD_destroy_response(response);
    return ok;
}

/* ---- incoming requests --------------------------------------------------------------- */

typedef struct framing {
    unsigned lengths, encodings, hosts;
    bool bad;
    uint64_t length;
} framing;

/* Accepts digits only. A number that is too large becomes the largest one. */
static bool take_length(const char *s, uint64_t *ret)
{
    if (!*s || s[strspn(s, "0123456789")])
        return false;
    errno = 0;
    *ret = strtoull(s, NULL, 10);
    return true;
}

static enum MHD_Result collect_framing(void *cls, enum MHD_ValueKind kind, const char *key,
                                       const char *value)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    framing *f = cls;

    (void)kind;
    if (!*key || key[strspn(key, token)])
        f->bad = true;
    if (strcasecmp(key, "Content-Length") == 0) {
        f->lengths++;
        f->bad |= !value || !take_length(value, &f->length);
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        f->encodings++;
        f->bad |= !value || strcasecmp(value, "chunked") != 0;
    } else if (strcasecmp(key, "Host") == 0) {
        f->hosts++;
    }
    return MHD_YES;
}

/* Returns 0, or the HTTP status that refuses an ambiguous or too large request. */
static int check_framing(csn_httpd *f, struct MHD_Connection *connection, const char *version)
{
    framing fr = {0};

    MHD_get_connection_values(connection, MHD_HEADER_KIND, collect_framing, &fr);
    if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0 &&
        strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        return MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED;
    if (fr.bad || fr.hosts != 1 || fr.lengths > 1 || fr.encodings > 1 ||
        (fr.lengths > 0 && fr.encodings > 0))
        return MHD_HTTP_BAD_REQUEST;
    if (fr.lengths > 0 && fr.length > f->config.body_max)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    return 0;
}

static enum MHD_Result begin_request(csn_httpd *f, struct MHD_Connection *connection,
                                     const char *url, const char *method, const char *version,
                                     void **con_cls)
{
    csn_httpd_refusal refusal = {.status = check_framing(f, connection, version)};

    if (refusal.status != 0)
        return refuse(connection, &refusal);
    csn_httpd_req *r = req_new(f, connection, method, url);
    if (!r)
        return MHD_NO;
    if (!f->config.admit(f->config.ctx, r, &refusal)) {
        req_unref(r);
        return refuse(connection, &refusal);
    }
    *con_cls = r;
    return MHD_YES;
}

static conn *conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void set_watched(csn_httpd *f, struct MHD_Connection *connection, uint64_t since,
                        csn_httpd_req *waiting)
{
    conn *c = conn_of(connection);

    pthread_mutex_lock(&f->lock);
    if (c) {
        c->arriving_ns = since;
        c->waiting = waiting;
    }
    pthread_mutex_unlock(&f->lock);
}

static enum MHD_Result send_response(csn_httpd_req *r)
{
    struct MHD_Response *response = take_response(r);

    set_watched(r->httpd, r->connection, 0, NULL);
    if (!response)
        return MHD_NO;
    enum MHD_Result ok = MHD_queue_response(r->connection, (unsigned)r->status, response);
    MHD_destroy_response(response); /* the connection holds its own reference */
    return ok;
}

static enum MHD_Result end_request(csn_httpd_req *r)
{
    csn_httpd *f = r->httpd;

    pthread_mutex_lock(&r->lock);
    state now = r->state;
    if (now == ARRIVING) {
        r->state = WAITING;
        r->refs++; /* reference of the handler */
    }
    pthread_mutex_unlock(&r->lock);
    if (now == ANSWERED)
        return send_response(r);
    if (now == WAITING)
        return MHD_YES;
    set_watched(f, r->connection, 0, r);
    MHD_suspend_connection(r->connection);
    f->config.handle(f->config.ctx, r);
    return MHD_YES;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_len, void **con_cls)
{
    csn_httpd_req *r = *con_cls;

    if (!r)
        return begin_request(cls, connection, url, method, version, con_cls);
    if (*upload_len == 0)
        return end_request(r);
    /* A chunked body exceeds body_max. libmicrohttpd cannot send a response within a body. */
    if (csn_buf_append(&r->body, upload, *upload_len) != 0)
        return MHD_NO;
    *upload_len = 0;
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode code)
{
    csn_httpd *f = cls;
    csn_httpd_req *r = *con_cls;

    (void)code;
    /* The connection may be idle for idle_s; only then does arrive_ms begin. */
    set_watched(f, connection, csn_now_ns() + f->config.idle_s * UINT64_C(1000000000), NULL);
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->disconnected = true;
    bool open = r->streaming && !r->finished;
    pthread_mutex_unlock(&r->lock);
    if (open)
        f->config.disconnected(f->config.ctx, r);
    struct MHD_Response *unsent = take_response(r);
    if (unsent)
        MHD_destroy_response(unsent);
    *con_cls = NULL;
    req_unref(r);
}

/* ---- connections ------------------------------------------------------------------------ */

static unsigned owner_share(const csn_httpd *f)
{
    unsigned all = f->config.conns_max > 2 * UNCLAIMED ? f->config.conns_max - UNCLAIMED
                                                       : f->config.conns_max / 2;

    return f->config.owners > 1 ? all / f->config.owners : all;
}

static bool api_claim(csn_httpd_req *r, unsigned owner)
{
    csn_httpd *f = r->httpd;
    conn *own = conn_of(r->connection);
    unsigned count = 0;

    pthread_mutex_lock(&f->lock);
    for (const conn *c = f->conns; c; c = c->next)
        count += c != own && !c->closing && c->owner == owner + 1;
    bool room = own && count < owner_share(f);
    if (room)
        own->owner = owner + 1;
    pthread_mutex_unlock(&f->lock);
    return room;
}

/* Call it with the lock held. Closes the oldest unclaimed connection if there are too many. */
static void make_room(csn_httpd *f)
{
    conn *oldest = NULL;
    unsigned count = 0;

    for (conn *c = f->conns; c; c = c->next) {
        count += !c->closing;
        if (!c->closing && c->owner == 0)
            oldest = c;
    }
    if (count <= f->config.conns_max || !oldest)
        return;
    oldest->closing = true;
    shutdown(oldest->fd, SHUT_RDWR);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    csn_httpd *f = cls;
    conn *c = *context;

    pthread_mutex_lock(&f->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        c = info ? calloc(1, sizeof(*c)) : NULL;
        if (c) {
            *c = (conn){.fd = info->connect_fd, .arriving_ns = csn_now_ns()};
            CSN_LIST_PUSH(&f->conns, c, next, link);
            make_room(f);
        }
        *context = c;
    } else if (c) {
        CSN_LIST_REMOVE(c, next, link);
        free(c);
        *context = NULL;
    }
    pthread_mutex_unlock(&f->lock);
}

static bool has_hung_up(const conn *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0 && p.revents;
}

/* Call it with the lock held. libmicrohttpd times out idle connections itself. */
static void watch_one(csn_httpd *f, conn *c, uint64_t now)
{
    if (c->waiting) {
        if (has_hung_up(c)) {
            f->config.disconnected(f->config.ctx, c->waiting);
            c->waiting = NULL;
        }
    } else if (c->arriving_ns != 0 && now > c->arriving_ns &&
               (now - c->arriving_ns > f->config.arrive_ms * 1000000u ||
                (now - c->arriving_ns > HALF_NS && has_hung_up(c)))) {
        shutdown(c->fd, SHUT_RDWR);
        c->arriving_ns = 0;
    }
}

static void *watch(void *arg)
{
    csn_httpd *f = arg;

    pthread_mutex_lock(&f->lock);
    while (!f->stopping) {
        (void)csn_cond_wait_until(&f->wake, &f->lock, csn_deadline_in(WATCH_MS));
        for (conn *c = f->conns; c; c = c->next)
            watch_one(f, c, csn_now_ns());
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------ */

/* Discards the log of libmicrohttpd, which reports errors of clients. */
static void ignore_log(void *cls, const char *fmt, va_list ap)
{
    (void)cls;
    (void)fmt;
    (void)ap;
}

static struct MHD_Daemon *start_daemon(csn_httpd *f)
{
    const csn_httpd_config *c = &f->config;

    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
        NULL, on_access, f, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, c->listen_fd, MHD_OPTION_THREAD_POOL_SIZE, c->threads,
        /* each thread of the pool has an equal part of this limit; make_room enforces conns_max
         */
        MHD_OPTION_CONNECTION_LIMIT, (c->conns_max + UNCLAIMED) * c->threads,
        MHD_OPTION_CONNECTION_TIMEOUT, c->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONN_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, f, MHD_OPTION_NOTIFY_CONNECTION, on_connection, f, MHD_OPTION_END);
}

static csn_status api_start(const csn_httpd_config *config, csn_httpd **ret, csn_error **err)
{
    csn_httpd *f = calloc(1, sizeof(*f));

    if (!f)
        return csn_fail(err, CSN_NOMEM, "HTTP server");
    f->config = *config;
    pthread_mutex_init(&f->lock, NULL);
    csn_cond_init(&f->wake);
    f->daemon = start_daemon(f);
    bool watching = f->daemon && pthread_create(&f->watcher, NULL, watch, f) == 0;
    if (!watching) {
        if (f->daemon)
            MHD_stop_daemon(f->daemon);
        pthread_cond_destroy(&f->wake);
        pthread_mutex_destroy(&f->lock);
        free(f);
        return csn_fail(err, CSN_INTERNAL, "the HTTP server cannot be started");
    }
    *ret = f;
    return CSN_OK;
}

static void api_quiesce(csn_httpd *f)
{
    int fd = MHD_quiesce_daemon(f->daemon);

    if (fd >= 0)
        close(fd);
}

static void api_stop(csn_httpd *f)
{
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->watcher, NULL);
    MHD_stop_daemon(f->daemon);
    pthread_cond_destroy(&f->wake);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

__attribute__((visibility("default"))) const csn_httpd_api *csn_httpd_module(void);

const csn_httpd_api *csn_httpd_module(void)
{
    static const csn_httpd_api api = {
        .version = CSN_HTTPD_API_VERSION,
        .start = api_start,
        .quiesce = api_quiesce,
        .stop = api_stop,
        .method = api_method,
        .path = api_path,
        .header = api_header,
        .body = api_body,
        .set_data = api_set_data,
        .data = api_data,
        .claim = api_claim,
        .reply = api_reply,
        .stream = api_stream,
        .push = api_push,
        .finish = api_finish,
    };

    return &api;
}
