/* loop.c: runs the event loop: epoll, a binary heap of timers, and a queue of deferred calls.
 *
 * The loop reads no payload. An attacker controls only how often callbacks run; each event
 * costs one call. */
#include "gateway/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define BATCH 128

int gw_loop_init(gw_loop *l)
{
    *l = (gw_loop){.epfd = epoll_create1(EPOLL_CLOEXEC), .now_ns = csn_now_ns()};
    l->queue_end = &l->queue;
    return l->epfd < 0 ? -errno : 0;
}

/* ---- descriptors ----------------------------------------------------------------------- */

static int add(gw_loop *l, gw_io *io, int fd, uint32_t events, void (*fn)(gw_io *, uint32_t))
{
    struct epoll_event ev = {.events = events, .data.ptr = io};

    if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
        return -errno;
    *io = (gw_io){.fd = fd, .fn = fn};
    return 0;
}

int gw_loop_add_edge(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t))
{
    return add(l, io, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, fn);
}

int gw_loop_add_level(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t))
{
    return add(l, io, fd, EPOLLIN, fn);
}

void gw_loop_close(gw_io *io)
{
    if (io->fd >= 0)
        close(io->fd); /* the last reference: close() also unregisters it */
    io->fd = -1;
}

int gw_loop_remove(gw_loop *l, gw_io *io)
{
    if (io->fd >= 0)
        (void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
    return csn_steal_fd(&io->fd);
}

/* ---- timers ---------------------------------------------------------------------------- */

static void set_slot(gw_loop *l, size_t i, gw_timer *t)
{
    l->heap[i - 1] = t;
    t->index = i;
}

static void sift_up(gw_loop *l, gw_timer *t)
{
    size_t i = t->index;

    while (i > 1 && l->heap[i / 2 - 1]->due_ns > t->due_ns) {
        set_slot(l, i, l->heap[i / 2 - 1]);
        i /= 2;
    }
    set_slot(l, i, t);
}

static void sift_down(gw_loop *l, gw_timer *t)
{
    size_t i = t->index;

    for (;;) {
        size_t child = 2 * i;
        if (child > l->armed)
            break;
        if (child < l->armed && l->heap[child]->due_ns < l->heap[child - 1]->due_ns)
            child++;
        if (l->heap[child - 1]->due_ns >= t->due_ns)
            break;
        set_slot(l, i, l->heap[child - 1]);
        i = child;
    }
    set_slot(l, i, t);
}

int gw_timer_reserve(gw_loop *l, gw_timer *t, void (*fn)(gw_timer *))
{
    if (l->reserved == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 64;
        gw_timer **heap = realloc(l->heap, capacity * sizeof(gw_timer *));
        if (!heap)
            return -ENOMEM;
        l->heap = heap;
        l->capacity = capacity;
    }
    l->reserved++;
    *t = (gw_timer){.fn = fn};
    return 0;
}

void gw_timer_release(gw_loop *l, gw_timer *t)
{
    if (!t->fn)
        return;
    gw_timer_disarm(l, t);
    t->fn = NULL;
    l->reserved--;
}

void gw_timer_arm(gw_loop *l, gw_timer *t, uint64_t due_ns)
{
    gw_timer_disarm(l, t);
    t->due_ns = due_ns;
    set_slot(l, ++l->armed, t);
    sift_up(l, t);
}

void gw_timer_disarm(gw_loop *l, gw_timer *t)
{
    size_t i = t->index;

    if (i == 0)
        return;
    gw_timer *last = l->heap[--l->armed];
    t->index = 0;
    if (last == t)
        return;
    set_slot(l, i, last);
    sift_up(l, last);
    sift_down(l, last);
}

static void run_timers(gw_loop *l)
{
    while (l->armed > 0 && l->heap[0]->due_ns <= l->now_ns) {
        gw_timer *t = l->heap[0];
        gw_timer_disarm(l, t);
        t->fn(t);
    }
}

/* ---- deferred calls -------------------------------------------------------------------- */

void gw_loop_defer(gw_loop *l, gw_deferred *d, void (*fn)(gw_deferred *))
{
    if (d->queued)
        return;
    d->next = NULL;
    d->queued = true;
    d->fn = fn;
    *l->queue_end = d;
    l->queue_end = &d->next;
}

void gw_loop_free_later(gw_loop *l, gw_deferred *d, void *memory)
{
    d->fn = NULL;
    d->memory = memory;
    d->next_free = l->to_free;
    l->to_free = d;
}

/* Runs the calls that are queued at entry. A call that queues itself again runs in the next
 * round, so one busy flow cannot starve the others. */
static void run_deferred(gw_loop *l)
{
    gw_deferred *d = l->queue;

    l->queue = NULL;
    l->queue_end = &l->queue;
    while (d) {
        gw_deferred *next = d->next;
        d->queued = false;
        if (d->fn)
            d->fn(d);
        d = next;
    }
}

/* Unlinks cancelled calls that are still queued before their memory is freed. */
static void free_pending(gw_loop *l)
{
    gw_deferred **at = &l->queue;

    if (!l->to_free)
        return;
    while (*at) {
        if ((*at)->fn)
            at = &(*at)->next;
        else
            *at = (*at)->next;
    }
    l->queue_end = at;
    for (gw_deferred *d = l->to_free, *next; d; d = next) {
        next = d->next_free;
        free(d->memory);
    }
    l->to_free = NULL;
}

int gw_loop_run(gw_loop *l)
{
    struct epoll_event ev[BATCH];

    while (!l->stop) {
        int wait = -1;
        if (l->queue)
            wait = 0;
        else if (l->armed > 0)
            wait = csn_deadline_poll_ms(l->heap[0]->due_ns);
        int n = epoll_wait(l->epfd, ev, BATCH, wait);
        if (n < 0 && errno != EINTR)
            return -errno;
        l->now_ns = csn_now_ns();
        for (int i = 0; i < n && !l->stop; i++) {
            gw_io *io = ev[i].data.ptr;
            if (io->fd >= 0)
                io->fn(io, ev[i].events);
        }
        run_timers(l);
        run_deferred(l);
        free_pending(l);
    }
    return 0;
}
