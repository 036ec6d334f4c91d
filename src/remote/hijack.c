/* hijack.c: sends an HTTP request and uses its connection as a byte stream afterwards.
 *
 * One poll loop on the calling thread waits for the socket, stdin, the cancel descriptors and
 * the deadline. The server is not trusted: the head and an error body have a maximum size.
 * Invariant: stdin is sent only after the head of the response has arrived; before that, the
 * server could read it as part of the request and lose it. */
#include "remote/hijack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define HEAD_MAX      16384u
#define ERROR_MAX     65536u
#define CHUNK         65536u
#define REQUEST_MAX   (64u * 1024u * 1024u)
#define CONNECT_S     15
#define CONNECT_TRIES 16
#define CANCEL_MAX    4u

typedef struct exchange {
    const csn_hijack_req *q;
    csn_http_res *res;
    int fd;
    csn_buf out;    /* to send */
    size_t out_pos; /* sent so far */
    csn_buf head;
    bool in_stream; /* the head of a successful response has arrived */
    bool keep;      /* csn_hijack_open: done once in_stream */
    bool done;
    bool input_open;
    int64_t body_left; /* of an error response; -1: until the end */
    bool interrupted;
    uint64_t deadline_ns;
} exchange;

static csn_status connect_to(const char *path, int *ret, csn_error **err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const struct timeval timeout = {.tv_sec = CONNECT_S};
    size_t len = strlen(path);

    if (len >= sizeof(a.sun_path))
        return csn_fail(err, CSN_INVALID, "the path of the socket is too long: %s", path);
    memcpy(a.sun_path, path, len + 1);
    csn_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return csn_fail_errno(err, errno, "socket");
    /* SO_SNDTIMEO also limits connect(), which blocks when the backlog is full */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    int rc, tries = 0;
    do /* with a timeout, SIGSTOP and SIGCONT interrupt connect() */
        rc = connect(fd, (const struct sockaddr *)&a, sizeof(a));
    while (rc < 0 && errno == EINTR && ++tries < CONNECT_TRIES);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "cannot connect to %s: %m", path);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return csn_fail_errno(err, errno, "socket");
    *ret = csn_steal_fd(&fd);
    return CSN_OK;
}

static int build_request(exchange *x)
{
    const csn_hijack_req *q = x->q;
    int e = csn_buf_printf(&x->out,
                           "POST %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: caisson\r\n"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                           "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
                           q->path, q->body_len);

    return e || q->body_len == 0 ? e : csn_buf_append(&x->out, q->body, q->body_len);
}

/* ---- sending ---------------------------------------------------------------------------- */

/* Stops sending when the peer has stopped reading; its output is still received. */
static void stop_sending(exchange *x)
{
    x->input_open = false;
    x->out.len = x->out_pos = 0;
}

static void send_some(exchange *x)
{
    ssize_t n = send(x->fd, x->out.data + x->out_pos, x->out.len - x->out_pos, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        stop_sending(x);
    if (n <= 0)
        return;
    x->res->sent = true;
    x->out_pos += (size_t)n;
    if (x->out_pos == x->out.len)
        x->out.len = x->out_pos = 0;
}

static void read_input(exchange *x)
{
    char buf[CHUNK];
    ssize_t n = read(x->q->input_fd, buf, sizeof(buf));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && csn_buf_append(&x->out, buf, (size_t)n) == 0)
        return;
    x->input_open = false;
    (void)shutdown(x->fd, SHUT_WR);
}

/* ---- receiving -------------------------------------------------------------------------- */

static csn_status take_body(exchange *x, const char *data, size_t len, csn_error **err)
{
    if (len == 0)
        return CSN_OK;
    if (x->in_stream) {
        x->res->stopped = x->q->on_body && x->q->on_body(x->q->ctx, data, len) != 0;
        x->done = x->res->stopped;
        return CSN_OK;
    }
    if (csn_buf_append(&x->res->body, data, len) != 0)
        return csn_fail(err, CSN_TOO_LARGE, "the error response of %s is over %u bytes",
                        x->q->unix_path, ERROR_MAX);
    if (x->body_left >= 0)
        x->body_left = (int64_t)len < x->body_left ? x->body_left - (int64_t)len : 0;
    x->done = x->body_left == 0;
    return CSN_OK;
}

/* The status line, and Content-Length of an error response. */
static csn_status read_head(exchange *x, csn_error **err)
{
    static const char length[] = "\r\ncontent-length:";
    int major = 0, status = 0;

    if (sscanf(x->head.data, "HTTP/1.%1d %3d", &major, &status) != 2 || status < 100)
        return csn_fail(err, CSN_IO, "%s does not speak HTTP", x->q->unix_path);
    x->res->status = status;
    x->in_stream = status == 101 || status == 200;
    x->input_open = x->in_stream && x->q->input_fd >= 0;
    const char *field = strcasestr(x->head.data, length);
    x->body_left = field ? strtoll(field + sizeof(length) - 1, NULL, 10) : -1;
    x->done = x->in_stream ? x->keep : x->body_left == 0;
    return CSN_OK;
}

static csn_status take_head(exchange *x, const char *data, size_t len, csn_error **err)
{
    size_t before = x->head.len;

    if (csn_buf_append(&x->head, data, len) != 0)
        return csn_fail(err, CSN_IO, "the response head of %s is too large", x->q->unix_path);
    const char *from = x->head.data + (before > 3 ? before - 3 : 0);
    char *end = memmem(from, (size_t)(x->head.data + x->head.len - from), "\r\n\r\n", 4);
    if (!end)
        return CSN_OK;
    size_t used = (size_t)(end + 4 - x->head.data) - before;
    *end = '\0';
    csn_status st = read_head(x, err);
    return st == CSN_OK && !x->done ? take_body(x, data + used, len - used, err) : st;
}

static csn_status receive(exchange *x, csn_error **err)
{
    bool in_head = x->res->status == 0;
    char buf[CHUNK];
    ssize_t n = recv(x->fd, buf, in_head ? HEAD_MAX / 4 : sizeof(buf), 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return CSN_OK;
    if (n > 0)
        return in_head ? take_head(x, buf, (size_t)n, err) : take_body(x, buf, (size_t)n, err);
    if (in_head)
        return csn_fail(err, CSN_UNAVAILABLE, "%s sent no response", x->q->unix_path);
    if (n < 0)
        return csn_fail(err, CSN_IO, "the response of %s broke off: %m", x->q->unix_path);
    x->done = true;
    return CSN_OK;
}

/* ---- the loop --------------------------------------------------------------------------- */

static csn_status handle_interrupt(exchange *x, csn_status why, csn_error **err)
{
    const csn_hijack_req *q = x->q;

    if (!x->interrupted && q->on_interrupt) {
        x->interrupted = true;
        x->deadline_ns = q->on_interrupt(q->ctx, why);
        if (x->deadline_ns != 0)
            return CSN_OK;
    }
    if (why == CSN_CANCELLED)
        return csn_fail(err, why, "cancelled");
    return csn_fail(err, why, "deadline passed while waiting for %s", q->unix_path);
}

static bool cancelled(const exchange *x, const struct pollfd *p, nfds_t n)
{
    for (nfds_t i = 2; i < n; i++)
        if (p[i].revents != 0 && !x->interrupted)
            return true;
    return false;
}

static csn_status poll_once(exchange *x, csn_error **err)
{
    const csn_hijack_req *q = x->q;
    struct pollfd p[2 + CANCEL_MAX] = {
        {.fd = x->fd, .events = (short)(POLLIN | (x->out.len > 0 ? POLLOUT : 0))},
        {.fd = x->input_open && x->out.len == 0 ? q->input_fd : -1, .events = POLLIN}};
    nfds_t n = 2;

    for (size_t i = 0; i < q->cancel_count && n < 2 + CANCEL_MAX && !x->interrupted; i++)
        p[n++] = (struct pollfd){.fd = q->cancel_fds[i], .events = POLLIN};
    int ready = poll(p, n, csn_deadline_poll_ms(x->deadline_ns));
    if (ready < 0)
        return errno == EINTR ? CSN_OK : csn_fail_errno(err, errno, "poll");
    if (ready == 0 || (x->deadline_ns && csn_deadline_poll_ms(x->deadline_ns) == 0))
        return handle_interrupt(x, CSN_TIMEOUT, err);
    if (cancelled(x, p, n))
        return handle_interrupt(x, CSN_CANCELLED, err);
    if (p[1].revents)
        read_input(x);
    if (p[0].revents & POLLOUT && x->out.len > 0)
        send_some(x);
    return p[0].revents & (POLLIN | POLLHUP | POLLERR) ? receive(x, err) : CSN_OK;
}

static csn_status run_exchange(exchange *x, csn_error **err)
{
    csn_status st = connect_to(x->q->unix_path, &x->fd, err);

    if (st == CSN_OK && build_request(x) != 0)
        st = csn_fail(err, CSN_TOO_LARGE, "the request is too large");
    while (st == CSN_OK && !x->done)
        st = poll_once(x, err);
    return st;
}

csn_status csn_hijack_open(const csn_hijack_req *req, csn_http_res *ret, int *ret_fd,
                           csn_error **err)
{
    exchange x = {.q = req,
                  .res = ret,
                  .fd = -1,
                  .keep = ret_fd != NULL,
                  .body_left = -1,
                  .deadline_ns = req->deadline_ns};

    *ret = (csn_http_res){.attempts = 1};
    csn_buf_init(&ret->body, ERROR_MAX);
    csn_buf_init(&x.out, REQUEST_MAX);
    csn_buf_init(&x.head, HEAD_MAX);
    csn_status st = run_exchange(&x, err);
    csn_buf_release(&x.out);
    csn_buf_release(&x.head);
    if (ret_fd)
        *ret_fd = st == CSN_OK && x.in_stream ? csn_steal_fd(&x.fd) : -1;
    if (x.fd >= 0)
        close(x.fd);
    return st;
}

csn_status csn_hijack_do(const csn_hijack_req *req, csn_http_res *ret, csn_error **err)
{
    return csn_hijack_open(req, ret, NULL, err);
}
