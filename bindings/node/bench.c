/* bench.c: calls the library without Node, for comparison: bench.c WORKSPACE BACKEND CALLS
 * prints one line per round with the median microseconds of an exec of `true` and a read of 4
 * KB. The rounds are started by lines on standard input, so that they alternate with those of
 * Node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "caisson/caisson.h"

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

static int one_exec(csn_sandbox *sb)
{
    const char *argv[] = {"true", NULL};
    csn_exec_result *r = NULL;
    int rc = csn_exec(sb, argv, NULL, &r, NULL) == CSN_OK && r->exit_code == 0 ? 0 : -1;

    csn_exec_result_free(r);
    return rc;
}

static int one_read(csn_sandbox *sb)
{
    csn_read_result *r = NULL;
    int rc = csn_read(sb, "4k", NULL, &r, NULL) == CSN_OK && r->content_len == 4096 ? 0 : -1;

    csn_read_result_free(r);
    return rc;
}

static double median(csn_sandbox *sb, int (*call)(csn_sandbox *), int count)
{
    double *took = malloc((size_t)count * sizeof(*took));

    for (int i = 0; took && i < count; i++) {
        double begin = now_us();
        if (call(sb) < 0)
            exit(1);
        took[i] = now_us() - begin;
    }
    if (!took)
        exit(1);
    qsort(took, (size_t)count, sizeof(*took), by_value);
    double m = took[count / 2];
    free(took);
    return m;
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
    while (fgets(line, sizeof(line), stdin)) {
        printf("%.1f %.1f\n", median(sb, one_exec, count), median(sb, one_read, count));
        fflush(stdout);
    }
    csn_close(sb);
    return 0;
}
