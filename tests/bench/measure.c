/* measure.c: shuffled rounds, medians and their spread, and a word on each goal.
 *
 * Called by the benchmark programs. Medians and not means: one preempted sample in a hundred
 * would decide a mean. A contestant that always came after the same other one would find its
 * caches warm, or the kernel still busy with the other's namespaces; so the order is new in
 * every round. */
#include "measure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP     10
#define RETRIES_MAX 2 /* of every run; a machine that stays busy is told, not waited for */

_Noreturn void bench_die(const char *fmt, ...)
{
    int e = errno; /* for %m */
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "bench: ");
    va_start(ap, fmt);
    errno = e;
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(2);
}

uint64_t bench_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_value);
    return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- one run ---- */

static void shuffle(size_t *order, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)random() % i, t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

static void run_rounds(bench_contest *c, size_t rounds)
{
    size_t order[BENCH_CONTESTANTS_MAX], n = 0;

    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].wanted)
            order[n++] = i;
    for (size_t r = 0; r < rounds; r++) {
        shuffle(order, n);
        for (size_t i = 0; i < n; i++)
            c->list[order[i]].sample[r] = c->list[order[i]].run();
    }
}

static void summarise(bench_contest *c, size_t run)
{
    for (size_t i = 0; i < c->count; i++) {
        bench_contestant *x = &c->list[i];
        if (!x->wanted)
            continue;
        qsort(x->sample, c->rounds, sizeof(*x->sample), by_time);
        x->median[run] = (double)x->sample[c->rounds / 2] / 1e3;
        x->p90[run] = (double)x->sample[c->rounds * 9 / 10] / 1e3;
    }
}

/* The reference does nothing of ours: when it is uneven, the machine is. */
static bool was_steady(const bench_contest *c, size_t run)
{
    const bench_contestant *ref = &c->list[c->reference];

    return ref->p90[run] <= BENCH_STEADY_MAX * ref->median[run];
}

static double load_now(void)
{
    double load[3] = {0};

    return getloadavg(load, 3) < 1 ? 0 : load[0];
}

static void print_contestants(const bench_contest *c)
{
    printf("%-34s %12s %10s  (us, median run)\n", "", "median", "p90");
    for (size_t i = 0; i < c->count; i++) {
        double m[BENCH_RUNS_MAX], p[BENCH_RUNS_MAX];
        if (!c->list[i].wanted)
            continue;
        memcpy(m, c->list[i].median, sizeof(m));
        memcpy(p, c->list[i].p90, sizeof(p));
        printf("%-34s %12.1f %10.1f\n", c->list[i].name, bench_median(m, c->runs),
               bench_median(p, c->runs));
    }
}

/* A few rounds first, which nobody counts: programs come into the page cache, a session's shell
 * starts, the allocator settles. */
void bench_contest_run(bench_contest *c)
{
    double load = load_now();
    size_t room = c->rounds > WARM_UP ? c->rounds : WARM_UP;

    srandom((unsigned)(bench_now_ns() ^ (uint64_t)getpid()));
    c->list[c->reference].wanted = true;
    for (size_t i = 0; i < c->count; i++)
        if (!(c->list[i].sample = calloc(room, sizeof(uint64_t))))
            bench_die("out of memory");
    run_rounds(c, WARM_UP);
    for (size_t run = 0; run < c->runs; run++) {
        for (int i = 0; i <= RETRIES_MAX; i++) {
            run_rounds(c, c->rounds);
            summarise(c, run);
            if (was_steady(c, run) || i == RETRIES_MAX)
                break;
            c->rejected++;
        }
        c->steady += was_steady(c, run);
    }
    printf("%zu rounds, %zu runs; load average %.2f before, %.2f after\n", c->rounds, c->runs,
           load, load_now());
    if (c->rejected || c->steady < c->runs)
        printf("posix_spawn was not steady (p90 over twice the median): %zu runs were measured "
               "again, %zu of %zu still count for nothing\n",
               c->rejected, c->runs - c->steady, c->runs);
    print_contestants(c);
    for (size_t i = 0; i < c->count; i++)
        free(c->list[i].sample);
}

/* ---- verdicts ---- */

static const char *judge(double value, double goal, double aim, bool steady)
{
    if (value > goal)
        return steady ? "MISSED" : "missed, on a machine too busy to say";
    return aim > 0 && value <= aim ? "ok, aim reached" : "ok";
}

/* Over all runs: the median, the smallest and the largest. Unsteady runs are left out when
 * there are others. */
static double spread(const bench_contest *c, size_t ours, size_t peer, bool ratio, double *lo,
                     double *hi)
{
    double v[BENCH_RUNS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < c->runs; i++) {
        if (c->steady > 0 && !was_steady(c, i))
            continue;
        double a = c->list[ours].median[i], b = c->list[peer].median[i];
        v[n++] = ratio ? a / b : a - b;
    }
    double m = bench_median(v, n);
    *lo = v[0];
    *hi = v[n - 1];
    return m;
}

static bool print_pair(const bench_contest *c, const char *what, double m, double lo, double hi,
                       double goal, double aim, const char *unit)
{
    printf("%-46s %8.3f%s [%.3f .. %.3f]  goal %.3f, aim %.3f: %s\n", what, m, unit, lo, hi,
           goal, aim, judge(m, goal, aim, c->steady > 0));
    return m <= goal || c->steady == 0;
}

bool bench_ratio(const bench_contest *c, const char *what, size_t ours, size_t peer,
                 double goal, double aim)
{
    double lo, hi, m = spread(c, ours, peer, true, &lo, &hi);

    return print_pair(c, what, m, lo, hi, goal, aim, "");
}

bool bench_difference(const bench_contest *c, const char *what, size_t ours, size_t peer,
                      double goal, double aim)
{
    double lo, hi, m = spread(c, ours, peer, false, &lo, &hi);

    (void)print_pair(c, what, m, lo, hi, goal, aim, " us");
    return true; /* microseconds are told, never a reason to fail */
}

bool bench_verdict(const char *what, double value, const char *unit, double goal, double aim)
{
    printf("%-46s %8.2f%s  goal %.2f, aim %.2f: %s\n", what, value, unit, goal, aim,
           judge(value, goal, aim, true));
    return value <= goal;
}
