/* session_sandbox.c: the sandbox behind one conversation.
 *
 * Tool calls of one client run on many threads and share one sandbox. A lease counts who is
 * inside, so that a sandbox which is gone can be replaced while slower calls still hold the old
 * one. What must hold: csn_close is called once for each sandbox, when nobody uses it any more;
 * no lock is held over a call of the library but csn_open: calls that come while the sandbox is
 * being made wait for it, as they must. */
#include "mcp/session_sandbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"

struct csn_mcp_lease {
    csn_sandbox *sb;
    unsigned users; /* the room itself is one while it is the current one */
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
    csn_mcp_lease *now; /* NULL: to be opened */
    bool lost;          /* an earlier one is gone, and nobody was told yet */
    bool closed;        /* no new ones */
    bool shell_busy;
    bool shell_settling; /* its command has ended; it is free in a moment */
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

/* With the lock held: gives back what is to be closed after it, or NULL. */
static csn_mcp_lease *drop(csn_mcp_lease *l)
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
    csn_mcp_sandbox *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->shell_free, NULL);
    r->refs = 1;
    r->config = config;
    return r;
}

csn_mcp_sandbox *csn_mcp_sandbox_ref(csn_mcp_sandbox *r)
{
    pthread_mutex_lock(&r->lock);
    r->refs++;
    pthread_mutex_unlock(&r->lock);
    return r;
}

void csn_mcp_sandbox_unref(csn_mcp_sandbox *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    bool last = --r->refs == 0;
    csn_mcp_lease *old = last ? drop(r->now) : NULL;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    lease_close(old);
    pthread_cond_destroy(&r->shell_free);
    pthread_mutex_destroy(&r->lock);
    free(r->cwd);
    free(r);
}

void csn_mcp_sandbox_destroy(csn_mcp_sandbox *r)
{
    pthread_mutex_lock(&r->lock);
    csn_mcp_lease *l = r->now;
    r->closed = true;
    if (l)
        l->users++;
    pthread_mutex_unlock(&r->lock);
    if (!l)
        return;
    csn_error *err = NULL;
    if (csn_destroy(l->sb, &err) < 0)
        csn_error_free(err); /* csn_close, which follows, ends it in any case */
    csn_mcp_sandbox_is_gone(r, l);
    csn_mcp_sandbox_release(r, l);
}

csn_status csn_mcp_sandbox_acquire(csn_mcp_sandbox *r, csn_mcp_lease **ret, bool *ret_new,
                                   csn_error **err)
{
    csn_status st = CSN_OK;

    *ret_new = false;
    pthread_mutex_lock(&r->lock);
    if (r->closed)
        st = csn_fail(err, CSN_GONE, "the sandbox has ended");
    else if (!r->now)
        st = lease_new(r->config, &r->now, err);
    if (st == CSN_OK) {
        r->now->users++;
        *ret = r->now;
        *ret_new = r->lost;
        r->lost = false;
    }
    pthread_mutex_unlock(&r->lock);
    return st;
}

csn_sandbox *csn_mcp_lease_sandbox(csn_mcp_lease *l)
{
    return l->sb;
}

void csn_mcp_sandbox_is_gone(csn_mcp_sandbox *r, csn_mcp_lease *l)
{
    pthread_mutex_lock(&r->lock);
    if (l == r->now) {
        r->now = NULL;
        r->lost = true;
        free(r->cwd);
        r->cwd = NULL;
        memset(r->cursors, 0, sizeof(r->cursors));
        (void)drop(l); /* the caller's is still counted */
    }
    pthread_mutex_unlock(&r->lock);
}

void csn_mcp_sandbox_release(csn_mcp_sandbox *r, csn_mcp_lease *l)
{
    pthread_mutex_lock(&r->lock);
    csn_mcp_lease *old = drop(l);
    pthread_mutex_unlock(&r->lock);
    lease_close(old);
}

/* ---- the shell ----------------------------------------------------------------------------
 */

bool csn_mcp_shell_take(csn_mcp_sandbox *r, csn_cancel *cancel, bool restart)
{
    pthread_mutex_lock(&r->lock);
    if (restart && r->shell_busy && r->shell_cancel)
        csn_cancel_fire(r->shell_cancel);
    while (r->shell_busy && (restart || r->shell_settling))
        pthread_cond_wait(&r->shell_free, &r->lock);
    bool ours = !r->shell_busy;
    if (ours) {
        r->shell_busy = true;
        r->shell_cancel = cancel;
    }
    pthread_mutex_unlock(&r->lock);
    return ours;
}

void csn_mcp_shell_finish(csn_mcp_sandbox *r)
{
    pthread_mutex_lock(&r->lock);
    r->shell_settling = true;
    r->shell_cancel = NULL; /* what is left to do is short */
    pthread_mutex_unlock(&r->lock);
}

void csn_mcp_shell_give(csn_mcp_sandbox *r)
{
    pthread_mutex_lock(&r->lock);
    r->shell_busy = r->shell_settling = false;
    r->shell_cancel = NULL;
    pthread_cond_broadcast(&r->shell_free);
    pthread_mutex_unlock(&r->lock);
}

char *csn_mcp_shell_cwd(csn_mcp_sandbox *r)
{
    pthread_mutex_lock(&r->lock);
    char *copy = r->cwd ? strdup(r->cwd) : NULL;
    pthread_mutex_unlock(&r->lock);
    return copy;
}

void csn_mcp_shell_cwd_set(csn_mcp_sandbox *r, const char *path)
{
    char *copy = path ? strdup(path) : NULL;

    pthread_mutex_lock(&r->lock);
    free(r->cwd);
    r->cwd = copy;
    pthread_mutex_unlock(&r->lock);
}

/* ---- cursors ------------------------------------------------------------------------------
 */

/* With the lock held. */
static cursor *find_cursor(csn_mcp_sandbox *r, int64_t pid)
{
    for (size_t i = 0; i < CSN_MCP_CURSORS_MAX; i++)
        if (r->cursors[i].pid == pid)
            return &r->cursors[i];
    return NULL;
}

void csn_mcp_cursor_get(csn_mcp_sandbox *r, int64_t pid, uint64_t ret[2])
{
    pthread_mutex_lock(&r->lock);
    const cursor *c = find_cursor(r, pid);
    ret[0] = c ? c->at[0] : 0;
    ret[1] = c ? c->at[1] : 0;
    pthread_mutex_unlock(&r->lock);
}

/* The keeper remembers as many ended processes as there is room here; the oldest gives way. */
void csn_mcp_cursor_set(csn_mcp_sandbox *r, int64_t pid, const uint64_t at[2])
{
    pthread_mutex_lock(&r->lock);
    cursor *c = find_cursor(r, pid);
    if (!c) {
        c = &r->cursors[r->cursor_next];
        r->cursor_next = (r->cursor_next + 1) % CSN_MCP_CURSORS_MAX;
    }
    *c = (cursor){.pid = pid, .at = {at[0], at[1]}};
    pthread_mutex_unlock(&r->lock);
}
