/* cow_changes.c: diff and commit cost what the changes cost, not what the tree has.
 *
 * Each round changes files with one command, compares, commits and discards. The counts that
 * the calls return are checked. */
#include <stdio.h>
#include <stdlib.h>

#include "cow.h"
#include "measure.h"

#define FILES      10000
#define ROUNDS_MAX 100

static csn_sandbox *sb;

static void change(size_t n)
{
    char command[160];

    snprintf(
        command, sizeof(command),
        "i=0; while [ $i -lt %zu ]; do echo changed >> d$((i / 100))/f$i; i=$((i + 1)); done",
        n);
    (void)cow_sh(sb, command);
}

/* Milliseconds, as below. */
static double timed_diff(size_t n)
{
    csn_diff_result *r = NULL;
    csn_error *err = NULL;
    uint64_t began = bench_now_ns();

    cow_must(csn_diff(sb, NULL, &r, &err), "diff", err);
    double took = (double)(bench_now_ns() - began) / 1e6;
    if (r->count != n)
        bench_die("diff: %zu changes, not %zu", r->count, n);
    csn_diff_result_free(r);
    return took;
}

static double timed_commit(size_t n)
{
    csn_commit_result *r = NULL;
    csn_error *err = NULL;
    uint64_t began = bench_now_ns();

    cow_must(csn_commit(sb, NULL, &r, &err), "commit", err);
    double took = (double)(bench_now_ns() - began) / 1e6;
    if (!r->written || r->applied != n)
        bench_die("commit: %zu changes applied, not %zu", r->applied, n);
    csn_commit_result_free(r);
    return took;
}

static void print_one(const char *what, size_t n, double *v, size_t rounds, double *ret)
{
    *ret = bench_median(v, rounds);
    printf("%s of %4zu changes %12.2f ms [%.2f .. %.2f], %.1f us each\n", what, n, *ret, v[0],
           v[rounds - 1], *ret * 1e3 / (double)n);
}

static void take(size_t n, size_t rounds, double *ret_diff, double *ret_commit)
{
    double diff[ROUNDS_MAX], commit[ROUNDS_MAX];
    csn_error *err = NULL;

    for (size_t i = 0; i < rounds; i++) {
        change(n);
        diff[i] = timed_diff(n);
        commit[i] = timed_commit(n);
        cow_must(csn_discard(sb, &err), "discard", err);
    }
    print_one("diff  ", n, diff, rounds, ret_diff);
    print_one("commit", n, commit, rounds, ret_commit);
}

unsigned cow_part_changes(size_t rounds)
{
    static const size_t sizes[] = {10, 100, 1000};
    double diff[3], commit[3];
    unsigned missed = 0;

    rounds = rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    printf("\nchanges in a tree of %d files, %zu rounds\n", FILES, rounds);
    cow_make_tree(cow.tree, FILES);
    sb = cow_open(cow.tree, CSN_OPEN_COW);
    for (size_t i = 0; i < 3; i++)
        take(sizes[i], rounds, &diff[i], &commit[i]);
    csn_close(sb);
    cow_remove(cow.tree);
    missed += !bench_verdict("e. diff of 1000 changes / of 100", diff[2] / diff[1], "", 12, 0);
    missed +=
        !bench_verdict("e. commit of 1000 changes / of 100", commit[2] / commit[1], "", 12, 0);
    return missed;
}
