/* bench_mcp.c: what a tool call of the MCP server costs over the library call it is made of.
 *
 *   bench_mcp [ROUNDS]
 *
 * One server is spoken to over pipes, as an agent does; beside it the same call is made by the
 * library in this process, on a sandbox of its own with the same configuration. Both take turns
 * in every round, so that load on the machine hits both. What counts is the difference of the
 * medians: parsing, a thread, JSON, and two context switches. Every answer is checked. */
#include <caisson/caisson.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"

#define ROUNDS  2000
#define GOAL_US 300.0

static int to_server = -1, from_server = -1;
static csn_sandbox *sandbox;
static char workspace[] = "/tmp/csn-bench-mcp.XXXXXX";

/* ---- the server ---- */

static pid_t start_server(void)
{
    const char *program = getenv("CAISSON");
    int in[2], out[2];

    if (!program || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        bench_die("CAISSON is not set, or there are no pipes");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl(program, program, "mcp", "--workspace", workspace, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_server = in[1];
    from_server = out[0];
    return pid;
}

/* Sends a line and takes the line that answers it; it must hold `want`. */
static void ask(const char *line, const char *want)
{
    static char answer[1 << 20];
    size_t len = 0;

    if (write(to_server, line, strlen(line)) != (ssize_t)strlen(line))
        bench_die("the server does not read");
    do {
        ssize_t n = read(from_server, answer + len, sizeof(answer) - 1 - len);
        if (n <= 0)
            bench_die("the server has ended");
        len += (size_t)n;
    } while (answer[len - 1] != '\n');
    answer[len] = '\0';
    if (!strstr(answer, want))
        bench_die("a wrong answer: %s", answer);
}

#define CALL(tool, args)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" tool     \
    "\",\"arguments\":" args "}}\n"

/* ---- the contestants ---- */

static void mcp_read(void)
{
    ask(CALL("read", "{\"file_path\":\"four\"}"), "1\\txxxx");
}

static void library_read(void)
{
    csn_read_result *r = NULL;

    if (csn_read(sandbox, "four",
                 CSN_OPTS(csn_read_opts, .flags = CSN_FILE_NUMBERS, .limit = CSN_LINES_DEFAULT),
                 &r, NULL) < 0 ||
        r->output_lines == 0)
        bench_die("read");
    csn_read_result_free(r);
}

static void mcp_bash(void)
{
    ask(CALL("bash", "{\"command\":\"echo hello\"}"), "\"stdout\":\"hello\\n\"");
}

static void library_bash(void)
{
    csn_exec_result *r = NULL;

    if (csn_sh(sandbox, "echo hello", CSN_OPTS(csn_exec_opts, .session = "bench"), &r, NULL) <
            0 ||
        r->out.len != 6)
        bench_die("bash");
    csn_exec_result_free(r);
}

static void mcp_write(void)
{
    ask(CALL("write", "{\"file_path\":\"w\",\"content\":\"hello\"}"), "\"bytes\":5");
}

static void library_write(void)
{
    if (csn_write(sandbox, "w2", "hello", 5, NULL, NULL, NULL) < 0)
        bench_die("write");
}

static double timed_us(void (*run)(void))
{
    uint64_t begin = bench_now_ns();

    run();
    return (double)(bench_now_ns() - begin) / 1e3;
}

/* false: over the goal. */
static bool contest(const char *what, void (*mcp)(void), void (*library)(void), size_t rounds)
{
    double *a = calloc(rounds, sizeof(*a)), *b = calloc(rounds, sizeof(*b));

    if (!a || !b)
        bench_die("out of memory");
    for (size_t i = 0; i < 50; i++) {
        mcp();
        library();
    }
    for (size_t i = 0; i < rounds; i++) {
        bool first = i % 2 == 0;
        if (first)
            a[i] = timed_us(mcp);
        b[i] = timed_us(library);
        if (!first)
            a[i] = timed_us(mcp);
    }
    double ours = bench_median(a, rounds), theirs = bench_median(b, rounds);
    printf("%-6s mcp %8.1f us   library %8.1f us\n", what, ours, theirs);
    free(a);
    free(b);
    return bench_verdict(what, ours - theirs, " us over the library", GOAL_US, 0);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
    csn_error *err = NULL;
    char four[4096];
    bool ok = true;

    if (!mkdtemp(workspace) || rounds == 0)
        bench_die("no place to work in");
    if (csn_open(CSN_OPTS(csn_config, .workspace = workspace), &sandbox, &err) < 0)
        bench_die("open: %s", csn_error_message(err));
    memset(four, 'x', sizeof(four));
    for (size_t i = 63; i < sizeof(four); i += 64)
        four[i] = '\n';
    if (csn_write(sandbox, "four", four, sizeof(four), NULL, NULL, &err) < 0)
        bench_die("write: %s", csn_error_message(err));
    pid_t pid = start_server();
    ask("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"b\","
        "\"version\":\"1\"}}}\n",
        "2025-11-25");
    ok &= contest("read", mcp_read, library_read, rounds);
    ok &= contest("write", mcp_write, library_write, rounds);
    ok &= contest("bash", mcp_bash, library_bash, rounds);
    close(to_server);
    waitpid(pid, NULL, 0);
    (void)csn_cleanup(sandbox, NULL);
    csn_close(sandbox);
    rmdir(workspace);
    return ok ? 0 : 1;
}
