/* ask.c: callbacks of the library, answered by JavaScript.
 *
 * The library calls on a thread of the pool and waits for the answer, so that a slow reader of
 * output holds the command back. The thread gives up when its call is cancelled or its sandbox
 * closes: JavaScript may be waiting for just that. It then marks the ask as abandoned, since
 * the bytes that it points to are the library's. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

/* With the lock held. */
static void ask_unref(ask *a)
{
    if (--a->refs > 0)
        return;
    pthread_cond_destroy(&a->wake);
    free(a);
}

static void ask_unlink(ask *a)
{
    for (ask **at = &a->in->asks; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            return;
        }
}

/* ---- on the thread of JavaScript ---- */

static napi_value number(napi_env env, double d)
{
    napi_value v = NULL;

    napi_create_double(env, d, &v);
    return v;
}

/* With the lock held: what the ask points to is copied. */
static size_t ask_args(ask *a, napi_env env, napi_value argv[3])
{
    argv[0] = number(env, a->id);
    switch (a->kind) {
    case A_OUTPUT:
        argv[1] = number(env, a->stream);
        argv[2] = convert_buffer(env, a->data, a->len);
        return 3;
    case A_CHUNK:
        argv[1] = convert_buffer(env, a->data, a->len);
        return 2;
    case A_SOURCE:
        argv[1] = number(env, (double)a->len);
        return 2;
    case A_DENIAL:
        argv[1] = convert_struct(a->in, env, &shape_csn_denial, a->denial);
        return 2;
    case A_PROGRESS:
        argv[1] = number(env, (double)a->numbers[0]);
        argv[2] = number(env, (double)a->numbers[1]);
        return 3;
    case A_PROTECTED:
        argv[1] = convert_string(env, a->path);
        argv[2] = convert_string(env, a->rule);
        return 3;
    }
    return 1;
}

/* With the lock held. */
static void set_answer(ask *a, int64_t answer)
{
    a->answer = answer;
    a->answered = true;
    pthread_cond_signal(&a->wake);
}

static void deliver(message *m, instance *in, napi_env env)
{
    ask *a = (ask *)m;
    napi_value argv[3], function = NULL, undefined = NULL, thrown = NULL;
    size_t argc = 0;

    pthread_mutex_lock(&in->lock);
    if (env && !a->abandoned) {
        argc = ask_args(a, env, argv);
        napi_get_reference_value(env, a->function, &function);
    }
    pthread_mutex_unlock(&in->lock);
    bool called = argc > 0 && function && napi_get_undefined(env, &undefined) == napi_ok &&
                  napi_call_function(env, undefined, function, argc, argv, NULL) == napi_ok;
    if (argc > 0 && !called)
        napi_get_and_clear_last_exception(env, &thrown);
    pthread_mutex_lock(&in->lock);
    if (!called)
        set_answer(a, -1);
    ask_unref(a);
    pthread_mutex_unlock(&in->lock);
}

/* With the lock held: the bytes for a source, at most as many as it asked for. */
static int64_t take_bytes(napi_env env, ask *a, napi_value v)
{
    void *data = NULL;
    size_t len = 0;
    bool is_buffer = false;

    if (napi_is_buffer(env, v, &is_buffer) != napi_ok || !is_buffer ||
        napi_get_buffer_info(env, v, &data, &len) != napi_ok || len > a->len)
        return -1;
    if (len > 0)
        memcpy(a->buf, data, len);
    return (int64_t)len;
}

/* answer(id, value): a number, or for a source its bytes. */
napi_value ask_answer(napi_env env, napi_callback_info info)
{
    instance *in = instance_of(env);
    size_t argc = 2;
    napi_value argv[2];
    uint32_t id = 0;
    int64_t answer = -1;

    if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok ||
        napi_get_value_uint32(env, argv[0], &id) != napi_ok)
        return NULL;
    pthread_mutex_lock(&in->lock);
    ask *a = in->asks;
    while (a && a->id != id)
        a = a->next;
    if (a && a->kind == A_SOURCE)
        set_answer(a, take_bytes(env, a, argv[1]));
    else if (a)
        set_answer(a, napi_get_value_int64(env, argv[1], &answer) == napi_ok ? answer : -1);
    pthread_mutex_unlock(&in->lock);
    return NULL;
}

/* ---- on a thread of the pool ---- */

/* With the lock held: the answer, or -1 if the call must stop. */
static int64_t await(ask *a)
{
    while (!a->answered && !a->call->stop && !a->in->closing)
        pthread_cond_wait(&a->wake, &a->in->lock);
    int64_t answer = a->answered ? a->answer : -1;
    a->abandoned = true;
    ask_unlink(a);
    ask_unref(a);
    return answer;
}

static int64_t ask_and_wait(const callback_ctx *ctx, ask like)
{
    instance *in = ctx->call->in;
    ask *a = malloc(sizeof(*a));

    if (!a)
        return -1;
    *a = like;
    a->message.deliver = deliver;
    a->call = ctx->call;
    a->in = in;
    a->function = ctx->function;
    a->refs = 2;
    pthread_cond_init(&a->wake, NULL);
    pthread_mutex_lock(&in->lock);
    a->id = ++in->next_ask;
    a->next = in->asks;
    in->asks = a;
    pthread_mutex_unlock(&in->lock);
    bool sent = instance_send(in, &a->message);
    pool_blocked(1);
    pthread_mutex_lock(&in->lock);
    if (!sent)
        ask_unref(a);
    int64_t answer = await(a);
    pthread_mutex_unlock(&in->lock);
    pool_blocked(-1);
    return answer;
}

int ask_output(void *ctx, int stream, const void *data, size_t len)
{
    return ask_and_wait(
               ctx, (ask){.kind = A_OUTPUT, .stream = stream, .data = data, .len = len}) != 0;
}

int ask_chunk(void *ctx, const void *data, size_t len)
{
    return ask_and_wait(ctx, (ask){.kind = A_CHUNK, .data = data, .len = len}) != 0;
}

int64_t ask_source(void *ctx, void *buf, size_t len)
{
    return ask_and_wait(ctx, (ask){.kind = A_SOURCE, .buf = buf, .len = len});
}

void ask_denial(void *ctx, const csn_denial *d)
{
    (void)ask_and_wait(ctx, (ask){.kind = A_DENIAL, .denial = d});
}

void ask_progress(void *ctx, uint64_t entries, uint64_t bytes)
{
    (void)ask_and_wait(ctx, (ask){.kind = A_PROGRESS, .numbers = {entries, bytes}});
}

void ask_protected(void *ctx, const char *path, const char *rule)
{
    (void)ask_and_wait(ctx, (ask){.kind = A_PROTECTED, .path = path, .rule = rule});
}

/* ---- lines, many at a time ---- */

static int flush_lines(callback_ctx *ctx)
{
    size_t n = ctx->used;

    ctx->used = 0;
    return n > 0 ? ask_chunk(ctx, ctx->lines, n) : 0;
}

int ask_line(void *data, const char *line, size_t len)
{
    callback_ctx *ctx = data;

    if (ctx->used + len + 1 > ctx->cap) {
        if (flush_lines(ctx) != 0)
            return 1;
        size_t cap = len + 1 > LINES_MAX ? len + 1 : LINES_MAX;
        char *more = cap > ctx->cap ? realloc(ctx->lines, cap) : ctx->lines;
        if (!more)
            return 1;
        ctx->lines = more;
        ctx->cap = cap > ctx->cap ? cap : ctx->cap;
    }
    memcpy(ctx->lines + ctx->used, line, len);
    ctx->lines[ctx->used + len] = '\n';
    ctx->used += len + 1;
    return 0;
}

void ask_lines_end(callback_ctx *ctx)
{
    (void)flush_lines(ctx);
    free(ctx->lines);
    ctx->lines = NULL;
    ctx->cap = 0;
}
