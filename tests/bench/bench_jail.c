/* bench_jail.c: what a jail costs, against bwrap and against no sandbox at all.
 *
 *   bench_jail [--part LIST] [--rounds N] [--runs N] [--live N] [--strict]
 *
 * LIST is any of these letters, default abcdefghi:
 *   a  caisson run -- true, as typed, against bwrap with all namespaces, as typed
 *   b  library: create, run, destroy, against the same bwrap
 *   c  exec in a live jail against posix_spawn with two pipes
 *   d  `echo hi` in a warm session against bwrap sh -c 'echo hi'
 *   e  4 KB read through the library against open and read
 *   f  memory of N idle jails (--live, default 100)
 *   g  exec and create with N live jails against one
 *   h  create and destroy, per second
 *   i  a and b in processor time of the whole tree: what a busy machine does not change
 * The program for `a` is $CAISSON; everything happens below $TMPDIR or /var/tmp. Goals are
 * printed with each number. Exit status: 0, or with
 * --strict 1 when a goal was missed; 2 when something that was timed did not work. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jail.h"
#include "measure.h"

#define ROUNDS_DEFAULT 100
#define RUNS_DEFAULT   3
#define LIVE_DEFAULT   100
#define READS          16 /* in one sample: a single one is over before its caches are warm */

static csn_sandbox *live;

/* ---- contestants ---- */

static uint64_t plain(void)
{
    static char *const argv[] = {BENCH_PAYLOAD, NULL};

    return bench_spawn(argv, "");
}

static uint64_t bwrap_true(void)
{
    return bench_spawn(bench.bwrap, "");
}

static uint64_t bwrap_echo(void)
{
    return bench_spawn(bench.bwrap_sh, "hi\n");
}

static uint64_t caisson_run(void)
{
    return bench_spawn(bench.caisson, "");
}

/* What an agent's program does that needs one command: the library is loaded already. */
static uint64_t library(void)
{
    uint64_t from = bench_now_ns();

    bench_create_run_destroy();
    return bench_now_ns() - from;
}

static uint64_t exec_live(void)
{
    uint64_t from = bench_now_ns();

    bench_exec_true(live);
    return bench_now_ns() - from;
}

/* The shell is started in the warm-up; from then on a command is a line to it and its answer.
 */
static uint64_t session(void)
{
    uint64_t from = bench_now_ns();

    bench_session_echo(live);
    return bench_now_ns() - from;
}

static int count_bytes(void *ctx, const void *data, size_t len)
{
    (void)data;
    *(size_t *)ctx += len;
    return 0;
}

static uint64_t read_jail(void)
{
    uint64_t from = bench_now_ns();
    csn_error *err = NULL;

    for (int i = 0; i < READS; i++) {
        size_t got = 0;
        if (csn_read_bytes(live, "4k", NULL, count_bytes, &got, &err) < 0)
            bench_die("read: %s", csn_error_message(err));
        if (got != 4096)
            bench_die("read: %zu bytes", got);
    }
    return (bench_now_ns() - from) / READS;
}

static uint64_t read_direct(void)
{
    char buf[8192];
    uint64_t from = bench_now_ns();

    for (int i = 0; i < READS; i++) {
        int fd = open(bench.file, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, buf, sizeof(buf)) != 4096)
            bench_die("%s: %m", bench.file);
        close(fd);
    }
    return (bench_now_ns() - from) / READS;
}

/* No contestant, but every sandbox makes files for its audit log, and on some file systems that
 * costs more than a namespace: who reads the numbers should know. */
static uint64_t make_file(void)
{
    static unsigned n;
    char path[128];

    snprintf(path, sizeof(path), "%s/state/new%u", bench.top, n++);
    uint64_t from = bench_now_ns();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_die("%s: %m", path);
    close(fd);
    return bench_now_ns() - from; /* it stays: ext4 searches long past inodes freed lately */
}

enum {
    PLAIN,
    BWRAP,
    BWRAP_SH,
    TYPED,
    LIBRARY,
    EXEC,
    SESSION,
    READ,
    DIRECT,
    FILES,
    CONTESTANTS
};

static bool has(const char *parts, char part)
{
    return strchr(parts, part) != NULL;
}

/* All contestants of all parts that were asked for run in the same rounds. */
unsigned bench_part_timed(const char *parts, size_t rounds, size_t runs)
{
    bool a = has(parts, 'a'), b = has(parts, 'b'), c = has(parts, 'c'), d = has(parts, 'd'),
         e = has(parts, 'e');
    bool bw = bench.bwrap != NULL;
    bench_contestant list[CONTESTANTS] = {
        [PLAIN] = {"posix_spawn + 2 pipes, true", plain, true},
        [BWRAP] = {"bwrap strict, true", bwrap_true, bw && (a || b)},
        [BWRAP_SH] = {"bwrap strict, sh -c 'echo hi'", bwrap_echo, bw && d},
        [TYPED] = {"caisson run -- true", caisson_run, bench.caisson && a},
        [LIBRARY] = {"library: create, run true, destroy", library, b},
        [EXEC] = {"exec true in a live jail", exec_live, c},
        [SESSION] = {"echo hi in a warm session", session, d},
        [READ] = {"4 KB through csn_read_bytes", read_jail, e},
        [DIRECT] = {"4 KB by open and read", read_direct, e},
        [FILES] = {"(a new file where the audit log is)", make_file, a || b},
    };
    bench_contest t = {
        .list = list, .count = CONTESTANTS, .reference = PLAIN, .rounds = rounds, .runs = runs};
    unsigned missed = 0;

    if (!(a || b || c || d || e))
        return 0;
    live = bench_open();
    bench_contest_run(&t);
    csn_close(live);
    if (a && bw && bench.caisson)
        missed += !bench_ratio(&t, "a. caisson run / bwrap", TYPED, BWRAP, 0.70, 0.50);
    if (b && bw)
        missed += !bench_ratio(&t, "b. library / bwrap", LIBRARY, BWRAP, 0.50, 0.40);
    if (c)
        missed +=
            !bench_ratio(&t, "c. exec in a live jail / posix_spawn", EXEC, PLAIN, 1.15, 1.05);
    if (d && bw)
        missed +=
            !bench_ratio(&t, "d. session / bwrap sh", SESSION, BWRAP_SH, 1.0 / 12, 1.0 / 20);
    if (e)
        missed +=
            !bench_difference(&t, "e. 4 KB through the library - direct", READ, DIRECT, 30, 15);
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

int main(int argc, char **argv)
{
    const char *parts = "abcdefghi";
    size_t rounds = ROUNDS_DEFAULT, runs = RUNS_DEFAULT, n_live = LIVE_DEFAULT;
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
            rounds = number(value, 3, 100000);
        else if (strcmp(argv[i], "--runs") == 0)
            runs = number(value, 1, BENCH_RUNS_MAX);
        else if (strcmp(argv[i], "--live") == 0)
            n_live = number(value, 1, 10000);
        else
            bench_die("unknown or unfinished argument '%s'", argv[i]);
        i++;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_place_make();
    if (!bench.bwrap)
        printf("without bwrap as a peer: it is not installed (package bubblewrap)\n");
    if (!bench.caisson)
        printf("without `caisson run`: set CAISSON to the program\n");
    unsigned missed = bench_part_timed(parts, rounds, runs);
    if (has(parts, 'i'))
        missed += bench_part_cpu(rounds);
    if (has(parts, 'f') || has(parts, 'g'))
        missed += bench_part_live(n_live, has(parts, 'f'), has(parts, 'g'));
    if (has(parts, 'h'))
        missed += bench_part_rate();
    bench_place_remove();
    return strict && missed ? 1 : 0;
}
