/* call.c: one call of a verb, from its arguments to its promise. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

/* ---- cancel handles ---- */

typedef struct canceller {
    csn_cancel *cancel;
    instance *in;
} canceller;

static void canceller_finalize(napi_env env, void *data, void *hint)
{
    canceller *k = data;

    (void)env;
    (void)hint;
    csn_cancel_free(k->cancel);
    instance_unref(k->in);
    free(k);
}

napi_value cancel_new(napi_env env, napi_callback_info info)
{
    canceller *k = calloc(1, sizeof(*k));
    napi_value v = NULL;

    (void)info;
    if (!k || csn_cancel_new(&k->cancel, NULL) < 0) {
        free(k);
        napi_throw_error(env, "nomem", "cancel: out of memory or descriptors");
        return NULL;
    }
    k->in = instance_ref(instance_of(env));
    if (napi_create_external(env, k, canceller_finalize, NULL, &v) != napi_ok)
        canceller_finalize(env, k, NULL);
    return v;
}

static canceller *canceller_from_js(napi_env env, napi_value v)
{
    void *p = NULL;

    return napi_get_value_external(env, v, &p) == napi_ok ? p : NULL;
}

napi_value cancel_fire(napi_env env, napi_callback_info info)
{
    size_t argc = 1;
    napi_value arg;

    if (napi_get_cb_info(env, info, &argc, &arg, NULL, NULL) != napi_ok || argc < 1)
        return NULL;
    canceller *k = canceller_from_js(env, arg);
    if (!k)
        return NULL;
    if (!k->cancel) /* the call has ended */
        return NULL;
    csn_cancel_fire(k->cancel);
    pthread_mutex_lock(&k->in->lock);
    for (call *c = k->in->calls; c; c = c->next)
        if (c->cancel == k->cancel)
            c->stop = true;
    instance_wake(k->in);
    pthread_mutex_unlock(&k->in->lock);
    return NULL;
}

/* ---- life of a call ---- */

void *call_alloc(call *c, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (size <= sizeof(c->first) - c->used) {
        c->used += size;
        return c->first + c->used - size;
    }
    memory *m = calloc(1, sizeof(*m) + size);
    if (!m)
        return NULL;
    m->next = c->memory;
    c->memory = m;
    return m + 1;
}

csn_status call_closed(call *c)
{
    return csn_error_set(&c->err, CSN_GONE, "%s: the handle is closed", c->verb->name);
}

static bool returns_handle(const verb *v)
{
    return v->returns == R_SANDBOX || v->returns == R_PROCESS || v->returns == R_WATCH;
}

/* Frees a result that JavaScript does not get. */
static void release_result(call *c)
{
    if (!c->ret)
        return;
    if (returns_handle(c->verb)) {
        handle_close(c->ret, NULL);
        handle_unref(c->ret);
    } else if (c->verb->returns == R_DENIALS) {
        denial_list_release(c->ret);
        free(c->ret);
    } else if (c->verb->returns == R_BYTES) {
        free(c->ret);
    } else if (c->verb->release) {
        c->verb->release(c->ret);
    }
}

static void unlink_call(call *c)
{
    pthread_mutex_lock(&c->in->lock);
    for (call **at = &c->in->calls; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    pthread_mutex_unlock(&c->in->lock);
}

/* Frees the cancel handle with its call: the object may live until the next garbage collection,
 * and each has a descriptor. */
static void release_canceller(call *c, napi_env env)
{
    napi_value object = NULL;

    if (!env || !c->canceller)
        return;
    if (napi_get_reference_value(env, c->canceller, &object) == napi_ok && object) {
        canceller *k = canceller_from_js(env, object);
        csn_cancel_free(k->cancel);
        k->cancel = NULL;
    }
    napi_delete_reference(env, c->canceller);
}

/* env NULL: its references have ended with it. */
static void call_free(call *c, napi_env env)
{
    for (unsigned i = 0; env && i < c->callback_count; i++)
        napi_delete_reference(env, c->callbacks[i]);
    release_canceller(c, env);
    while (c->memory) {
        memory *m = c->memory;
        c->memory = m->next;
        free(m);
    }
    csn_error_free(c->err);
    handle_unref(c->h);
    instance_unref(c->in);
    free(c);
}

static napi_value convert_result(call *c, instance *in, napi_env env)
{
    napi_value v = NULL;

    switch (c->verb->returns) {
    case R_RESULT:
        v = convert_struct(in, env, c->verb->result, c->ret);
        break;
    case R_BYTES:
        v = convert_owned(env, c->ret, c->ret_len);
        c->ret = NULL;
        break;
    case R_DENIALS:
        v = convert_list(in, env, &shape_csn_denial, ((denial_list *)c->ret)->items,
                         ((denial_list *)c->ret)->count);
        break;
    case R_SANDBOX:
    case R_PROCESS:
    case R_WATCH:
        v = handle_to_js(env, c->ret);
        c->ret = NULL;
        break;
    case R_NONE:
        napi_get_undefined(env, &v);
        break;
    }
    return v;
}

static void settle(call *c, instance *in, napi_env env)
{
    napi_value v = c->st >= 0 ? convert_result(c, in, env) : NULL;

    if (v && napi_resolve_deferred(env, c->deferred, v) == napi_ok)
        return;
    if (napi_get_and_clear_last_exception(env, &v) != napi_ok || c->st < 0)
        v = convert_error(in, env, c->st < 0 ? c->st : CSN_INTERNAL, c->err);
    napi_reject_deferred(env, c->deferred, v);
}

static void deliver(message *m, instance *in, napi_env env)
{
    call *c = (call *)((char *)m - offsetof(call, message));

    unlink_call(c);
    if (env) {
        settle(c, in, env);
        instance_pending(in, -1);
    }
    if (env && c->verb->args[0] == 'h')
        handle_closed(c->h);
    release_result(c);
    call_free(c, env);
}

/* ---- on a thread of the pool ---- */

static void wrap_handle(call *c)
{
    handle_kind kind = c->verb->returns == R_SANDBOX   ? H_SANDBOX
                       : c->verb->returns == R_PROCESS ? H_PROCESS
                                                       : H_WATCH;

    c->ret = handle_new(c->in, kind, c->ret, kind == H_SANDBOX ? NULL : c->h);
    if (!c->ret)
        c->st = csn_error_set(&c->err, CSN_NOMEM, "%s: out of memory", c->verb->name);
}

static void run_in_library(call *c)
{
    bool enters = c->h && c->verb->args[0] == 'H';

    if (enters && !handle_enter(c->h)) {
        c->st = call_closed(c);
        return;
    }
    c->target = c->h ? c->h->p : NULL;
    c->st = c->verb->run(c);
    if (c->st >= 0 && c->ret && returns_handle(c->verb))
        wrap_handle(c);
    if (enters)
        handle_leave(c->h);
}

static void run_job(job *j)
{
    call *c = (call *)j;

    run_in_library(c);
    if (!instance_send(c->in, &c->message))
        deliver(&c->message, c->in, NULL);
}

/* ---- on the thread of JavaScript ---- */

/* The call gets the cancel handle of its signal, else the one of its sandbox. */
static void choose_cancel(napi_env env, call *c, napi_value given)
{
    canceller *k = canceller_from_js(env, given);
    handle *root = c->h && c->h->parent ? c->h->parent : c->h;

    c->cancel = k ? k->cancel : root ? root->cancel : NULL;
    if (k)
        napi_create_reference(env, given, 1, &c->canceller);
}

static call *call_new(napi_env env, const verb *v, const napi_value *argv)
{
    instance *in = instance_of(env);
    call *c = in->closing ? NULL : malloc(sizeof(*c));

    if (!c) {
        napi_throw_error(env, "gone", "this program is ending");
        return NULL;
    }
    memset(c, 0, offsetof(call, first));
    memset(&c->used, 0, sizeof(*c) - offsetof(call, used));
    c->job.run = run_job;
    c->message.deliver = deliver;
    c->verb = v;
    c->in = instance_ref(in);
    handle *h = v->args[0] == 'H' || v->args[0] == 'h' ? handle_from_js(env, argv[1]) : NULL;
    c->h = h ? handle_ref(h) : NULL;
    choose_cancel(env, c, argv[0]);
    return c;
}

static void link_call(call *c)
{
    pthread_mutex_lock(&c->in->lock);
    c->next = c->in->calls;
    c->in->calls = c;
    pthread_mutex_unlock(&c->in->lock);
}

/* Arguments: cancel object, handle, and those of the verb. Returns a promise. */
napi_value call_start(napi_env env, napi_callback_info info)
{
    napi_value argv[2 + ARGS_MAX], promise = NULL;
    size_t argc = 2 + ARGS_MAX;
    void *data = NULL;

    if (napi_get_cb_info(env, info, &argc, argv, NULL, &data) != napi_ok)
        return NULL;
    call *c = call_new(env, data, argv);
    if (!c)
        return NULL;
    if (!args_read(env, c, argv + 2) ||
        napi_create_promise(env, &c->deferred, &promise) != napi_ok) {
        call_free(c, env);
        return NULL;
    }
    link_call(c);
    instance_pending(c->in, 1);
    pool_submit(&c->job);
    return promise;
}
