/* http.c: requests over libcurl, each on the thread that makes it.
 *
 * Called by the remote backends. A "line" is a multi handle with one easy handle in it; a
 * request takes an idle line or makes one, so that connections are kept without a thread of our
 * own and without a lock while waiting. The server is not trusted: bodies have ceilings,
 * nothing is waited for beyond the deadline, and the cancel descriptors are polled together
 * with the socket.
 *
 * What must hold above all: a request that may have been acted on is not made a second time
 * unless the caller called it safe. libcurl itself repeats a request, POST or not, when a kept
 * connection dies before the first byte of an answer; `before_request` refuses that. */
#include "remote/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"

#define LINES_IDLE_MAX  16u
#define CONNECT_MS      15000L
#define IDLE_CONN_S     20L /* older connections are often dead without knowing it */
#define BODY_MAX        (1024u * 1024u)
#define CANCEL_MAX      4u
#define BACKOFF_MS      200u
#define POLL_MS_MAX     1000
#define LINGER_MS       300u
#define STATUS_TOO_MANY 429

typedef struct line {
    struct line *next;
    CURLM *multi;
    CURL *easy;
} line;

struct csn_http {
    char *agent, *unix_path;
    pthread_mutex_t lock; /* guards what follows */
    line *idle;
    unsigned idle_count;
};

/* One try of one request. */
typedef struct attempt {
    const csn_http_req *req;
    csn_http_res *res;
    CURL *easy;
    uint64_t heard_ns; /* when the last byte went or came */
    uint64_t deadline_ns;
    bool alarmed;
    bool source_failed, source_used, too_large, no_memory, refused_repeat, delivered;
    bool untrusted; /* not the server it should be */
    char why[CURL_ERROR_SIZE];
} attempt;

/* ---- lines ------------------------------------------------------------------------------ */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode global_result;

static void global_init(void)
{
    global_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void line_free(line *l)
{
    if (!l)
        return;
    curl_easy_cleanup(l->easy);
    curl_multi_cleanup(l->multi);
    free(l);
}

static line *line_take(csn_http *h)
{
    pthread_mutex_lock(&h->lock);
    line *l = h->idle;
    if (l) {
        h->idle = l->next;
        h->idle_count--;
    }
    pthread_mutex_unlock(&h->lock);
    if (l)
        return l;
    l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->multi = curl_multi_init();
    l->easy = curl_easy_init();
    if (!l->multi || !l->easy) {
        line_free(l);
        return NULL;
    }
    curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, 4L);
    return l;
}

static void line_give(csn_http *h, line *l)
{
    curl_easy_reset(l->easy);
    pthread_mutex_lock(&h->lock);
    if (h->idle_count < LINES_IDLE_MAX) {
        l->next = h->idle;
        h->idle = l;
        h->idle_count++;
        l = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    line_free(l);
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
        line *l = h->idle;
        h->idle = l->next;
        line_free(l);
    }
    pthread_mutex_destroy(&h->lock);
    free(h->agent);
    free(h->unix_path);
    free(h);
}

/* ---- what libcurl calls ----------------------------------------------------------------- */

static void note_answer(attempt *a)
{
    csn_http_res *r = a->res;
    struct curl_header *h = NULL;
    const char *type = NULL;
    long status = 0;

    curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
    r->status = (int)status;
    curl_easy_getinfo(a->easy, CURLINFO_CONTENT_TYPE, &type);
    snprintf(r->type, sizeof(r->type), "%s", type ? type : "");
    if (a->req->want_header &&
        curl_easy_header(a->easy, a->req->want_header, 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
        snprintf(r->header, sizeof(r->header), "%s", h->value);
}

static size_t take_body(char *data, size_t one, size_t len, void *ctx)
{
    attempt *a = ctx;
    long status = 0;

    (void)one; /* always 1 */
    a->heard_ns = csn_now_ns();
    curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
    if (a->req->on_body && status / 100 == 2) {
        if (!a->delivered)
            note_answer(a); /* so that on_body may look at it */
        a->delivered = true;
        int next = a->req->on_body(a->req->ctx, data, len);
        if (next == CSN_HTTP_LINGER && !a->res->stopped) {
            a->alarmed = true; /* nobody needs to be asked any more */
            a->deadline_ns = csn_deadline_in(LINGER_MS);
        }
        a->res->stopped |= next != 0;
        return next == 0 || next == CSN_HTTP_LINGER ? len : CURL_WRITEFUNC_ERROR;
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
    a->heard_ns = csn_now_ns();
    return len;
}

static size_t give_upload(char *buf, size_t one, size_t len, void *ctx)
{
    attempt *a = ctx;

    (void)one;
    a->heard_ns = csn_now_ns();
    a->source_used = true;
    int64_t n = a->req->upload(a->req->upload_ctx, buf, len);
    if (n >= 0 && (uint64_t)n <= len)
        return (size_t)n;
    a->source_failed = true;
    return CURL_READFUNC_ABORT;
}

/* The connection stands and the request is about to be written. A second time in one attempt
 * means that the first was lost after it may have been read. */
static int before_request(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
    attempt *a = ctx;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    a->heard_ns = csn_now_ns();
    if (a->res->sent && a->req->repeat != CSN_HTTP_SAFE) {
        a->refused_repeat = true;
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
        curl_easy_setopt(c, CURLOPT_READFUNCTION, give_upload);
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

/* Whose signatures count: the system's list, or the one that the usual variables name. */
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
    curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a resolver */
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, IDLE_CONN_S);
    curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L); /* servers may be silent for long */
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
    if (h->unix_path || a->req->direct)
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

/* Which of the descriptors say "end", as csn_http_req.cancel_fds. */
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

static csn_status silent(const attempt *a, csn_status code, csn_error **err)
{
    char host[128];

    csn_url_host(a->req->url, host, sizeof(host));
    if (code == CSN_TIMEOUT)
        return csn_fail(err, code, "deadline passed while waiting for %s", host);
    return csn_fail(err, code, "%s %s", host,
                    a->res->sent ? "stopped answering" : "did not answer in time");
}

/* The deadline has passed, or somebody wants it to end. CSN_OK: it goes on for a while. */
static csn_status alarm_raised(attempt *a, csn_status why, csn_error **err)
{
    const csn_http_req *q = a->req;

    if (!a->alarmed && q->on_alarm) {
        a->alarmed = true;
        a->deadline_ns = q->on_alarm(q->ctx, why);
        a->heard_ns = csn_now_ns();
        if (a->deadline_ns != 0)
            return CSN_OK;
    }
    return why == CSN_CANCELLED ? csn_fail(err, why, "cancelled") : silent(a, why, err);
}

/* Drives the transfer to its end, the deadline, a cancel or too long a silence. */
static csn_status drive(CURLM *multi, attempt *a, CURLcode *ret, csn_error **err)
{
    const csn_http_req *q = a->req;
    uint64_t silence = q->silence_ms ? q->silence_ms : CSN_HTTP_SILENCE_MS;
    struct curl_waitfd wait[CANCEL_MAX];
    unsigned n = watch_cancel(q, wait);
    csn_status st = CSN_OK;

    a->deadline_ns = q->deadline_ns;
    while (st == CSN_OK) {
        int running = 0;
        CURLMcode mc = curl_multi_perform(multi, &running);
        if (mc == CURLM_OK && is_done(multi, ret))
            return CSN_OK;
        uint64_t quiet_at = a->heard_ns + silence * 1000000u;
        uint64_t next = a->deadline_ns && a->deadline_ns < quiet_at ? a->deadline_ns : quiet_at;
        int ms = csn_deadline_poll_ms(next);
        if (mc == CURLM_OK)
            mc = curl_multi_poll(multi, wait, a->alarmed ? 0 : n,
                                 ms > POLL_MS_MAX ? POLL_MS_MAX : ms, NULL);
        if (mc != CURLM_OK)
            return csn_fail(err, CSN_INTERNAL, "http: %s", curl_multi_strerror(mc));
        if (!a->alarmed && any_ready(wait, n))
            st = alarm_raised(a, CSN_CANCELLED, err);
        else if (a->res->stopped && csn_deadline_poll_ms(a->deadline_ns) == 0)
            return CSN_OK;
        else if (a->deadline_ns && csn_deadline_poll_ms(a->deadline_ns) == 0)
            st = alarm_raised(a, CSN_TIMEOUT, err);
        else if (csn_deadline_poll_ms(a->heard_ns + silence * 1000000u) == 0)
            st = silent(a, CSN_UNAVAILABLE, err);
    }
    return st;
}

static csn_status judge(const attempt *a, CURLcode code, csn_error **err)
{
    char host[128];

    if (code == CURLE_OK || a->res->stopped)
        return CSN_OK;
    csn_url_host(a->req->url, host, sizeof(host));
    const char *why = a->why[0] ? a->why : curl_easy_strerror(code);
    if (a->too_large)
        return csn_fail(err, CSN_TOO_LARGE, "%s answered with more than %zu bytes", host,
                        a->res->body.max);
    if (a->no_memory || code == CURLE_OUT_OF_MEMORY)
        return csn_fail(err, CSN_NOMEM, "http");
    if (a->source_failed)
        return csn_fail(err, CSN_IO, "what was to be sent could not be read");
    if (a->refused_repeat)
        return csn_fail(err, CSN_UNAVAILABLE, "%s closed the connection without an answer",
                        host);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return csn_fail(err, CSN_INVALID, "'%.200s' is not a URL that can be used: %s",
                        a->req->url, why);
    if (a->untrusted)
        return csn_fail(err, CSN_UNAVAILABLE, "%s cannot show that it is %s: %s", host, host,
                        why);
    if (!a->res->sent)
        return csn_fail(err, CSN_UNAVAILABLE, "%s did not answer: %s", host, why);
    if (a->res->status == 0)
        return csn_fail(err, CSN_UNAVAILABLE, "%s gave no answer: %s", host, why);
    return csn_fail(err, CSN_IO, "the answer of %s broke off: %s", host, why);
}

static csn_status attempt_on(csn_http *h, line *l, attempt *a, uint64_t *ret_wait_ms,
                             csn_error **err)
{
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_OK;
    curl_off_t wait_s = 0;

    a->easy = l->easy;
    a->heard_ns = csn_now_ns();
    set_options(h, a);
    csn_status st = make_headers(a->req, &headers, err);
    if (st < 0)
        return st;
    curl_easy_setopt(l->easy, CURLOPT_HTTPHEADER, headers);
    if (curl_multi_add_handle(l->multi, l->easy) != CURLM_OK) {
        curl_slist_free_all(headers);
        return csn_fail(err, CSN_NOMEM, "http");
    }
    st = drive(l->multi, a, &code, err);
    a->untrusted = code == CURLE_PEER_FAILED_VERIFICATION;
    note_answer(a);
    curl_easy_getinfo(l->easy, CURLINFO_RETRY_AFTER, &wait_s);
    *ret_wait_ms = wait_s > 0 ? (uint64_t)wait_s * 1000u : 0;
    curl_multi_remove_handle(l->multi, l->easy);
    curl_easy_setopt(l->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return st == CSN_OK ? judge(a, code, err) : st;
}

/* ---- repeating -------------------------------------------------------------------------- */

/* Whether another try is both safe and of use. */
static bool worth_repeating(const attempt *a, csn_status st)
{
    bool safe = a->req->repeat == CSN_HTTP_SAFE;
    int status = a->res->status;

    if (a->delivered || a->source_used || a->res->stopped || a->untrusted)
        return false;
    if (st == CSN_OK)
        return status == STATUS_TOO_MANY || (safe && status >= 500 && status != 501);
    if (st != CSN_UNAVAILABLE && st != CSN_IO)
        return false;
    return !a->res->sent || safe;
}

static uint64_t backoff_ms(unsigned tries)
{
    uint32_t noise = 0;

    (void)!getrandom(&noise, sizeof(noise), 0);
    uint64_t ms = (uint64_t)BACKOFF_MS << tries;
    return ms / 2 + noise % (ms / 2 + 1); /* so that many clients do not come back at once */
}

/* Waits; false when the wait is longer than there is time, or was cancelled. */
static bool wait_out(const csn_http_req *q, uint64_t ms)
{
    uint64_t until = csn_deadline_in(ms);
    struct pollfd p[CANCEL_MAX];
    nfds_t n = 0;

    if (ms > CSN_HTTP_RETRY_MS || (q->deadline_ns && until >= q->deadline_ns))
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
    unsigned made = r->made;

    csn_buf_release(&r->body);
    *r = (csn_http_res){.made = made};
    csn_buf_init(&r->body, q->body_max ? q->body_max : BODY_MAX);
}

/* libcurl may meet a closed pipe; the host program's handling of that is none of our business.
 */
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
    line *l = line_take(h);

    *ret = (csn_http_res){0};
    if (!l)
        return csn_fail(err, CSN_NOMEM, "http");
    bool clear = block_sigpipe(&before);
    csn_status st;
    for (;;) {
        csn_error *why = NULL;
        attempt a = {.req = req, .res = ret};
        res_init(ret, req);
        ret->made++;
        curl_easy_reset(l->easy);
        st = attempt_on(h, l, &a, &wait_ms, &why);
        bool again = ret->made < CSN_HTTP_TRIES && worth_repeating(&a, st) &&
                     wait_out(req, wait_ms ? wait_ms : backoff_ms(ret->made));
        if (!again) {
            if (st < 0 && err)
                *err = CSN_STEAL(why);
            csn_error_free(why);
            break;
        }
        csn_error_free(why);
    }
    unblock_sigpipe(&before, clear);
    line_give(h, l);
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
    const char *at = memrchr(start, '@', len); /* never show who we are */
    if (at) {
        len -= (size_t)(at + 1 - start);
        start = at + 1;
    }
    snprintf(buf, size, "%.*s", (int)len, start);
}
