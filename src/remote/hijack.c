/* hijack.c: one connection to a unix socket: a request out, the head of the answer in, and then
 * bytes both ways.
 *
 * Called by the docker backend, on the thread that waits for the command. One poll loop: the
 * socket, the caller's stdin, the cancel descriptors, the deadline. The server is not trusted:
 * the head has a ceiling, a refusal too, and nothing is waited for beyond the deadline. Not a
 * byte of stdin goes before the head is there: the server may have read it as part of the
 * request, and lost it. */
#include "remote/hijack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define HEAD_MAX      16384u
#define REFUSAL_MAX   65536u
#define CHUNK         65536u
#define REQUEST_MAX   (64u * 1024u * 1024u)
#define CONNECT_S     15
#define CONNECT_TRIES 16
#define CANCEL_MAX    4u

typedef struct line {
    const csn_hijack_req *q;
    csn_http_res *res;
    int fd;
    csn_buf out;    /* to be sent */
    size_t out_pos; /* sent of it */
    csn_buf head;
    bool in_stream; /* the head was a yes */
    bool keep;      /* for csn_hijack_open: done when in_stream */
    bool done;
    bool input_open;
    int64_t body_left; /* of a refusal; -1: until the end */
    bool alarmed;
    uint64_t deadline_ns;
} line;

static csn_status connect_to(const char *path, int *ret, csn_error **err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = CONNECT_S};
    size_t len = strlen(path);

    if (len >= sizeof(a.sun_path))
        return csn_fail(err, CSN_INVALID, "the path of the socket is too long: '%s'", path);
    memcpy(a.sun_path, path, len + 1);
    csn_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return csn_fail_errno(err, errno, "socket");
    /* also the limit for connect, when nobody accepts */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    int rc, tries = 0;
    do /* with that limit, being stopped and continued interrupts it */
        rc = connect(fd, (const struct sockaddr *)&a, sizeof(a));
    while (rc < 0 && errno == EINTR && ++tries < CONNECT_TRIES);
    if (rc < 0)
        return csn_fail(err, CSN_UNAVAILABLE, "%s did not answer: %m", path);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return csn_fail_errno(err, errno, "socket");
    *ret = csn_steal_fd(&fd);
    return CSN_OK;
}

static int put_request(line *l)
{
    const csn_hijack_req *q = l->q;
    int e = csn_buf_printf(&l->out,
                           "POST %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: caisson\r\n"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                           "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
                           q->path, q->body_len);

    return e || q->body_len == 0 ? e : csn_buf_append(&l->out, q->body, q->body_len);
}

/* ---- out -------------------------------------------------------------------------------- */

/* Nobody reads any more: what is still to come is listened to. */
static void stop_sending(line *l)
{
    l->input_open = false;
    l->out.len = l->out_pos = 0;
}

static void send_some(line *l)
{
    ssize_t n = send(l->fd, l->out.data + l->out_pos, l->out.len - l->out_pos, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        stop_sending(l);
    if (n <= 0)
        return;
    l->res->sent = true;
    l->out_pos += (size_t)n;
    if (l->out_pos == l->out.len)
        l->out.len = l->out_pos = 0;
}

static void read_input(line *l)
{
    char buf[CHUNK];
    ssize_t n = read(l->q->input_fd, buf, sizeof(buf));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && csn_buf_append(&l->out, buf, (size_t)n) == 0)
        return;
    l->input_open = false;
    (void)shutdown(l->fd, SHUT_WR);
}

/* ---- in --------------------------------------------------------------------------------- */

static csn_status take_body(line *l, const char *data, size_t len, csn_error **err)
{
    if (len == 0)
        return CSN_OK;
    if (l->in_stream) {
        l->res->stopped = l->q->on_body && l->q->on_body(l->q->ctx, data, len) != 0;
        l->done = l->res->stopped;
        return CSN_OK;
    }
    if (csn_buf_append(&l->res->body, data, len) != 0)
        return csn_fail(err, CSN_TOO_LARGE, "%s refuses in more than %u bytes", l->q->unix_path,
                        REFUSAL_MAX);
    if (l->body_left >= 0)
        l->body_left = (int64_t)len < l->body_left ? l->body_left - (int64_t)len : 0;
    l->done = l->body_left == 0;
    return CSN_OK;
}

/* "HTTP/1.1 101 ..." and the one field that matters to a refusal. */
static csn_status read_head(line *l, csn_error **err)
{
    static const char length[] = "\r\ncontent-length:";
    int major = 0, status = 0;

    if (sscanf(l->head.data, "HTTP/1.%1d %3d", &major, &status) != 2 || status < 100)
        return csn_fail(err, CSN_IO, "%s does not speak HTTP", l->q->unix_path);
    l->res->status = status;
    l->in_stream = status == 101 || status == 200;
    l->input_open = l->in_stream && l->q->input_fd >= 0;
    const char *field = strcasestr(l->head.data, length);
    l->body_left = field ? strtoll(field + sizeof(length) - 1, NULL, 10) : -1;
    l->done = l->in_stream ? l->keep : l->body_left == 0;
    return CSN_OK;
}

static csn_status take_head(line *l, const char *data, size_t len, csn_error **err)
{
    size_t before = l->head.len;

    if (csn_buf_append(&l->head, data, len) != 0)
        return csn_fail(err, CSN_IO, "the head of the answer of %s does not end",
                        l->q->unix_path);
    const char *from = l->head.data + (before > 3 ? before - 3 : 0);
    char *end = memmem(from, (size_t)(l->head.data + l->head.len - from), "\r\n\r\n", 4);
    if (!end)
        return CSN_OK;
    size_t used = (size_t)(end + 4 - l->head.data) - before;
    *end = '\0';
    csn_status st = read_head(l, err);
    return st == CSN_OK && !l->done ? take_body(l, data + used, len - used, err) : st;
}

static csn_status receive(line *l, csn_error **err)
{
    bool in_head = l->res->status == 0;
    char buf[CHUNK];
    ssize_t n = recv(l->fd, buf, in_head ? HEAD_MAX / 4 : sizeof(buf), 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return CSN_OK;
    if (n > 0)
        return in_head ? take_head(l, buf, (size_t)n, err) : take_body(l, buf, (size_t)n, err);
    if (in_head)
        return csn_fail(err, CSN_UNAVAILABLE, "%s gave no answer", l->q->unix_path);
    if (n < 0)
        return csn_fail(err, CSN_IO, "the answer of %s broke off: %m", l->q->unix_path);
    l->done = true;
    return CSN_OK;
}

/* ---- the loop --------------------------------------------------------------------------- */

static csn_status alarm_raised(line *l, csn_status why, csn_error **err)
{
    const csn_hijack_req *q = l->q;

    if (!l->alarmed && q->on_alarm) {
        l->alarmed = true;
        l->deadline_ns = q->on_alarm(q->ctx, why);
        if (l->deadline_ns != 0)
            return CSN_OK;
    }
    if (why == CSN_CANCELLED)
        return csn_fail(err, why, "cancelled");
    return csn_fail(err, why, "deadline passed while waiting for %s", q->unix_path);
}

static bool cancelled(const line *l, const struct pollfd *p, nfds_t n)
{
    for (nfds_t i = 2; i < n; i++)
        if (p[i].revents != 0 && !l->alarmed)
            return true;
    return false;
}

static csn_status step(line *l, csn_error **err)
{
    const csn_hijack_req *q = l->q;
    struct pollfd p[2 + CANCEL_MAX] = {
        {.fd = l->fd, .events = (short)(POLLIN | (l->out.len > 0 ? POLLOUT : 0))},
        {.fd = l->input_open && l->out.len == 0 ? q->input_fd : -1, .events = POLLIN}};
    nfds_t n = 2;

    for (size_t i = 0; i < q->cancel_count && n < 2 + CANCEL_MAX && !l->alarmed; i++)
        p[n++] = (struct pollfd){.fd = q->cancel_fds[i], .events = POLLIN};
    int ready = poll(p, n, csn_deadline_poll_ms(l->deadline_ns));
    if (ready < 0)
        return errno == EINTR ? CSN_OK : csn_fail_errno(err, errno, "poll");
    if (ready == 0 || (l->deadline_ns && csn_deadline_poll_ms(l->deadline_ns) == 0))
        return alarm_raised(l, CSN_TIMEOUT, err);
    if (cancelled(l, p, n))
        return alarm_raised(l, CSN_CANCELLED, err);
    if (p[1].revents)
        read_input(l);
    if (p[0].revents & POLLOUT && l->out.len > 0)
        send_some(l);
    return p[0].revents & (POLLIN | POLLHUP | POLLERR) ? receive(l, err) : CSN_OK;
}

static csn_status converse(line *l, csn_error **err)
{
    csn_status st = connect_to(l->q->unix_path, &l->fd, err);

    if (st == CSN_OK && put_request(l) != 0)
        st = csn_fail(err, CSN_TOO_LARGE, "the request is too large");
    while (st == CSN_OK && !l->done)
        st = step(l, err);
    return st;
}

csn_status csn_hijack_open(const csn_hijack_req *req, csn_http_res *ret, int *ret_fd,
                           csn_error **err)
{
    line l = {.q = req,
              .res = ret,
              .fd = -1,
              .keep = ret_fd != NULL,
              .body_left = -1,
              .deadline_ns = req->deadline_ns};

    *ret = (csn_http_res){.made = 1};
    csn_buf_init(&ret->body, REFUSAL_MAX);
    csn_buf_init(&l.out, REQUEST_MAX);
    csn_buf_init(&l.head, HEAD_MAX);
    csn_status st = converse(&l, err);
    csn_buf_release(&l.out);
    csn_buf_release(&l.head);
    if (ret_fd)
        *ret_fd = st == CSN_OK && l.in_stream ? csn_steal_fd(&l.fd) : -1;
    if (l.fd >= 0)
        close(l.fd);
    return st;
}

csn_status csn_hijack_do(const csn_hijack_req *req, csn_http_res *ret, csn_error **err)
{
    return csn_hijack_open(req, ret, NULL, err);
}
