/* bench_exec.c: what a command in a live local sandbox costs, against posix_spawn.
 *
 * Both run the same program with two pipes and read them to their end; rounds are interleaved,
 * the order within a round alternates, and the numbers are medians over all rounds. Prints one
 * line per contestant and the ratio; exits 1 when the ratio is over the budget (default 1.15).
 *
 *   bench_exec [ROUNDS [BUDGET [PROGRAM]]] */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/export.h"
#include "base/clock.h"
#include "caisson/backend.h"
#include "runtime/link.h"

#define ROUNDS_DEFAULT 1000
#define BUDGET_DEFAULT 1.15

static void die(const char *what)
{
    fprintf(stderr, "bench_exec: %s\n", what);
    exit(2);
}

static int sink(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    (void)data;
    *(uint64_t *)ctx += len;
    return CSN_SINK_MORE;
}

static void read_both(int a, int b)
{
    struct pollfd pf[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    char buf[4096];

    while (pf[0].fd >= 0 || pf[1].fd >= 0) {
        if (poll(pf, 2, -1) < 0)
            die("poll");
        for (int i = 0; i < 2; i++)
            if (pf[i].fd >= 0 && pf[i].revents && read(pf[i].fd, buf, sizeof(buf)) <= 0)
                pf[i].fd = -1;
    }
}

static uint64_t plain(char *const argv[])
{
    static char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t fa;
    int out[2], err[2], status = 0;
    uint64_t from = csn_now_ns();
    pid_t pid;

    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        die("pipe");
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    posix_spawn_file_actions_adddup2(&fa, err[1], 2);
    if (posix_spawn(&pid, argv[0], &fa, NULL, argv, env) != 0)
        die("posix_spawn");
    posix_spawn_file_actions_destroy(&fa);
    close(out[1]);
    close(err[1]);
    read_both(out[0], err[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("the program failed");
    close(out[0]);
    close(err[0]);
    return csn_now_ns() - from;
}

static uint64_t sandboxed(const csn_backend_ops *ops, void *state, char *const argv[])
{
    uint64_t bytes = 0, from = csn_now_ns();
    csn_sink s = {sink, &bytes};
    csn_exec_end end;
    csn_exec_req req = {.size = sizeof(req),
                        .argv = (const char *const *)argv,
                        .input_fd = -1,
                        .cancel_fds = {-1, -1},
                        .deadline_ns = csn_deadline_in(30000)};

    if (ops->exec(state, &req, &s, &end, NULL) != CSN_OK || end.exit_code != 0)
        die("exec failed");
    return csn_now_ns() - from;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static double at(const uint64_t *sorted, size_t n, double q)
{
    return (double)sorted[(size_t)((double)(n - 1) * q)] / 1e3;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS_DEFAULT;
    double budget = argc > 2 ? strtod(argv[2], NULL) : BUDGET_DEFAULT;
    char *program[] = {argc > 3 ? argv[3] : "/bin/true", NULL};
    const csn_backend_ops *ops = csn_local_backend();
    csn_config config = {.size = sizeof(config)};
    void *state = NULL;
    char home[] = "/tmp/csn-bench-XXXXXX";
    csn_error *err = NULL;
    uint64_t *a = calloc(n ? n : 1, sizeof(*a)), *b = calloc(n ? n : 1, sizeof(*b));

    if (!a || !b || n < 2 || !mkdtemp(home))
        die("cannot prepare");
    csn_keeper_path_set(getenv("CSN_TEST_KEEPER"));
    config.workspace = config.home = home;
    if (ops->open(&config, "local-0-bench", NULL, &state, &err) != CSN_OK)
        die(csn_error_message(err));
    for (int i = 0; i < 20; i++) {
        (void)plain(program);
        (void)sandboxed(ops, state, program);
    }
    for (size_t i = 0; i < n; i++) {
        if (i % 2)
            a[i] = plain(program);
        b[i] = sandboxed(ops, state, program);
        if (i % 2 == 0)
            a[i] = plain(program);
    }
    ops->close(state);
    rmdir(home);
    qsort(a, n, sizeof(*a), by_value);
    qsort(b, n, sizeof(*b), by_value);
    double ratio = at(b, n, 0.5) / at(a, n, 0.5);
    printf("posix_spawn %s: median %.1f us, p90 %.1f us\n", program[0], at(a, n, 0.5),
           at(a, n, 0.9));
    printf("local exec  %s: median %.1f us, p90 %.1f us\n", program[0], at(b, n, 0.5),
           at(b, n, 0.9));
    printf("ratio %.3f (budget %.2f)\n", ratio, budget);
    free(a);
    free(b);
    return ratio <= budget ? 0 : 1;
}
