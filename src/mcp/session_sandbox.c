/* session_sandbox.c: opens, shares and replaces the sandbox of one session.
 *
 * Tool calls of one client run on many threads and share a sandbox. A lease counts its users,
 * so that an ended sandbox can be replaced while slower calls still hold it. Invariants:
 * csn_close is called once for each sandbox, after its last user; the lock is not held during a
 * blocking library call except csn_open, for which concurrent calls must wait anyway. */
#include "mcp/session_sandbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"

struct csn_mcp_lease {
    csn_sandbox *sb;
    unsigned users; /* calls, and 1 while it is the current lease */
};

typedef struct cursor {
    int64_t pid;
    uint64_t at[2];
} cursor;

struct csn_mcp_sandbox {
    pthread_mutex_t lock;
    pthread_cond_t shell_free;
    unsigned refs;
    const csn_config *config;
    csn_mcp_lease *current; /* NULL: not open */
    bool replaced;          /* the previous sandbox ended; the next acquire reports it */
    bool closed;            /* open no other sandbox */
    bool shell_busy;
    bool shell_finishing; /* the command has ended; csn_mcp_shell_give follows */
    csn_cancel *shell_cancel;
    char *cwd;
    cursor cursors[CSN_MCP_CURSORS_MAX];
    size_t cursor_next;
};

static csn_status lease_new(const csn_config *config, csn_mcp_lease **ret, csn_error **err)
{
    csn_autofree csn_mcp_lease *l = calloc(1, sizeof(*l));

    if (!l)
        return csn_fail(err, CSN_NOMEM, "sandbox");
    csn_status st = csn_open(config, &l->sb, err);
    if (st < 0)
        return st;
    l->users = 1;
    *ret = CSN_STEAL(l);
    return CSN_OK;
}

/* Call it with the lock held. Returns the lease if the caller must close it after unlocking. */
static csn_mcp_lease *unref_lease(csn_mcp_lease *l)
{
    return l && --l->users == 0 ? l : NULL;
}

static void lease_close(csn_mcp_lease *l)
{
    if (!l)
        return;
    csn_close(l->sb);
    free(l);
}

csn_mcp_sandbox *csn_mcp_sandbox_new(const csn_config *config)
{
    csn_mcp_sandbox *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->shell_free, NULL);
    s->refs = 1;
    s->config = config;
    return s;
}

csn_mcp_sandbox *csn_mcp_sandbox_ref(csn_mcp_sandbox *s)
{
    pthread_mutex_lock(&s->lock);
    s->refs++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

void csn_mcp_sandbox_unref(csn_mcp_sandbox *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    bool last = --s->refs == 0;
    csn_mcp_lease *old = last ? unref_lease(s->current) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    lease_close(old);
    pthread_cond_destroy(&s->shell_free);
    pthread_mutex_destroy(&s->lock);
    free(s->cwd);
    free(s);
}

void csn_mcp_sandbox_destroy(csn_mcp_sandbox *s)
{
    pthread_mutex_lock(&s->lock);
    csn_mcp_lease *l = s->current;
    s->closed = true;
    if (l)
        l->users++;
    pthread_mutex_unlock(&s->lock);
    if (!l)
        return;
    csn_error *err = NULL;
    if (csn_destroy(l->sb, &err) < 0)
        csn_error_free(err); /* csn_close ends the sandbox in any case */
    csn_mcp_sandbox_is_gone(s, l);
    csn_mcp_sandbox_release(s, l);
}

csn_status csn_mcp_sandbox_acquire(csn_mcp_sandbox *s, csn_mcp_lease **ret, bool *ret_new,
                                   csn_error **err)
{
    csn_status st = CSN_OK;

    *ret_new = false;
    pthread_mutex_lock(&s->lock);
    if (s->closed)
        st = csn_fail(err, CSN_GONE, "the sandbox has ended");
    else if (!s->current)
        st = lease_new(s->config, &s->current, err);
    if (st == CSN_OK) {
        s->current->users++;
        *ret = s->current;
        *ret_new = s->replaced;
        s->replaced = false;
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

csn_sandbox *csn_mcp_lease_sandbox(csn_mcp_lease *l)
{
    return l->sb;
}

void csn_mcp_sandbox_is_gone(csn_mcp_sandbox *s, csn_mcp_lease *l)
{
    pthread_mutex_lock(&s->lock);
    if (l == s->current) {
        s->current = NULL;
        s->replaced = true;
        free(s->cwd);
        s->cwd = NULL;
        memset(s->cursors, 0, sizeof(s->cursors));
        (void)unref_lease(l); /* never the last reference: the caller holds one */
    }
    pthread_mutex_unlock(&s->lock);
}

void csn_mcp_sandbox_release(csn_mcp_sandbox *s, csn_mcp_lease *l)
{
    pthread_mutex_lock(&s->lock);
    csn_mcp_lease *old = unref_lease(l);
    pthread_mutex_unlock(&s->lock);
    lease_close(old);
}

/* ---- shell -------------------------------------------------------------------------- */

bool csn_mcp_shell_take(csn_mcp_sandbox *s, csn_cancel *cancel, bool restart)
{
    pthread_mutex_lock(&s->lock);
    if (restart && s->shell_busy && s->shell_cancel)
        csn_cancel_fire(s->shell_cancel);
    while (s->shell_busy && (restart || s->shell_finishing))
        pthread_cond_wait(&s->shell_free, &s->lock);
    bool ours = !s->shell_busy;
    if (ours) {
        s->shell_busy = true;
        s->shell_cancel = cancel;
    }
    pthread_mutex_unlock(&s->lock);
    return ours;
}

void csn_mcp_shell_finish(csn_mcp_sandbox *s)
{
    pthread_mutex_lock(&s->lock);
    s->shell_finishing = true;
    s->shell_cancel = NULL;
    pthread_mutex_unlock(&s->lock);
}

void csn_mcp_shell_give(csn_mcp_sandbox *s)
{
    pthread_mutex_lock(&s->lock);
    s->shell_busy = s->shell_finishing = false;
    s->shell_cancel = NULL;
    pthread_cond_broadcast(&s->shell_free);
    pthread_mutex_unlock(&s->lock);
}

char *csn_mcp_shell_cwd(csn_mcp_sandbox *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->shell_busy && s->shell_finishing)
        pthread_cond_wait(&s->shell_free, &s->lock);
    char *copy = s->cwd ? strdup(s->cwd) : NULL;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

void csn_mcp_shell_cwd_set(csn_mcp_sandbox *s, const char *path)
{
    char *copy = path ? strdup(path) : NULL;

    pthread_mutex_lock(&s->lock);
    free(s->cwd);
    s->cwd = copy;
    pthread_mutex_unlock(&s->lock);
}

/* ---- cursors ---------------------------------------------------------------------------- */

/* Call it with the lock held. */
static cursor *find_cursor(csn_mcp_sandbox *s, int64_t pid)
{
    for (size_t i = 0; i < CSN_MCP_CURSORS_MAX; i++)
        if (s->cursors[i].pid == pid)
            return &s->cursors[i];
    return NULL;
}

void csn_mcp_cursor_get(csn_mcp_sandbox *s, int64_t pid, uint64_t ret[2])
{
    pthread_mutex_lock(&s->lock);
    const cursor *c = find_cursor(s, pid);
    ret[0] = c ? c->at[0] : 0;
    ret[1] = c ? c->at[1] : 0;
    pthread_mutex_unlock(&s->lock);
}

/* A new pid replaces the oldest one; the keeper forgets old processes too. */
void csn_mcp_cursor_set(csn_mcp_sandbox *s, int64_t pid, const uint64_t at[2])
{
    pthread_mutex_lock(&s->lock);
    cursor *c = find_cursor(s, pid);
    if (!c) {
        c = &s->cursors[s->cursor_next];
        s->cursor_next = (s->cursor_next + 1) % CSN_MCP_CURSORS_MAX;
    }
    *c = (cursor){.pid = pid, .at = {at[0], at[1]}};
    pthread_mutex_unlock(&s->lock);
}
