/* relay.c: copies bytes from one socket to another, through a buffer or by splice.
 *
 * Both peers are untrusted: each may stop reading, reset, or half-close at any byte.
 * Invariants: bytes keep their order and number; EOF reaches the other side after the last
 * byte; a pipeline holds at most one buffer or one pipe, and none when idle. */
#include "gateway/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS_PER_CALL 8
#define BUSY_READS      2u /* consecutive full reads after which a pipeline splices */
/* Splicing less than this at a time costs as many system calls as copying. */
#define SPLICE_MIN (16u * 1024u)

/* ---- endpoints ------------------------------------------------------------------------- */

void gw_endpoint_update(gw_endpoint *e, uint32_t events)
{
    /* After an error the next read() or write() returns it. */
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        e->readable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        e->writable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        e->hangup = true;
}

void gw_endpoint_reset(gw_endpoint *e)
{
    struct linger now = {.l_onoff = 1};

    if (e->io.fd >= 0)
        (void)setsockopt(e->io.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    gw_loop_close(&e->io);
}

/* ---- pipes ----------------------------------------------------------------------------- */

void gw_relay_init(gw_relay *r)
{
    r->idle_count = r->pipe_count = 0;
}

/* Large pipes count against a per-user quota; if it is exhausted, smaller sizes are tried. */
static bool take_pipe(gw_relay *r, gw_pipeline *p)
{
    if (r->idle_count > 0) {
        p->pipe = r->idle_pipes[--r->idle_count];
        return true;
    }
    if (r->pipe_count == GW_RELAY_PIPES_MAX || pipe2(p->pipe.fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        p->pipe.fds[0] = p->pipe.fds[1] = -1;
        return false;
    }
    int size = -1;
    for (int want = (int)GW_RELAY_PIPE_SIZE; size < 0 && want >= (int)GW_RELAY_CHUNK; want /= 2)
        size = fcntl(p->pipe.fds[1], F_SETPIPE_SZ, want);
    p->pipe.size = size < 0 ? 4096 : (size_t)size;
    r->pipe_count++;
    return true;
}

static void return_pipe(gw_relay *r, gw_pipeline *p)
{
    if (p->pipe.fds[0] < 0)
        return;
    if (p->spliced_len == 0) {
        r->idle_pipes[r->idle_count++] = p->pipe;
    } else { /* not empty: its bytes must not reach another flow */
        close(p->pipe.fds[0]);
        close(p->pipe.fds[1]);
        r->pipe_count--;
    }
    p->pipe.fds[0] = p->pipe.fds[1] = -1;
    p->spliced_len = 0;
}

/* ---- pipelines ------------------------------------------------------------------------- */

void gw_pipeline_init(gw_pipeline *p)
{
    *p = (gw_pipeline){.pipe = {.fds = {-1, -1}}};
}

void gw_pipeline_release(gw_relay *r, gw_pipeline *p)
{
    return_pipe(r, p);
    free(p->held);
    p->held = NULL;
    p->held_len = p->held_ok = p->held_at = p->held_room = 0;
}

void gw_pipeline_resume(gw_pipeline *p)
{
    p->paused = false;
    p->reinspect = true;
}

static int reserve_held(gw_pipeline *p, size_t more)
{
    if (p->held_at > 0) {
        memmove(p->held, p->held + p->held_at, p->held_len - p->held_at);
        p->held_len -= p->held_at;
        p->held_ok -= p->held_at;
        p->held_at = 0;
    }
    if (more <= p->held_room - p->held_len)
        return 0;
    if (more > GW_RELAY_HELD_MAX - p->held_len)
        return -E2BIG;
    size_t room = p->held_room ? p->held_room : 2048;
    while (room < p->held_len + more)
        room *= 2;
    uint8_t *grown = realloc(p->held, room);
    if (!grown)
        return -ENOMEM;
    p->held = grown;
    p->held_room = room;
    return 0;
}

static int append_held(gw_pipeline *p, const void *data, size_t len, bool ok)
{
    int rc = len > 0 ? reserve_held(p, len) : 0;

    if (rc < 0 || len == 0)
        return rc;
    memcpy(p->held + p->held_len, data, len);
    p->held_len += len;
    if (ok)
        p->held_ok = p->held_len;
    return 0;
}

int gw_pipeline_write(gw_pipeline *p, const void *data, size_t len)
{
    int rc = append_held(p, data, len, true);

    if (rc == 0)
        p->injected += len;
    return rc;
}

static bool is_transient(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static ssize_t send_some(gw_pipeline *p, gw_endpoint *to, const uint8_t *data, size_t len)
{
    size_t done = 0;

    while (done < len && to->writable) {
        ssize_t n = send(to->io.fd, data + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && !is_transient())
            return -errno;
        if (n < 0)
            to->writable = errno == EINTR;
        else
            done += (size_t)n;
    }
    p->bytes += done;
    return (ssize_t)done;
}

/* Sends the held bytes that passed inspection. 1: all are sent, 0: the target is not
 * writable. */
static int flush_held(gw_pipeline *p, gw_endpoint *to)
{
    if (p->held_at < p->held_ok) {
        ssize_t n = send_some(p, to, p->held + p->held_at, p->held_ok - p->held_at);
        if (n < 0)
            return (int)n;
        size_t injected = p->injected < (size_t)n ? p->injected : (size_t)n;
        p->injected -= injected;
        p->bytes -= injected;
        p->held_at += (size_t)n;
        if (p->held_at < p->held_ok)
            return 0;
    }
    if (p->held && p->held_at == p->held_len) {
        free(p->held);
        p->held = NULL;
        p->held_at = p->held_ok = p->held_len = p->held_room = 0;
    }
    return 1;
}

static int flush_pipe(gw_pipeline *p, gw_endpoint *to)
{
    while (p->spliced_len > 0) {
        if (!to->writable)
            return 0;
        ssize_t n = splice(p->pipe.fds[0], NULL, to->io.fd, NULL, p->spliced_len,
                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n < 0 && !is_transient())
            return -errno;
        if (n < 0) {
            to->writable = errno == EINTR;
        } else {
            p->spliced_len -= (size_t)n;
            p->bytes += (size_t)n;
        }
    }
    return 1;
}

static int shut_target(gw_pipeline *p, gw_endpoint *to)
{
    if (!p->shut_down && shutdown(to->io.fd, SHUT_WR) < 0 && errno != ENOTCONN)
        return -errno;
    p->shut_down = true;
    return GW_MOVE_DONE;
}

static int inspect(gw_pipeline *p, const uint8_t *data, size_t len, gw_inspection *ret)
{
    *ret = (gw_inspection){.ended = p->ended};
    if (!p->inspect) {
        ret->pass = len;
        return 0;
    }
    int rc = p->inspect(p->inspect_ctx, data, len, ret);
    p->paused = ret->pause;
    return rc;
}

/* Call only when no held bytes wait to be sent. */
static int inspect_held(gw_pipeline *p)
{
    size_t len = p->held_len - p->held_at;
    gw_inspection v;

    p->reinspect = false;
    int rc = inspect(p, p->held + p->held_at, len, &v);
    if (rc < 0)
        return rc;
    p->held_at += v.drop;
    p->held_ok = p->held_at;
    if (v.insert_len > 0) {
        rc = reserve_held(p, v.insert_len);
        if (rc < 0)
            return rc;
        memmove(p->held + v.insert_len, p->held, p->held_len);
        memcpy(p->held, v.insert, v.insert_len);
        p->held_len += v.insert_len;
        p->held_ok += v.insert_len;
    }
    p->held_ok += v.pass;
    return 1;
}

/* Appends input to held bytes for which the callback needs more context. */
static int read_more(gw_pipeline *p, gw_endpoint *from)
{
    int rc = reserve_held(p, 1);

    if (rc < 0)
        return rc;
    size_t room = p->held_room - p->held_len;
    ssize_t n = recv(from->io.fd, p->held + p->held_len, room, MSG_DONTWAIT);
    if (n < 0) {
        from->readable = errno == EINTR;
        return is_transient() ? 0 : -errno;
    }
    if (n == 0) {
        p->ended = true;
        return inspect_held(p);
    }
    if ((size_t)n < room)
        from->readable = from->hangup;
    p->held_len += (size_t)n;
    return inspect_held(p);
}

/* Sends what passes and holds the rest. 1: go on, 0: wait. */
static int pass_chunk(gw_pipeline *p, gw_endpoint *to, const uint8_t *data, size_t len)
{
    gw_inspection v;
    int rc = inspect(p, data, len, &v);

    if (rc < 0)
        return rc;
    data += v.drop;
    len -= v.drop;
    ssize_t sent = 0;
    if (v.insert_len > 0)
        rc = append_held(p, v.insert, v.insert_len, true);
    else
        sent = send_some(p, to, data, v.pass);
    if (rc < 0 || sent < 0)
        return rc < 0 ? rc : (int)sent;
    rc = append_held(p, data + sent, v.pass - (size_t)sent, true);
    if (rc == 0)
        rc = append_held(p, data + v.pass, len - v.pass, false);
    return rc < 0 ? rc : (size_t)sent == v.pass;
}

/* 1: go on, 0: wait. */
static int copy_chunk(gw_relay *r, gw_pipeline *p, gw_endpoint *from, gw_endpoint *to)
{
    ssize_t n = recv(from->io.fd, r->chunk, sizeof(r->chunk), MSG_DONTWAIT);

    if (n < 0) {
        from->readable = errno == EINTR;
        return is_transient() ? 0 : -errno;
    }
    if (n == 0) {
        p->ended = true;
        return 1;
    }
    /* A short read means that the socket is empty; epoll reports later input. */
    if ((size_t)n < sizeof(r->chunk)) {
        from->readable = from->hangup;
        p->full_reads = 0;
    } else if (++p->full_reads >= BUSY_READS) {
        p->use_splice = true;
    }
    return pass_chunk(p, to, r->chunk, (size_t)n);
}

/* Returns the pipe as soon as the source is drained. */
static int splice_chunk(gw_relay *r, gw_pipeline *p, gw_endpoint *from)
{
    ssize_t n = splice(from->io.fd, NULL, p->pipe.fds[1], NULL, p->pipe.size,
                       SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

    if (n < 0) {
        int e = errno;
        from->readable = e == EINTR;
        return_pipe(r, p);
        return e == EAGAIN || e == EINTR ? 0 : -e;
    }
    if (n == 0) {
        p->ended = true;
        return 1;
    }
    p->spliced_len = (size_t)n;
    if (p->spliced_len >= SPLICE_MIN)
        p->full_reads = BUSY_READS;
    else if (p->full_reads > 0)
        p->full_reads--;
    p->use_splice = p->full_reads > 0;
    return 1;
}

/* 1: go on, 0: wait, or -errno. */
static int one_round(gw_relay *r, gw_pipeline *p, gw_endpoint *from, gw_endpoint *to)
{
    int rc = flush_pipe(p, to);

    if (rc == 1)
        rc = flush_held(p, to);
    if (rc <= 0)
        return rc;
    if (!p->use_splice || !from->readable)
        return_pipe(r, p);
    if (p->reinspect && p->held_at < p->held_len)
        return inspect_held(p);
    if (p->ended)
        return to->io.fd >= 0;
    if (!from->readable || p->paused)
        return 0;
    if (p->held_at < p->held_len)
        return read_more(p, from);
    if (p->use_splice && !p->inspect && (p->pipe.fds[0] >= 0 || take_pipe(r, p)))
        return splice_chunk(r, p, from);
    return copy_chunk(r, p, from, to);
}

/* Bytes that the callback has not passed when the source ends, such as half a request, are
 * discarded. */
int gw_pipeline_move(gw_relay *r, gw_pipeline *p, gw_endpoint *from, gw_endpoint *to)
{
    if (p->shut_down)
        return GW_MOVE_DONE;
    for (int i = 0; i < ROUNDS_PER_CALL; i++) {
        bool ended = p->ended && !(p->reinspect && p->held_at < p->held_len);
        int rc = one_round(r, p, from, to);
        if (rc <= 0)
            return rc < 0 ? rc : GW_MOVE_WAIT;
        if (ended) {
            return_pipe(r, p);
            return shut_target(p, to);
        }
    }
    return GW_MOVE_MORE;
}
