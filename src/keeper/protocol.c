/* proto.c: bodies of the messages between the library and a keeper.
 *
 * Linked into both. Everything that is decoded here was written by the other side, which may be
 * taken over: counts have ceilings, flags that mean nothing are refused. The decoders are pure
 * and fuzzed (fuzz_keeper_proto). */
#include "keeper/proto.h"

#include <errno.h>
#include <stdlib.h>

#include "os/gateway_net.h"

static void put_strv(csn_packer *o, const char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    if (n > CSN_ARGV_COUNT_MAX) {
        o->error = o->error ? o->error : E2BIG;
        return;
    }
    csn_put_u32(o, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        csn_put_str(o, v[i]);
}

void csn_put_spawn(csn_packer *o, const csn_spawn_body *s)
{
    csn_put_u32(o, s->flags);
    csn_put_u32(o, s->rows);
    csn_put_u32(o, s->cols);
    csn_put_u64(o, s->memory_max);
    csn_put_u64(o, s->file_max);
    csn_put_u64(o, s->nofile_max);
    csn_put_u64(o, s->ring_max);
    csn_put_u64(o, s->deadline_ns);
    csn_put_str(o, s->cwd);
    csn_put_str(o, s->command);
    put_strv(o, s->argv);
    put_strv(o, s->env);
}

/* Steps over a list without keeping it; how many strings it has. */
static size_t skip_strv(csn_unpacker *in)
{
    uint32_t n = csn_get_u32(in);

    if (n > CSN_ARGV_COUNT_MAX)
        in->error = EPROTO;
    for (uint32_t i = 0; i < n && in->error == 0; i++)
        (void)csn_get_str(in, CSN_KEEPER_BODY_MAX, false);
    return n;
}

/* Fills v[0..n-1] and the NULL after it. */
static void fill_strv(csn_unpacker *in, const char **v)
{
    uint32_t n = csn_get_u32(in);

    for (uint32_t i = 0; i < n; i++)
        v[i] = csn_get_str(in, CSN_KEEPER_BODY_MAX, false);
    v[n] = NULL;
}

int csn_get_spawn(const void *body, size_t len, csn_spawn_body *ret)
{
    csn_unpacker in;

    *ret = (csn_spawn_body){0};
    csn_unpacker_init(&in, body, len);
    ret->flags = csn_get_u32(&in);
    ret->rows = csn_get_u32(&in);
    ret->cols = csn_get_u32(&in);
    ret->memory_max = csn_get_u64(&in);
    ret->file_max = csn_get_u64(&in);
    ret->nofile_max = csn_get_u64(&in);
    ret->ring_max = csn_get_u64(&in);
    ret->deadline_ns = csn_get_u64(&in);
    ret->cwd = csn_get_str(&in, CSN_PATH_MAX, true);
    ret->command = csn_get_str(&in, CSN_COMMAND_TEXT_MAX, true);
    /* Twice over the lists: first to check and count, then to fill one block of the right size.
     */
    csn_unpacker lists = in;
    size_t argc = skip_strv(&in);
    size_t envc = skip_strv(&in);
    int rc = csn_unpacker_end(&in);
    if (rc < 0)
        return rc;
    if ((ret->flags & ~CSN_SPAWN_ALL) != 0 || ret->rows > UINT16_MAX || ret->cols > UINT16_MAX)
        return -EPROTO;
    /* One spare slot before argv[0]: a script without #! is run as /bin/sh FILE ARGS. */
    const char **v = NULL;
    if (argc + envc + 3 > CSN_SPAWN_FEW) {
        ret->heap = v = malloc((argc + envc + 3) * sizeof(*v));
        if (!v)
            return -ENOMEM;
    }
    v = v ? v : ret->few;
    v[0] = NULL;
    ret->argv = v + 1;
    ret->env = v + argc + 2;
    fill_strv(&lists, ret->argv);
    fill_strv(&lists, ret->env);
    return 0;
}

void csn_spawn_body_release(csn_spawn_body *s)
{
    free((void *)(uintptr_t)s->heap);
    *s = (csn_spawn_body){0};
}

size_t csn_spawn_fd_count(uint32_t flags)
{
    return (size_t)__builtin_popcount(flags & CSN_SPAWN_FDS);
}

void csn_put_exit(csn_packer *o, const csn_exit_body *b)
{
    csn_put_u32(o, b->stage);
    csn_put_u32(o, b->errnum);
    csn_put_u32(o, b->status);
    csn_put_u32(o, b->killed);
    csn_put_u64(o, b->cpu_ns);
    csn_put_u64(o, b->peak_memory);
    csn_put_u64(o, b->after);
}

int csn_get_exit(const void *body, size_t len, csn_exit_body *ret)
{
    csn_exit_body b;
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    b.stage = csn_get_u32(&in);
    b.errnum = csn_get_u32(&in);
    b.status = csn_get_u32(&in);
    b.killed = csn_get_u32(&in);
    b.cpu_ns = csn_get_u64(&in);
    b.peak_memory = csn_get_u64(&in);
    b.after = csn_get_u64(&in);
    if (csn_unpacker_end(&in) < 0 || (b.after & ~(uint64_t)CSN_AFTER_ALL) != 0 ||
        b.stage > CSN_STAGE_INTERP)
        return -EPROTO;
    *ret = b;
    return 0;
}

void csn_put_proc(csn_packer *o, const csn_proc_body *b)
{
    csn_put_i64(o, b->pid);
    csn_put_u32(o, b->running);
    csn_put_u32(o, b->status);
    csn_put_u32(o, b->pty);
    csn_put_u64(o, b->out_total);
    csn_put_u64(o, b->err_total);
    csn_put_i64(o, b->started_ms);
    csn_put_str(o, b->command);
}

int csn_get_proc(csn_unpacker *in, csn_proc_body *ret)
{
    csn_proc_body b;

    b.pid = csn_get_i64(in);
    b.running = csn_get_u32(in);
    b.status = csn_get_u32(in);
    b.pty = csn_get_u32(in);
    b.out_total = csn_get_u64(in);
    b.err_total = csn_get_u64(in);
    b.started_ms = csn_get_i64(in);
    b.command = csn_get_str(in, CSN_COMMAND_TEXT_MAX, false);
    if (in->error != 0)
        return -EPROTO;
    *ret = b;
    return 0;
}

void csn_put_ask(csn_packer *o, const csn_ask_body *b)
{
    csn_put_i64(o, b->pid);
    csn_put_u64(o, b->a);
    csn_put_u64(o, b->b);
    csn_put_u64(o, b->c);
}

int csn_get_ask(const void *body, size_t len, csn_ask_body *ret)
{
    csn_ask_body b;
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    b.pid = csn_get_i64(&in);
    b.a = csn_get_u64(&in);
    b.b = csn_get_u64(&in);
    b.c = csn_get_u64(&in);
    if (csn_unpacker_end(&in) < 0)
        return -EPROTO;
    *ret = b;
    return 0;
}

void csn_put_log(csn_packer *o, const csn_log_body *b)
{
    csn_put_u64(o, b->offset);
    csn_put_u64(o, b->dropped);
    csn_put_u64(o, b->total);
    csn_put_u32(o, b->end);
    csn_put_u32(o, b->len);
    csn_put_bytes(o, b->data, b->len);
}

int csn_get_log(const void *body, size_t len, csn_log_body *ret)
{
    csn_log_body b;
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    b.offset = csn_get_u64(&in);
    b.dropped = csn_get_u64(&in);
    b.total = csn_get_u64(&in);
    b.end = csn_get_u32(&in);
    b.len = csn_get_u32(&in);
    b.data = csn_get_bytes(&in, b.len);
    if (csn_unpacker_end(&in) < 0 || b.len > CSN_LOG_CHUNK_MAX || b.offset > b.total ||
        b.len > b.total - b.offset)
        return -EPROTO;
    *ret = b;
    return 0;
}

int64_t csn_net_pack(const csn_net_body *b)
{
    return (int64_t)((uint64_t)(b->mode & 0xf) | (uint64_t)(b->sockets & 0xff) << 4 |
                     (uint64_t)(b->lacking & 0xfff) << 12 |
                     (uint64_t)(b->proxy_port & 0xffff) << 24);
}

int csn_net_unpack(int64_t packed, csn_net_body *ret)
{
    uint64_t v = (uint64_t)packed;
    csn_net_body b = {.mode = (uint32_t)v & 0xf,
                      .sockets = (uint32_t)(v >> 4) & 0xff,
                      .lacking = (uint32_t)(v >> 12) & 0xfff,
                      .proxy_port = (uint32_t)(v >> 24) & 0xffff};
    bool transparent = b.mode == CSN_GATEWAY_NET_TRANSPARENT,
         proxy = b.mode == CSN_GATEWAY_NET_PROXY;

    if (v >> 40 != 0 || b.sockets >> CSN_GATEWAY_NET_SOCKETS != 0)
        return -EPROTO;
    if (!transparent && !proxy && v != CSN_GATEWAY_NET_NONE)
        return -EPROTO;
    if (proxy && (b.sockets != 1u << CSN_GATEWAY_NET_LISTENER || b.proxy_port == 0))
        return -EPROTO;
    if (transparent && (b.sockets & CSN_GATEWAY_NET_ALL4) != CSN_GATEWAY_NET_ALL4)
        return -EPROTO;
    *ret = b;
    return 0;
}
