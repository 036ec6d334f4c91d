/* http.c: sends HTTP requests with libcurl, on the calling thread.
 *
 * A connection is a multi handle with one easy handle; a request takes an idle connection from
 * the pool or creates one, so waiting needs neither an extra thread nor a lock. Servers are not
 * trusted: bodies have a maximum size, and every wait includes the deadline and the cancel
 * descriptors.
 *
 * Invariant: a request that the server may have acted on is repeated only if the caller
 * declared it idempotent. libcurl itself repeats any request, even a POST, when a reused
 * connection dies before the first byte of a response; before_request aborts such a
 * repetition. */
#include "remote/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"

#define POOL_MAX        16u
#define CONNECT_MS      15000L
#define IDLE_CONN_S     20L /* servers close older ones */
#define BODY_MAX        (1024u * 1024u)
#define CANCEL_MAX      4u
#define BACKOFF_MS      200u
#define POLL_MS_MAX     1000
#define DRAIN_MS        300u
#define STATUS_TOO_MANY 429

typedef struct connection {
    struct connection *next;
    CURLM *multi;
    CURL *easy;
} connection;

struct csn_http {
    char *agent, *unix_path;
    pthread_mutex_t lock; /* guards the fields below */
    connection *idle;
    unsigned idle_count;
};

/* One attempt to send a request. */
typedef struct attempt {
    const csn_http_req *req;
    csn_http_res *res;
    CURL *easy;
    uint64_t active_ns; /* when the last byte was sent or received */
    uint64_t deadline_ns;
    bool interrupted;
    bool upload_failed, upload_started, too_large, no_memory;
    bool retry_refused; /* by before_request */
    bool delivered;     /* on_body was called */
    bool untrusted;     /* the certificate was rejected */
    char why[CURL_ERROR_SIZE];
} attempt;

/* ---- the pool --------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode global_result;

static void global_init(void)
{
    global_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void connection_free(connection *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    free(c);
}

static connection *connection_acquire(csn_http *h)
{
    pthread_mutex_lock(&h->lock);
    connection *c = h->idle;
    if (c) {
        h->idle = c->next;
        h->idle_count--;
    }
    pthread_mutex_unlock(&h->lock);
    if (c)
        return c;
    c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    if (!c->multi || !c->easy) {
        connection_free(c);
        return NULL;
    }
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, 4L);
    return c;
}

static void connection_release(csn_http *h, connection *c)
{
    curl_easy_reset(c->easy);
    pthread_mutex_lock(&h->lock);
    if (h->idle_count < POOL_MAX) {
        c->next = h->idle;
        h->idle = c;
        h->idle_count++;
        c = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    connection_free(c);
}

csn_status csn_http_new(const char *agent, const char *unix_path, csn_http **ret,
                        csn_error **err)
{
    pthread_once(&once, global_init);
    if (global_result != CURLE_OK)
        return csn_fail(err, CSN_INTERNAL, "http: %s", curl_easy_strerror(global_result));
    csn_http *h = calloc(1, sizeof(*h));
    if (!h)
        return csn_fail(err, CSN_NOMEM, "http");
    pthread_mutex_init(&h->lock, NULL);
    h->agent = strdup(agent);
    h->unix_path = unix_path ? strdup(unix_path) : NULL;
    if (!h->agent || (unix_path && !h->unix_path)) {
        csn_http_free(h);
        return csn_fail(err, CSN_NOMEM, "http");
    }
    *ret = h;
    return CSN_OK;
}

void csn_http_free(csn_http *h)
{
    if (!h)
        return;
    while (h->idle) {
        connection *c = h->idle;
        h->idle = c->next;
        connection_free(c);
    }
    pthread_mutex_destroy(&h->lock);
    free(h->agent);
    free(h->unix_path);
    free(h);
}

/* ---- callbacks of libcurl --------------------------------------------------------------- */

static void read_head(attempt *a)
{
    csn_http_res *r = a->res;
    struct curl_header *h = NULL;
    const char *type = NULL;
    long status = 0;

    curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
    r->status = (int)status;
    curl_easy_getinfo(a->easy, CURLINFO_CONTENT_TYPE, &type);
    snprintf(r->content_type, sizeof(r->content_type), "%s", type ? type : "");
    if (a->req->response_header && curl_easy_header(a->easy, a->req->response_header, 0,
                                                    CURLH_HEADER, -1, &h) == CURLHE_OK)
        snprintf(r->header, sizeof(r->header), "%s", h->value);
}

static size_t take_body(char *data, size_t one, size_t len, void *ctx)
{
    attempt *a = ctx;
    long status = 0;

    (void)one; /* always 1 */
    a->active_ns = csn_now_ns();
    curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
    if (a->req->on_body && status / 100 == 2) {
        if (!a->delivered)
            read_head(a); /* on_body may use it */
        a->delivered = true;
        int next = a->req->on_body(a->req->ctx, data, len);
        if (next == CSN_HTTP_DRAIN && !a->res->stopped) {
            a->interrupted = true; /* do not call on_interrupt again */
            a->deadline_ns = csn_deadline_in(DRAIN_MS);
        }
        a->res->stopped |= next != 0;
        return next == 0 || next == CSN_HTTP_DRAIN ? len : CURL_WRITEFUNC_ERROR;
    }
    int e = csn_buf_append(&a->res->body, data, len);
    if (e == 0)
        return len;
    a->too_large = e == ENOSPC;
    a->no_memory = !a->too_large;
    return CURL_WRITEFUNC_ERROR;
}

static size_t take_header(char *data, size_t one, size_t len, void *ctx)
{
    attempt *a = ctx;

    (void)data;
    (void)one;
    a->active_ns = csn_now_ns();
    return len;
}

static size_t read_upload(char *buf, size_t one, size_t len, void *ctx)
{
    attempt *a = ctx;

    (void)one;
    a->active_ns = csn_now_ns();
    a->upload_started = true;
    int64_t n = a->req->upload(a->req->upload_ctx, buf, len);
    if (n >= 0 && (uint64_t)n <= len)
        return (size_t)n;
    a->upload_failed = true;
    return CURL_READFUNC_ABORT;
}

/* Called when connected, before the request is written. A second call in one attempt means that
 * libcurl repeats a request that the server may have read. */
static int before_request(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
    attempt *a = ctx;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    a->active_ns = csn_now_ns();
    if (a->res->sent && a->req->retry != CSN_HTTP_IDEMPOTENT) {
        a->retry_refused = true;
        return CURL_PREREQFUNC_ABORT;
    }
    a->res->sent = true;
    return CURL_PREREQFUNC_OK;
}

/* ---- one attempt ------------------------------------------------------------------------ */

static void set_body(CURL *c, const csn_http_req *q)
{
    bool post = strcmp(q->method, "POST") == 0;

    if (q->upload) {
        curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(c, CURLOPT_READFUNCTION, read_upload);
        curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->upload_len);
    } else if (q->body || post) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, q->body ? q->body : "");
    } else {
        curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
    }
    if (q->upload || !(post || (strcmp(q->method, "GET") == 0 && !q->body)))
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, q->method);
}

static void set_trust(CURL *c)
{
    const char *file = secure_getenv("SSL_CERT_FILE"), *dir = secure_getenv("SSL_CERT_DIR");

    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
    if (file && *file)
        curl_easy_setopt(c, CURLOPT_CAINFO, file);
    if (dir && *dir)
        curl_easy_setopt(c, CURLOPT_CAPATH, dir);
}

static void set_options(const csn_http *h, attempt *a)
{
    CURL *c = a->easy;

    curl_easy_setopt(c, CURLOPT_URL, a->req->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    set_trust(c);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); /* do not join the resolver thread */
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, IDLE_CONN_S);
    curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L); /* responses may pause for long */
    curl_easy_setopt(c, CURLOPT_USERAGENT, h->agent);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, a->why);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, a);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(c, CURLOPT_READDATA, a);
    curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(c, CURLOPT_PREREQDATA, a);
    if (h->unix_path)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, h->unix_path);
    if (h->unix_path || a->req->no_proxy)
        curl_easy_setopt(c, CURLOPT_PROXY, "");
    set_body(c, a->req);
}

static csn_status make_headers(const csn_http_req *q, struct curl_slist **ret, csn_error **err)
{
    struct curl_slist *l = curl_slist_append(NULL, "Expect:"); /* no 100-continue */

    for (size_t i = 0; l && q->headers && q->headers[i]; i++) {
        struct curl_slist *more = curl_slist_append(l, q->headers[i]);
        if (!more)
            curl_slist_free_all(l);
        l = more;
    }
    *ret = l;
    return l ? CSN_OK : csn_fail(err, CSN_NOMEM, "http headers");
}

static unsigned watch_cancel(const csn_http_req *q, struct curl_waitfd w[CANCEL_MAX])
{
    unsigned n = 0;

    for (size_t i = 0; i < q->cancel_count && n < CANCEL_MAX; i++)
        if (q->cancel_fds[i] >= 0)
            w[n++] = (struct curl_waitfd){.fd = q->cancel_fds[i], .events = CURL_WAIT_POLLIN};
    return n;
}

static bool any_ready(const struct curl_waitfd *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (w[i].revents != 0)
            return true;
    return false;
}

static bool is_done(CURLM *multi, CURLcode *ret)
{
    int left = 0;

    for (CURLMsg *m; (m = curl_multi_info_read(multi, &left)) != NULL;) {
        if (m->msg != CURLMSG_DONE)
            continue;
        *ret = m->data.result;
        return true;
    }
    return false;
}

static csn_status timed_out(const attempt *a, csn_status code, csn_error **err)
{
    char host[128];

    csn_url_host(a->req->url, host, sizeof(host));
    if (code == CSN_TIMEOUT)
        return csn_fail(err, code, "deadline passed while waiting for %s", host);
    return csn_fail(err, code, "%s %s", host,
                    a->res->sent ? "stopped responding" : "did not respond in time");
}

/* Handles the deadline or a cancellation. CSN_OK: continue to read the response until the new
 * deadline. */
static csn_status handle_interrupt(attempt *a, csn_status why, csn_error **err)
{
    const csn_http_req *q = a->req;

    if (!a->interrupted && q->on_interrupt) {
        a->interrupted = true;
        a->deadline_ns = q->on_interrupt(q->ctx, why);
        a->active_ns = csn_now_ns();
        if (a->deadline_ns != 0)
            return CSN_OK;
    }
    return why == CSN_CANCELLED ? csn_fail(err, why, "cancelled") : timed_out(a, why, err);
}

/* Runs the transfer until its end, the deadline, a cancel or the idle timeout. */
static csn_status drive(CURLM *multi, attempt *a, CURLcode *ret, csn_error **err)
{
    const csn_http_req *q = a->req;
    uint64_t idle_ms = q->idle_ms ? q->idle_ms : CSN_HTTP_IDLE_MS;
    struct curl_waitfd wait[CANCEL_MAX];
    unsigned n = watch_cancel(q, wait);
    csn_status st = CSN_OK;

    a->deadline_ns = q->deadline_ns;
    while (st == CSN_OK) {
        int running = 0;
        CURLMcode mc = curl_multi_perform(multi, &running);
        if (mc == CURLM_OK && is_done(multi, ret))
            return CSN_OK;
        uint64_t idle_at = a->active_ns + idle_ms * 1000000u;
        uint64_t next = a->deadline_ns && a->deadline_ns < idle_at ? a->deadline_ns : idle_at;
        int ms = csn_deadline_poll_ms(next);
        if (mc == CURLM_OK)
            mc = curl_multi_poll(multi, wait, a->interrupted ? 0 : n,
                                 ms > POLL_MS_MAX ? POLL_MS_MAX : ms, NULL);
        if (mc != CURLM_OK)
            return csn_fail(err, CSN_INTERNAL, "http: %s", curl_multi_strerror(mc));
        if (!a->interrupted && any_ready(wait, n))
            st = handle_interrupt(a, CSN_CANCELLED, err);
        else if (a->res->stopped && csn_deadline_poll_ms(a->deadline_ns) == 0)
            return CSN_OK;
        else if (a->deadline_ns && csn_deadline_poll_ms(a->deadline_ns) == 0)
            st = handle_interrupt(a, CSN_TIMEOUT, err);
        else if (csn_deadline_poll_ms(a->active_ns + idle_ms * 1000000u) == 0)
            st = timed_out(a, CSN_UNAVAILABLE, err);
    }
    return st;
}

static csn_status transfer_error(const attempt *a, CURLcode code, csn_error **err)
{
    char host[128];

    if (code == CURLE_OK || a->res->stopped)
        return CSN_OK;
    csn_url_host(a->req->url, host, sizeof(host));
    const char *why = a->why[0] ? a->why : curl_easy_strerror(code);
    if (a->too_large)
        return csn_fail(err, CSN_TOO_LARGE, "the response of %s is over %zu bytes", host,
                        a->res->body.max);
    if (a->no_memory || code == CURLE_OUT_OF_MEMORY)
        return csn_fail(err, CSN_NOMEM, "http");
    if (a->upload_failed)
        return csn_fail(err, CSN_IO, "upload: the content cannot be read");
    if (a->retry_refused)
        return csn_fail(err, CSN_UNAVAILABLE, "%s closed the connection without a response",
                        host);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return csn_fail(err, CSN_INVALID, "invalid URL '%.200s': %s", a->req->url, why);
    if (a->untrusted)
        return csn_fail(err, CSN_UNAVAILABLE, "the certificate of %s is not trusted: %s", host,
                        why);
    if (!a->res->sent)
        return csn_fail(err, CSN_UNAVAILABLE, "cannot connect to %s: %s", host, why);
    if (a->res->status == 0)
        return csn_fail(err, CSN_UNAVAILABLE, "%s sent no response: %s", host, why);
    return csn_fail(err, CSN_IO, "the response of %s broke off: %s", host, why);
}

static csn_status attempt_on(csn_http *h, connection *c, attempt *a, uint64_t *ret_wait_ms,
                             csn_error **err)
{
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_OK;
    curl_off_t wait_s = 0;

    a->easy = c->easy;
    a->active_ns = csn_now_ns();
    set_options(h, a);
    csn_status st = make_headers(a->req, &headers, err);
    if (st < 0)
        return st;
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
    if (curl_multi_add_handle(c->multi, c->easy) != CURLM_OK) {
        curl_slist_free_all(headers);
        return csn_fail(err, CSN_NOMEM, "http");
    }
    st = drive(c->multi, a, &code, err);
    a->untrusted = code == CURLE_PEER_FAILED_VERIFICATION;
    read_head(a);
    curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &wait_s);
    *ret_wait_ms = wait_s > 0 ? (uint64_t)wait_s * 1000u : 0;
    curl_multi_remove_handle(c->multi, c->easy);
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return st == CSN_OK ? transfer_error(a, code, err) : st;
}

/* ---- retries ---------------------------------------------------------------------------- */

static bool should_retry(const attempt *a, csn_status st)
{
    bool idempotent = a->req->retry == CSN_HTTP_IDEMPOTENT;
    int status = a->res->status;

    if (a->delivered || a->upload_started || a->res->stopped || a->untrusted)
        return false;
    if (st == CSN_OK)
        return status == STATUS_TOO_MANY || (idempotent && status >= 500 && status != 501);
    if (st != CSN_UNAVAILABLE && st != CSN_IO)
        return false;
    return !a->res->sent || idempotent;
}

static uint64_t backoff_ms(unsigned tries)
{
    uint32_t noise = 0;

    (void)!getrandom(&noise, sizeof(noise), 0);
    uint64_t ms = (uint64_t)BACKOFF_MS << tries;
    return ms / 2 + noise % (ms / 2 + 1); /* jitter spreads the retries of many clients */
}

/* False: the wait exceeds the deadline or the limit, or was cancelled. */
static bool wait_before_retry(const csn_http_req *q, uint64_t ms)
{
    uint64_t until = csn_deadline_in(ms);
    struct pollfd p[CANCEL_MAX];
    nfds_t n = 0;

    if (ms > CSN_HTTP_RETRY_AFTER_MS || (q->deadline_ns && until >= q->deadline_ns))
        return false;
    for (size_t i = 0; i < q->cancel_count && n < CANCEL_MAX; i++)
        p[n++] = (struct pollfd){.fd = q->cancel_fds[i], .events = POLLIN};
    while (csn_deadline_poll_ms(until) > 0)
        if (poll(p, n, csn_deadline_poll_ms(until)) > 0)
            return false;
    return true;
}

static void res_init(csn_http_res *r, const csn_http_req *q)
{
    unsigned attempts = r->attempts;

    csn_buf_release(&r->body);
    *r = (csn_http_res){.attempts = attempts};
    csn_buf_init(&r->body, q->body_max ? q->body_max : BODY_MAX);
}

/* libcurl may write to a closed socket; the SIGPIPE must not reach the handler of the host
 * process. */
static bool block_sigpipe(sigset_t *ret_before)
{
    sigset_t pipe_set, pending;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_set, ret_before);
    return sigismember(&pending, SIGPIPE) == 0;
}

static void unblock_sigpipe(const sigset_t *before, bool was_clear)
{
    const struct timespec now = {0};
    sigset_t pipe_set;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    if (was_clear)
        while (sigtimedwait(&pipe_set, NULL, &now) > 0)
            continue;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

csn_status csn_http_do(csn_http *h, const csn_http_req *req, csn_http_res *ret, csn_error **err)
{
    uint64_t wait_ms = 0;
    sigset_t before;
    connection *c = connection_acquire(h);

    *ret = (csn_http_res){0};
    if (!c)
        return csn_fail(err, CSN_NOMEM, "http");
    bool clear = block_sigpipe(&before);
    csn_status st;
    for (;;) {
        csn_error *why = NULL;
        attempt a = {.req = req, .res = ret};
        res_init(ret, req);
        ret->attempts++;
        curl_easy_reset(c->easy);
        st = attempt_on(h, c, &a, &wait_ms, &why);
        bool retry = ret->attempts < CSN_HTTP_ATTEMPTS && should_retry(&a, st) &&
                     wait_before_retry(req, wait_ms ? wait_ms : backoff_ms(ret->attempts));
        if (!retry) {
            if (st < 0 && err)
                *err = CSN_STEAL(why);
            csn_error_free(why);
            break;
        }
        csn_error_free(why);
    }
    unblock_sigpipe(&before, clear);
    connection_release(h, c);
    return st;
}

void csn_http_res_release(csn_http_res *r)
{
    csn_buf_release(&r->body);
}

/* ---- URLs ------------------------------------------------------------------------------- */

int csn_url_escape(csn_buf *b, const char *s)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";
    int e = 0;

    for (; *s && e == 0; s++)
        e = strchr(plain, *s) ? csn_buf_putc(b, *s)
                              : csn_buf_printf(b, "%%%02X", (unsigned char)*s);
    return e;
}

void csn_url_host(const char *url, char *buf, size_t size)
{
    const char *start = strstr(url, "://");

    start = start ? start + 3 : url;
    size_t len = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', len); /* hide credentials */
    if (at) {
        len -= (size_t)(at + 1 - start);
        start = at + 1;
    }
    snprintf(buf, size, "%.*s", (int)len, start);
}
