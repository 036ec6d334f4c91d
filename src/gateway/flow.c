/* flow.c: one connection from its beginning to its end.
 *
 * Made by listener.c, aimed by listener.c or proxy.c, judged by policy.c, its first bytes
 * looked at by inspect.c or proxy.c, its bytes moved by relay.c. Dialling begins as soon as
 * name and port are allowed, so that it takes place while the program inside still writes its
 * first bytes; but nothing is sent to the far end before those were looked at.
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

static void on_timer(gw_timer *t);

static void on_near(gw_io *io, uint32_t events);
static void on_far(gw_io *io, uint32_t events);

gw_flow *gw_flow_new(gw_gateway *g, int fd, gw_origin way)
{
    gw_end late = {.io = {.fd = fd}};
    gw_flow *f = g->nflows < g->flows_max ? calloc(1, sizeof(*f)) : NULL;

    if (!f || gw_timer_reserve(&g->loop, &f->timer, on_timer) < 0 ||
        gw_loop_watch(&g->loop, &f->near.io, fd, on_near) < 0) {
        if (f)
            gw_timer_release(&g->loop, &f->timer);
        free(f);
        gw_end_reset(&late);
        return NULL;
    }
    gw_socket_prompt(fd);
    f->gate = g;
    f->way = way;
    f->proto = CSN_GATEWAY_TCP;
    f->far.io.fd = -1;
    f->near.writable = true;
    f->started_ns = f->moved_ns = g->loop.now_ns;
    gw_pipeline_init(&f->there);
    gw_pipeline_init(&f->back);
    f->next = g->flows;
    if (f->next)
        f->next->prev = f;
    g->flows = f;
    g->nflows++;
    return f;
}

/* Everything but the memory, which an event of this batch may still point to. */
static void end(gw_flow *f)
{
    gw_gateway *g = f->gate;

    gw_resolve_cancel(g->resolver, &f->ask);
    gw_dial_cancel(f->dial);
    gw_ports_forget(f);
    gw_names_drop(g->names, f->number);
    gw_loop_close(&f->near.io);
    gw_loop_close(&f->far.io);
    gw_pipeline_release(&g->relay, &f->there);
    gw_pipeline_release(&g->relay, &f->back);
    gw_timer_release(&g->loop, &f->timer);
    if (f->next)
        f->next->prev = f->prev;
    if (f->prev)
        f->prev->next = f->next;
    else
        g->flows = f->next;
    g->nflows--;
    free(f->front);
    free(f->refusal);
    gw_loop_bury(&g->loop, &f->later, f);
}

/* An end that came by itself. */
static void finish(gw_flow *f, const char *why, bool reset)
{
    if (f->far.io.fd >= 0) {
        if (!f->greeted)
            gw_record_connect(f, NULL);
        gw_record_close(f, why);
    } else if (f->dialling) {
        gw_record_connect(f, "the program closed before it was connected");
    }
    if (reset) {
        gw_end_reset(&f->near);
        gw_end_reset(&f->far);
    }
    end(f);
}

void gw_flow_cut(gw_flow *f)
{
    gw_end_reset(&f->near);
    gw_end_reset(&f->far);
    end(f);
}

/* Nothing of this flow may connect any more. */
static void stop_dialling(gw_flow *f)
{
    gw_resolve_cancel(f->gate->resolver, &f->ask);
    gw_dial_cancel(f->dial);
    f->dial = NULL;
    gw_ports_forget(f);
    gw_end_reset(&f->far);
}

/* ---- time ------------------------------------------------------------------------------ */

/* When it is to be looked at if nothing happens until then. */
static uint64_t due(const gw_flow *f)
{
    if (f->leaving)
        return f->moved_ns + CSN_GATEWAY_FAREWELL_MS * MS;
    if (f->far.io.fd < 0)
        return f->started_ns + CSN_GATEWAY_DIAL_MS * MS;
    /* bytes that cannot be judged without more of them */
    if (!f->judged && f->there.held_len > f->there.held_ok)
        return f->moved_ns + CSN_GATEWAY_HEAD_MS * MS;
    return f->moved_ns + f->gate->idle_ns;
}

/* Only ever brought forward: one that fires too early is armed again, and a busy connection
 * costs no heap operation. */
static void keep_time(gw_flow *f)
{
    uint64_t at = due(f);

    if (f->timer.place == 0 || at < f->timer.due_ns)
        gw_timer_arm(&f->gate->loop, &f->timer, at);
}

static void on_timer(gw_timer *t)
{
    gw_flow *f = CSN_OWNER(gw_flow, timer, t);

    if (due(f) > f->gate->loop.now_ns)
        keep_time(f);
    else if (f->leaving || (f->far.io.fd < 0 && !f->dialling))
        gw_flow_cut(f);
    else if (f->far.io.fd < 0)
        gw_flow_failed(f, ETIMEDOUT);
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

static void told(gw_flow *f, gw_end *e, uint32_t events)
{
    gw_end_told(e, events);
    f->moved_ns = f->gate->loop.now_ns;
    f->alarmed = f->alarmed || (events & EPOLLERR);
    gw_flow_step(f);
}

static void on_near(gw_io *io, uint32_t events)
{
    gw_flow *f = CSN_OWNER(gw_flow, near.io, io);

    told(f, &f->near, events);
}

static void on_far(gw_io *io, uint32_t events)
{
    gw_flow *f = CSN_OWNER(gw_flow, far.io, io);

    told(f, &f->far, events);
}

static void step_now(gw_later *l)
{
    gw_flow_step(CSN_OWNER(gw_flow, later, l));
}

void gw_flow_step_later(gw_flow *f)
{
    gw_loop_later(&f->gate->loop, &f->later, step_now);
}

/* ---- reaching the far end -------------------------------------------------------------- */

void gw_flow_aim(gw_flow *f, const gw_target *to)
{
    f->to = *to;
    f->aimed = true;
}

void gw_flow_dial(gw_flow *f, const csn_netaddr *addrs, size_t n, uint16_t port)
{
    f->to.port = port;
    f->dialling = true;
    f->dial = gw_dial_start(&f->gate->loop, addrs, n, port, f, gw_flow_dialled);
    if (!f->dial)
        gw_flow_failed(f, ENOMEM);
}

/* A failure is no refusal: the rules allowed it, and the event says so. */
void gw_flow_failed(gw_flow *f, int error)
{
    stop_dialling(f);
    gw_record_connect(f, gw_why_errno(error));
    if (f->voice == CSN_VOICE_RESET)
        gw_flow_cut(f);
    else
        gw_proxy_failed(f, error);
}

void gw_flow_dialled(void *flow, int fd, const csn_netaddr *addr)
{
    gw_flow *f = flow;

    f->dial = NULL;
    if (fd >= 0 && gw_loop_watch(&f->gate->loop, &f->far.io, fd, on_far) < 0) {
        close(fd);
        f->far.io.fd = -1;
        fd = -ENOMEM;
    }
    if (fd < 0) {
        gw_flow_failed(f, -fd);
        return;
    }
    f->peer = *addr;
    if (!gw_policy_peer(f))
        return; /* the rules changed meanwhile */
    f->far.writable = true;
    f->moved_ns = f->gate->loop.now_ns;
    if (f->connected)
        f->connected(f);
    gw_flow_step(f);
}

static void refuse_verdict(gw_flow *f, const csn_netverdict *v)
{
    gw_refusal r = {.verdict = *v};

    gw_flow_refuse(f, &r);
}

static void on_resolved(gw_ask *a, int error, const csn_netaddr *found, size_t n)
{
    gw_flow *f = CSN_OWNER(gw_flow, ask, a);
    csn_netaddr addrs[CSN_RESOLVE_ADDRESSES];
    csn_netverdict v;

    if (error != 0) {
        gw_flow_failed(f, error);
        return;
    }
    memcpy(addrs, found, n * sizeof(addrs[0]));
    size_t good = gw_policy_addresses(f, addrs, n, &v);
    if (good == 0)
        refuse_verdict(f, &v);
    else
        gw_flow_dial(f, addrs, good, f->to.port);
}

/* Judges where it is to lead, and starts to go there. */
static void depart(gw_flow *f)
{
    csn_netaddr addr = f->to.addr;
    csn_netverdict v;

    f->aimed = false;
    if (!gw_policy_target(f, &v)) {
        refuse_verdict(f, &v);
        return;
    }
    if (f->to.name.len == 0) {
        if (gw_policy_addresses(f, &addr, 1, &v) == 0)
            refuse_verdict(f, &v);
        else
            gw_flow_dial(f, &addr, 1, f->to.port);
        return;
    }
    f->dialling = true;
    int rc = gw_resolve(f->gate->resolver, &f->ask, &f->to.name, on_resolved);
    if (rc < 0)
        gw_flow_failed(f, -rc);
}

/* ---- the end of those who may not ------------------------------------------------------ */

void gw_flow_refuse(gw_flow *f, const gw_refusal *r)
{
    stop_dialling(f);
    gw_record_refusal(f, r);
    if (f->voice == CSN_VOICE_RESET)
        gw_flow_cut(f);
    else
        gw_proxy_refuse(f, r);
}

static int swallow(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret)
{
    (void)ctx;
    (void)data;
    ret->drop = len;
    return 0;
}

/* The peer's bytes are read and thrown away for a moment: closing with bytes unread would be a
 * reset, which may overtake what we said. */
void gw_flow_farewell(gw_flow *f, const void *data, size_t len)
{
    gw_relay *r = &f->gate->relay;

    stop_dialling(f);
    gw_pipeline_release(r, &f->there);
    gw_pipeline_release(r, &f->back);
    gw_pipeline_init(&f->there);
    gw_pipeline_init(&f->back);
    f->there.look = swallow;
    f->leaving = true;
    f->moved_ns = f->gate->loop.now_ns;
    f->back.ended = true; /* after these bytes */
    if (gw_pipeline_write(&f->back, data, len) < 0)
        gw_flow_cut(f);
    else
        gw_flow_step_later(f);
}

/* ---- the middle ------------------------------------------------------------------------ */

/* An error that no lane has met: each may be waiting for the other end. Asked after the lanes
 * were moved, for asking takes it away, and what follows would look like an ordinary end. */
static bool ails(gw_flow *f)
{
    if (!f->alarmed)
        return false;
    f->alarmed = false;
    return error_of(f->near.io.fd) != 0 || (f->far.io.fd >= 0 && error_of(f->far.io.fd) != 0);
}

/* Both lanes. An end that breaks is carried on as a reset, after what it said before. */
static void move(gw_flow *f)
{
    gw_relay *r = &f->gate->relay;
    int there = gw_pipeline_move(r, &f->there, &f->near, &f->far);

    if (there == -EACCES && f->refusal) {
        gw_refusal why = *f->refusal;
        gw_flow_refuse(f, &why);
        return;
    }
    int back = gw_pipeline_move(r, &f->back, &f->far, &f->near);
    bool broken = there < 0 || back < 0 || f->broken || ails(f);
    if (broken && f->leaving)
        gw_flow_cut(f);
    else if (broken)
        finish(f, NULL, true);
    else if (there == CSN_MOVED_DONE && back == CSN_MOVED_DONE)
        finish(f, NULL, false);
    else if (f->leaving && f->there.ended && f->back.shut)
        end(f);
    else if (there == CSN_MOVED_MORE || back == CSN_MOVED_MORE)
        gw_flow_step_later(f);
}

void gw_flow_step(gw_flow *f)
{
    keep_time(f);
    if (f->aimed) {
        /* The outcome is told to a later step, if it is known at once at all. */
        gw_flow_step_later(f);
        depart(f);
        return;
    }
    if (f->far.io.fd >= 0 && f->judged && !f->greeted) {
        f->greeted = true;
        gw_record_connect(f, NULL);
    }
    move(f);
}
