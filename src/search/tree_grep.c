/* tree_grep.c: searches the files of a tree on several threads.
 *
 * Each thread takes a batch of files from the walk (tree_files.c), which one thread at a time
 * continues, and searches them. Batches are numbered; results are added in that order, as soon
 * as all earlier ones are there, so that `max` ends the search where one thread would end it.
 *
 * Invariants: only regular files are read, by a plain name with O_NOFOLLOW below the directory
 * in which the walk found it; nothing blocks (O_NONBLOCK); a read ends at the size that the
 * file had; files are never mapped. Memory is bounded: a thread waits before it runs ahead by
 * RING batches, or when `max` matches wait for an earlier batch. Other threads start only when
 * the first batch is full, so that a small tree costs none. */
#include "search/tree_grep.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define CHUNK      (128u * 1024u)
/* Limit for files that report size 0 but have content, such as those in /proc. */
#define UNSIZED_MAX (16u * 1024u * 1024u)
#define RING        1024u
#define STACK_SIZE  (512u * 1024u)

/* The result of one batch. */
typedef struct batch_result {
    csn_grep_match *items;
    size_t count;
    uint64_t matches;
    csn_status st;
    bool done;
} batch_result;

typedef struct search {
    const csn_tree_grep *g;
    csn_hits *hits; /* of the caller; `lock` guards it and what follows */
    pthread_mutex_t lock;
    pthread_cond_t progress; /* `added` has grown, or `stop` was set */
    batch_result ring[RING];
    uint64_t claimed; /* batches that may have been taken */
    uint64_t added;   /* batches whose results are in `hits` */
    uint64_t waiting; /* matches that are not */
    atomic_bool stop;

    pthread_mutex_t walk_lock; /* guards what follows */
    csn_tree_files *files;
    uint64_t taken; /* batches */
} search;

typedef struct worker {
    search *s;
    pthread_t thread;
    csn_arena *arena;
    csn_matcher *matcher;
    csn_hits hits; /* of the current batch */
    csn_line_scan scan;
    csn_batch batch;
} worker;

/* ---- one file ---- */

static bool is_cancelled(const search *s)
{
    return s->g->cancelled && s->g->cancelled(s->g->ctx);
}

static ssize_t read_chunk(int fd, char *buf, size_t len)
{
    ssize_t n;

    do
        n = read(fd, buf, len);
    while (n < 0 && errno == EINTR);
    return n;
}

/* A file that fails in the middle is searched up to there, as it would be if it were short. */
static void scan_open_file(worker *w, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    uint64_t left = st.st_size > 0 ? (uint64_t)st.st_size : UNSIZED_MAX;
    left = left < CSN_GREP_FILE_MAX ? left : CSN_GREP_FILE_MAX;
    for (bool more = true; more;) {
        size_t want = left < CHUNK ? (size_t)left : CHUNK;
        char *room = csn_line_scan_room(&w->scan, CHUNK);
        ssize_t n = room ? read_chunk(fd, room, want) : -1;
        if (n < 0)
            return;
        left -= (uint64_t)n;
        bool last = left == 0 || (size_t)n < want;
        more = csn_line_scan_took(&w->scan, (size_t)n, last) && !last;
        if (more && is_cancelled(w->s))
            w->hits.st = CSN_CANCELLED;
        more = more && w->hits.st == CSN_OK;
    }
}

static void scan_file(worker *w, const csn_batch_file *f)
{
    const char *names = w->batch.names.data;
    csn_autofd int fd = openat(f->dir->fd, names + f->name, FILE_FLAGS);

    if (fd < 0) {
        /* anything else concerns this file only */
        if (errno == EMFILE || errno == ENFILE)
            w->hits.st = CSN_UNAVAILABLE;
        return;
    }
    csn_line_scan_start(&w->scan, names + f->path);
    scan_open_file(w, fd);
}

static void scan_batch(worker *w)
{
    w->hits.matches = w->hits.count = 0;
    w->hits.truncated = false;
    w->hits.st = is_cancelled(w->s) ? CSN_CANCELLED : CSN_OK;
    for (size_t i = 0; i < w->batch.count && w->hits.st == CSN_OK && !w->hits.truncated; i++) {
        if (atomic_load_explicit(&w->s->stop, memory_order_relaxed))
            break;
        scan_file(w, &w->batch.files[i]);
    }
}

/* ---- results in order ---- */

/* Takes items up to the last match that `max` allows. */
static void add_items(csn_hits *h, const batch_result *r)
{
    size_t n = 0;

    while (n < r->count && h->matches < h->max)
        h->matches += !r->items[n++].is_context;
    if (h->count + n > h->cap) {
        size_t cap = 2 * h->cap > h->count + n ? 2 * h->cap : h->count + n;
        csn_grep_match *more = reallocarray(h->items, cap, sizeof(*more));
        if (!more) {
            h->st = CSN_NOMEM;
            return;
        }
        h->items = more;
        h->cap = cap;
    }
    memcpy(h->items + h->count, r->items, n * sizeof(*r->items));
    h->count += n;
    h->truncated = h->matches >= h->max;
}

/* Adds the results that are next in order. */
static void add_ready(search *s)
{
    csn_hits *h = s->hits;

    for (batch_result *r; (r = &s->ring[s->added % RING])->done; s->added++) {
        bool open = h->st == CSN_OK && !h->truncated;
        if (open && r->count > 0)
            add_items(h, r);
        if (open && h->st == CSN_OK && !h->truncated)
            h->st = r->st;
        s->waiting -= r->matches;
        free(r->items);
        *r = (batch_result){0};
    }
    if (h->st != CSN_OK || h->truncated)
        atomic_store_explicit(&s->stop, true, memory_order_relaxed);
}

static void hand_in(worker *w, uint64_t number)
{
    search *s = w->s;
    batch_result r = {
        .count = w->hits.count, .matches = w->hits.matches, .st = w->hits.st, .done = true};

    if (r.count > 0) {
        r.items = CSN_STEAL(w->hits.items);
        w->hits.cap = 0;
    }
    pthread_mutex_lock(&s->lock);
    s->ring[number % RING] = r;
    s->waiting += r.matches;
    if (s->added == number) {
        add_ready(s);
        pthread_cond_broadcast(&s->progress);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- threads ---- */

/* Waits until a new batch may be taken. The thread with the batch that all wait for is not
 * here. */
static bool may_take(search *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->stop && (s->waiting >= s->hits->max || s->claimed - s->added >= RING))
        pthread_cond_wait(&s->progress, &s->lock);
    bool may = !s->stop;
    s->claimed += may;
    pthread_mutex_unlock(&s->lock);
    return may;
}

/* 1, 0 at the end, or -errno. */
static int take_batch(worker *w, uint64_t *ret_number)
{
    search *s = w->s;

    csn_batch_clear(&w->batch);
    pthread_mutex_lock(&s->walk_lock);
    int rc = csn_tree_files_next(s->files, &w->batch);
    *ret_number = s->taken;
    s->taken += rc != 0;
    pthread_mutex_unlock(&s->walk_lock);
    return rc;
}

/* False: the search ends here. */
static bool work_once(worker *w)
{
    uint64_t number;

    if (!may_take(w->s))
        return false;
    int rc = take_batch(w, &number);
    if (rc == 0)
        return false;
    if (rc > 0)
        scan_batch(w);
    else
        w->hits.st = rc == -ENOMEM ? CSN_NOMEM : CSN_UNAVAILABLE;
    hand_in(w, number);
    return rc > 0;
}

static void *work(void *arg)
{
    while (work_once(arg))
        ;
    return NULL;
}

static bool worker_init(worker *w, search *s)
{
    *w = (worker){.s = s, .arena = csn_arena_new()};
    w->matcher = csn_matcher_copy(s->hits->matcher);
    w->hits = (csn_hits){.arena = w->arena,
                         .matcher = w->matcher,
                         .context = s->hits->context,
                         .max = s->hits->max};
    csn_line_scan_init(&w->scan, &w->hits);
    csn_batch_init(&w->batch);
    return w->arena && w->matcher;
}

/* The texts that it found stay, in the arena of the result. */
static void worker_release(worker *w)
{
    csn_batch_release(&w->batch);
    csn_line_scan_release(&w->scan);
    csn_matcher_free(w->matcher);
    free(w->hits.items);
    if (w->arena)
        csn_arena_adopt(w->s->hits->arena, w->arena);
}

static unsigned thread_count(const csn_tree_grep *g)
{
    cpu_set_t cpus;
    unsigned n = g->threads;

    if (n == 0)
        n = sched_getaffinity(0, sizeof(cpus), &cpus) < 0 ? 2 : (unsigned)CPU_COUNT(&cpus);
    return n > CSN_GREP_THREADS_MAX ? CSN_GREP_THREADS_MAX : n;
}

/* Starts up to `want` threads, fewer where the system has no more. */
static unsigned start_threads(search *s, worker *workers, unsigned want)
{
    pthread_attr_t attr;
    sigset_t all, before;
    unsigned n = 0;

    if (pthread_attr_init(&attr) != 0)
        return 0;
    (void)pthread_attr_setstacksize(&attr, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; n < want; n++) {
        if (!worker_init(&workers[n], s) ||
            pthread_create(&workers[n].thread, &attr, work, &workers[n]) != 0) {
            worker_release(&workers[n]);
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return n;
}

/* The caller's thread works as well. */
static void run_all(search *s)
{
    worker workers[CSN_GREP_THREADS_MAX];
    unsigned others = 0;

    bool more = worker_init(&workers[0], s);
    if (!more)
        s->hits->st = CSN_NOMEM;
    else
        more = work_once(&workers[0]);
    if (more && workers[0].batch.count >= CSN_BATCH_FILES)
        others = start_threads(s, workers + 1, thread_count(s->g) - 1);
    while (more)
        more = work_once(&workers[0]);
    for (unsigned i = 0; i < others; i++)
        pthread_join(workers[1 + i].thread, NULL);
    for (unsigned i = 0; i <= others; i++)
        worker_release(&workers[i]);
}

void csn_tree_grep_run(const csn_tree_grep *g, csn_hits *hits)
{
    csn_autofree search *s = calloc(1, sizeof(*s));

    if (s)
        s->files = csn_tree_files_new(g->dir, &g->filter);
    if (!s || !s->files) {
        hits->st = CSN_NOMEM;
        return;
    }
    s->g = g;
    s->hits = hits;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->walk_lock, NULL);
    pthread_cond_init(&s->progress, NULL);
    run_all(s);
    pthread_cond_destroy(&s->progress);
    pthread_mutex_destroy(&s->walk_lock);
    pthread_mutex_destroy(&s->lock);
    csn_tree_files_free(s->files);
}
