/* pump.c: the poll loop of one command.
 *
 * The child may be hostile: it can close, flood, never read its stdin or never exit. Every wait
 * therefore includes the deadline and the cancel descriptors, and output that the sink does not
 * want is spliced to /dev/null. Memory is one buffer per direction, allocated at first use.
 * Invariant: every wait ends by the caller's deadline or cancellation. The host's signals are
 * not touched; a write to a closed stdin raises no SIGPIPE. */
#include "os/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "os/spawn.h"

#define BUF_SIZE     (64u * 1024u)
#define GROW_AFTER   (256u * 1024u) /* bytes after which a stream is worth a larger pipe */
#define EOF_MS_FIRST 100u
#define EOF_MS_MAX   5000u

enum {
    AT_OUT = 0,
    AT_FEED = 2,
    AT_INPUT,
    AT_MESSAGE,
    AT_CONTROL,
    AT_NOTICE,
    AT_CANCEL,
    AT_COUNT = AT_CANCEL + 2
};

void csn_pump_init(csn_pump *p)
{
    *p = (csn_pump){.feed_fd = -1,
                    .input = CSN_INPUT_NONE,
                    .message_fd = -1,
                    .control_fd = -1,
                    .size_fd = -1,
                    .notice_fd = -1,
                    .null_fd = -1};
    p->out[0] = p->out[1] = (csn_pump_out){.fd = -1};
    p->cancel_fds[0] = p->cancel_fds[1] = -1;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(csn_steal_fd(fd));
}

void csn_pump_end_feed(csn_pump *p)
{
    close_fd(&p->feed_fd);
    csn_input_close(&p->input);
}

void csn_pump_release(csn_pump *p)
{
    close_fd(&p->out[0].fd);
    close_fd(&p->out[1].fd);
    csn_pump_end_feed(p);
    close_fd(&p->null_fd);
    if (p->buf != p->spare[0])
        free(p->buf);
    if (p->feed_buf != p->spare[1])
        free(p->feed_buf);
    p->buf = p->feed_buf = NULL;
}

/* Allocates a buffer at its first use. */
static void ensure_buf(char **buf, size_t *size, char *spare, size_t spare_size)
{
    if (*buf)
        return;
    *buf = malloc(BUF_SIZE);
    *size = *buf ? BUF_SIZE : spare_size;
    if (!*buf)
        *buf = spare;
}

/* Discards up to `max` bytes, without copying where the kernel can. */
static ssize_t discard(csn_pump *p, int fd, size_t max)
{
    if (p->null_fd < 0)
        p->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (p->null_fd >= 0) {
        ssize_t n = splice(fd, NULL, p->null_fd, NULL, max, SPLICE_F_NONBLOCK);
        if (n >= 0 || errno == EAGAIN || errno == EINTR)
            return n;
    }
    return read(fd, p->buf, max < p->buf_size ? max : p->buf_size);
}

/* False: the sink asks to stop. */
static bool deliver(csn_pump *p, csn_pump_out *o, const void *data, size_t len)
{
    o->total += len;
    if (p->mute)
        return true;
    int want = p->sink(p->sink_ctx, o->stream, data, len);
    if (want == CSN_PUMP_SINK_STOP) {
        p->mute = true;
        return false;
    }
    if (want == CSN_PUMP_SINK_COUNT)
        o->counting = true;
    return true;
}

/* One read of a ready output. False: the sink asks to stop. */
static bool pump_out(csn_pump *p, csn_pump_out *o, size_t max)
{
    bool drop = o->counting || p->mute;

    ensure_buf(&p->buf, &p->buf_size, p->spare[0], sizeof(p->spare[0]));
    ssize_t n = drop ? discard(p, o->fd, max)
                     : read(o->fd, p->buf, max < p->buf_size ? max : p->buf_size);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        bool hung_up = p->terminal && errno == EIO; /* its last user has ended */
        p->broken = p->broken || (n < 0 && !hung_up);
        close_fd(&o->fd);
        return true;
    }
    if (!o->grown && o->total > GROW_AFTER) {
        (void)fcntl(o->fd, F_SETPIPE_SZ, (int)CSN_PIPE_GROW_BYTES); /* best effort */
        o->grown = true;
    }
    return deliver(p, o, drop ? NULL : p->buf, (size_t)n);
}

/* The end of what a terminal has to say. */
void csn_pump_no_input(csn_pump *p)
{
    if (!p->terminal) {
        csn_pump_end_feed(p);
        return;
    }
    csn_input_close(&p->input);
    p->feed = NULL;
    p->eof_ns = 1;
    p->eof_ms = EOF_MS_FIRST;
}

/* A ^D is consumed by its first reader, and lost if a shell changes the mode of the terminal
 * before it reads. Every reader must see the end, so it is typed repeatedly. */
static void type_eof(csn_pump *p)
{
    if (p->eof_ns == 0 || p->feed_fd < 0 || csn_deadline_poll_ms(p->eof_ns) > 0)
        return;
    (void)csn_write_quietly(p->feed_fd, "\004", 1);
    p->eof_ns = csn_deadline_in(p->eof_ms);
    p->eof_ms = p->eof_ms < EOF_MS_MAX ? p->eof_ms * 2 : p->eof_ms;
}

/* Fills the empty feed buffer. False: the source failed. */
static bool fill_feed(csn_pump *p)
{
    int64_t n = p->input.fd >= 0 ? csn_input_read(&p->input, p->feed_buf, p->feed_size)
                                 : p->feed(p->feed_ctx, p->feed_buf, p->feed_size);
    p->feed_at = p->feed_len = 0;
    if (p->input.fd >= 0 && n == -EAGAIN)
        return true;
    if (n < 0 || (uint64_t)n > p->feed_size) {
        p->feed_error = p->input.fd >= 0 ? (int)-n : 0;
        return false;
    }
    if (n == 0)
        csn_pump_no_input(p);
    p->feed_len = (size_t)n;
    return true;
}

/* EAGAIN does not say which side is not ready: poll asks the other one next. */
static bool splice_feed(csn_pump *p)
{
    ssize_t n = csn_input_splice(&p->input, p->feed_fd, CSN_PIPE_GROW_BYTES);

    p->feed_full = n == -EAGAIN && !p->feed_full;
    if (n == 0 || n == -EPIPE)
        csn_pump_end_feed(p);
    else if (n < 0 && n != -EAGAIN)
        p->feed_error = (int)-n;
    return p->feed_error == 0;
}

/* Writes some stdin to the command. False: the source failed. */
static bool pump_feed(csn_pump *p)
{
    if (csn_input_splices(&p->input) && !p->terminal)
        return splice_feed(p);
    ensure_buf(&p->feed_buf, &p->feed_size, p->spare[1], sizeof(p->spare[1]));
    if (p->feed_at == p->feed_len && !fill_feed(p))
        return false;
    if (p->feed_fd < 0 || p->feed_at == p->feed_len)
        return true;
    ssize_t n =
        csn_write_quietly(p->feed_fd, p->feed_buf + p->feed_at, p->feed_len - p->feed_at);
    if (n > 0)
        p->feed_at += (size_t)n;
    else if (n != -EAGAIN && n != -EINTR)
        csn_pump_end_feed(p); /* the command has closed its stdin, which is not an error */
    return true;
}

/* Waits for input, or for room in the pipe, never for both: one of them that is ready would end
 * every poll at once. A pipe without a reader is reported as POLLERR in either case. */
static void fill_poll_feed(const csn_pump *p, struct pollfd pf[AT_COUNT])
{
    bool wait_input = p->input.fd >= 0 && p->feed_at == p->feed_len && !p->feed_full;
    bool nap = wait_input && csn_deadline_poll_ms(p->input.retry_ns) > 0;
    bool none = p->feed_failed || (p->eof_ns != 0 && p->feed_at == p->feed_len);

    pf[AT_FEED] =
        (struct pollfd){.fd = none ? -1 : p->feed_fd, .events = wait_input ? 0 : POLLOUT};
    pf[AT_INPUT] = (struct pollfd){
        .fd = wait_input && !nap && !p->feed_failed ? p->input.fd : -1, .events = POLLIN};
}

/* poll skips descriptors that are -1. */
static void fill_poll(const csn_pump *p, struct pollfd pf[AT_COUNT])
{
    for (int i = 0; i < 2; i++) {
        pf[AT_OUT + i] = (struct pollfd){.fd = p->out[i].fd, .events = POLLIN};
        pf[AT_CANCEL + i] = (struct pollfd){.fd = p->cancel_fds[i], .events = POLLIN};
    }
    fill_poll_feed(p, pf);
    pf[AT_MESSAGE] = (struct pollfd){.fd = p->message_fd, .events = POLLIN};
    pf[AT_CONTROL] = (struct pollfd){.fd = p->control_fd, .events = POLLIN};
    pf[AT_NOTICE] = (struct pollfd){.fd = p->notice_fd, .events = POLLIN};
}

/* Moves bytes for all ready descriptors. False: *ret must be reported at once. */
static bool move_bytes(csn_pump *p, const struct pollfd pf[AT_COUNT], csn_pump_event *ret)
{
    for (int i = 0; i < 2; i++) {
        short got = pf[AT_OUT + i].revents;
        if (got == 0)
            continue;
        if (!(got & POLLIN)) { /* hung up and empty: no read needed */
            close_fd(&p->out[i].fd);
            continue;
        }
        if (!pump_out(p, &p->out[i], CSN_PIPE_GROW_BYTES)) {
            *ret = CSN_PUMP_STOP;
            return false;
        }
    }
    short feed = pf[AT_FEED].revents;
    if ((p->input.fd >= 0 && (feed & (POLLERR | POLLNVAL))) ||
        (p->terminal && (feed & POLLHUP)))
        csn_pump_end_feed(p);
    if (p->feed_fd >= 0 && (feed | pf[AT_INPUT].revents) != 0 && !pump_feed(p)) {
        p->feed_failed = true;
        *ret = CSN_PUMP_FEED;
        return false;
    }
    return true;
}

static int timeout_ms(const csn_pump *p)
{
    int deadline = csn_deadline_poll_ms(p->deadline_ns);
    int nap = p->feed_fd >= 0 ? csn_deadline_poll_ms(p->input.retry_ns) : -1;

    if (p->feed_fd >= 0 && p->eof_ns != 0)
        nap = csn_deadline_poll_ms(p->eof_ns);
    return nap > 0 && (deadline < 0 || nap < deadline) ? nap : deadline;
}

/* ---- the size of a terminal ---- */

void csn_pump_follow_size(csn_pump *p, int terminal)
{
    struct winsize ws;

    if (ioctl(terminal, TIOCGWINSZ, &ws) < 0)
        return;
    p->size_fd = terminal;
    p->size = (uint32_t)ws.ws_row << 16 | ws.ws_col;
}

static void copy_size(csn_pump *p)
{
    struct winsize ws;

    if (ioctl(p->size_fd, TIOCGWINSZ, &ws) < 0 ||
        p->size == ((uint32_t)ws.ws_row << 16 | ws.ws_col))
        return;
    p->size = (uint32_t)ws.ws_row << 16 | ws.ws_col;
    if (p->out[0].fd >= 0)
        (void)ioctl(p->out[0].fd, TIOCSWINSZ, &ws);
}

/* A change of size is noticed when SIGWINCH, if the host handles it, interrupts the poll; it is
 * blocked in between, so none is missed. */
static int wait_ready(csn_pump *p, struct pollfd pf[AT_COUNT])
{
    int ms = timeout_ms(p);
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    sigset_t winch, old;

    if (p->size_fd < 0)
        return poll(pf, AT_COUNT, ms);
    sigemptyset(&winch);
    sigaddset(&winch, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &winch, &old);
    copy_size(p);
    int n = ppoll(pf, AT_COUNT, ms < 0 ? NULL : &ts, &old);
    int e = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = e;
    return n;
}

/* Bytes first, then events: output that a command wrote before its end is delivered before its
 * end is reported. The sink may block until after the deadline; what happened meanwhile is
 * looked for before the deadline is reported. */
csn_pump_event csn_pump_wait(csn_pump *p)
{
    struct pollfd pf[AT_COUNT];
    csn_pump_event ev;
    bool late = false;

    for (;;) {
        if (p->out[0].fd < 0 && p->out[1].fd < 0 && p->message_fd < 0 && p->control_fd < 0)
            return CSN_PUMP_CLOSED;
        type_eof(p);
        fill_poll(p, pf);
        int n = wait_ready(p, pf);
        if (n < 0 && errno != EINTR)
            return CSN_PUMP_ERROR;
        if (n < 0)
            continue;
        if (n > 0 && !move_bytes(p, pf, &ev))
            return ev;
        if (p->broken)
            return CSN_PUMP_ERROR;
        if (n > 0 && pf[AT_CONTROL].revents != 0)
            return CSN_PUMP_CONTROL;
        if (n > 0 && pf[AT_MESSAGE].revents != 0)
            return CSN_PUMP_MESSAGE;
        if (n > 0 && pf[AT_NOTICE].revents != 0)
            return CSN_PUMP_NOTICE;
        if (n > 0 && (pf[AT_CANCEL].revents != 0 || pf[AT_CANCEL + 1].revents != 0))
            return CSN_PUMP_CANCEL;
        bool passed = p->deadline_ns != 0 && csn_deadline_poll_ms(p->deadline_ns) == 0;
        if (passed && (n == 0 || late))
            return CSN_PUMP_DEADLINE;
        late = passed;
    }
}

bool csn_pump_has_output(const csn_pump *p)
{
    for (int i = 0; i < 2; i++) {
        int avail = 0;
        if (p->out[i].fd >= 0 && ioctl(p->out[i].fd, FIONREAD, &avail) == 0 && avail > 0)
            return true;
    }
    return false;
}

void csn_pump_drain_now(csn_pump *p)
{
    for (int i = 0; i < 2; i++) {
        csn_pump_out *o = &p->out[i];
        int avail = 0;

        if (o->fd < 0 || ioctl(o->fd, FIONREAD, &avail) < 0)
            continue;
        while (avail > 0 && o->fd >= 0) {
            uint64_t before = o->total;
            (void)pump_out(p, o, (size_t)avail);
            if (o->total == before)
                break;
            avail -= (int)(o->total - before);
        }
    }
}
