/* loop.c: epoll, a heap of timers, and a list of what was put off.
 *
 * Everything the gateway does happens below gw_loop_run, in one thread. Nothing here looks at
 * bytes; a process inside decides only how often it is called, and every call is one event. */
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
    l->work_end = &l->work;
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

int gw_loop_watch(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t))
{
    return add(l, io, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, fn);
}

int gw_loop_listen(gw_loop *l, gw_io *io, int fd, void (*fn)(gw_io *, uint32_t))
{
    return add(l, io, fd, EPOLLIN, fn);
}

void gw_loop_close(gw_io *io)
{
    if (io->fd >= 0)
        close(io->fd); /* the only descriptor of that file: the kernel forgets it */
    io->fd = -1;
}

int gw_loop_take(gw_loop *l, gw_io *io)
{
    if (io->fd >= 0)
        (void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
    return csn_steal_fd(&io->fd);
}

/* ---- timers ---------------------------------------------------------------------------- */

static void place(gw_loop *l, size_t i, gw_timer *t)
{
    l->heap[i - 1] = t;
    t->place = i;
}

static void sift_up(gw_loop *l, gw_timer *t)
{
    size_t i = t->place;

    while (i > 1 && l->heap[i / 2 - 1]->due_ns > t->due_ns) {
        place(l, i, l->heap[i / 2 - 1]);
        i /= 2;
    }
    place(l, i, t);
}

static void sift_down(gw_loop *l, gw_timer *t)
{
    size_t i = t->place;

    for (;;) {
        size_t child = 2 * i;
        if (child > l->armed)
            break;
        if (child < l->armed && l->heap[child]->due_ns < l->heap[child - 1]->due_ns)
            child++;
        if (l->heap[child - 1]->due_ns >= t->due_ns)
            break;
        place(l, i, l->heap[child - 1]);
        i = child;
    }
    place(l, i, t);
}

int gw_timer_reserve(gw_loop *l, gw_timer *t, void (*fn)(gw_timer *))
{
    if (l->reserved == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        gw_timer **heap = realloc(l->heap, room * sizeof(gw_timer *));
        if (!heap)
            return -ENOMEM;
        l->heap = heap;
        l->room = room;
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
    place(l, ++l->armed, t);
    sift_up(l, t);
}

void gw_timer_disarm(gw_loop *l, gw_timer *t)
{
    size_t i = t->place;

    if (i == 0)
        return;
    gw_timer *last = l->heap[--l->armed];
    t->place = 0;
    if (last == t)
        return;
    place(l, i, last);
    sift_up(l, last);
    sift_down(l, last);
}

static void fire(gw_loop *l)
{
    while (l->armed > 0 && l->heap[0]->due_ns <= l->now_ns) {
        gw_timer *t = l->heap[0];
        gw_timer_disarm(l, t);
        t->fn(t);
    }
}

/* ---- later ----------------------------------------------------------------------------- */

void gw_loop_later(gw_loop *l, gw_later *work, void (*fn)(gw_later *))
{
    if (work->queued)
        return;
    work->next = NULL;
    work->queued = true;
    work->fn = fn;
    *l->work_end = work;
    l->work_end = &work->next;
}

void gw_loop_bury(gw_loop *l, gw_later *at, void *memory)
{
    at->fn = NULL;
    at->memory = memory;
    at->next_grave = l->graves;
    l->graves = at;
}

/* Only what was queued before: who queues itself again waits for the next round, so that one
 * busy connection does not keep the others from being looked at. */
static void do_work(gw_loop *l)
{
    gw_later *w = l->work;

    l->work = NULL;
    l->work_end = &l->work;
    while (w) {
        gw_later *next = w->next;
        w->queued = false;
        if (w->fn)
            w->fn(w);
        w = next;
    }
}

/* What is buried may still stand in the list of work that the last round has made: that is done
 * (it is nothing, by now) before anything is freed. */
static void free_graves(gw_loop *l)
{
    gw_later **at = &l->work;

    if (!l->graves)
        return;
    while (*at) {
        if ((*at)->fn)
            at = &(*at)->next;
        else
            *at = (*at)->next;
    }
    l->work_end = at;
    for (gw_later *g = l->graves, *next; g; g = next) {
        next = g->next_grave;
        free(g->memory);
    }
    l->graves = NULL;
}

int gw_loop_run(gw_loop *l)
{
    struct epoll_event ev[BATCH];

    while (!l->stop) {
        int wait = -1;
        if (l->work)
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
        fire(l);
        do_work(l);
        free_graves(l);
    }
    return 0;
}
