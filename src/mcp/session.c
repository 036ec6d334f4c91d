/* session.c: keeps the running calls of a session and cancels them.
 *
 * Invariants: an id names at most one running call; a call is freed only after it left the
 * lists of session and server; `running` counts a call until it no longer uses the sandbox, so
 * a drained session is idle. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/list.h"
#include "mcp/internal.h"

csn_mcp_session *csn_mcp_session_new(csn_mcp_server *server, csn_mcp_sandbox *sandbox)
{
    csn_mcp_session *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    csn_cond_init(&s->idle);
    s->server = server;
    s->sandbox = csn_mcp_sandbox_ref(sandbox);
    s->refs = 1;
    return s;
}

csn_mcp_session *csn_mcp_session_ref(csn_mcp_session *s)
{
    pthread_mutex_lock(&s->lock);
    s->refs++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

void csn_mcp_session_unref(csn_mcp_session *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    csn_mcp_sandbox_unref(s->sandbox);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const char *csn_mcp_session_version(csn_mcp_session *s)
{
    pthread_mutex_lock(&s->lock);
    const char *version = s->version;
    pthread_mutex_unlock(&s->lock);
    return version;
}

bool csn_mcp_session_enter(csn_mcp_session *s, csn_mcp_call *c)
{
    bool taken = false;

    pthread_mutex_lock(&s->lock);
    for (const csn_mcp_call *o = s->calls; o && !taken; o = o->next)
        taken = strcmp(o->msg.id, c->msg.id) == 0;
    if (!taken) {
        CSN_LIST_PUSH(&s->calls, c, next, link);
        s->refs++;
        s->running++;
        c->session = s;
    }
    pthread_mutex_unlock(&s->lock);
    return !taken;
}

void csn_mcp_session_finish_call(csn_mcp_session *s, csn_mcp_call *c)
{
    pthread_mutex_lock(&s->lock);
    CSN_LIST_REMOVE(c, next, link);
    pthread_mutex_unlock(&s->lock);
}

void csn_mcp_session_leave(csn_mcp_session *s, csn_mcp_call *c)
{
    csn_mcp_session_finish_call(s, c);
    pthread_mutex_lock(&s->lock);
    s->running--;
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
    csn_mcp_session_unref(s);
}

static void cancel_call(csn_mcp_call *c)
{
    atomic_store(&c->cancelled, true);
    csn_cancel_fire(c->cancel);
}

void csn_mcp_session_cancel_id(csn_mcp_session *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    for (csn_mcp_call *c = s->calls; c; c = c->next)
        if (strcmp(c->msg.id, id) == 0)
            cancel_call(c);
    pthread_mutex_unlock(&s->lock);
}

void csn_mcp_session_cancel(csn_mcp_session *s)
{
    pthread_mutex_lock(&s->lock);
    for (csn_mcp_call *c = s->calls; c; c = c->next)
        cancel_call(c);
    pthread_mutex_unlock(&s->lock);
}

bool csn_mcp_session_drain(csn_mcp_session *s, uint64_t ms)
{
    uint64_t until = csn_deadline_in(ms);

    pthread_mutex_lock(&s->lock);
    while (s->running > 0)
        if (!csn_cond_wait_until(&s->idle, &s->lock, until))
            break;
    bool done = s->running == 0;
    pthread_mutex_unlock(&s->lock);
    return done;
}
