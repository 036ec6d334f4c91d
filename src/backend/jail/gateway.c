/* gateway.c: starts the gateway process of one sandbox and speaks its protocol.
 *
 * The gateway runs outside the jail as the caller and holds sockets that the keeper created
 * inside. It ends with the keeper, whose pidfd it has; without CSN_GATEWAY_DETACHED it also
 * ends when the control socket is closed. It parses bytes of the sandbox, so its messages are
 * checked as hostile input, and every wait has a deadline: that of the command, where there is
 * one. After a request that it did not answer it is not asked again until that answer arrives.
 *
 * Invariants: the sandbox has network access only after the gateway answered READY; calls that
 * need no network do not fail because of the gateway. */
#include "backend/jail/gateway.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
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
#define RETRY_MS    5  /* between two attempts to connect */

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
    if (rc == 0 && rt->detached)
        rc = csn_pid_identify(pid, &rt->record.gateway);
    if (rc < 0) {
        csn_gateway_release(g);
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

uint64_t csn_gateway_patience(uint64_t deadline_ns)
{
    uint64_t usual = csn_deadline_in(CSN_KEEPER_ANSWER_MS), now = csn_now_ns();

    if (deadline_ns == 0 || deadline_ns > usual)
        return usual;
    return deadline_ns > now ? deadline_ns : now;
}

static void remember(csn_gateway *g, int channel)
{
    int before = atomic_exchange(&g->unanswered, channel);

    if (before >= 0)
        close(before);
}

static bool is_silent(csn_gateway *g)
{
    int channel = atomic_exchange(&g->unanswered, -1);
    struct pollfd pf = {.fd = channel, .events = POLLIN};

    if (channel < 0)
        return g->busy;
    if (poll(&pf, 1, 0) == 0) {
        remember(g, channel);
        return true;
    }
    close(channel);
    return false;
}

/* Receives the next message of a channel; the caller releases it. */
static csn_status await(csn_gateway *g, int *channel, uint64_t until_ns, void *buf, size_t size,
                        csn_msg *ret, csn_error **err)
{
    int rc = csn_msg_await(*channel, until_ns, buf, size, ret);

    if (rc == -ETIMEDOUT) {
        remember(g, csn_steal_fd(channel));
        return no_answer(err);
    }
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

/* What is asked, and until when the answer is awaited. */
typedef struct question {
    uint16_t type, want; /* of the request and of its answer */
    const int *fds;
    size_t nfds;
    uint64_t until_ns;
} question;

/* Sends a request and receives its answer, which the caller releases. */
static csn_status ask(csn_gateway *g, const question *q, const csn_packer *body, void *buf,
                      size_t size, csn_msg *ret, int *ret_channel, csn_error **err)
{
    csn_autofd int channel = -1;

    if (is_silent(g))
        return no_answer(err);
    if (g->control < 0)
        return has_ended(err);
    if (body->error != 0)
        return csn_fail_errno(err, body->error, "request to the gateway");
    int rc = csn_msg_request(g->control, q->type, body->data, body->len, q->fds, q->nfds,
                             q->until_ns, &channel);
    if (rc == -EPIPE)
        return has_ended(err);
    if (rc == -ETIMEDOUT)
        return no_answer(err);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "request to the gateway");
    csn_status st = await(g, &channel, q->until_ns, buf, size, ret, err);
    if (st < 0)
        return st;
    if (ret->type != q->want)
        return unexpected(ret, err);
    if (ret_channel)
        *ret_channel = csn_steal_fd(&channel);
    return CSN_OK;
}

csn_status csn_gateway_setup(csn_gateway *g, const csn_gateway_setup_msg *s, const int *fds,
                             size_t nfds, csn_gateway_ready *ret, csn_error **err)
{
    const question q = {CSN_GATEWAY_SETUP, CSN_GATEWAY_READY, fds, nfds,
                        csn_gateway_patience(0)};
    uint8_t buf[2048];
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, s);
    csn_status st = ask(g, &q, &o, buf, sizeof(buf), &m, NULL, err);
    csn_packer_release(&o);
    if (st < 0)
        return st;
    int rc = csn_get_gateway_ready(m.body, m.len, ret);
    csn_msg_release(&m);
    if (rc < 0 || ret->n != s->npublish)
        return csn_fail(err, CSN_UNAVAILABLE, "the gateway broke the protocol");
    return CSN_OK;
}

csn_status csn_gateway_update(csn_gateway *g, const csn_gateway_rules *r, csn_error **err)
{
    const question q = {CSN_GATEWAY_UPDATE, CSN_GATEWAY_OK, NULL, 0, csn_gateway_patience(0)};
    uint8_t buf[2048];
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_rules(&o, r);
    csn_status st = ask(g, &q, &o, buf, sizeof(buf), &m, NULL, err);
    csn_packer_release(&o);
    if (st == CSN_OK)
        csn_msg_release(&m);
    return st;
}

csn_status csn_gateway_exec_rules(csn_gateway *g, const csn_gateway_setup_msg *s,
                                  const int *fds, size_t nfds, uint64_t until_ns,
                                  int *ret_lease, csn_error **err)
{
    const question q = {CSN_GATEWAY_EXEC_RULES, CSN_GATEWAY_OK, fds, nfds, until_ns};
    uint8_t buf[2048];
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, s);
    csn_status st = ask(g, &q, &o, buf, sizeof(buf), &m, ret_lease, err);
    csn_packer_release(&o);
    if (st == CSN_OK)
        csn_msg_release(&m);
    return st;
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

csn_status csn_gateway_events(csn_gateway *g, uint64_t until_ns, uint64_t *seq,
                              csn_gateway_event_fn fn, void *ctx, uint64_t *ret_lost,
                              csn_error **err)
{
    const question q = {CSN_GATEWAY_EVENTS, CSN_GATEWAY_EVENTS_R, NULL, 0, until_ns};
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
        csn_status st = ask(g, &q, &o, buf, CSN_KEEPER_MSG_MAX, &m, NULL, err);
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

int csn_gateway_watch(csn_gateway *g)
{
    int channel = -1;

    if (g->control < 0 || is_silent(g) ||
        csn_msg_request(g->control, CSN_GATEWAY_WATCH, NULL, 0, NULL, 0, 1, &channel) < 0)
        return -1;
    return channel;
}

bool csn_gateway_take_denied(int channel, csn_gateway_event_fn fn, void *ctx)
{
    uint8_t buf[4096]; /* larger than any event */
    csn_gateway_event e;
    csn_unpacker in;
    csn_msg m;
    int rc = csn_msg_recv(channel, buf, sizeof(buf), &m);

    if (rc == -EAGAIN)
        return true;
    if (rc != 1)
        return false;
    csn_unpacker_init(&in, m.body, m.len);
    bool good = m.type == CSN_GATEWAY_DENIED && csn_get_gateway_event(&in, &e) == 0 &&
                csn_unpacker_end(&in) == 0;
    if (good)
        (void)fn(ctx, &e);
    csn_msg_release(&m);
    return good;
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

/* The queue of connections that the gateway has not accepted is full if it is stopped. */
static int connect_soon(int fd, const struct sockaddr_un *to)
{
    uint64_t deadline = csn_deadline_in(CSN_GATEWAY_CONNECT_MS);
    int rc;

    while ((rc = connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0 ? -errno : 0) ==
               -EAGAIN &&
           csn_deadline_poll_ms(deadline) > 0)
        (void)poll(NULL, 0, RETRY_MS);
    return rc;
}

/* Only the caller can write to the directory, so the listener is the sandbox's gateway. */
void csn_gateway_find(const csn_runtime *rt, csn_gateway *g)
{
    csn_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int n = snprintf(to.sun_path, sizeof(to.sun_path), "%s/" SOCKET_NAME, rt->run_path);

    if (n < 0 || (size_t)n >= sizeof(to.sun_path))
        snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/" SOCKET_NAME, rt->run_fd);
    int rc = fd < 0 ? -errno : connect_soon(fd, &to);
    g->busy = rc == -EAGAIN;
    g->control = rc < 0 ? -1 : csn_steal_fd(&fd);
}

/* ---- end ---- */

bool csn_gateway_is_alive(const csn_gateway *g)
{
    struct pollfd pf[2] = {{.fd = g->control, .events = POLLIN},
                           {.fd = g->pidfd, .events = POLLIN}};

    if (g->busy)
        return true;
    if (g->control < 0 || poll(pf, 2, 0) < 0)
        return false;
    return (pf[0].revents & (POLLHUP | POLLERR)) == 0 && pf[1].revents == 0;
}

void csn_gateway_release(csn_gateway *g)
{
    if (g->control >= 0)
        close(csn_steal_fd(&g->control));
    if (g->pidfd >= 0)
        close(csn_steal_fd(&g->pidfd));
    remember(g, -1);
}

void csn_gateway_end(const csn_runtime *rt, csn_gateway *g)
{
    if (g->pidfd < 0) /* another process has started it */
        g->pidfd = csn_keeper_record_open_gateway(&rt->record);
    if (g->control >= 0)
        close(csn_steal_fd(&g->control));
    if (g->pidfd >= 0 && csn_spawn_wait(g->pidfd, (int)CSN_GATEWAY_END_MS) < 0) {
        (void)syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
        (void)csn_spawn_wait(g->pidfd, (int)CSN_KEEPER_ANSWER_MS);
    }
    csn_gateway_release(g);
}
