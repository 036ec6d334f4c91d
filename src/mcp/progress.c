/* progress.c: sends progress notifications for running calls to clients that requested them.
 *
 * One thread serves all calls; the first call starts it. Invariants: no notification is sent
 * for a call after its reply, and no call is freed while it is in the list; locks are taken in
 * the order server, call. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/list.h"
#include "mcp/internal.h"

#define TICK_MS 500u

/* `progress` is in seconds, because it must grow and the total is unknown. */
static void send_progress(csn_mcp_call *c)
{
    csn_autobuf out;
    csn_json j;
    char message[96];
    double seconds = (double)(csn_now_ns() - c->started_ns) / 1e9;

    csn_buf_init(&out, 4096);
    snprintf(message, sizeof(message), "running for %.0f s, %" PRIuFAST64 " bytes of output",
             seconds, atomic_load(&c->printed));
    csn_json_begin(&j, &out);
    csn_json_object(&j);
    csn_json_kstr(&j, "jsonrpc", "2.0");
    csn_json_kstr(&j, "method", "notifications/progress");
    csn_json_key(&j, "params");
    csn_json_object(&j);
    csn_json_key(&j, "progressToken");
    csn_json_raw(&j, c->token, strlen(c->token));
    csn_json_key(&j, "progress");
    csn_json_double(&j, seconds);
    csn_json_kstr(&j, "message", message);
    csn_json_object_end(&j);
    csn_json_object_end(&j);
    pthread_mutex_lock(&c->lock);
    if (csn_json_end(&j) == 0 && !c->answered && !atomic_load(&c->cancelled))
        c->out.send(c->out.ctx, &out);
    pthread_mutex_unlock(&c->lock);
}

static void *tick(void *arg)
{
    csn_mcp_server *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (s->progress_calls)
            (void)csn_cond_wait_until(&s->tick, &s->lock, csn_deadline_in(TICK_MS));
        else
            pthread_cond_wait(&s->tick, &s->lock);
        for (csn_mcp_call *c = s->progress_calls; c && !s->stopping; c = c->progress_next)
            if (csn_now_ns() - c->started_ns >= (uint64_t)TICK_MS * 1000000u)
                send_progress(c);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void csn_mcp_progress_add(csn_mcp_server *s, csn_mcp_call *c)
{
    pthread_mutex_lock(&s->lock);
    if (!s->has_ticker)
        s->has_ticker = pthread_create(&s->ticker, NULL, tick, s) == 0;
    CSN_LIST_PUSH(&s->progress_calls, c, progress_next, progress_link);
    if (!c->progress_next) /* the list was empty: the thread waits without a timeout */
        pthread_cond_signal(&s->tick);
    pthread_mutex_unlock(&s->lock);
}

void csn_mcp_progress_remove(csn_mcp_server *s, csn_mcp_call *c)
{
    pthread_mutex_lock(&s->lock);
    CSN_LIST_REMOVE(c, progress_next, progress_link);
    pthread_mutex_unlock(&s->lock);
}

void csn_mcp_progress_stop(csn_mcp_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    bool join = s->has_ticker;
    pthread_cond_broadcast(&s->tick);
    pthread_mutex_unlock(&s->lock);
    if (join)
        pthread_join(s->ticker, NULL);
}
