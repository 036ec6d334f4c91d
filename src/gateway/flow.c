/* flow.c: one connection from its beginning to its end.
 *
 * Made by listener.c, aimed by listener.c or proxy.c, judged by policy.c, its first bytes looked at by
 * inspect.c or proxy.c, its bytes moved by relay.c. Dialling begins as soon as name and port
 * are allowed, so that it takes place while the program inside still writes its first bytes;
 * but nothing is sent to the far end before those were looked at.
 *
 * The redirect has a price: the kernel has told the program that it is connected before we know
 * anything. A refused or failed connection is therefore a reset one. */
#include "gateway/gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define MS 1000000ull

/* ---- life ------------------------------------------------------------------------------ */

static void on_timer(csn_timer *t);

static void on_near(csn_io *io, uint32_t events);
static void on_far(csn_io *io, uint32_t events);

csn_flow *csn_flow_new(csn_gate *g, int fd, csn_way way)
{
    csn_end late = {.io = {.fd = fd}};
    csn_flow *f = g->nflows < g->flows_max ? calloc(1, sizeof(*f)) : NULL;

    if (!f || csn_timer_reserve(&g->loop, &f->timer, on_timer) < 0 ||
        csn_loop_watch(&g->loop, &f->near.io, fd, on_near) < 0) {
        if (f)
            csn_timer_release(&g->loop, &f->timer);
        free(f);
        csn_end_reset(&late);
        return NULL;
    }
    csn_socket_prompt(fd);
    f->gate = g;
    f->way = way;
    f->proto = CSN_GATE_TCP;
    f->far.io.fd = -1;
    f->near.writable = true;
    f->started_ns = f->moved_ns = g->loop.now_ns;
    csn_lane_init(&f->there);
    csn_lane_init(&f->back);
    f->next = g->flows;
    if (f->next)
        f->next->prev = f;
    g->flows = f;
    g->nflows++;
    return f;
}

/* Everything but the memory, which an event of this batch may still point to. */
static void end(csn_flow *f)
{
    csn_gate *g = f->gate;

    csn_resolve_cancel(g->resolver, &f->ask);
    csn_dial_cancel(f->dial);
    csn_ports_forget(f);
    csn_names_drop(g->names, f->number);
    csn_loop_close(&f->near.io);
    csn_loop_close(&f->far.io);
    csn_lane_release(&g->relay, &f->there);
    csn_lane_release(&g->relay, &f->back);
    csn_timer_release(&g->loop, &f->timer);
    if (f->next)
        f->next->prev = f->prev;
    if (f->prev)
        f->prev->next = f->next;
    else
        g->flows = f->next;
    g->nflows--;
    free(f->front);
    free(f->refusal);
    csn_loop_bury(&g->loop, &f->later, f);
}

/* An end that came by itself. */
static void finish(csn_flow *f, const char *why, bool reset)
{
    if (f->far.io.fd >= 0) {
        if (!f->greeted)
            csn_record_connect(f, NULL);
        csn_record_close(f, why);
    } else if (f->dialling) {
        csn_record_connect(f, "the program closed before it was connected");
    }
    if (reset) {
        csn_end_reset(&f->near);
        csn_end_reset(&f->far);
    }
    end(f);
}

void csn_flow_cut(csn_flow *f)
{
    csn_end_reset(&f->near);
    csn_end_reset(&f->far);
    end(f);
}

/* Nothing of this flow may connect any more. */
static void stop_dialling(csn_flow *f)
{
    csn_resolve_cancel(f->gate->resolver, &f->ask);
    csn_dial_cancel(f->dial);
    f->dial = NULL;
    csn_ports_forget(f);
    csn_end_reset(&f->far);
}

/* ---- time ------------------------------------------------------------------------------ */

/* When it is to be looked at if nothing happens until then. */
static uint64_t due(const csn_flow *f)
{
    if (f->leaving)
        return f->moved_ns + CSN_GATE_FAREWELL_MS * MS;
    if (f->far.io.fd < 0)
        return f->started_ns + CSN_GATE_DIAL_MS * MS;
    /* bytes that cannot be judged without more of them */
    if (!f->judged && f->there.held_len > f->there.held_ok)
        return f->moved_ns + CSN_GATE_HEAD_MS * MS;
    return f->moved_ns + f->gate->idle_ns;
}

/* Only ever brought forward: one that fires too early is armed again, and a busy connection
 * costs no heap operation. */
static void keep_time(csn_flow *f)
{
    uint64_t at = due(f);

    if (f->timer.place == 0 || at < f->timer.due_ns)
        csn_timer_arm(&f->gate->loop, &f->timer, at);
}

static void on_timer(csn_timer *t)
{
    csn_flow *f = CSN_OWNER(csn_flow, timer, t);

    if (due(f) > f->gate->loop.now_ns)
        keep_time(f);
    else if (f->leaving || (f->far.io.fd < 0 && !f->dialling))
        csn_flow_cut(f);
    else if (f->far.io.fd < 0)
        csn_flow_failed(f, ETIMEDOUT);
    else
        finish(f, f->judged ? "idle for too long" : "never said what it wants", true);
}

/* ---- ends ------------------------------------------------------------------------------ */

static int error_of(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? errno : error;
}

static void told(csn_flow *f, csn_end *e, uint32_t events)
{
    csn_end_told(e, events);
    f->moved_ns = f->gate->loop.now_ns;
    f->alarmed = f->alarmed || (events & EPOLLERR);
    csn_flow_step(f);
}

static void on_near(csn_io *io, uint32_t events)
{
    csn_flow *f = CSN_OWNER(csn_flow, near.io, io);

    told(f, &f->near, events);
}

static void on_far(csn_io *io, uint32_t events)
{
    csn_flow *f = CSN_OWNER(csn_flow, far.io, io);

    told(f, &f->far, events);
}

static void step_now(csn_later *l)
{
    csn_flow_step(CSN_OWNER(csn_flow, later, l));
}

void csn_flow_step_later(csn_flow *f)
{
    csn_loop_later(&f->gate->loop, &f->later, step_now);
}

/* ---- reaching the far end -------------------------------------------------------------- */

void csn_flow_aim(csn_flow *f, const csn_target *to)
{
    f->to = *to;
    f->aimed = true;
}

void csn_flow_dial(csn_flow *f, const csn_netaddr *addrs, size_t n, uint16_t port)
{
    f->to.port = port;
    f->dialling = true;
    f->dial = csn_dial_start(&f->gate->loop, addrs, n, port, f, csn_flow_dialled);
    if (!f->dial)
        csn_flow_failed(f, ENOMEM);
}

/* A failure is no refusal: the rules allowed it, and the event says so. */
void csn_flow_failed(csn_flow *f, int error)
{
    stop_dialling(f);
    csn_record_connect(f, csn_why_errno(error));
    if (f->voice == CSN_VOICE_RESET)
        csn_flow_cut(f);
    else
        csn_proxy_failed(f, error);
}

void csn_flow_dialled(void *flow, int fd, const csn_netaddr *addr)
{
    csn_flow *f = flow;

    f->dial = NULL;
    if (fd >= 0 && csn_loop_watch(&f->gate->loop, &f->far.io, fd, on_far) < 0) {
        close(fd);
        f->far.io.fd = -1;
        fd = -ENOMEM;
    }
    if (fd < 0) {
        csn_flow_failed(f, -fd);
        return;
    }
    f->peer = *addr;
    if (!csn_judge_peer(f))
        return; /* the rules changed meanwhile */
    f->far.writable = true;
    f->moved_ns = f->gate->loop.now_ns;
    if (f->connected)
        f->connected(f);
    csn_flow_step(f);
}

static void refuse_verdict(csn_flow *f, const csn_netverdict *v)
{
    csn_refusal r = {.verdict = *v};

    csn_flow_refuse(f, &r);
}

static void on_resolved(csn_ask *a, int error, const csn_netaddr *found, size_t n)
{
    csn_flow *f = CSN_OWNER(csn_flow, ask, a);
    csn_netaddr addrs[CSN_RESOLVE_ADDRESSES];
    csn_netverdict v;

    if (error != 0) {
        csn_flow_failed(f, error);
        return;
    }
    memcpy(addrs, found, n * sizeof(addrs[0]));
    size_t good = csn_judge_addresses(f, addrs, n, &v);
    if (good == 0)
        refuse_verdict(f, &v);
    else
        csn_flow_dial(f, addrs, good, f->to.port);
}

/* Judges where it is to lead, and starts to go there. */
static void depart(csn_flow *f)
{
    csn_netaddr addr = f->to.addr;
    csn_netverdict v;

    f->aimed = false;
    if (!csn_judge_target(f, &v)) {
        refuse_verdict(f, &v);
        return;
    }
    if (f->to.name.len == 0) {
        if (csn_judge_addresses(f, &addr, 1, &v) == 0)
            refuse_verdict(f, &v);
        else
            csn_flow_dial(f, &addr, 1, f->to.port);
        return;
    }
    f->dialling = true;
    int rc = csn_resolve(f->gate->resolver, &f->ask, &f->to.name, on_resolved);
    if (rc < 0)
        csn_flow_failed(f, -rc);
}

/* ---- the end of those who may not ------------------------------------------------------ */

void csn_flow_refuse(csn_flow *f, const csn_refusal *r)
{
    stop_dialling(f);
    csn_record_refusal(f, r);
    if (f->voice == CSN_VOICE_RESET)
        csn_flow_cut(f);
    else
        csn_proxy_refuse(f, r);
}

static int swallow(void *ctx, const uint8_t *data, size_t len, csn_look *ret)
{
    (void)ctx;
    (void)data;
    ret->drop = len;
    return 0;
}

/* The peer's bytes are read and thrown away for a moment: closing with bytes unread would be a
 * reset, which may overtake what we said. */
void csn_flow_farewell(csn_flow *f, const void *data, size_t len)
{
    csn_relay *r = &f->gate->relay;

    stop_dialling(f);
    csn_lane_release(r, &f->there);
    csn_lane_release(r, &f->back);
    csn_lane_init(&f->there);
    csn_lane_init(&f->back);
    f->there.look = swallow;
    f->leaving = true;
    f->moved_ns = f->gate->loop.now_ns;
    f->back.ended = true; /* after these bytes */
    if (csn_lane_say(&f->back, data, len) < 0)
        csn_flow_cut(f);
    else
        csn_flow_step_later(f);
}

/* ---- the middle ------------------------------------------------------------------------ */

/* An error that no lane has met: each may be waiting for the other end. Asked after the lanes
 * were moved, for asking takes it away, and what follows would look like an ordinary end. */
static bool ails(csn_flow *f)
{
    if (!f->alarmed)
        return false;
    f->alarmed = false;
    return error_of(f->near.io.fd) != 0 || (f->far.io.fd >= 0 && error_of(f->far.io.fd) != 0);
}

/* Both lanes. An end that breaks is carried on as a reset, after what it said before. */
static void move(csn_flow *f)
{
    csn_relay *r = &f->gate->relay;
    int there = csn_lane_move(r, &f->there, &f->near, &f->far);

    if (there == -EACCES && f->refusal) {
        csn_refusal why = *f->refusal;
        csn_flow_refuse(f, &why);
        return;
    }
    int back = csn_lane_move(r, &f->back, &f->far, &f->near);
    bool broken = there < 0 || back < 0 || f->broken || ails(f);
    if (broken && f->leaving)
        csn_flow_cut(f);
    else if (broken)
        finish(f, NULL, true);
    else if (there == CSN_MOVED_DONE && back == CSN_MOVED_DONE)
        finish(f, NULL, false);
    else if (f->leaving && f->there.ended && f->back.shut)
        end(f);
    else if (there == CSN_MOVED_MORE || back == CSN_MOVED_MORE)
        csn_flow_step_later(f);
}

void csn_flow_step(csn_flow *f)
{
    keep_time(f);
    if (f->aimed) {
        /* The outcome is told to a later step, if it is known at once at all. */
        csn_flow_step_later(f);
        depart(f);
        return;
    }
    if (f->far.io.fd >= 0 && f->judged && !f->greeted) {
        f->greeted = true;
        csn_record_connect(f, NULL);
    }
    move(f);
}
