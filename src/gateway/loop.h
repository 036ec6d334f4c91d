/* loop.h: the event loop: descriptors, timers, deferred calls.
 *
 * Single-threaded. Sockets are registered once, edge-triggered: the owner stores readiness
 * until read() or write() returns EAGAIN, so relaying needs no epoll_ctl. gw_loop_free_later
 * frees memory after the current batch of events, so no event refers to freed memory. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define GW_CONTAINER_OF(type, member, p) ((type *)(void *)((char *)(p)-offsetof(type, member)))

typedef struct gw_io gw_io;
typedef struct gw_timer gw_timer;
typedef struct gw_deferred gw_deferred;

/* A registered descriptor, embedded in its owner. fd -1: none. */
struct gw_io {
    int fd;
    void (*fn)(gw_io *io, uint32_t events);
};

struct gw_timer {
    uint64_t due_ns;
    size_t index; /* in the heap, from 1; 0: not armed */
    void (*fn)(gw_timer *t);
};

/* A function to call, or memory to free, before the loop next sleeps. */
struct gw_deferred {
    gw_deferred *next;
    bool queued;
    void (*fn)(gw_deferred *d);
    gw_deferred *next_free;
    void *memory;
};

typedef struct gw_loop {
    int epfd;
    uint64_t now_ns; /* when the current batch was received */
    gw_timer **heap;
    size_t armed, capacity, reserved;
    gw_deferred *queue, **queue_end;
    gw_deferred *to_free;
    bool stop;
} gw_loop;

int gw_loop_init(gw_loop *l);
/* Runs until `stop` is set. 0 or -errno. */
int gw_loop_run(gw_loop *l);

/* Edge-triggered: input, output and half-close. */
int gw_loop_add_edge(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t));
/* Level-triggered: input. For listeners and request sockets. */
int gw_loop_add_level(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t));
void gw_loop_close(gw_io *io);
/* Unregisters the descriptor and returns it. */
int gw_loop_remove(gw_loop *l, gw_io *io);

/* Reserves heap space, so that arming cannot fail. */
int gw_timer_reserve(gw_loop *l, gw_timer *t, void (*fn)(gw_timer *));
void gw_timer_release(gw_loop *l, gw_timer *t);
/* Fires once, at due_ns; replaces the time set before. */
void gw_timer_arm(gw_loop *l, gw_timer *t, uint64_t due_ns);
void gw_timer_disarm(gw_loop *l, gw_timer *t);

/* Queues the call; no effect if it is queued already. */
void gw_loop_defer(gw_loop *l, gw_deferred *d, void (*fn)(gw_deferred *));
/* Cancels the queued call and free()s `memory`, which contains `d`, after the current batch. */
void gw_loop_free_later(gw_loop *l, gw_deferred *d, void *memory);
