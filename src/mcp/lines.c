/* lines.c: splits input into lines, and writes lines to a client that may stop reading.
 *
 * The client controls the input: line length is bounded, and a longer line is dropped up to its
 * newline. A client that stops reading must not hang the server: after it has closed its side
 * of the input, a write waits at most linger_ms. The output descriptor is shared with the
 * parent process and must not be made non-blocking: a socket takes MSG_DONTWAIT with each send,
 * and a pipe that polls writable accepts PIPE_BUF bytes without blocking. */
#include "mcp/lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- input --------------------------------------------------------------------------- */

void csn_line_in_init(csn_line_in *l, size_t max)
{
    *l = (csn_line_in){.max = max};
    csn_buf_init(&l->buf, max + CSN_LINE_FEED_MAX);
}

void csn_line_in_release(csn_line_in *l)
{
    csn_buf_release(&l->buf);
}

int csn_line_in_feed(csn_line_in *l, const char *data, size_t len)
{
    if (l->from > 0) {
        memmove(l->buf.data, l->buf.data + l->from, l->buf.len - l->from);
        l->buf.len -= l->from;
        l->from = 0;
    }
    /* Free the buffer of a huge message. */
    if (l->buf.len == 0 && l->buf.cap > CSN_LINE_FEED_MAX)
        csn_buf_release(&l->buf);
    return csn_buf_append(&l->buf, data, len);
}

/* Drops a line that is too long even before its newline arrives. */
static csn_line_state hold_partial(csn_line_in *l, size_t len)
{
    l->seen = len;
    l->skipping |= len > l->max;
    if (l->skipping) {
        l->buf.len = l->from;
        l->seen = 0;
    }
    return CSN_LINE_NONE;
}

csn_line_state csn_line_in_next(csn_line_in *l, const char **ret, size_t *ret_len)
{
    const char *start = l->buf.data ? l->buf.data + l->from : "";
    size_t len = l->buf.len - l->from;
    const char *end = len > l->seen ? memchr(start + l->seen, '\n', len - l->seen) : NULL;

    if (!end)
        return hold_partial(l, len);
    len = (size_t)(end - start);
    bool too_long = l->skipping || len > l->max;
    l->from += len + 1;
    l->seen = 0;
    l->skipping = false;
    if (too_long)
        return CSN_LINE_TOO_LONG;
    *ret = start;
    *ret_len = len > 0 && start[len - 1] == '\r' ? len - 1 : len;
    return CSN_LINE_GIVEN;
}

/* ---- output -------------------------------------------------------------------------- */

void csn_line_out_init(csn_line_out *o, int fd, int in, uint64_t linger_ms)
{
    *o = (csn_line_out){.fd = fd, .in = in, .linger_ms = linger_ms};
    pthread_mutex_init(&o->lock, NULL);
    o->socket = send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) == 0 || errno != ENOTSOCK;
}

/* Returns false if the reader has closed the stream or the deadline passed. */
static bool wait_writable(csn_line_out *o, uint64_t *deadline)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = o->fd, .events = POLLOUT},
                                {.fd = *deadline ? -1 : o->in, .events = 0}};
        int n = poll(fds, 2, *deadline ? csn_deadline_poll_ms(*deadline) : -1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || fds[0].revents & (POLLERR | POLLNVAL))
            return false;
        if (fds[0].revents & POLLOUT)
            return true;
        if (fds[1].revents)
            *deadline = csn_deadline_in(o->linger_ms);
    }
}

static ssize_t write_some(const csn_line_out *o, const char *data, size_t len)
{
    if (o->socket)
        return send(o->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return write(o->fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

static bool write_all(csn_line_out *o, const char *data, size_t len)
{
    uint64_t deadline = 0;

    while (len > 0) {
        if (!o->socket && !wait_writable(o, &deadline))
            return false;
        ssize_t n = write_some(o, data, len);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!wait_writable(o, &deadline))
                return false;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

bool csn_line_out_send(csn_line_out *o, const char *text, size_t len)
{
    pthread_mutex_lock(&o->lock);
    if (!o->broken)
        o->broken = !write_all(o, text, len) || !write_all(o, "\n", 1);
    bool ok = !o->broken;
    pthread_mutex_unlock(&o->lock);
    return ok;
}
