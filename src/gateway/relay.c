/* relay.c: moves bytes between two sockets.
 *
 * Called by flow.c whenever one of the two has something new. Both peers are strangers: each
 * may stop reading, reset, or close one direction and not the other, at any byte. What must
 * hold: order and count of the bytes; an end of one side reaches the other after the last byte
 * and not before; no more than one piece or one pipe of memory for a lane, and none for an idle
 * one. */
#include "gateway/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ROUNDS     8  /* pieces or pipes moved before it is another's turn */
#define FULL_TWICE 2u /* full pieces in a row that make a lane busy */
/* Below this much at a time a spliced lane is no longer busy: two system calls for what copying
 * does in as many, and without the pipe. */
#define THIN (16u * 1024u)

/* ---- ends ------------------------------------------------------------------------------ */

void gw_end_told(gw_end *e, uint32_t events)
{
    /* An error is learnt by trying: read() and write() say which one it is. */
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        e->readable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        e->writable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        e->hung = true;
}

void gw_end_reset(gw_end *e)
{
    struct linger now = {.l_onoff = 1};

    if (e->io.fd >= 0)
        (void)setsockopt(e->io.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    gw_loop_close(&e->io);
}

/* ---- pipes ----------------------------------------------------------------------------- */

void gw_relay_init(gw_relay *r)
{
    r->stocked = r->made = 0;
}

/* A large pipe if the user has not used up what the kernel gives to one; any will do. */
static bool pipe_borrow(gw_relay *r, gw_pipeline *l)
{
    if (r->stocked > 0) {
        l->pipe = r->stock[--r->stocked];
        return true;
    }
    if (r->made == CSN_RELAY_PIPES || pipe2(l->pipe.fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        l->pipe.fds[0] = l->pipe.fds[1] = -1;
        return false;
    }
    int size = -1;
    for (int want = (int)CSN_RELAY_PIPE; size < 0 && want >= (int)CSN_RELAY_PIECE; want /= 2)
        size = fcntl(l->pipe.fds[1], F_SETPIPE_SZ, want);
    l->pipe.size = size < 0 ? 4096 : (size_t)size;
    r->made++;
    return true;
}

static void pipe_return(gw_relay *r, gw_pipeline *l)
{
    if (l->pipe.fds[0] < 0)
        return;
    if (l->in_pipe == 0) {
        r->stock[r->stocked++] = l->pipe;
    } else { /* another's bytes must never come out of it */
        close(l->pipe.fds[0]);
        close(l->pipe.fds[1]);
        r->made--;
    }
    l->pipe.fds[0] = l->pipe.fds[1] = -1;
    l->in_pipe = 0;
}

/* ---- lanes ----------------------------------------------------------------------------- */

void gw_pipeline_init(gw_pipeline *l)
{
    *l = (gw_pipeline){.pipe = {.fds = {-1, -1}}};
}

void gw_pipeline_release(gw_relay *r, gw_pipeline *l)
{
    pipe_return(r, l);
    free(l->held);
    l->held = NULL;
    l->held_len = l->held_ok = l->held_at = l->held_room = 0;
}

void gw_pipeline_resume(gw_pipeline *l)
{
    l->paused = false;
    l->again = true;
}

/* Makes room for so many bytes behind those that are held. Only what could not be sent or
 * judged at once comes here, and nothing more is read meanwhile. */
static int held_more(gw_pipeline *l, size_t more)
{
    if (l->held_at > 0) {
        memmove(l->held, l->held + l->held_at, l->held_len - l->held_at);
        l->held_len -= l->held_at;
        l->held_ok -= l->held_at;
        l->held_at = 0;
    }
    if (more <= l->held_room - l->held_len)
        return 0;
    if (more > CSN_RELAY_HELD_MAX - l->held_len)
        return -E2BIG;
    size_t room = l->held_room ? l->held_room : 2048;
    while (room < l->held_len + more)
        room *= 2;
    uint8_t *grown = realloc(l->held, room);
    if (!grown)
        return -ENOMEM;
    l->held = grown;
    l->held_room = room;
    return 0;
}

static int held_add(gw_pipeline *l, const void *data, size_t len, bool ok)
{
    int rc = len > 0 ? held_more(l, len) : 0;

    if (rc < 0 || len == 0)
        return rc;
    memcpy(l->held + l->held_len, data, len);
    l->held_len += len;
    if (ok)
        l->held_ok = l->held_len;
    return 0;
}

int gw_pipeline_write(gw_pipeline *l, const void *data, size_t len)
{
    int rc = held_add(l, data, len, true);

    if (rc == 0)
        l->own += len;
    return rc;
}

static bool would_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Sends what it can; how much that was, or -errno. */
static ssize_t send_some(gw_pipeline *l, gw_end *to, const uint8_t *data, size_t len)
{
    size_t done = 0;

    while (done < len && to->writable) {
        ssize_t n = send(to->io.fd, data + done, len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && !would_wait())
            return -errno;
        if (n < 0)
            to->writable = errno == EINTR;
        else
            done += (size_t)n;
    }
    l->bytes += done;
    return (ssize_t)done;
}

/* 1: what may be sent is gone, 0: the target takes no more now. */
static int flush_held(gw_pipeline *l, gw_end *to)
{
    if (l->held_at < l->held_ok) {
        ssize_t n = send_some(l, to, l->held + l->held_at, l->held_ok - l->held_at);
        if (n < 0)
            return (int)n;
        size_t own = l->own < (size_t)n ? l->own : (size_t)n;
        l->own -= own;
        l->bytes -= own;
        l->held_at += (size_t)n;
        if (l->held_at < l->held_ok)
            return 0;
    }
    if (l->held && l->held_at == l->held_len) {
        free(l->held);
        l->held = NULL;
        l->held_at = l->held_ok = l->held_len = l->held_room = 0;
    }
    return 1;
}

static int flush_pipe(gw_pipeline *l, gw_end *to)
{
    while (l->in_pipe > 0) {
        if (!to->writable)
            return 0;
        ssize_t n = splice(l->pipe.fds[0], NULL, to->io.fd, NULL, l->in_pipe,
                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n < 0 && !would_wait())
            return -errno;
        if (n < 0) {
            to->writable = errno == EINTR;
        } else {
            l->in_pipe -= (size_t)n;
            l->bytes += (size_t)n;
        }
    }
    return 1;
}

static int lane_end(gw_pipeline *l, gw_end *to)
{
    if (!l->shut && shutdown(to->io.fd, SHUT_WR) < 0 && errno != ENOTCONN)
        return -errno;
    l->shut = true;
    return CSN_MOVED_DONE;
}

/* What may pass: everything, when nobody looks. */
static int ask(gw_pipeline *l, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    *ret = (gw_inspect_fn){.ended = l->ended};
    if (!l->look) {
        ret->pass = len;
        return 0;
    }
    int rc = l->look(l->look_ctx, data, len, ret);
    l->again = ret->again;
    l->paused = ret->pause;
    return rc;
}

/* Shows what is held and not judged. Nothing else is held then. */
static int judge_held(gw_pipeline *l)
{
    size_t len = l->held_len - l->held_at;
    gw_inspect_fn v;

    l->again = false;
    int rc = ask(l, l->held + l->held_at, len, &v);
    if (rc < 0)
        return rc;
    l->held_at += v.drop;
    l->held_ok = l->held_at;
    if (v.insert_len > 0) {
        rc = held_more(l, v.insert_len);
        if (rc < 0)
            return rc;
        memmove(l->held + v.insert_len, l->held, l->held_len);
        memcpy(l->held, v.insert, v.insert_len);
        l->held_len += v.insert_len;
        l->held_ok += v.insert_len;
    }
    l->held_ok += v.pass;
    return 1;
}

/* More bytes behind those that could not be judged without them. */
static int read_behind(gw_pipeline *l, gw_end *from)
{
    int rc = held_more(l, 1);

    if (rc < 0)
        return rc;
    size_t room = l->held_room - l->held_len;
    ssize_t n = recv(from->io.fd, l->held + l->held_len, room, MSG_DONTWAIT);
    if (n < 0) {
        from->readable = errno == EINTR;
        return would_wait() ? 0 : -errno;
    }
    if (n == 0) {
        l->ended = true;
        return judge_held(l);
    }
    if ((size_t)n < room)
        from->readable = from->hung;
    l->held_len += (size_t)n;
    return judge_held(l);
}

/* Sends what may pass, and holds what is left of it and the rest. 1: go on, 0: wait. */
static int pass_piece(gw_pipeline *l, gw_end *to, const uint8_t *data, size_t len)
{
    gw_inspect_fn v;
    int rc = ask(l, data, len, &v);

    if (rc < 0)
        return rc;
    data += v.drop;
    len -= v.drop;
    ssize_t sent = 0;
    if (v.insert_len > 0)
        rc = held_add(l, v.insert, v.insert_len, true);
    else
        sent = send_some(l, to, data, v.pass);
    if (rc < 0 || sent < 0)
        return rc < 0 ? rc : (int)sent;
    rc = held_add(l, data + sent, v.pass - (size_t)sent, true);
    if (rc == 0)
        rc = held_add(l, data + v.pass, len - v.pass, false);
    return rc < 0 ? rc : (size_t)sent == v.pass;
}

/* One piece through the shared buffer. 1: go on, 0: wait. */
static int copy_piece(gw_relay *r, gw_pipeline *l, gw_end *from, gw_end *to)
{
    ssize_t n = recv(from->io.fd, r->piece, sizeof(r->piece), MSG_DONTWAIT);

    if (n < 0) {
        from->readable = errno == EINTR;
        return would_wait() ? 0 : -errno;
    }
    if (n == 0) {
        l->ended = true;
        return 1;
    }
    /* A piece that does not fill the buffer was all there is, and what comes later is told. */
    if ((size_t)n < sizeof(r->piece)) {
        from->readable = from->hung;
        l->full = 0;
    } else if (++l->full >= FULL_TWICE) {
        l->spliced = true;
    }
    return pass_piece(l, to, r->piece, (size_t)n);
}

/* A lane that runs dry gives its pipe back at once: most connections wait most of the time. */
static int splice_piece(gw_relay *r, gw_pipeline *l, gw_end *from)
{
    ssize_t n = splice(from->io.fd, NULL, l->pipe.fds[1], NULL, l->pipe.size,
                       SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

    if (n < 0) {
        int e = errno;
        from->readable = e == EINTR;
        pipe_return(r, l);
        return e == EAGAIN || e == EINTR ? 0 : -e;
    }
    if (n == 0) {
        l->ended = true;
        return 1;
    }
    l->in_pipe = (size_t)n;
    if (l->in_pipe >= THIN)
        l->full = FULL_TWICE;
    else if (l->full > 0)
        l->full--;
    l->spliced = l->full > 0;
    return 1;
}

/* 1: go on, 0: wait, or -errno. */
static int one_round(gw_relay *r, gw_pipeline *l, gw_end *from, gw_end *to)
{
    int rc = flush_pipe(l, to);

    if (rc == 1)
        rc = flush_held(l, to);
    if (rc <= 0)
        return rc;
    if (!l->spliced || !from->readable)
        pipe_return(r, l);
    if (l->again && l->held_at < l->held_len)
        return judge_held(l);
    if (l->ended)
        return to->io.fd >= 0;
    if (!from->readable || l->paused)
        return 0;
    if (l->held_at < l->held_len)
        return read_behind(l, from);
    if (l->spliced && !l->look && (l->pipe.fds[0] >= 0 || pipe_borrow(r, l)))
        return splice_piece(r, l, from);
    return copy_piece(r, l, from, to);
}

/* What a source leaves behind unjudged when it ends, half a request, is not passed on. */
int gw_pipeline_move(gw_relay *r, gw_pipeline *l, gw_end *from, gw_end *to)
{
    if (l->shut)
        return CSN_MOVED_DONE;
    for (int i = 0; i < ROUNDS; i++) {
        bool ended = l->ended && !(l->again && l->held_at < l->held_len);
        int rc = one_round(r, l, from, to);
        if (rc <= 0)
            return rc < 0 ? rc : CSN_MOVED_WAIT;
        if (ended) {
            pipe_return(r, l);
            return lane_end(l, to);
        }
    }
    return CSN_MOVED_MORE;
}
