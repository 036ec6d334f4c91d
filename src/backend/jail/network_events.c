/* network_events.c: passes the gateway's events to the audit log and to denials.
 *
 * The gateway keeps a bounded number of events and returns them as often as requested. Each
 * event enters the audit log once: the position is stored, under a lock, in the runtime
 * directory of a detached sandbox. Names in events come from the sandbox; the gateway validated
 * them, the protocol bounds them, and they are only copied here. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/network.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#define MARK_NAME "net.seen"
#define ENDED     UINT64_MAX /* position after the gateway's end was logged */
#define LIVE_MAX  64u        /* denials told while one command runs */
#define RETRY_MS  5          /* between two attempts to lock the position */

/* ---- conversion ---- */

static const char *word(const char *const *words, size_t count, uint32_t i)
{
    return i < count ? words[i] : "?";
}

static const char *or_null(const char *s)
{
    return s && s[0] ? s : NULL;
}

static csn_net_event public_event(const csn_gateway_event *e)
{
    static const char *const kinds[] = {[CSN_GATEWAY_NAME] = "name",
                                        [CSN_GATEWAY_CONNECT] = "connect",
                                        [CSN_GATEWAY_CLOSE] = "close"};
    static const char *const protocols[] = {[CSN_GATEWAY_DNS] = "dns",
                                            [CSN_GATEWAY_TCP] = "tcp",
                                            [CSN_GATEWAY_TLS] = "tls",
                                            [CSN_GATEWAY_HTTP] = "http",
                                            [CSN_GATEWAY_CONNECT_PROXY] = "connect",
                                            [CSN_GATEWAY_SOCKS] = "socks",
                                            [CSN_GATEWAY_PUBLISHED] = "published",
                                            [CSN_GATEWAY_HOST_PORT] = "lent"};

    return (csn_net_event){.seq = e->seq,
                           .time_ms = e->time_ms,
                           .kind = word(kinds, CSN_GATEWAY_KINDS, e->kind),
                           .verdict = e->verdict == CSN_GATEWAY_DENY ? "deny" : "allow",
                           .protocol = word(protocols, CSN_GATEWAY_PROTOS, e->proto),
                           .host = or_null(e->name),
                           .address = or_null(e->address),
                           .rule = or_null(e->rule),
                           .hint = or_null(e->hint),
                           .why = or_null(e->why),
                           .port = e->port,
                           .up = e->up,
                           .down = e->down,
                           .duration_ms = e->ms,
                           .count = e->count};
}

typedef struct relay {
    csn_net_event_fn fn;
    void *ctx;
} relay;

static int relay_event(void *ctx, const csn_gateway_event *e)
{
    const relay *r = ctx;
    const csn_net_event p = public_event(e);

    return r->fn(r->ctx, &p);
}

/* ---- audit log ---- */

/* The process that has the lock may be stopped. */
static int lock_until(int fd, uint64_t until_ns)
{
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (csn_deadline_poll_ms(until_ns) == 0)
            return -ETIMEDOUT;
        (void)poll(NULL, 0, RETRY_MS);
    }
    return 0;
}

/* *ret_fd: the position file, locked until it is closed; -1 if the sandbox is not detached.
 * until_ns 0: it is only read and not locked; an older position repeats events. */
static csn_status mark_read(const csn_runtime *rt, csn_jail_net *n, uint64_t until_ns,
                            int *ret_fd, csn_error **err)
{
    csn_autofd int fd = -1;
    uint64_t seen = 0;

    *ret_fd = -1;
    if (!rt->detached || rt->run_fd < 0)
        return CSN_OK;
    fd = openat(rt->run_fd, MARK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 ? -errno : until_ns != 0 ? lock_until(fd, until_ns) : 0;
    if (rc < 0)
        return csn_fail_errno(err, -rc, "network events");
    if (pread(fd, &seen, sizeof(seen), 0) == sizeof(seen) && seen > n->audited)
        n->audited = seen;
    *ret_fd = csn_steal_fd(&fd);
    return CSN_OK;
}

/* Reads new events. The end of the gateway, whose unread events are lost, is reported once. */
static csn_status take_new(csn_jail_net *n, const relay *r, uint64_t until_ns,
                           uint64_t *ret_lost, csn_status *ret_gone, csn_error **err)
{
    csn_status st = CSN_OK;

    if (n->audited == ENDED)
        return CSN_OK;
    if (csn_gateway_is_alive(&n->gateway))
        st = csn_gateway_events(&n->gateway, until_ns, &n->audited, relay_event, (void *)r,
                                ret_lost, err);
    if (csn_gateway_is_alive(&n->gateway))
        return st;
    n->audited = ENDED; /* also if it ended during the request */
    *ret_gone = st < 0 ? st : csn_fail(err, CSN_UNAVAILABLE, "the network gateway has ended");
    return CSN_OK;
}

/* Waits briefly: events that could not be read now are read by the next call. */
static csn_status take_once(csn_runtime *rt, csn_jail_net *n, const relay *r,
                            uint64_t *ret_lost, csn_error **err)
{
    uint64_t until_ns = csn_deadline_in(CSN_GATEWAY_AUDIT_MS);
    csn_autofd int mark = -1;
    csn_status gone = CSN_OK;

    pthread_mutex_lock(&n->lock);
    csn_status st = mark_read(rt, n, until_ns, &mark, err);
    if (st == CSN_OK)
        st = take_new(n, r, until_ns, ret_lost, &gone, err);
    if (st == CSN_OK && mark >= 0 &&
        pwrite(mark, &n->audited, sizeof(n->audited), 0) != (ssize_t)sizeof(n->audited))
        st = csn_fail_errno(err, errno, "network events");
    pthread_mutex_unlock(&n->lock);
    return st < 0 ? st : gone;
}

csn_status csn_jail_network_events(void *state, uint64_t *since, csn_net_event_fn fn, void *ctx,
                                   uint64_t *ret_lost, csn_error **err)
{
    csn_runtime *rt = state;
    const csn_jail *j = rt->jail;
    relay r = {.fn = fn, .ctx = ctx};

    *ret_lost = 0;
    if (!j->net)
        return CSN_OK;
    if (!since)
        return take_once(rt, j->net, &r, ret_lost, err);
    if (!csn_gateway_is_alive(&j->net->gateway))
        return CSN_OK;
    return csn_gateway_events(&j->net->gateway, csn_gateway_patience(0), since, relay_event, &r,
                              ret_lost, err);
}

/* ---- denials ---- */

csn_jail_net_since csn_jail_net_begin(const csn_runtime *rt)
{
    const csn_jail *j = rt->jail;
    csn_jail_net_since since = {0};
    csn_autofd int mark = -1;

    if (!j->net)
        return since;
    since.time_ms = csn_wall_ms();
    pthread_mutex_lock(&j->net->lock);
    (void)mark_read(rt, j->net, 0, &mark, NULL);
    if (j->net->audited != ENDED)
        since.seq = j->net->audited;
    pthread_mutex_unlock(&j->net->lock);
    return since;
}

typedef struct refusals {
    const csn_exec_req *req;
    const csn_deny_sink *to;
    int64_t since_ms;
} refusals;

static int report_denied(void *ctx, const csn_gateway_event *e)
{
    const refusals *r = ctx;
    const char *host = e->name[0] ? e->name : e->address;
    char target[CSN_GATEWAY_NAME_MAX + 16], hint[CSN_GATEWAY_RULE_MAX + 16];

    if (e->verdict != CSN_GATEWAY_DENY || e->time_ms < r->since_ms)
        return 0;
    snprintf(target, sizeof(target), e->port ? "%s:%u" : "%s", host, e->port);
    const char *option =
        e->hint[0] ? csn_jail_net_hint(r->req, e->hint, hint, sizeof(hint)) : NULL;
    const csn_denial d = {.op = "net",
                          .target = or_null(target),
                          .resolved = or_null(e->address),
                          .rule = e->rule[0] ? e->rule : e->why,
                          .source = "config.network",
                          .hint = option ? option : or_null(e->why)};
    r->to->tell(r->to->ctx, &d);
    return 0;
}

/* Events that were recorded before the request are not told, and so many at most. */
static bool take_denied(void *ctx, int fd)
{
    csn_jail_net_watch *w = ctx;
    refusals r = {.req = w->req, .to = w->req->live_denials, .since_ms = w->since_ms};

    return ++w->count <= LIVE_MAX && csn_gateway_take_denied(fd, report_denied, &r);
}

void csn_jail_net_watch_begin(const csn_runtime *rt, csn_jail_net_watch *w, csn_exec_extra *ret)
{
    const csn_jail *j = rt->jail;

    if (!j->net || !w->req->live_denials)
        return;
    w->since_ms = csn_wall_ms();
    ret->take_notice = take_denied;
    ret->ctx = w;
    ret->notice_fd = csn_gateway_watch(&j->net->gateway);
}

void csn_jail_net_watch_end(csn_exec_extra *extra)
{
    struct pollfd pf = {.fd = extra->notice_fd, .events = POLLIN};

    if (extra->notice_fd < 0)
        return;
    while (poll(&pf, 1, 0) == 1 && take_denied(extra->ctx, extra->notice_fd))
        ;
    close(csn_steal_fd(&extra->notice_fd));
}

void csn_jail_net_report(csn_runtime *rt, csn_jail_net_since since, const csn_exec_req *req)
{
    const csn_jail *j = rt->jail;
    refusals r = {.req = req, .to = req->denials, .since_ms = since.time_ms};
    uint64_t lost = 0;

    if (!j->net || !req->denials || !csn_gateway_is_alive(&j->net->gateway))
        return;
    if (csn_gateway_events(&j->net->gateway, csn_gateway_patience(req->deadline_ns), &since.seq,
                           report_denied, &r, &lost, NULL) < 0)
        csn_log_debug("sandbox=%s refused connections are unknown: no answer of the gateway",
                      rt->id);
}
