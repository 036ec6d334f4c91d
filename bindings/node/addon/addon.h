/* addon.h: shared declarations of the Node-API addon.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A call of a verb has three steps. On the thread of JavaScript its arguments are copied
 * (args.c), on a thread of the pool the library runs it (call.c, pool.c), and back on the first
 * thread its result becomes an object (convert.c) that settles the promise. A callback of the
 * library on a pool thread is an `ask`: the thread waits until JavaScript has answered (ask.c).
 *
 * One `instance` exists per environment (main thread, worker thread). Its lock protects its
 * handles, calls and asks. */
#ifndef CAISSON_ADDON_H
#define CAISSON_ADDON_H

#define NAPI_VERSION 8
#include <node_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "caisson/backend.h"

/* ---- fields of structs, see generated.c ---- */

typedef enum field_kind {
    K_STR,     /* const char *, NULL is null */
    K_STRV,    /* NULL-terminated list */
    K_TEXT,    /* bytes that are a string where they are UTF-8 */
    K_DATA,    /* bytes, always a Buffer */
    K_CONTENT, /* of csn_read_result: bytes of an image, else text */
    K_SHARED,  /* a list of structs of strings that rarely changes */
    K_LIST,    /* pointer to structs and a count */
    K_INNER,   /* a struct inside this one */
    K_BOOL,
    K_U32,
    K_I32,
    K_U64,
    K_I64,
    K_U16,
    K_F64,
    K_BIG,   /* int64_t as a BigInt: nanoseconds since the epoch */
    K_CODE,  /* an exit code: -1 is null */
    K_WORD,  /* a number with a word */
    K_CHARS, /* char [n], NUL-terminated */
    K_CANCEL,
    K_CALLBACK, /* extra: offset of its context */
    K_SKIP,     /* stays zero */
} field_kind;

typedef struct shape shape;

typedef struct field {
    const char *name; /* in JavaScript */
    field_kind kind;
    uint16_t offset;
    uint16_t extra; /* offset of the length, count or context */
    bool narrow;    /* the count is a uint32_t */
    const shape *of;
    const char *const *words;
    void (*callback)(void); /* the function that the library gets */
} field;

struct shape {
    const char *name;
    uint32_t index; /* of the function that makes the object */
    uint32_t size;
    bool sized; /* begins with its own size */
    uint32_t count;
    const field *fields;
};

#define SHAPE_FIELDS_MAX 40

/* ---- instances ---- */

typedef struct instance instance;
typedef struct handle handle;
typedef struct call call;
typedef struct ask ask;

/* See shared_list.c. */
typedef struct shared_list {
    char *text;
    size_t used, cap;
    napi_ref list;
} shared_list;

struct instance {
    unsigned refs;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a call has left the library, or must stop */
    bool closing;           /* the environment ends: nothing is delivered any more */
    napi_env env;
    napi_threadsafe_function queue;
    unsigned pending; /* promises; the event loop lives while there are any */
    napi_ref factories;
    napi_ref log;
    shared_list kept, candidate;
    handle *handles;
    call *calls;
    ask *asks;
    uint32_t next_ask;
};

instance *instance_ref(instance *in);
void instance_unref(instance *in);
instance *instance_of(napi_env env);
/* Ends all calls and closes all sandboxes. For the thread of JavaScript. */
void instance_shutdown(instance *in);
/* Wakes threads that wait for an answer or for the end of calls. With the lock held. */
void instance_wake(instance *in);
/* Counts a promise: begins (1) or ends (-1). For the thread of JavaScript. */
void instance_pending(instance *in, int change);

/* What pool threads send to the thread of JavaScript. */
typedef struct message {
    void (*deliver)(struct message *m, instance *in, napi_env env); /* env NULL: only free it */
} message;
/* False if the environment ends; the message is still the caller's. */
bool instance_send(instance *in, message *m);

/* ---- handles ---- */

/* Copies of denials; the layout is that of a list in a result. */
typedef struct denial_list {
    csn_denial *items;
    size_t count;
} denial_list;
void denial_collect(void *ctx, const csn_denial *d); /* ctx: denial_list */
void denial_list_release(denial_list *l);

typedef enum handle_kind { H_SANDBOX = 1, H_PROCESS, H_WATCH } handle_kind;

/* A sandbox, process or watch. Freed by the library when no call uses it: by close, or when
 * JavaScript has lost it. `parent` of a process or watch is its sandbox. */
struct handle {
    handle_kind kind;
    unsigned refs;
    unsigned active; /* calls inside the library, also those of children */
    bool closing;    /* no further call may begin */
    void *p;
    instance *in;
    handle *parent;
    csn_cancel *cancel;  /* fired by close */
    denial_list denials; /* of its end */
    handle *next;
};

handle *handle_new(instance *in, handle_kind kind, void *p, handle *parent);
napi_value handle_to_js(napi_env env, handle *h);
handle *handle_from_js(napi_env env, napi_value v);
handle *handle_ref(handle *h);
void handle_unref(handle *h);
/* Begins a use of the handle in the library; false if it is closed. */
bool handle_enter(handle *h);
void handle_leave(handle *h);
bool handle_is_closing(handle *h);
/* Refuses new calls. A sandbox: ends running calls except `own`, waits for them, and frees all
 * that the library has. A process or watch is freed after its last call. */
void handle_close(handle *h, const call *own);
/* After close, on the thread of JavaScript: frees the descriptor of the cancel handle, which
 * else stays until the object is collected. */
void handle_closed(handle *h);
/* Callbacks of calls on this sandbox are not waited for any more: it is about to end. */
void handle_release_asks(handle *h);

/* ---- calls ---- */

#define ARGS_MAX 8

typedef union value {
    const char *s;
    const char *const *v;
    uint64_t u;
    int64_t i;
    void *o;
    struct {
        void *p;
        size_t n;
    } b;
} value;

typedef enum returns {
    R_NONE,
    R_RESULT,
    R_BYTES,
    R_DENIALS,
    R_SANDBOX,
    R_PROCESS,
    R_WATCH
} returns;

typedef struct verb {
    const char *name;
    handle_kind target; /* of the first argument, 0: none */
    const char *args;   /* one letter per argument, see args.c */
    const char *names[ARGS_MAX];
    const shape *shapes[ARGS_MAX];
    csn_status (*run)(call *c);
    returns returns;
    const shape *result;
    void (*release)(void *); /* frees the result */
} verb;

extern const verb verbs[];
extern const size_t verb_count;

typedef struct memory {
    struct memory *next;
} memory;

typedef struct job {
    struct job *next;
    void (*run)(struct job *j);
} job;

#define CALLBACKS_MAX 3

struct call {
    job job;
    message message;
    instance *in;
    const verb *verb;
    handle *h;
    void *target; /* what the library knows h as */
    value a[ARGS_MAX];
    memory *memory; /* of arguments */
    unsigned char first[1024];
    size_t used;
    csn_cancel *cancel;
    bool stop;          /* asks of this call are not waited for any more */
    napi_ref canceller; /* the object that may cancel this call, or NULL */
    napi_ref callbacks[CALLBACKS_MAX];
    unsigned callback_count;
    csn_status st;
    csn_error *err;
    void *ret;
    size_t ret_len;
    napi_deferred deferred;
    call *next;
};

napi_value call_start(napi_env env, napi_callback_info info);
void *call_alloc(call *c, size_t size);
/* For verbs whose `run` is written by hand. */
csn_status call_closed(call *c);
napi_value cancel_new(napi_env env, napi_callback_info info);
napi_value cancel_fire(napi_env env, napi_callback_info info);

/* ---- arguments and results ---- */

/* Throws and returns false when an argument is wrong. */
bool args_read(napi_env env, call *c, const napi_value *argv);

napi_value convert_struct(instance *in, napi_env env, const shape *s, const void *p);
napi_value convert_list(instance *in, napi_env env, const shape *s, const void *items,
                        size_t count);
napi_value shared_list_convert(instance *in, napi_env env, const shape *s, const void *items,
                               size_t count);
void shared_list_release(instance *in);
napi_value convert_string(napi_env env, const char *s);
napi_value convert_buffer(napi_env env, const void *data, size_t len);
napi_value convert_error(instance *in, napi_env env, csn_status st, const csn_error *e);
/* A malloc'd block becomes a Buffer that owns it. */
napi_value convert_owned(napi_env env, void *data, size_t len);

extern const shape shape_csn_denial;

/* ---- callbacks of the library ---- */

typedef enum ask_kind {
    A_OUTPUT,
    A_CHUNK,
    A_SOURCE,
    A_DENIAL,
    A_PROGRESS,
    A_PROTECTED
} ask_kind;

struct ask {
    message message;
    ask_kind kind;
    uint32_t id;
    unsigned refs;
    call *call;
    instance *in;
    pthread_cond_t wake;
    napi_ref function;
    int stream;
    const void *data;
    size_t len;
    const char *path, *rule;
    const csn_denial *denial;
    uint64_t numbers[2];
    bool abandoned, answered;
    int64_t answer;
    void *buf; /* A_SOURCE: where bytes go */
    ask *next;
};

#define LINES_MAX 65536

typedef struct callback_ctx {
    call *call;
    napi_ref function;
    char *lines; /* ask_line: what is not delivered yet */
    size_t used, cap;
} callback_ctx;

/* The functions that the library calls; ctx is a callback_ctx. */
int ask_output(void *ctx, int stream, const void *data, size_t len);
int ask_chunk(void *ctx, const void *data, size_t len);
int ask_line(void *ctx, const char *line, size_t len); /* batched: end with ask_lines_end */
void ask_lines_end(callback_ctx *ctx);
int64_t ask_source(void *ctx, void *buf, size_t len);
void ask_denial(void *ctx, const csn_denial *d);
void ask_progress(void *ctx, uint64_t entries, uint64_t bytes);
void ask_protected(void *ctx, const char *path, const char *rule);
napi_value ask_answer(napi_env env, napi_callback_info info);

/* ---- the rest ---- */

void pool_submit(job *j);
/* A job waits for something that another job may have to do: the pool may have one more
 * thread (1) until it goes on (-1). */
void pool_blocked(int change);
napi_value pool_threads(napi_env env, napi_callback_info info);

napi_value backend_register(napi_env env, napi_callback_info info);
napi_value backend_write(napi_env env, napi_callback_info info);
napi_value backend_read(napi_env env, napi_callback_info info);
napi_value backend_end(napi_env env, napi_callback_info info);
napi_value log_set(napi_env env, napi_callback_info info);

#endif
