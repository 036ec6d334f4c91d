/* jail_live.c: many jails at once: what each keeps in memory, whether the others feel it, and
 * how many can be made and ended in a second.
 *
 * Memory is the sum of what the kernel says it holds for everybody (slab, stacks, page tables,
 * per-cpu data, memory files), of the keepers' own pages and of what this process grew by.
 * Others use the machine too, so it is taken three times and the middle counts; what became
 * unavailable altogether is printed beside it. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "jail.h"
#include "measure.h"
#include "memory.h"

#define TAKES        3
#define EXECS        200
#define CREATES      60
#define RATE_SECONDS 2
#define THREADS_MAX  8
#define NAP_MS       500 /* the kernel takes namespaces apart after the fact */

/* ---- what is in memory ---- */

/* A keeper cannot be looked into by other users: they see at least how many pages are its own.
 */
static long keeper_kb(csn_sandbox *sb, bool *ret_exact)
{
    csn_info_result *info = NULL;
    csn_error *err = NULL;
    char path[64];

    if (csn_info(sb, &info, &err) < 0)
        bench_die("info: %s", csn_error_message(err));
    snprintf(path, sizeof(path), "/proc/%lld/smaps_rollup", (long long)info->keeper_pid);
    long kb = bench_kb_in(path, "Pss:");
    *ret_exact = kb >= 0;
    if (kb < 0) {
        snprintf(path, sizeof(path), "/proc/%lld/status", (long long)info->keeper_pid);
        kb = bench_kb_in(path, "RssAnon:");
    }
    csn_info_free(info);
    return kb > 0 ? kb : 0;
}

/* ---- many of them ---- */

static csn_sandbox **open_many(size_t n)
{
    csn_sandbox **all = calloc(n, sizeof(*all));

    for (size_t i = 0; all && i < n; i++) {
        all[i] = bench_open();
        bench_exec_true(all[i]); /* idle, not unborn */
    }
    if (!all)
        bench_die("out of memory");
    return all;
}

static void close_many(csn_sandbox **all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        csn_close(all[i]);
    free(all);
    (void)poll(NULL, 0, NAP_MS);
}

/* Any of them, so that no single one is the warm one. */
static void exec_and_create(csn_sandbox **all, size_t n, double *ret_exec, double *ret_create)
{
    double e[EXECS], c[CREATES];

    for (size_t i = 0; i < EXECS; i++) {
        uint64_t from = bench_now_ns();
        bench_exec_true(all[(size_t)random() % n]);
        e[i] = (double)(bench_now_ns() - from) / 1e3;
    }
    for (size_t i = 0; i < CREATES; i++) {
        uint64_t from = bench_now_ns();
        csn_sandbox *sb = bench_open();
        c[i] = (double)(bench_now_ns() - from) / 1e3;
        csn_close(sb);
    }
    *ret_exec = bench_median(e, EXECS);
    *ret_create = bench_median(c, CREATES);
}

typedef struct take {
    double all_in[TAKES], available[TAKES], keeper[TAKES];
    double exec[TAKES], create[TAKES]; /* with many / with one */
    bool exact;
} take;

/* One alone is measured in the same take as the many: minutes apart, the machine is another. */
static void take_once(take *t, size_t at, size_t n, bool scale)
{
    double e1 = 1, c1 = 1, en = 1, cn = 1, keepers = 0;
    csn_sandbox **one = open_many(1);

    if (scale)
        exec_and_create(one, 1, &e1, &c1);
    bench_memory before = bench_memory_now();
    csn_sandbox **all = open_many(n);
    bench_memory after = bench_memory_now();
    for (size_t i = 0; i < n; i++)
        keepers += (double)keeper_kb(all[i], &t->exact);
    if (scale)
        exec_and_create(all, n, &en, &cn);
    close_many(all, n);
    close_many(one, 1);
    t->keeper[at] = keepers / (double)n;
    t->all_in[at] = t->keeper[at] +
                    (double)(after.kernel - before.kernel + after.own - before.own) / (double)n;
    t->available[at] = (double)(before.available - after.available) / (double)n;
    t->exec[at] = en / e1;
    t->create[at] = cn / c1;
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

unsigned bench_part_live(size_t live, bool memory_part, bool scale)
{
    take t = {0};
    unsigned missed = 0;
    char what[80];

    raise_limits();
    for (size_t i = 0; i < TAKES; i++)
        take_once(&t, i, live, scale);
    if (memory_part) {
        printf("%zu idle jails: %.0f KB each became unavailable; a keeper has %.0f KB%s\n",
               live, bench_median(t.available, TAKES), bench_median(t.keeper, TAKES),
               t.exact ? "" : " (pages of its own; the rest is not ours to see)");
        missed += !bench_verdict("f. memory of an idle jail, all in",
                                 bench_median(t.all_in, TAKES), " KB", 350, 200);
    }
    if (scale) {
        snprintf(what, sizeof(what), "g. exec at %zu live / at 1 live", live);
        missed += !bench_verdict(what, bench_median(t.exec, TAKES), "", 2.0, 1.2);
        snprintf(what, sizeof(what), "g. create at %zu live / at 1 live", live);
        missed += !bench_verdict(what, bench_median(t.create, TAKES), "", 2.0, 1.2);
    }
    return missed;
}

/* ---- how many in a second ---- */

static void *make_and_end(void *arg)
{
    uint64_t until = bench_now_ns() + RATE_SECONDS * 1000000000ull;
    size_t *done = arg;

    for (; bench_now_ns() < until; ++*done)
        csn_close(bench_open());
    return NULL;
}

/* Several threads of one program: what one waits for, another can use the processor for. */
static double rate(size_t threads)
{
    pthread_t t[THREADS_MAX];
    size_t done[THREADS_MAX] = {0}, sum = 0;
    uint64_t from = bench_now_ns();

    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, make_and_end, &done[i]) != 0)
            bench_die("pthread_create failed");
    for (size_t i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
        sum += done[i];
    }
    return (double)sum / ((double)(bench_now_ns() - from) / 1e9);
}

unsigned bench_part_rate(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t many = cpus < 2 ? 2 : cpus > THREADS_MAX ? THREADS_MAX : (size_t)cpus;

    printf("h. create + destroy: %.0f per second in one thread, %.0f in %zu threads\n", rate(1),
           rate(many), many);
    return 0;
}
