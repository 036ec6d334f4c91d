/* special.c: verbs that are more than one call of the library. */
#include "special.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLICE_MS 250

/* ---- sandboxes ---- */

csn_status run_open(call *c)
{
    csn_config *config = NULL;
    csn_sandbox *sb = NULL;
    csn_status st = csn_config_parse(c->a[0].b.p, c->a[0].b.n, "options", &config, &c->err);

    if (st == CSN_OK)
        st = csn_open(config, &sb, &c->err);
    csn_config_free(config);
    c->ret = sb;
    return st;
}

static csn_status return_denials(call *c, csn_status st, denial_list *from)
{
    denial_list *l = st >= 0 ? calloc(1, sizeof(*l)) : NULL;

    if (st >= 0 && !l)
        return csn_error_set(&c->err, CSN_NOMEM, "out of memory");
    if (l) {
        *l = *from;
        *from = (denial_list){0};
    }
    c->ret = l;
    return st;
}

/* Closing twice is harmless. */
csn_status run_close(call *c)
{
    handle_close(c->h, c);
    return return_denials(c, CSN_OK, &c->h->denials);
}

csn_status run_destroy(call *c)
{
    handle_release_asks(c->h);
    csn_status st = csn_destroy(c->target, &c->err);
    return return_denials(c, st, &c->h->denials);
}

csn_status run_reset(call *c)
{
    handle_release_asks(c->h);
    return csn_reset(c->target, &c->err);
}

csn_status run_destroy_id_report(call *c)
{
    denial_list found = {0};
    csn_status st = csn_destroy_id_report(c->a[0].s, denial_collect, &found, &c->err);

    st = return_denials(c, st, &found);
    denial_list_release(&found);
    return st;
}

/* ---- waiting ---- */

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool must_stop(call *c)
{
    pthread_mutex_lock(&c->in->lock);
    bool stop = c->stop || c->in->closing;
    pthread_mutex_unlock(&c->in->lock);
    return stop;
}

/* A wait of the library that has no cancel handle is done in slices, between which the call can
 * be stopped. */
typedef struct slices {
    uint64_t end, length;
} slices;

static slices slices_begin(uint64_t ms)
{
    return (slices){.end = ms == CSN_NO_LIMIT ? CSN_NO_LIMIT : now_ms() + ms,
                    .length = ms < SLICE_MS ? ms : SLICE_MS};
}

/* The status of a wait that came to its end, or was stopped. */
static csn_status slices_end(call *c, csn_status st)
{
    if (st != CSN_TIMEOUT || !must_stop(c))
        return st;
    csn_error_free(c->err);
    c->err = NULL;
    return handle_is_closing(c->h) ? call_closed(c)
                                   : csn_error_set(&c->err, CSN_CANCELLED, "cancelled");
}

/* True if another slice is to be waited for. */
static bool slices_next(slices *s, call *c)
{
    uint64_t now = now_ms();

    if (now >= s->end || must_stop(c))
        return false;
    if (s->end != CSN_NO_LIMIT && s->end - now < s->length)
        s->length = s->end - now;
    csn_error_free(c->err);
    c->err = NULL;
    return true;
}

/* wait_port and wait_log write to the audit log, so only a call with a signal is sliced. */
static slices slices_of_logged(const call *c, uint64_t ms)
{
    slices s = slices_begin(ms);

    if (!c->canceller)
        s.length = ms;
    return s;
}

csn_status run_wait_port(call *c)
{
    slices s = slices_of_logged(c, c->a[1].u);
    csn_status st;

    do
        st = csn_wait_port(c->target, (uint16_t)c->a[0].i, s.length, &c->err);
    while (st == CSN_TIMEOUT && slices_next(&s, c));
    return slices_end(c, st);
}

csn_status run_wait_log(call *c)
{
    slices s = slices_of_logged(c, c->a[1].u);
    csn_status st;

    do
        st = csn_wait_log(c->target, c->a[0].s, s.length, &c->err);
    while (st == CSN_TIMEOUT && slices_next(&s, c));
    return slices_end(c, st);
}

csn_status run_process_wait(call *c)
{
    slices s = slices_begin(c->a[0].u);
    csn_process_list *l = NULL;
    csn_status st;

    do
        st = csn_process_wait(c->target, s.length, &l, &c->err);
    while (st == CSN_TIMEOUT && slices_next(&s, c));
    c->ret = l;
    return slices_end(c, st);
}

csn_status run_process_logs(call *c)
{
    slices s = slices_begin(c->a[2].u);
    csn_log_chunk *chunk = NULL;
    csn_status st;

    for (;;) {
        st = csn_process_logs(c->target, (int)c->a[0].i, c->a[1].u, s.length, &chunk, &c->err);
        if (st < 0 || chunk->len > 0 || chunk->end || !slices_next(&s, c))
            break;
        csn_log_chunk_free(chunk);
        chunk = NULL;
    }
    c->ret = chunk;
    return st;
}

csn_status run_watch_next(call *c)
{
    slices s = slices_begin(c->a[0].u);
    csn_event *e = malloc(sizeof(*e));
    csn_status st;

    if (!e)
        return csn_error_set(&c->err, CSN_NOMEM, "watch: out of memory");
    do
        st = csn_watch_next(c->target, s.length, e, &c->err);
    while (st == CSN_TIMEOUT && slices_next(&s, c));
    if (st < 0) {
        free(e);
        return slices_end(c, st);
    }
    c->ret = e;
    return st;
}

/* ---- bytes ---- */

typedef struct block {
    char *data;
    size_t len, cap;
    bool failed;
} block;

static int collect(void *ctx, const void *data, size_t len)
{
    block *b = ctx;

    if (b->cap - b->len < len) {
        size_t cap = b->cap * 2 > b->len + len ? b->cap * 2 : b->len + len;
        char *more = realloc(b->data, cap);
        if (!more) {
            b->failed = true;
            return 1;
        }
        b->data = more;
        b->cap = cap;
    }
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

/* Without a sink the bytes are the result. */
csn_status run_read_bytes(call *c)
{
    block b = {0};
    callback_ctx *sink = c->a[2].o;
    csn_status st = csn_read_bytes(c->target, c->a[0].s, c->a[1].o, sink ? ask_chunk : collect,
                                   sink ? (void *)sink : &b, &c->err);

    if (st >= 0 && b.failed)
        st = csn_error_set(&c->err, CSN_NOMEM, "read_bytes: out of memory");
    if (st < 0) {
        free(b.data);
        return st;
    }
    c->ret = b.data;
    c->ret_len = b.len;
    return st;
}

/* ---- audit logs ---- */

csn_status run_audit_read(call *c)
{
    csn_status st = csn_audit_read(c->a[0].s, ask_line, c->a[1].o, &c->err);

    ask_lines_end(c->a[1].o);
    return st;
}

csn_status run_audit_read_file(call *c)
{
    csn_status st = csn_audit_read_file(c->a[0].s, ask_line, c->a[1].o, &c->err);

    ask_lines_end(c->a[1].o);
    return st;
}

/* ---- debug lines ---- */

typedef struct log_line {
    message message;
    char text[];
} log_line;

static instance *log_to; /* the last environment that asked for lines */

static void deliver_line(message *m, instance *in, napi_env env)
{
    log_line *l = (log_line *)m;
    napi_value function = NULL, undefined = NULL,
               text = env ? convert_string(env, l->text) : NULL;

    if (env && in->log && napi_get_reference_value(env, in->log, &function) == napi_ok) {
        napi_get_undefined(env, &undefined);
        napi_call_function(env, undefined, function, 1, &text, NULL);
    }
    free(l);
}

/* Does not wait: lines also come from the thread of JavaScript. */
static void receive_line(void *ctx, const char *line)
{
    instance *in = __atomic_load_n(&log_to, __ATOMIC_ACQUIRE);
    log_line *l = in ? malloc(sizeof(*l) + strlen(line) + 1) : NULL;

    (void)ctx;
    if (!l)
        return;
    l->message.deliver = deliver_line;
    memcpy(l->text, line, strlen(line) + 1);
    if (!instance_send(in, &l->message))
        free(l);
}

/* setLog(function or undefined) */
napi_value log_set(napi_env env, napi_callback_info info)
{
    instance *in = instance_of(env);
    size_t argc = 1;
    napi_value arg;
    napi_valuetype type = napi_undefined;

    if (napi_get_cb_info(env, info, &argc, &arg, NULL, NULL) != napi_ok ||
        napi_typeof(env, arg, &type) != napi_ok)
        return NULL;
    if (in->log)
        napi_delete_reference(env, in->log);
    in->log = NULL;
    if (type == napi_function)
        napi_create_reference(env, arg, 1, &in->log);
    if (in->log) /* never released: a line may be on its way */
        __atomic_store_n(&log_to, instance_ref(in), __ATOMIC_RELEASE);
    csn_set_log(in->log ? receive_line : NULL, NULL);
    return NULL;
}
