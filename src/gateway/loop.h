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

typedef struct csn_io csn_io;
typedef struct csn_timer csn_timer;
typedef struct csn_later csn_later;

/* A watched descriptor, inside whatever owns it. fd -1: none. */
struct csn_io {
    int fd;
    void (*fn)(csn_io *io, uint32_t events);
};

struct csn_timer {
    uint64_t due_ns;
    size_t place; /* in the heap, from 1; 0: not armed */
    void (*fn)(csn_timer *t);
};

/* Something to do before the loop sleeps again; and how its owner's memory is freed then. */
struct csn_later {
    csn_later *next;
    bool queued;
    void (*fn)(csn_later *l);
    csn_later *next_grave;
    void *memory;
};

typedef struct csn_loop {
    int epfd;
    uint64_t now_ns; /* when the batch that is handled came */
    csn_timer **heap;
    size_t armed, room, reserved;
    csn_later *work, **work_end;
    csn_later *graves;
    bool stop;
} csn_loop;

int csn_loop_init(csn_loop *l);
/* Until `stop`. 0 or -errno. */
int csn_loop_run(csn_loop *l);

/* IN, OUT and the peer's half-close, each time there is something new. */
int csn_loop_watch(csn_loop *l, csn_io *io, int fd, void (*fn)(csn_io *, uint32_t));
/* IN, as long as there is something: for listeners and requests, which are taken one by one. */
int csn_loop_listen(csn_loop *l, csn_io *io, int fd, void (*fn)(csn_io *, uint32_t));
/* Takes it out and closes it. */
void csn_loop_close(csn_io *io);
/* Takes it out and gives it back, open. */
int csn_loop_take(csn_loop *l, csn_io *io);

/* Room for one more timer, so that arming cannot fail; give it back at the end. */
int csn_timer_reserve(csn_loop *l, csn_timer *t, void (*fn)(csn_timer *));
void csn_timer_release(csn_loop *l, csn_timer *t);
/* Sets it anew if it was armed. Fires once. */
void csn_timer_arm(csn_loop *l, csn_timer *t, uint64_t due_ns);
void csn_timer_disarm(csn_loop *l, csn_timer *t);

/* Queues it once, however often it is called. */
void csn_loop_later(csn_loop *l, csn_later *work, void (*fn)(csn_later *));
/* free()s `memory` after this batch. `at` lies in it; what it had still to do is forgotten. */
void csn_loop_bury(csn_loop *l, csn_later *at, void *memory);
