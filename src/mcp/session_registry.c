/* session_registry.c: finds the sessions of the HTTP server by token and session id.
 *
 * A session id is 128 random bits and valid only with the token that opened it, so a client can
 * neither guess nor use the sandbox of another one. Invariants: ending a session destroys its
 * sandbox at once, even under running calls; the number of sessions is bounded, each token has
 * an equal share of it, and idle ones end. */
#include "mcp/session_registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"

typedef struct entry {
    char id[CSN_MCP_SESSION_ID]; /* "": free */
    unsigned token;
    csn_mcp_session *session;
    csn_mcp_sandbox *sandbox;
    uint64_t used_ns;
} entry;

struct csn_mcp_registry {
    csn_mcp_server *server;
    pthread_mutex_t lock;
    entry entries[CSN_MCP_SESSIONS_MAX];
    csn_mcp_sandbox **token_sandboxes; /* by token, created when needed */
    unsigned tokens;
    bool closed;
};

csn_mcp_registry *csn_mcp_registry_new(csn_mcp_server *s, unsigned tokens)
{
    csn_mcp_registry *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->token_sandboxes = calloc(tokens ? tokens : 1, sizeof(csn_mcp_sandbox *));
    if (!r->token_sandboxes) {
        free(r);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->server = s;
    r->tokens = tokens;
    return r;
}

void csn_mcp_registry_free(csn_mcp_registry *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->lock);
    free((void *)r->token_sandboxes);
    free(r);
}

static bool new_id(char ret[CSN_MCP_SESSION_ID])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[(CSN_MCP_SESSION_ID - 1) / 2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return false;
    for (size_t i = 0; i < sizeof(random); i++) {
        ret[2 * i] = digits[random[i] >> 4];
        ret[2 * i + 1] = digits[random[i] & 15];
    }
    ret[CSN_MCP_SESSION_ID - 1] = '\0';
    return true;
}

/* Call it with the lock held. With id NULL it finds a free entry. */
static entry *find(csn_mcp_registry *r, unsigned token, const char *id)
{
    for (size_t i = 0; i < CSN_MCP_SESSIONS_MAX; i++) {
        entry *e = &r->entries[i];
        if (id ? e->session && e->token == token && strcmp(e->id, id) == 0 : !e->session)
            return e;
    }
    return NULL;
}

/* Call it with the lock held. The shares of all tokens fit, so a token that has room finds a
 * free entry whatever the others do. */
static bool has_room(const csn_mcp_registry *r, unsigned token)
{
    unsigned count = 0, share = CSN_MCP_SESSIONS_MAX / (r->tokens ? r->tokens : 1);

    for (size_t i = 0; i < CSN_MCP_SESSIONS_MAX; i++)
        count += r->entries[i].session && r->entries[i].token == token;
    return count < (share ? share : 1);
}

csn_status csn_mcp_registry_open(csn_mcp_registry *r, unsigned token,
                                 char ret_id[CSN_MCP_SESSION_ID], csn_mcp_session **ret,
                                 csn_error **err)
{
    entry opened = {.token = token,
                    .used_ns = csn_now_ns(),
                    .sandbox = csn_mcp_sandbox_new(csn_mcp_server_config(r->server))};

    opened.session = opened.sandbox ? csn_mcp_session_new(r->server, opened.sandbox) : NULL;
    bool ok = opened.session && new_id(opened.id);
    pthread_mutex_lock(&r->lock);
    entry *e = ok && !r->closed && has_room(r, token) ? find(r, token, NULL) : NULL;
    if (e) {
        *e = opened;
        *ret = csn_mcp_session_ref(opened.session);
        memcpy(ret_id, opened.id, sizeof(opened.id));
    }
    pthread_mutex_unlock(&r->lock);
    if (e)
        return CSN_OK;
    csn_mcp_session_unref(opened.session);
    csn_mcp_sandbox_unref(opened.sandbox);
    return ok ? csn_fail(err, CSN_TOO_LARGE,
                         "too many sessions of this token; end one with DELETE")
              : csn_fail(err, CSN_NOMEM, "session");
}

csn_mcp_session *csn_mcp_registry_find(csn_mcp_registry *r, unsigned token, const char *id)
{
    pthread_mutex_lock(&r->lock);
    entry *e = find(r, token, id);
    if (e)
        e->used_ns = csn_now_ns();
    csn_mcp_session *s = e ? csn_mcp_session_ref(e->session) : NULL;
    pthread_mutex_unlock(&r->lock);
    return s;
}

static void end_entry(entry *e)
{
    csn_mcp_session_cancel(e->session);
    csn_mcp_sandbox_destroy(e->sandbox);
    csn_mcp_session_unref(e->session);
    csn_mcp_sandbox_unref(e->sandbox);
}

bool csn_mcp_registry_end(csn_mcp_registry *r, unsigned token, const char *id)
{
    entry taken = {.token = token};

    pthread_mutex_lock(&r->lock);
    entry *e = find(r, token, id);
    if (e) {
        taken = *e;
        *e = (entry){.token = 0};
    }
    pthread_mutex_unlock(&r->lock);
    if (!e)
        return false;
    end_entry(&taken);
    return true;
}

csn_status csn_mcp_registry_stateless(csn_mcp_registry *r, unsigned token,
                                      csn_mcp_session **ret, csn_error **err)
{
    csn_status st = CSN_OK;

    pthread_mutex_lock(&r->lock);
    if (r->closed)
        st = csn_fail(err, CSN_UNAVAILABLE, "the server is stopping");
    else if (!r->token_sandboxes[token])
        r->token_sandboxes[token] = csn_mcp_sandbox_new(csn_mcp_server_config(r->server));
    if (st == CSN_OK) {
        *ret = r->token_sandboxes[token]
                   ? csn_mcp_session_new(r->server, r->token_sandboxes[token])
                   : NULL;
        st = *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "session");
    }
    pthread_mutex_unlock(&r->lock);
    return st;
}

void csn_mcp_registry_sweep(csn_mcp_registry *r)
{
    for (size_t i = 0; i < CSN_MCP_SESSIONS_MAX; i++) {
        entry old = {.session = NULL};
        pthread_mutex_lock(&r->lock);
        entry *e = &r->entries[i];
        /* A session with a running call is not idle. */
        if (e->session &&
            csn_now_ns() - e->used_ns > CSN_MCP_SESSION_IDLE_MS * UINT64_C(1000000) &&
            csn_mcp_session_drain(e->session, 0)) {
            old = *e;
            *e = (entry){.token = 0};
        }
        pthread_mutex_unlock(&r->lock);
        if (old.session)
            end_entry(&old);
    }
}

bool csn_mcp_registry_close(csn_mcp_registry *r, uint64_t ms)
{
    uint64_t deadline = csn_deadline_in(ms);
    bool all = true;

    pthread_mutex_lock(&r->lock);
    r->closed = true;
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < CSN_MCP_SESSIONS_MAX; i++) {
        if (!r->entries[i].session)
            continue;
        csn_mcp_session_cancel(r->entries[i].session);
        csn_mcp_sandbox_destroy(r->entries[i].sandbox);
    }
    for (unsigned i = 0; i < r->tokens; i++)
        if (r->token_sandboxes[i])
            csn_mcp_sandbox_destroy(r->token_sandboxes[i]);
    for (size_t i = 0; i < CSN_MCP_SESSIONS_MAX; i++) {
        if (!r->entries[i].session)
            continue;
        int left = csn_deadline_poll_ms(deadline);
        all &= csn_mcp_session_drain(r->entries[i].session, left > 0 ? (uint64_t)left : 0);
        csn_mcp_session_unref(r->entries[i].session);
        csn_mcp_sandbox_unref(r->entries[i].sandbox);
        r->entries[i].session = NULL;
    }
    for (unsigned i = 0; i < r->tokens; i++) {
        csn_mcp_sandbox_unref(r->token_sandboxes[i]);
        r->token_sandboxes[i] = NULL;
    }
    return all;
}
