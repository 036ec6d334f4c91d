/* bench_cow.c: what a copy-on-write workspace costs.
 *
 *   bench_cow [--part LIST] [--rounds N] [--runs N] [--live N] [--strict]
 *
 *   a  open, fork, snapshot and rollback on 1,000 files
 *   b  the same on 10,000 files, with `cp -a` of the tree as a peer of fork
 *   c  the same on 100,000 files: no call depends on their number
 *   d  N forks of one sandbox (--live, default 1000): time and memory
 *   e  diff and commit of 10, 100 and 1,000 changed files
 *   f  git status, unpacking and a C build against a workspace that the jail writes to
 *
 * Layers are files, so their file system decides much of this: everything is in a directory of
 * TMPDIR. Contestants of a part take turns in one run. Every timed call is checked. */
#include <caisson/caisson.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cow.h"
#include "measure.h"

#define ROUNDS_DEFAULT 50
#define RUNS_DEFAULT   3
#define FORKS_DEFAULT  1000

static char copy_to[300];
static csn_sandbox *source;

static void change_one(csn_sandbox *sb)
{
    static unsigned n;
    csn_write_result *r = NULL;
    csn_error *err = NULL;
    char text[32];

    int len = snprintf(text, sizeof(text), "%u\n", n++);
    cow_must(csn_write(sb, "d0/f0", text, (size_t)len, NULL, &r, &err), "write", err);
    csn_write_result_free(r);
}

/* A copy of the tree would be another benchmark. */
static void take_snapshot(const char *name)
{
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;

    cow_must(csn_snapshot_as(source, name, &r, &err), "snapshot", err);
    if (strcmp(r->how, "frozen") != 0)
        bench_die("the workspace is no overlay: choose another file system with TMPDIR");
    csn_snapshot_result_free(r);
}

static void discard(void)
{
    csn_error *err = NULL;

    cow_must(csn_discard(source, &err), "discard", err);
}

/* ---- contestants ---- */

static uint64_t timed_open(uint32_t flags)
{
    uint64_t began = bench_now_ns();
    csn_sandbox *sb = cow_open(cow.tree, flags);
    uint64_t took = bench_now_ns() - began;

    csn_close(sb);
    return took;
}

static uint64_t open_plain(void)
{
    return timed_open(0);
}

static uint64_t open_cow(void)
{
    return timed_open(CSN_OPEN_COW);
}

static uint64_t fork_it(void)
{
    uint64_t began = bench_now_ns();
    csn_sandbox *other = cow_fork(source);
    uint64_t took = bench_now_ns() - began;

    csn_close(other);
    return took;
}

/* The fork freezes what was written. */
static uint64_t fork_changed(void)
{
    change_one(source);
    uint64_t took = fork_it();
    discard();
    return took;
}

static uint64_t snapshot_it(void)
{
    change_one(source);
    uint64_t began = bench_now_ns();
    take_snapshot(NULL);
    uint64_t took = bench_now_ns() - began;
    discard();
    return took;
}

static uint64_t rollback_it(void)
{
    csn_error *err = NULL;

    change_one(source);
    take_snapshot("here");
    change_one(source);
    uint64_t began = bench_now_ns();
    cow_must(csn_rollback(source, "here", &err), "rollback", err);
    uint64_t took = bench_now_ns() - began;
    discard();
    return took;
}

static uint64_t copy_it(void)
{
    const char *const cp[] = {"cp", "-a", cow.tree, copy_to, NULL};
    uint64_t began = bench_now_ns();

    cow_run(cp);
    uint64_t took = bench_now_ns() - began;
    cow_remove(copy_to);
    return took;
}

enum { SPAWN, PLAIN, COW, FORK, FORK_CHANGED, SNAPSHOT, ROLLBACK, COPY };

unsigned cow_part_calls(size_t files, size_t rounds, size_t runs)
{
    bench_contestant list[] = {
        [SPAWN] = {.name = "posix_spawn", .run = cow_spawn_true, .wanted = true},
        [PLAIN] = {.name = "open a jail", .run = open_plain, .wanted = true},
        [COW] = {.name = "open a jail with --cow", .run = open_cow, .wanted = true},
        [FORK] = {.name = "fork", .run = fork_it, .wanted = true},
        [FORK_CHANGED] = {.name = "fork after a change", .run = fork_changed, .wanted = true},
        [SNAPSHOT] = {.name = "snapshot", .run = snapshot_it, .wanted = true},
        [ROLLBACK] = {.name = "rollback", .run = rollback_it, .wanted = true},
        [COPY] = {.name = "cp -a", .run = copy_it, .wanted = files == 10000},
    };
    bench_contest c = {.list = list,
                       .count = sizeof(list) / sizeof(list[0]),
                       .reference = SPAWN,
                       .rounds = rounds,
                       .runs = runs};
    unsigned missed = 0;

    printf("\n%zu files\n", files);
    cow_make_tree(cow.tree, files);
    source = cow_open(cow.tree, CSN_OPEN_COW);
    bench_contest_run(&c);
    missed += !bench_difference(&c, "fork over opening a jail, us", FORK, PLAIN, 1000, 0);
    if (files == 10000)
        missed += !bench_ratio(&c, "fork / cp -a", FORK, COPY, 1.0 / 500, 1.0 / 2000);
    double rollback = bench_median(list[ROLLBACK].median, runs);
    missed += !bench_verdict("rollback", rollback, " us", 1800, 0);
    csn_close(source);
    cow_remove(cow.tree);
    return missed;
}

/* ---- the program ---- */

static size_t number(const char *text, size_t least, size_t most)
{
    char *end = NULL;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;

    if (!text || *end != '\0' || n < least || n > most)
        bench_die("a number from %zu to %zu is needed, not '%s'", least, most,
                  text ? text : "");
    return n;
}

static void print_place(void)
{
    struct statfs fs;

    if (statfs(cow.top, &fs) < 0)
        bench_die("%s: %s", cow.top, strerrordesc_np(errno));
    printf("in %s, file system 0x%lx\n", cow.top, (unsigned long)fs.f_type);
    snprintf(copy_to, sizeof(copy_to), "%s/caisson-bench-copy-%ld",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : cow.top, (long)getpid());
}

static unsigned run_part(char part, size_t rounds, size_t runs, size_t forks)
{
    size_t few = rounds < 25 ? rounds : rounds * 2 / 5; /* a sample takes long */

    switch (part) {
    case 'a':
        return cow_part_calls(1000, rounds, runs);
    case 'b':
        return cow_part_calls(10000, few, runs);
    case 'c':
        return cow_part_calls(100000, rounds, runs);
    case 'd':
        return cow_part_forks(forks);
    case 'e':
        return cow_part_changes(few / 2);
    case 'f':
        return cow_part_work(few / 2, runs);
    default:
        bench_die("there is no part '%c'", part);
    }
}

int main(int argc, char **argv)
{
    const char *parts = "abcdef";
    size_t rounds = ROUNDS_DEFAULT, runs = RUNS_DEFAULT, forks = FORKS_DEFAULT;
    unsigned missed = 0;
    bool strict = false;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--strict") == 0) {
            strict = true;
            continue;
        }
        if (strcmp(argv[i], "--part") == 0 && value)
            parts = value;
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = number(value, 6, 10000);
        else if (strcmp(argv[i], "--runs") == 0)
            runs = number(value, 1, BENCH_RUNS_MAX);
        else if (strcmp(argv[i], "--live") == 0)
            forks = number(value, 1, 10000);
        else
            bench_die("unknown or unfinished argument '%s'", argv[i]);
        i++;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    cow_place_make();
    print_place();
    for (const char *p = parts; *p; p++)
        missed += run_part(*p, rounds, runs, forks);
    cow_place_remove();
    return strict && missed ? 1 : 0;
}
