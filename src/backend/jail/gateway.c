/* gateway.c: starts the gateway process of one sandbox and speaks its protocol.
 *
 * The gateway runs outside the jail as the caller and holds sockets that the keeper created
 * inside. It ends with the keeper, whose pidfd it has; without CSN_GATEWAY_DETACHED it also
 * ends when the control socket is closed. It parses bytes of the sandbox, so its messages are
 * checked as hostile input, and every wait has a deadline.
 *
 * Invariants: the sandbox has network access only after the gateway answered READY; calls that
 * need no network do not fail because of the gateway. */
#include "backend/jail/gateway.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/spawn.h"
#include "runtime/link.h"

#define PROGRAM     "caisson-gateway"
#define SOCKET_NAME "net.sock"
#define BACKLOG     16
#define ROUNDS_MAX  64 /* event packets that are read in one call */

/* ---- starting ---- */

csn_status csn_gateway_start(csn_runtime *rt, csn_gateway *g, csn_error **err)
{
    csn_autofree char *program = NULL;
    csn_autofd int theirs = -1;
    int pair[2];
    pid_t pid = 0;

    csn_status st = csn_program_find(PROGRAM, &program, err);
    if (st < 0)
        return st;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return csn_fail_errno(err, errno, "start the gateway");
    g->control = pair[0];
    theirs = pair[1];
    const char *argv[] = {PROGRAM, rt->id, NULL};
    const csn_spawn_opts o = {
        .path = program, .argv = argv, .fds = {-1, -1, -1, theirs}, .nfds = 4};
    int rc = csn_spawn(&o, &pid, &g->pidfd, NULL);
    if (rc < 0) {
        csn_gateway_release(g, false);
        return csn_fail(err, CSN_UNAVAILABLE, "start %s: %s", program, strerrordesc_np(-rc));
    }
    return CSN_OK;
}

/* ---- one request ---- */

static csn_status no_answer(csn_error **err)
{
    return csn_fail(err, CSN_UNAVAILABLE, "the network gateway does not answer");
}

static csn_status has_ended(csn_error **err)
{
    csn_status st = csn_fail(err, CSN_UNAVAILABLE, "the network gateway has ended");

    return csn_error_advise(st, err, "the sandbox continues without network; open a new one");
}

/* Receives the next message of a channel; the caller releases it. */
static csn_status await(int channel, void *buf, size_t size, csn_msg *ret, csn_error **err)
{
    int rc = csn_msg_await(channel, csn_deadline_in(CSN_KEEPER_ANSWER_MS), buf, size, ret);

    if (rc == -ETIMEDOUT)
        return no_answer(err);
    if (rc == 0)
        return has_ended(err);
    return rc < 0 ? csn_fail(err, CSN_UNAVAILABLE, "the gateway broke the protocol") : CSN_OK;
}

/* Turns FAILED into its error; any other message violates the protocol. */
static csn_status unexpected(csn_msg *m, csn_error **err)
{
    const char *text = NULL;
    csn_status st;

    if (m->type == CSN_GATEWAY_FAILED && csn_get_gateway_text(m->body, m->len, &text) == 0)
        st = csn_fail(err, CSN_UNAVAILABLE, "network: %s", text);
    else
        st = csn_fail(err, CSN_UNAVAILABLE, "the gateway broke the protocol");
    csn_msg_release(m);
    return st;
}

static csn_status request(const csn_gateway *g, uint16_t type, const csn_packer *body,
                          const int *fds, size_t nfds, int *ret_channel, csn_error **err)
{
    if (g->control < 0)
        return has_ended(err);
    if (body->error != 0)
        return csn_fail_errno(err, body->error, "request to the gateway");
    int rc = csn_msg_request(g->control, type, body->data, body->len, fds, nfds,
                             csn_deadline_in(CSN_KEEPER_ANSWER_MS), ret_channel);
    if (rc == -EPIPE)
        return has_ended(err);
    if (rc == -ETIMEDOUT)
        return no_answer(err);
    return rc < 0 ? csn_fail_errno(err, -rc, "request to the gateway") : CSN_OK;
}

/* Sends a request and receives an answer of type `want`, which the caller releases. */
static csn_status call(const csn_gateway *g, uint16_t type, const csn_packer *body,
                       const int *fds, size_t nfds, uint16_t want, void *buf, size_t size,
                       csn_msg *ret, csn_error **err)
{
    csn_autofd int channel = -1;
    csn_status st = request(g, type, body, fds, nfds, &channel, err);

    if (st == CSN_OK)
        st = await(channel, buf, size, ret, err);
    if (st < 0)
        return st;
    return ret->type == want ? CSN_OK : unexpected(ret, err);
}

csn_status csn_gateway_setup(const csn_gateway *g, const csn_gateway_setup_msg *s,
                             const int *fds, size_t nfds, csn_gateway_ready *ret,
                             csn_error **err)
{
    uint8_t buf[2048];
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, s);
    csn_status st =
        call(g, CSN_GATEWAY_SETUP, &o, fds, nfds, CSN_GATEWAY_READY, buf, sizeof(buf), &m, err);
    csn_packer_release(&o);
    if (st < 0)
        return st;
    int rc = csn_get_gateway_ready(m.body, m.len, ret);
    csn_msg_release(&m);
    if (rc < 0 || ret->n != s->npublish)
        return csn_fail(err, CSN_UNAVAILABLE, "the gateway broke the protocol");
    return CSN_OK;
}

csn_status csn_gateway_update(const csn_gateway *g, const csn_gateway_rules *r, csn_error **err)
{
    uint8_t buf[2048];
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_rules(&o, r);
    csn_status st =
        call(g, CSN_GATEWAY_UPDATE, &o, NULL, 0, CSN_GATEWAY_OK, buf, sizeof(buf), &m, err);
    csn_packer_release(&o);
    if (st == CSN_OK)
        csn_msg_release(&m);
    return st;
}

csn_status csn_gateway_exec_rules(const csn_gateway *g, const csn_gateway_setup_msg *s,
                                  const int *fds, size_t nfds, int *ret_lease, csn_error **err)
{
    csn_autofd int channel = -1;
    uint8_t buf[2048];
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, s);
    csn_status st = request(g, CSN_GATEWAY_EXEC_RULES, &o, fds, nfds, &channel, err);
    csn_packer_release(&o);
    if (st == CSN_OK)
        st = await(channel, buf, sizeof(buf), &m, err);
    if (st < 0)
        return st;
    if (m.type != CSN_GATEWAY_OK)
        return unexpected(&m, err);
    csn_msg_release(&m);
    *ret_lease = csn_steal_fd(&channel);
    return CSN_OK;
}

/* ---- events ---- */

/* Passes one packet of events to fn. 1: fn ended the reading; -EPROTO. */
static int read_batch(const csn_msg *m, csn_gateway_batch *ret, csn_gateway_event_fn fn,
                      void *ctx)
{
    csn_gateway_event e;
    csn_unpacker in;

    csn_unpacker_init(&in, m->body, m->len);
    if (csn_get_gateway_batch(&in, ret) < 0)
        return -EPROTO;
    for (uint32_t i = 0; i < ret->count; i++) {
        if (csn_get_gateway_event(&in, &e) < 0)
            return -EPROTO;
        if (fn(ctx, &e) != 0) {
            ret->next = e.seq; /* the next call repeats this event */
            return 1;
        }
    }
    return csn_unpacker_end(&in);
}

csn_status csn_gateway_events(const csn_gateway *g, uint64_t *seq, csn_gateway_event_fn fn,
                              void *ctx, uint64_t *ret_lost, csn_error **err)
{
    csn_autofree uint8_t *buf = malloc(CSN_KEEPER_MSG_MAX);
    csn_gateway_batch b = {.more = 1};

    *ret_lost = 0;
    if (!buf)
        return csn_fail(err, CSN_NOMEM, "network events");
    for (int i = 0; b.more && i < ROUNDS_MAX; i++) {
        uint8_t small[16];
        csn_packer o;
        csn_msg m;
        csn_packer_init(&o, small, sizeof(small));
        csn_put_gateway_since(&o, *seq);
        csn_status st = call(g, CSN_GATEWAY_EVENTS, &o, NULL, 0, CSN_GATEWAY_EVENTS_R, buf,
                             CSN_KEEPER_MSG_MAX, &m, err);
        if (st < 0)
            return st;
        int rc = read_batch(&m, &b, fn, ctx);
        csn_msg_release(&m);
        if (rc < 0 || b.next < *seq)
            return csn_fail(err, CSN_UNAVAILABLE, "the gateway broke the protocol");
        *ret_lost += b.dropped;
        *seq = b.next;
        if (rc > 0)
            break;
    }
    return CSN_OK;
}

/* ---- detached sandboxes ---- */

csn_status csn_gateway_listen(csn_runtime *rt, int *ret, csn_error **err)
{
    csn_status st = csn_runtime_run_dir(rt, err);

    if (st < 0)
        return st;
    int fd = csn_runtime_run_listen(rt, SOCKET_NAME, BACKLOG);
    if (fd < 0)
        return csn_fail_errno(err, -fd, "network socket of sandbox '%s'", rt->id);
    *ret = fd;
    return CSN_OK;
}

/* Only the caller can write to the directory, so the listener is the sandbox's gateway. */
void csn_gateway_find(const csn_runtime *rt, csn_gateway *g)
{
    int fd = csn_runtime_run_connect(rt, SOCKET_NAME);

    g->control = fd < 0 ? -1 : fd;
}

/* ---- end ---- */

bool csn_gateway_is_alive(const csn_gateway *g)
{
    struct pollfd pf[2] = {{.fd = g->control, .events = POLLIN},
                           {.fd = g->pidfd, .events = POLLIN}};

    if (g->control < 0 || poll(pf, 2, 0) < 0)
        return false;
    return (pf[0].revents & (POLLHUP | POLLERR)) == 0 && pf[1].revents == 0;
}

void csn_gateway_release(csn_gateway *g, bool wait)
{
    if (g->control >= 0)
        close(csn_steal_fd(&g->control));
    if (g->pidfd < 0)
        return;
    if (wait && csn_spawn_wait(g->pidfd, (int)CSN_KEEPER_ANSWER_MS) < 0) {
        (void)syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
        (void)csn_spawn_wait(g->pidfd, (int)CSN_KEEPER_ANSWER_MS);
    }
    close(csn_steal_fd(&g->pidfd));
}
