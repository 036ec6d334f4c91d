/* addon.c: the instance of an environment, and what the addon exports. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

/* ---- instances ---- */

instance *instance_ref(instance *in)
{
    __atomic_add_fetch(&in->refs, 1, __ATOMIC_RELAXED);
    return in;
}

void instance_unref(instance *in)
{
    if (__atomic_sub_fetch(&in->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pthread_mutex_destroy(&in->lock);
    pthread_cond_destroy(&in->changed);
    shared_list_release(in);
    free(in);
}

instance *instance_of(napi_env env)
{
    void *in = NULL;

    napi_get_instance_data(env, &in);
    return in;
}

void instance_pending(instance *in, int change)
{
    bool was = in->pending > 0;

    in->pending += (unsigned)change;
    if (!was && in->pending > 0)
        napi_ref_threadsafe_function(in->env, in->queue);
    else if (was && in->pending == 0)
        napi_unref_threadsafe_function(in->env, in->queue);
}

bool instance_send(instance *in, message *m)
{
    pthread_mutex_lock(&in->lock);
    bool sent = !in->closing &&
                napi_call_threadsafe_function(in->queue, m, napi_tsfn_nonblocking) == napi_ok;
    pthread_mutex_unlock(&in->lock);
    return sent;
}

void instance_wake(instance *in)
{
    for (ask *a = in->asks; a; a = a->next)
        pthread_cond_signal(&a->wake);
    pthread_cond_broadcast(&in->changed);
}

static void receive(napi_env env, napi_value function, void *context, void *data)
{
    message *m = data;

    (void)function;
    m->deliver(m, context, env);
}

/* The next sandbox that is open, with a reference. */
static handle *next_open(instance *in)
{
    handle *found = NULL;

    pthread_mutex_lock(&in->lock);
    for (handle *h = in->handles; h && !found; h = h->next)
        if (h->kind == H_SANDBOX && h->p && !h->closing)
            found = handle_ref(h);
    pthread_mutex_unlock(&in->lock);
    return found;
}

void instance_shutdown(instance *in)
{
    pthread_mutex_lock(&in->lock);
    in->closing = true;
    for (call *c = in->calls; c; c = c->next) {
        c->stop = true;
        if (c->cancel)
            csn_cancel_fire(c->cancel);
    }
    instance_wake(in);
    pthread_mutex_unlock(&in->lock);
    for (handle *h; (h = next_open(in));) {
        handle_close(h, NULL);
        handle_unref(h);
    }
}

static void environment_ends(void *data)
{
    instance *in = data;

    instance_shutdown(in);
    napi_release_threadsafe_function(in->queue, napi_tsfn_abort);
}

static void release_instance(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    instance_unref(data);
}

/* ---- exports ---- */

static napi_value shutdown_now(napi_env env, napi_callback_info info)
{
    (void)info;
    instance_shutdown(instance_of(env));
    return NULL;
}

static napi_value set_factories(napi_env env, napi_callback_info info)
{
    size_t argc = 1;
    napi_value list;

    if (napi_get_cb_info(env, info, &argc, &list, NULL, NULL) == napi_ok && argc == 1)
        napi_create_reference(env, list, 1, &instance_of(env)->factories);
    return NULL;
}

static napi_value version(napi_env env, napi_callback_info info)
{
    (void)info;
    return convert_string(env, csn_version());
}

/* of(handle): what the library knows without waiting: the id of a sandbox, the pid of a
 * process; undefined when it is closed. */
static napi_value identify(napi_env env, napi_callback_info info)
{
    size_t argc = 1;
    napi_value arg, v = NULL;

    if (napi_get_cb_info(env, info, &argc, &arg, NULL, NULL) != napi_ok || argc < 1)
        return NULL;
    handle *h = handle_from_js(env, arg);
    if (!h || !handle_enter(h))
        return NULL;
    if (h->kind == H_SANDBOX)
        v = convert_string(env, csn_id(h->p));
    else if (h->kind == H_PROCESS)
        napi_create_double(env, (double)csn_process_pid(h->p), &v);
    handle_leave(h);
    return v;
}

/* Ends a process or watch handle, after its running call. */
static napi_value release_handle(napi_env env, napi_callback_info info)
{
    size_t argc = 1;
    napi_value arg;

    if (napi_get_cb_info(env, info, &argc, &arg, NULL, NULL) != napi_ok || argc < 1)
        return NULL;
    handle *h = handle_from_js(env, arg);
    if (h && h->kind != H_SANDBOX)
        handle_close(h, NULL);
    return NULL;
}

static bool export_function(napi_env env, napi_value exports, const char *name,
                            napi_callback function, const void *data)
{
    napi_value v = NULL;

    return napi_create_function(env, name, NAPI_AUTO_LENGTH, function, (void *)data, &v) ==
               napi_ok &&
           napi_set_named_property(env, exports, name, v) == napi_ok;
}

static const struct {
    const char *name;
    napi_callback function;
} functions[] = {
    {"shutdown", shutdown_now},
    {"setFactories", set_factories},
    {"version", version},
    {"identify", identify},
    {"release", release_handle},
    {"cancelNew", cancel_new},
    {"cancelFire", cancel_fire},
    {"answer", ask_answer},
    {"poolThreads", pool_threads},
    {"setLog", log_set},
    {"registerBackend", backend_register},
    {"backendWrite", backend_write},
    {"backendRead", backend_read},
    {"backendEnd", backend_end},
};

static instance *instance_new(napi_env env)
{
    instance *in = calloc(1, sizeof(*in));
    napi_value name = NULL;

    if (!in)
        return NULL;
    in->refs = 1;
    in->env = env;
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->changed, NULL);
    napi_create_string_utf8(env, "caisson", NAPI_AUTO_LENGTH, &name);
    if (napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, in, receive,
                                        &in->queue) != napi_ok) {
        instance_unref(in);
        return NULL;
    }
    napi_unref_threadsafe_function(env, in->queue);
    return in;
}

NAPI_MODULE_INIT()
{
    instance *in = instance_new(env);

    if (!in || napi_set_instance_data(env, in, release_instance, NULL) != napi_ok) {
        napi_throw_error(env, "nomem", "caisson: out of memory");
        return NULL;
    }
    napi_add_env_cleanup_hook(env, environment_ends, in);
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (!export_function(env, exports, functions[i].name, functions[i].function, NULL))
            return NULL;
    for (size_t i = 0; i < verb_count; i++)
        if (!export_function(env, exports, verbs[i].name, call_start, &verbs[i]))
            return NULL;
    return exports;
}
