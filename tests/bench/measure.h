/* measure.h: contests between ways of doing the same thing, on a machine that is not idle.
 *
 * Absolute times drift by a third and more; ratios of medians taken in one shuffled run hold.
 * So every contestant runs once in every round, in a new order each time, and what counts is
 * the ratio of two medians, over several runs. A run in which plain posix_spawn was not steady
 * says nothing and is measured again. Nothing here ever fails on microseconds. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_CONTESTANTS_MAX 16
#define BENCH_RUNS_MAX        9
#define BENCH_STEADY_MAX      2.0 /* p90 / median of posix_spawn */

/* One timed run of a contestant: nanoseconds. Whatever is not as expected ends the program. */
typedef uint64_t (*bench_fn)(void);

typedef struct bench_contestant {
    const char *name;
    bench_fn run;
    bool wanted; /* by a part that was asked for */
    uint64_t *sample;
    double median[BENCH_RUNS_MAX]; /* microseconds, one for every run */
    double p90[BENCH_RUNS_MAX];
} bench_contestant;

typedef struct bench_contest {
    bench_contestant *list;
    size_t count;
    size_t reference; /* which one says whether the machine was steady */
    size_t rounds, runs;
    size_t steady, rejected; /* runs that count, and runs that were measured again */
} bench_contest;

_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Runs all wanted contestants and fills in medians; prints a line for each at the end. */
void bench_contest_run(bench_contest *c);

/* Prints `what` as a ratio with its spread, and how it stands to goal and aim. Returns false
 * when the goal is missed. */
bool bench_ratio(const bench_contest *c, const char *what, size_t ours, size_t peer,
                 double goal, double aim);
/* The same for a difference in microseconds: told, and held against the goal. */
bool bench_difference(const bench_contest *c, const char *what, size_t ours, size_t peer,
                      double goal, double aim);
/* One number with its goal; aim 0: none. */
bool bench_verdict(const char *what, double value, const char *unit, double goal, double aim);

double bench_median(double *values, size_t n); /* sorts them */
uint64_t bench_now_ns(void);
