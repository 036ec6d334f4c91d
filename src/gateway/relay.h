/* relay.h: bytes from one socket to another, without looking at more of them than needed.
 *
 * A lane is one direction. Small pieces are copied through one buffer that all lanes share; a
 * lane that proves busy is spliced through a pipe borrowed from a small stock, so that nothing
 * is held by a connection that is idle. What the target does not take is kept (at most one
 * piece), and nothing more is read until it is gone: the sender feels the receiver. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/loop.h"

#define CSN_RELAY_PIECE (32u * 1024u)   /* copied at a time */
#define CSN_RELAY_PIPE  (1024u * 1024u) /* spliced at a time, if we may have so large a pipe */
#define CSN_RELAY_PIPES 16u             /* at once; lanes that find none copy */
/* The largest hello or head, or what a lane holds back, and one piece more. */
#define CSN_RELAY_HELD_MAX (96u * 1024u)

/* One end of a connection, and what the kernel said of it last. */
typedef struct gw_end {
    gw_io io;
    bool readable, writable;
    bool hung; /* the other side will send no more: read until it says so */
} gw_end;

void gw_end_told(gw_end *e, uint32_t events);
/* Closes with a reset: the other side learns that this was no ordinary end. */
void gw_end_reset(gw_end *e);

typedef struct gw_pipe {
    int fds[2];
    size_t size;
} gw_pipe;

/* What all lanes share. */
typedef struct gw_relay {
    uint8_t piece[CSN_RELAY_PIECE];
    gw_pipe stock[CSN_RELAY_PIPES];
    size_t stocked, made;
} gw_relay;

/* What is to become of the bytes that a lane has: the first `drop` are thrown away, the next
 * `pass` go on, the rest is shown again together with what follows. */
typedef struct gw_inspect_fn {
    size_t drop, pass;
    const void *insert; /* bytes to send before those that pass; copied at once */
    size_t insert_len;
    bool again; /* show the rest at once: another looks now */
    bool pause; /* read no more until gw_pipeline_resume */
    bool ended; /* told to who looks: nothing follows; what does not pass now never will */
} gw_inspect_fn;

typedef struct gw_pipeline {
    uint8_t *held; /* at..ok: to be sent; ok..len: not yet judged */
    size_t held_at, held_ok, held_len, held_room;
    gw_pipe pipe; /* fds[0] < 0: none just now */
    size_t in_pipe;
    unsigned full; /* pieces in a row that filled the buffer */
    bool spliced;
    bool ended; /* the source has */
    bool shut;  /* and the target was told */
    bool again, paused;
    size_t own;     /* bytes at the front of `held` that are ours */
    uint64_t bytes; /* that were sent, without those */
    /* Sees every byte before it is passed on. 0, or -errno to stop here. While there is one the
     * lane copies. */
    int (*look)(void *ctx, const uint8_t *data, size_t len, gw_inspect_fn *ret);
    void *look_ctx;
} gw_pipeline;

enum gw_moved {
    CSN_MOVED_WAIT, /* until the kernel tells of one of the ends */
    CSN_MOVED_MORE, /* there is more; others first */
    CSN_MOVED_DONE, /* the end of the source was carried to the target */
};

void gw_relay_init(gw_relay *r);
void gw_pipeline_init(gw_pipeline *l);
/* Queues bytes of our own. Only while the lane carries nothing else. -ENOMEM. */
int gw_pipeline_write(gw_pipeline *l, const void *data, size_t len);
void gw_pipeline_resume(gw_pipeline *l);
/* While `to` has no descriptor yet bytes are read and judged, as many as are held. */
/* gw_moved, or -errno: one of the ends is broken, or `look` refused. */
int gw_pipeline_move(gw_relay *r, gw_pipeline *l, gw_end *from, gw_end *to);
/* Gives back what it holds. */
void gw_pipeline_release(gw_relay *r, gw_pipeline *l);
