/* handle.c: sandboxes, processes and watches that JavaScript refers to.
 *
 * The library frees a handle in csn_close while other threads may be about to use it, so this
 * file counts the calls that are inside the library. A close refuses new calls, ends the
 * running ones through their cancel handles, and frees the handle after the last has left. A
 * handle that JavaScript lost is closed the same way by a job of the pool. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

/* ---- denials that belong to no result ---- */

static void denial_strings(csn_denial *d, const char **ret[6])
{
    const char **all[] = {&d->op, &d->target, &d->resolved, &d->rule, &d->source, &d->hint};

    memcpy(ret, all, sizeof(all));
}

void denial_collect(void *ctx, const csn_denial *d)
{
    denial_list *l = ctx;
    csn_denial copy = *d;
    const char **strings[6];
    csn_denial *more = realloc(l->items, (l->count + 1) * sizeof(*more));

    if (!more)
        return;
    l->items = more;
    denial_strings(&copy, strings);
    for (int i = 0; i < 6; i++)
        *strings[i] = *strings[i] ? strdup(*strings[i]) : NULL;
    l->items[l->count++] = copy;
}

void denial_list_release(denial_list *l)
{
    const char **strings[6];

    for (size_t i = 0; i < l->count; i++) {
        denial_strings(&l->items[i], strings);
        for (int k = 0; k < 6; k++)
            free((void *)*strings[k]);
    }
    free(l->items);
    *l = (denial_list){0};
}

/* ---- references ---- */

handle *handle_ref(handle *h)
{
    __atomic_add_fetch(&h->refs, 1, __ATOMIC_RELAXED);
    return h;
}

void handle_unref(handle *h)
{
    while (h && __atomic_sub_fetch(&h->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        handle *parent = h->parent;
        denial_list_release(&h->denials);
        csn_cancel_free(h->cancel);
        instance_unref(h->in);
        free(h);
        h = parent;
    }
}

/* The library's object without a handle: closes it. */
static void drop_object(handle_kind kind, void *p)
{
    switch (kind) {
    case H_SANDBOX:
        csn_close(p);
        break;
    case H_PROCESS:
        csn_process_free(p);
        break;
    case H_WATCH:
        csn_watch_free(p);
        break;
    }
}

handle *handle_new(instance *in, handle_kind kind, void *p, handle *parent)
{
    handle *h = calloc(1, sizeof(*h));

    if (!h || (kind == H_SANDBOX && csn_cancel_new(&h->cancel, NULL) < 0)) {
        drop_object(kind, p);
        free(h);
        return NULL;
    }
    *h = (handle){.kind = kind, .refs = 1, .p = p, .in = instance_ref(in), .cancel = h->cancel};
    h->parent = parent ? handle_ref(parent) : NULL;
    if (kind == H_SANDBOX)
        csn_on_denial(p, denial_collect, &h->denials);
    pthread_mutex_lock(&in->lock);
    h->next = in->handles;
    in->handles = h;
    pthread_mutex_unlock(&in->lock);
    return h;
}

/* ---- use ---- */

static handle *root_of(handle *h)
{
    return h->parent ? h->parent : h;
}

bool handle_enter(handle *h)
{
    pthread_mutex_lock(&h->in->lock);
    bool open = !h->closing && !root_of(h)->closing && h->p && root_of(h)->p;
    if (open) {
        h->active++;
        if (h->parent)
            h->parent->active++;
    }
    pthread_mutex_unlock(&h->in->lock);
    return open;
}

bool handle_is_closing(handle *h)
{
    pthread_mutex_lock(&h->in->lock);
    bool closing = h->closing || root_of(h)->closing;
    pthread_mutex_unlock(&h->in->lock);
    return closing;
}

/* With the lock held: takes what the library has of a process or watch that is not used any
 * more; the caller frees it without the lock. */
static void *take_idle_child(handle *h)
{
    void *p = h->parent && h->closing && h->active == 0 ? h->p : NULL;

    if (p)
        h->p = NULL;
    return p;
}

void handle_leave(handle *h)
{
    instance *in = h->in;

    pthread_mutex_lock(&in->lock);
    h->active--;
    void *idle = take_idle_child(h);
    pthread_mutex_unlock(&in->lock);
    if (idle) /* before the sandbox can close */
        drop_object(h->kind, idle);
    pthread_mutex_lock(&in->lock);
    if (h->parent)
        h->parent->active--;
    pthread_cond_broadcast(&in->changed);
    pthread_mutex_unlock(&in->lock);
}

/* ---- close ---- */

/* With the lock held: calls that use the sandbox end. */
static void stop_calls(handle *root, const call *own)
{
    for (call *c = root->in->calls; c; c = c->next)
        if (c != own && c->h && root_of(c->h) == root) {
            c->stop = true;
            if (c->cancel)
                csn_cancel_fire(c->cancel);
        }
    instance_wake(root->in);
}

/* With the lock held: one child of the sandbox that the library still has. */
static void *take_child(handle *root, handle_kind *ret_kind)
{
    for (handle *h = root->in->handles; h; h = h->next)
        if (h->parent == root && h->p) {
            void *p = h->p;
            h->p = NULL;
            *ret_kind = h->kind;
            return p;
        }
    return NULL;
}

static void free_children(handle *root)
{
    handle_kind kind = H_PROCESS;

    for (void *p; (p = take_child(root, &kind));) {
        pthread_mutex_unlock(&root->in->lock);
        drop_object(kind, p);
        pthread_mutex_lock(&root->in->lock);
    }
}

static void close_sandbox(handle *h, const call *own)
{
    instance *in = h->in;

    pthread_mutex_lock(&in->lock);
    h->closing = true;
    stop_calls(h, own);
    while (h->active > 0)
        pthread_cond_wait(&in->changed, &in->lock);
    free_children(h);
    void *p = h->p;
    h->p = NULL;
    pthread_mutex_unlock(&in->lock);
    csn_close(p);
}

/* The sandbox counts a child that is being freed as active, since csn_close must come later. */
static void close_child(handle *h)
{
    pthread_mutex_lock(&h->in->lock);
    h->closing = true;
    for (call *c = h->in->calls; c; c = c->next)
        if (c->h == h)
            c->stop = true;
    instance_wake(h->in);
    void *p = take_idle_child(h);
    h->parent->active++;
    pthread_mutex_unlock(&h->in->lock);
    if (p)
        drop_object(h->kind, p);
    pthread_mutex_lock(&h->in->lock);
    h->parent->active--;
    instance_wake(h->in);
    pthread_mutex_unlock(&h->in->lock);
}

void handle_close(handle *h, const call *own)
{
    if (h->kind == H_SANDBOX)
        close_sandbox(h, own);
    else
        close_child(h);
}

void handle_closed(handle *h)
{
    bool used = false;

    pthread_mutex_lock(&h->in->lock);
    for (call *c = h->in->calls; c && !used; c = c->next)
        used = c->cancel == h->cancel;
    pthread_mutex_unlock(&h->in->lock);
    if (used) /* it ends with the handle */
        return;
    csn_cancel_free(h->cancel);
    h->cancel = NULL;
}

void handle_release_asks(handle *h)
{
    pthread_mutex_lock(&h->in->lock);
    for (call *c = h->in->calls; c; c = c->next)
        if (c->h && root_of(c->h) == root_of(h))
            c->stop = true;
    instance_wake(h->in);
    pthread_mutex_unlock(&h->in->lock);
}

/* ---- JavaScript ---- */

typedef struct reaper {
    job job;
    handle *h;
} reaper;

static void unlink_handle(handle *h)
{
    pthread_mutex_lock(&h->in->lock);
    for (handle **at = &h->in->handles; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    pthread_mutex_unlock(&h->in->lock);
}

static void reap(job *j)
{
    reaper *r = (reaper *)j;

    handle_close(r->h, NULL);
    unlink_handle(r->h);
    handle_unref(r->h);
    free(r);
}

/* The object is gone: a handle that is still open is closed by a thread of the pool, because
 * that may take a while. */
static void finalize(napi_env env, void *data, void *hint)
{
    handle *h = data;
    reaper *r = h->p ? calloc(1, sizeof(*r)) : NULL;

    (void)env;
    (void)hint;
    if (r) {
        *r = (reaper){.job.run = reap, .h = h};
        pool_submit(&r->job);
        return;
    }
    unlink_handle(h);
    handle_unref(h);
}

napi_value handle_to_js(napi_env env, handle *h)
{
    napi_value v = NULL;

    if (napi_create_external(env, h, finalize, NULL, &v) != napi_ok)
        finalize(env, h, NULL);
    return v;
}

handle *handle_from_js(napi_env env, napi_value v)
{
    void *p = NULL;

    return napi_get_value_external(env, v, &p) == napi_ok ? p : NULL;
}
