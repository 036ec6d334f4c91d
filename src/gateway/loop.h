/* loop.h: the one loop of a gateway: descriptors, timers, work that was put off.
 *
 * One thread. A descriptor is watched once, for its whole life, edge by edge: whoever owns it
 * remembers what it was told and asks until the kernel says EAGAIN. So moving a byte costs no
 * epoll_ctl. Owners that end while a batch of events is handled are freed after it: an event
 * never meets freed memory. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

typedef struct gw_io gw_io;
typedef struct gw_timer gw_timer;
typedef struct gw_later gw_later;

/* A watched descriptor, inside whatever owns it. fd -1: none. */
struct gw_io {
    int fd;
    void (*fn)(gw_io *io, uint32_t events);
};

struct gw_timer {
    uint64_t due_ns;
    size_t place; /* in the heap, from 1; 0: not armed */
    void (*fn)(gw_timer *t);
};

/* Something to do before the loop sleeps again; and how its owner's memory is freed then. */
struct gw_later {
    gw_later *next;
    bool queued;
    void (*fn)(gw_later *l);
    gw_later *next_grave;
    void *memory;
};

typedef struct gw_loop {
    int epfd;
    uint64_t now_ns; /* when the batch that is handled came */
    gw_timer **heap;
    size_t armed, room, reserved;
    gw_later *work, **work_end;
    gw_later *graves;
    bool stop;
} gw_loop;

int gw_loop_init(gw_loop *l);
/* Until `stop`. 0 or -errno. */
int gw_loop_run(gw_loop *l);

/* IN, OUT and the peer's half-close, each time there is something new. */
int gw_loop_watch(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t));
/* IN, as long as there is something: for listeners and requests, which are taken one by one. */
int gw_loop_listen(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t));
/* Takes it out and closes it. */
void gw_loop_close(gw_io *io);
/* Takes it out and gives it back, open. */
int gw_loop_take(gw_loop *l, gw_io *io);

/* Room for one more timer, so that arming cannot fail; give it back at the end. */
int gw_timer_reserve(gw_loop *l, gw_timer *t, void (*fn)(gw_timer *));
void gw_timer_release(gw_loop *l, gw_timer *t);
/* Sets it anew if it was armed. Fires once. */
void gw_timer_arm(gw_loop *l, gw_timer *t, uint64_t due_ns);
void gw_timer_disarm(gw_loop *l, gw_timer *t);

/* Queues it once, however often it is called. */
void gw_loop_later(gw_loop *l, gw_later *work, void (*fn)(gw_later *));
/* free()s `memory` after this batch. `at` lies in it; what it had still to do is forgotten. */
void gw_loop_bury(gw_loop *l, gw_later *at, void *memory);
