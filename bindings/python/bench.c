/* bench.c: the calls that `bench` compares with, as a shared object: a loop in C over the
 * library that the Python process has loaded. Each function returns nanoseconds per call. */
#define _GNU_SOURCE
#include <caisson/caisson.h>
#include <time.h>

double bench_exec(csn_sandbox *sb, int count);
double bench_read(csn_sandbox *sb, const char *path, int count);
double bench_read_bytes(csn_sandbox *sb, const char *path, int count);

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double bench_exec(csn_sandbox *sb, int count)
{
    const char *const argv[] = {"true", NULL};
    double start = now();

    for (int i = 0; i < count; i++) {
        csn_exec_result *r = NULL;
        if (csn_exec(sb, argv, NULL, &r, NULL) < 0)
            return -1;
        csn_exec_result_free(r);
    }
    return (now() - start) / count;
}

double bench_read(csn_sandbox *sb, const char *path, int count)
{
    double start = now();

    for (int i = 0; i < count; i++) {
        csn_read_result *r = NULL;
        if (csn_read(sb, path, NULL, &r, NULL) < 0)
            return -1;
        csn_read_result_free(r);
    }
    return (now() - start) / count;
}

static int ignore(void *ctx, const void *data, size_t len)
{
    (void)data;
    *(size_t *)ctx += len;
    return 0;
}

double bench_read_bytes(csn_sandbox *sb, const char *path, int count)
{
    double start = now();
    size_t total = 0;

    for (int i = 0; i < count; i++)
        if (csn_read_bytes(sb, path, NULL, ignore, &total, NULL) < 0)
            return -1;
    return (now() - start) / count;
}
