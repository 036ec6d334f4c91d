/* bench.c: calls the library without Node, for comparison: bench.c WORKSPACE BACKEND CALLS
 * prints one line per round with the median microseconds of an exec of `true` and a read of 4
 * KB. The rounds are started by lines on standard input, so that they alternate with those of
 * Node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "caisson/caisson.h"

#define CALLS_MAX 10000

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The microseconds that the command itself took, negative on failure. */
static double one_exec(csn_sandbox *sb)
{
    const char *argv[] = {"true", NULL};
    csn_exec_result *r = NULL;
    double took = -1;

    if (csn_exec(sb, argv, NULL, &r, NULL) == CSN_OK && r->exit_code == 0)
        took = r->duration_ms * 1000;
    csn_exec_result_free(r);
    return took;
}

static double one_read(csn_sandbox *sb)
{
    csn_read_result *r = NULL;
    int rc = csn_read(sb, "4k", NULL, &r, NULL) == CSN_OK && r->content_len == 4096 ? 0 : -1;

    csn_read_result_free(r);
    return rc;
}

static double middle(double *list, int count)
{
    qsort(list, (size_t)count, sizeof(*list), by_value);
    return list[count / 2];
}

/* Prints the median of `count` calls, and for exec that of the time around the command. */
static void measure(csn_sandbox *sb, double (*call)(csn_sandbox *), int count)
{
    static double all[CALLS_MAX], around[CALLS_MAX];

    for (int i = 0; i < count; i++) {
        double begin = now_us(), inner = call(sb);
        if (inner < 0)
            exit(1);
        all[i] = now_us() - begin;
        around[i] = all[i] - inner;
    }
    printf("%.1f %.1f ", middle(all, count), middle(around, count));
}

int main(int argc, char **argv)
{
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;
    char line[16];
    csn_config config = {.size = sizeof(config)};

    if (argc != 4)
        return 2;
    config.workspace = argv[1];
    config.backend = argv[2];
    if (csn_open(&config, &sb, &err) < 0) {
        fprintf(stderr, "%s\n", csn_error_message(err));
        return 1;
    }
    int count = (int)strtol(argv[3], NULL, 10);
    count = count < 1 ? 1 : count > CALLS_MAX ? CALLS_MAX : count;
    while (fgets(line, sizeof(line), stdin)) {
        measure(sb, one_exec, count);
        measure(sb, one_read, count);
        printf("\n");
        fflush(stdout);
    }
    csn_close(sb);
    return 0;
}
