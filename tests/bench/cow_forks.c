/* cow_forks.c: many forks of one sandbox at once: their time, and what each keeps in memory.
 *
 * One thread makes them one after the other, or as many threads as there are processors share
 * the work. Memory is that of the processes of a fork (keeper and sweeper) and what this
 * process grew by; what the kernel holds for it is printed beside it, because caches of the
 * file system that it would give back are part of that. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cow.h"
#include "measure.h"
#include "memory.h"

#define FILES       1000
#define TAKES       3
#define THREADS_MAX 8
#define NAP_MS      500 /* the kernel takes namespaces apart after the fact */

static csn_sandbox *source, **all;
static size_t count;
static atomic_size_t next;

static void *fork_some(void *arg)
{
    for (size_t i; (i = atomic_fetch_add(&next, 1)) < count;)
        all[i] = cow_fork(source);
    return arg;
}

/* Milliseconds. */
static double fork_all(size_t threads)
{
    pthread_t t[THREADS_MAX];
    uint64_t began = bench_now_ns();

    atomic_store(&next, 0);
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, fork_some, NULL) != 0)
            bench_die("no thread");
    for (size_t i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    return (double)(bench_now_ns() - began) / 1e6;
}

static double close_all(void)
{
    uint64_t began = bench_now_ns();

    for (size_t i = 0; i < count; i++)
        csn_close(all[i]);
    double took = (double)(bench_now_ns() - began) / 1e6;
    (void)poll(NULL, 0, NAP_MS);
    return took;
}

typedef struct take {
    double one[TAKES], many[TAKES], closed[TAKES]; /* milliseconds */
    double held[TAKES], kernel[TAKES];             /* KB each */
} take;

static void take_once(take *t, size_t at, size_t threads)
{
    bench_memory before = bench_memory_now();
    long processes = bench_processes_kb("caisson-");

    t->one[at] = fork_all(1);
    bench_memory after = bench_memory_now();
    processes = bench_processes_kb("caisson-") - processes;
    t->held[at] = (double)(processes + after.own - before.own) / (double)count;
    t->kernel[at] = (double)(after.kernel - before.kernel) / (double)count;
    t->closed[at] = close_all();
    t->many[at] = fork_all(threads);
    (void)close_all();
}

/* Each live jail holds several descriptors of the host program. */
static void raise_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static void print_take(const char *what, double v[TAKES], const char *unit)
{
    double m = bench_median(v, TAKES);

    printf("%-46s %8.1f%s [%.1f .. %.1f]\n", what, m, unit, v[0], v[TAKES - 1]);
}

unsigned cow_part_forks(size_t forks)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = processors < 1             ? 1
                     : processors > THREADS_MAX ? THREADS_MAX
                                                : (size_t)processors;
    unsigned missed = 0;
    take t;

    printf("\n%zu forks of one sandbox, %d times\n", forks, TAKES);
    raise_limits();
    count = forks;
    all = calloc(count, sizeof(*all));
    if (!all)
        bench_die("out of memory");
    cow_make_tree(cow.tree, FILES);
    source = cow_open(cow.tree, CSN_OPEN_COW);
    csn_close(cow_fork(source));
    for (size_t i = 0; i < TAKES; i++)
        take_once(&t, i, threads);
    csn_close(source);
    free(all);
    cow_remove(cow.tree);
    print_take("by one thread", t.one, " ms");
    print_take("by a thread for each processor", t.many, " ms");
    print_take("closing them", t.closed, " ms");
    print_take("kernel memory of a fork, caches included", t.kernel, " KB");
    print_take("processes and library, for each fork", t.held, " KB");
    missed += !bench_verdict("d. forks by one thread, each", t.one[TAKES / 2] / (double)forks,
                             " ms", 2, 0);
    missed += !bench_verdict("d. memory of a fork", t.held[TAKES / 2], " KB", 350, 0);
    return missed;
}
