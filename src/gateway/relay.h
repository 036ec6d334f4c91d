/* relay.h: copy bytes from one socket to another.
 *
 * A pipeline is one direction of a connection. Small amounts are copied through a buffer that
 * all pipelines share; a busy pipeline splices through a pipe from a small pool. An idle
 * pipeline holds neither. Bytes that the target does not accept are held, and the pipeline
 * reads no more until they are sent (back-pressure). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/loop.h"

#define GW_RELAY_CHUNK     (32u * 1024u)   /* copied at a time */
#define GW_RELAY_PIPE_SIZE (1024u * 1024u) /* spliced at a time, where the kernel allows it */
#define GW_RELAY_PIPES_MAX 16u             /* pipelines beyond that copy */
#define GW_RELAY_HELD_MAX  (96u * 1024u)   /* the largest head or ClientHello, and a chunk */

/* A socket and its readiness. */
typedef struct gw_endpoint {
    gw_io io;
    bool readable, writable;
    bool hangup; /* the peer has closed its side: readable until EOF is read */
} gw_endpoint;

void gw_endpoint_update(gw_endpoint *e, uint32_t events);
/* Closes with RST, so that the peer sees an error instead of EOF. */
void gw_endpoint_reset(gw_endpoint *e);

typedef struct gw_pipe {
    int fds[2];
    size_t size;
} gw_pipe;

/* Shared by all pipelines. */
typedef struct gw_relay {
    uint8_t chunk[GW_RELAY_CHUNK];
    gw_pipe idle_pipes[GW_RELAY_PIPES_MAX];
    size_t idle_count, pipe_count;
} gw_relay;

/* Result of an inspect callback: the relay discards the first `drop` bytes, sends the next
 * `pass` bytes, and calls again with the rest and the bytes that follow it. */
typedef struct gw_inspection {
    size_t drop, pass;
    const void *insert; /* sent before the passed bytes; copied at once */
    size_t insert_len;
    bool pause; /* read no more until gw_pipeline_resume */
    bool ended; /* set by the caller: the source has ended; bytes not passed now are lost */
} gw_inspection;

typedef struct gw_pipeline {
    uint8_t *held; /* at..ok: to be sent; ok..len: awaiting inspection */
    size_t held_at, held_ok, held_len, held_room;
    gw_pipe pipe; /* fds[0] < 0: none */
    size_t spliced_len;
    unsigned full_reads; /* consecutive reads that filled the buffer */
    bool use_splice;
    bool ended;     /* EOF was read from the source */
    bool shut_down; /* EOF was passed on to the target */
    bool reinspect, paused;
    size_t injected; /* leading bytes of `held` that the gateway itself wrote */
    uint64_t bytes;  /* sent, without the injected ones */
    /* Called with every byte before it is sent; prevents splicing. 0, or -errno to stop. NULL:
     * none. */
    int (*inspect)(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret);
    void *inspect_ctx;
} gw_pipeline;

enum gw_move_result {
    GW_MOVE_WAIT, /* until an endpoint becomes ready */
    GW_MOVE_MORE, /* more can be moved after other flows had their turn */
    GW_MOVE_DONE, /* the target was shut down */
};

void gw_relay_init(gw_relay *r);
void gw_pipeline_init(gw_pipeline *p);
/* Sends bytes of the gateway itself. The pipeline must be empty. -ENOMEM. */
int gw_pipeline_write(gw_pipeline *p, const void *data, size_t len);
/* Ends a pause and calls the inspect callback again with the held bytes. */
void gw_pipeline_resume(gw_pipeline *p);
/* gw_move_result, or -errno: an endpoint failed or the callback refused. Before `to` is
 * connected, bytes are read, inspected and held. */
int gw_pipeline_move(gw_relay *r, gw_pipeline *p, gw_endpoint *from, gw_endpoint *to);
void gw_pipeline_release(gw_relay *r, gw_pipeline *p);
