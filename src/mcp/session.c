/* session.c: conversations and the calls that run in them.
 *
 * A call is in the list of its session from its start until its answer is made; in between
 * another message may cancel it by its id. What must hold: an id names one running call; a call
 * is freed only after it left both lists; `running` counts calls up to their very end, so that
 * a session that is drained has nobody in its sandbox. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mcp/internal.h"

csn_mcp_session *csn_mcp_session_new(csn_mcp_server *server, csn_mcp_sandbox *room)
{
    csn_mcp_session *s = calloc(1, sizeof(*s));
    pthread_condattr_t attr;

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->idle, &attr);
    pthread_condattr_destroy(&attr);
    s->server = server;
    s->room = csn_mcp_sandbox_ref(room);
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
    csn_mcp_sandbox_unref(s->room);
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
        c->next = s->calls;
        c->link = &s->calls;
        if (c->next)
            c->next->link = &c->next;
        s->calls = c;
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
    if (c->link) {
        *c->link = c->next;
        if (c->next)
            c->next->link = c->link;
        c->link = NULL;
    }
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
    struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
                          .tv_nsec = (long)(until % 1000000000u)};

    pthread_mutex_lock(&s->lock);
    while (s->running > 0)
        if (pthread_cond_timedwait(&s->idle, &s->lock, &ts) == ETIMEDOUT)
            break;
    bool done = s->running == 0;
    pthread_mutex_unlock(&s->lock);
    return done;
}
