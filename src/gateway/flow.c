/* flow.c: one proxied connection, from accept to close.
 *
 * The gateway resolves and dials the target as soon as its name and port are allowed, while the
 * client is still sending its first bytes. It sends nothing to the server before these bytes
 * have been inspected.
 *
 * For a redirected client, connect() succeeds before the gateway knows the target. A refused or
 * failed connection therefore ends with a reset. */
#include "gateway/gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/socket.h"

#define MS 1000000ull

/* ---- begin and end --------------------------------------------------------------------- */

static void on_timer(gw_timer *t);
static void on_client(gw_io *io, uint32_t events);
static void on_server(gw_io *io, uint32_t events);

gw_flow *gw_flow_new(gw_gateway *g, int fd, gw_origin origin)
{
    gw_endpoint rejected = {.io = {.fd = fd}};
    gw_flow *f = g->nflows < g->flows_max ? calloc(1, sizeof(*f)) : NULL;

    if (!f || gw_timer_reserve(&g->loop, &f->timer, on_timer) < 0 ||
        gw_loop_add_edge(&g->loop, &f->client.io, fd, on_client) < 0) {
        if (f)
            gw_timer_release(&g->loop, &f->timer);
        free(f);
        gw_endpoint_reset(&rejected);
        return NULL;
    }
    gw_socket_set_nodelay(fd);
    f->gateway = g;
    f->origin = origin;
    f->proto = CSN_GATEWAY_TCP;
    f->server.io.fd = -1;
    f->client.writable = true;
    f->started_ns = f->active_ns = g->loop.now_ns;
    gw_pipeline_init(&f->to_server);
    gw_pipeline_init(&f->to_client);
    f->next = g->flows;
    if (f->next)
        f->next->prev = f;
    g->flows = f;
    g->nflows++;
    return f;
}

/* The memory is freed later: events of this batch may still refer to it. */
static void end(gw_flow *f)
{
    gw_gateway *g = f->gateway;

    gw_resolve_cancel(&f->lookup);
    gw_dial_cancel(f->dial);
    gw_ports_cancel(f);
    gw_names_release(g->names, f->name_number);
    gw_loop_close(&f->client.io);
    gw_loop_close(&f->server.io);
    gw_pipeline_release(&g->relay, &f->to_server);
    gw_pipeline_release(&g->relay, &f->to_client);
    gw_timer_release(&g->loop, &f->timer);
    if (f->next)
        f->next->prev = f->prev;
    if (f->prev)
        f->prev->next = f->next;
    else
        g->flows = f->next;
    g->nflows--;
    free(f->parse);
    free(f->refusal);
    gw_loop_free_later(&g->loop, &f->deferred, f);
}

static void finish(gw_flow *f, const char *why, bool reset)
{
    if (f->server.io.fd >= 0) {
        if (!f->connect_recorded)
            gw_record_connect(f, NULL);
        gw_record_close(f, why);
    } else if (f->dialling) {
        gw_record_connect(f, "the client closed before the connection was established");
    }
    if (reset) {
        gw_endpoint_reset(&f->client);
        gw_endpoint_reset(&f->server);
    }
    end(f);
}

void gw_flow_reset(gw_flow *f)
{
    gw_endpoint_reset(&f->client);
    gw_endpoint_reset(&f->server);
    end(f);
}

static void stop_dialling(gw_flow *f)
{
    gw_resolve_cancel(&f->lookup);
    gw_dial_cancel(f->dial);
    f->dial = NULL;
    gw_ports_cancel(f);
    gw_endpoint_reset(&f->server);
}

/* ---- time ------------------------------------------------------------------------------ */

static uint64_t deadline(const gw_flow *f)
{
    if (f->lingering)
        return f->active_ns + GW_LINGER_MS * MS;
    if (f->server.io.fd < 0)
        return f->started_ns + GW_DIAL_TIMEOUT_MS * MS;
    /* held bytes are an incomplete head or ClientHello */
    if (!f->inspected && f->to_server.held_len > f->to_server.held_ok)
        return f->active_ns + GW_HEAD_TIMEOUT_MS * MS;
    return f->active_ns + f->gateway->idle_ns;
}

/* Activity does not move the timer to a later time, which saves a heap operation; on_timer arms
 * it again if the deadline has not been reached. */
static void arm_timer(gw_flow *f)
{
    uint64_t at = deadline(f);

    if (f->timer.index == 0 || at < f->timer.due_ns)
        gw_timer_arm(&f->gateway->loop, &f->timer, at);
}

static void on_timer(gw_timer *t)
{
    gw_flow *f = GW_CONTAINER_OF(gw_flow, timer, t);

    if (deadline(f) > f->gateway->loop.now_ns)
        arm_timer(f);
    else if (f->lingering || (f->server.io.fd < 0 && !f->dialling))
        gw_flow_reset(f);
    else if (f->server.io.fd < 0)
        gw_flow_failed(f, ETIMEDOUT);
    else
        finish(f, f->inspected ? "idle timeout" : "no complete request head or TLS ClientHello",
               true);
}

/* ---- events ---------------------------------------------------------------------------- */

static void on_event(gw_flow *f, gw_endpoint *e, uint32_t events)
{
    gw_endpoint_update(e, events);
    f->active_ns = f->gateway->loop.now_ns;
    f->poll_error = f->poll_error || (events & EPOLLERR);
    gw_flow_step(f);
}

static void on_client(gw_io *io, uint32_t events)
{
    gw_flow *f = GW_CONTAINER_OF(gw_flow, client.io, io);

    on_event(f, &f->client, events);
}

static void on_server(gw_io *io, uint32_t events)
{
    gw_flow *f = GW_CONTAINER_OF(gw_flow, server.io, io);

    on_event(f, &f->server, events);
}

static void step_now(gw_deferred *d)
{
    gw_flow_step(GW_CONTAINER_OF(gw_flow, deferred, d));
}

void gw_flow_defer_step(gw_flow *f)
{
    gw_loop_defer(&f->gateway->loop, &f->deferred, step_now);
}

/* ---- connecting ------------------------------------------------------------------------ */

void gw_flow_set_target(gw_flow *f, const gw_target *target)
{
    f->target = *target;
    f->target_pending = true;
}

void gw_flow_dial(gw_flow *f, const csn_netaddr *addrs, size_t n, uint16_t port)
{
    f->target.port = port;
    f->dialling = true;
    f->dial = gw_dial_start(&f->gateway->loop, addrs, n, port, f, gw_flow_on_dialled);
    if (!f->dial)
        gw_flow_failed(f, ENOMEM);
}

/* The event is recorded as allowed, because the rules did not refuse the connection. */
void gw_flow_failed(gw_flow *f, int error)
{
    stop_dialling(f);
    gw_record_connect(f, gw_errno_text(error));
    if (f->refusal_style == GW_REFUSE_RESET)
        gw_flow_reset(f);
    else
        gw_proxy_failed(f, error);
}

void gw_flow_on_dialled(void *flow, int fd, const csn_netaddr *addr)
{
    gw_flow *f = flow;

    f->dial = NULL;
    if (fd >= 0 && gw_loop_add_edge(&f->gateway->loop, &f->server.io, fd, on_server) < 0) {
        close(fd);
        f->server.io.fd = -1;
        fd = -ENOMEM;
    }
    if (fd < 0) {
        gw_flow_failed(f, -fd);
        return;
    }
    f->peer = *addr;
    if (!gw_policy_peer(f))
        return;
    f->server.writable = true;
    f->active_ns = f->gateway->loop.now_ns;
    if (f->on_connected)
        f->on_connected(f);
    gw_flow_step(f);
}

static void refuse_verdict(gw_flow *f, const csn_netverdict *v)
{
    gw_refusal r = {.verdict = *v};

    gw_flow_refuse(f, &r);
}

static void on_resolved(gw_lookup *a, int error, const csn_netaddr *found, size_t n)
{
    gw_flow *f = GW_CONTAINER_OF(gw_flow, lookup, a);
    csn_netaddr addrs[GW_RESOLVE_ADDRESSES_MAX];
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
        gw_flow_dial(f, addrs, good, f->target.port);
}

static void resolve_and_dial(gw_flow *f)
{
    csn_netaddr addr = f->target.addr;
    csn_netverdict v;

    f->target_pending = false;
    if (!gw_policy_target(f, &v)) {
        refuse_verdict(f, &v);
        return;
    }
    if (f->target.name.len == 0) {
        if (gw_policy_addresses(f, &addr, 1, &v) == 0)
            refuse_verdict(f, &v);
        else
            gw_flow_dial(f, &addr, 1, f->target.port);
        return;
    }
    f->dialling = true;
    int rc = gw_resolve(f->gateway->resolver, &f->lookup, &f->target.name, on_resolved);
    if (rc < 0)
        gw_flow_failed(f, -rc);
}

/* ---- refusing -------------------------------------------------------------------------- */

void gw_flow_refuse(gw_flow *f, const gw_refusal *r)
{
    stop_dialling(f);
    gw_record_refusal(f, r);
    if (f->refusal_style == GW_REFUSE_RESET)
        gw_flow_reset(f);
    else
        gw_proxy_refuse(f, r);
}

static int discard_input(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    (void)ctx;
    (void)data;
    ret->drop = len;
    return 0;
}

/* Reads and discards input for up to GW_LINGER_MS: closing a socket with unread input sends a
 * reset, and the client could lose the reply. */
void gw_flow_reply_and_close(gw_flow *f, const void *data, size_t len)
{
    gw_relay *r = &f->gateway->relay;

    stop_dialling(f);
    gw_pipeline_release(r, &f->to_server);
    gw_pipeline_release(r, &f->to_client);
    gw_pipeline_init(&f->to_server);
    gw_pipeline_init(&f->to_client);
    f->to_server.inspect = discard_input;
    f->lingering = true;
    f->active_ns = f->gateway->loop.now_ns;
    f->to_client.ended = true; /* EOF follows these bytes */
    if (gw_pipeline_write(&f->to_client, data, len) < 0)
        gw_flow_reset(f);
    else
        gw_flow_defer_step(f);
}

/* ---- relaying -------------------------------------------------------------------------- */

/* Finds socket errors that neither pipeline has hit because each is waiting for the other
 * endpoint. Call it after moving both: reading SO_ERROR clears it, and a later read() would
 * return EOF instead of the error. */
static bool has_failed(gw_flow *f)
{
    if (!f->poll_error)
        return false;
    f->poll_error = false;
    return gw_socket_error(f->client.io.fd) != 0 ||
           (f->server.io.fd >= 0 && gw_socket_error(f->server.io.fd) != 0);
}

/* Moves bytes in both directions. When an endpoint fails, the other receives the bytes already
 * read and then a reset. */
static void relay(gw_flow *f)
{
    gw_relay *r = &f->gateway->relay;
    int up = gw_pipeline_move(r, &f->to_server, &f->client, &f->server);

    if (up == -EACCES && f->refusal) {
        gw_refusal why = *f->refusal;
        gw_flow_refuse(f, &why);
        return;
    }
    int down = gw_pipeline_move(r, &f->to_client, &f->server, &f->client);
    bool broken = up < 0 || down < 0 || f->broken || has_failed(f);
    if (broken && f->lingering)
        gw_flow_reset(f);
    else if (broken)
        finish(f, NULL, true);
    else if (up == GW_MOVE_DONE && down == GW_MOVE_DONE)
        finish(f, NULL, false);
    else if (f->lingering && f->to_server.ended && f->to_client.shut_down)
        end(f);
    else if (up == GW_MOVE_MORE || down == GW_MOVE_MORE)
        gw_flow_defer_step(f);
}

void gw_flow_step(gw_flow *f)
{
    arm_timer(f);
    if (f->target_pending) {
        /* resolve_and_dial may end the flow; a deferred step is cancelled then. */
        gw_flow_defer_step(f);
        resolve_and_dial(f);
        return;
    }
    if (f->server.io.fd >= 0 && f->inspected && !f->connect_recorded) {
        f->connect_recorded = true;
        gw_record_connect(f, NULL);
    }
    relay(f);
}
