/* process_control.c: lists background processes, reads their output, signals and feeds them.
 *
 * Each operation runs one script in the sandbox, which reads the directories that the
 * supervisors of process.c keep. The output of the scripts is not trusted: its size is limited,
 * and it is parsed as numbers and text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/strv.h"
#include "remote/internal.h"

#define SCRIPT_MS      30000u
#define LIST_MAX       (4u * 1024u * 1024u)
#define POLL_MS        50u /* poll interval of waiting scripts; see NAP */
#define EXIT_NOT_FOUND 101
#define EXIT_NO_INPUT  102

/* Scripts get DIR PID ... as arguments. find: sets d to the directory of that process, or exits
 * with EXIT_NOT_FOUND. alive: whether its supervisor runs. */
#define FIND                                                                                   \
    "find() { d=; for f in \"$1\"/*/pid; do read -r p <\"$f\" || continue\n"                   \
    "  [ \"$p\" != \"$2\" ] || d=${f%/pid}; done; [ -n \"$d\" ] || exit 101; }\n"
#define ALIVE                                                                                  \
    "alive() { [ ! -f \"$1/exit\" ] || return 1; read -r w <\"$1/w\"; kill -0 \"$w\" || "      \
    "[ ! -f \"$1/exit\" ] && kill -0 \"$w\"; }\n"
#define NAP "nap() { sleep 0.05 || sleep 1; }\n"

typedef struct request {
    csn_remote *r;
    const char *script;
    int64_t pid;
    const char *args[4]; /* after DIR and PID */
    const csn_source *input;
    uint64_t ms;
} request;

/* CSN_NOT_FOUND when the script exits with EXIT_NOT_FOUND. */
static csn_status run_request(const request *q, csn_buf *out, int *ret_code, csn_error **err)
{
    char dir[128], pid[24];
    const char *const args[] = {dir, pid, q->args[0], q->args[1], q->args[2], NULL};
    const csn_remote_script s = {.text = q->script,
                                 .args = args,
                                 .input = q->input,
                                 .deadline_ns = csn_deadline_in(q->ms)};

    csn_remote_process_dir(q->r, dir, sizeof(dir));
    snprintf(pid, sizeof(pid), "%lld", (long long)q->pid);
    csn_status st = csn_remote_run_script(q->r, &s, out, ret_code, err);
    if (st == CSN_OK && *ret_code == EXIT_NOT_FOUND)
        st = csn_fail(err, CSN_NOT_FOUND, "no running process %lld in this sandbox",
                      (long long)q->pid);
    return st;
}

static void number(char buf[24], uint64_t n)
{
    snprintf(buf, 24, "%llu", (unsigned long long)n);
}

/* ---- list ------------------------------------------------------------------------------- */

/* DIR PID POLLS: for each process a line of numbers, the command line and NUL. PID 0: all;
 * otherwise waits up to POLLS naps for that process to end. */
static const char list_script[] = ALIVE NAP
    "n=$3\n"
    "while :; do l=\n"
    "  for f in \"$1\"/*/pid; do [ -f \"$f\" ] || continue; read -r p <\"$f\"\n"
    "    [ \"$2\" = \"$p\" ] || continue; if alive \"${f%/pid}\"; then l=1; fi; done\n"
    "  [ -n \"$l\" ] && [ \"$n\" -gt 0 ] || break\n"
    "  n=$((n - 1)); nap; done\n"
    "for f in \"$1\"/*/pid; do [ -f \"$f\" ] || continue; read -r p <\"$f\"; d=${f%/pid}\n"
    "  [ \"$2\" = 0 ] || [ \"$2\" = \"$p\" ] || continue\n"
    "  x=r; alive \"$d\" || x=-1; [ ! -f \"$d/exit\" ] || read -r x <\"$d/exit\"\n"
    "  read -r m s g <\"$d/facts\"\n"
    "  echo \"$p $x $s $(($(wc -c <\"$d/out\"))) $(($(wc -c <\"$d/err\"))) $g\"\n"
    "  cat \"$d/text\"; printf '\\000'; done 2>&1\n";

/* A shell reports a signal as 128 + n. */
static void set_exit(csn_process_info *i, const char *word)
{
    int code = (int)strtol(word, NULL, 10);

    i->state = "exited";
    i->exit_code = code > 128 && csn_signal_name(code - 128) ? -1 : code;
    i->signal = code > 128 ? csn_signal_name(code - 128) : NULL;
}

static bool read_record(const char *record, csn_process_info *i)
{
    char state[16], kind[8];
    long long pid, started;
    unsigned long long out, err;
    const char *nl = strchr(record, '\n');

    if (!nl || sscanf(record, "%lld %15s %lld %llu %llu %7s", &pid, state, &started, &out, &err,
                      kind) != 6)
        return false;
    *i = (csn_process_info){.pid = pid,
                            .command = nl + 1,
                            .state = "running",
                            .exit_code = -1,
                            .out_total = out,
                            .err_total = err,
                            .started_ms = started,
                            .pty = strchr(kind, 'p') != NULL};
    if (state[0] != 'r')
        set_exit(i, state);
    return true;
}

static csn_status process_list(void *state, int64_t pid, uint64_t wait_ms, csn_process_fn fn,
                               void *ctx, csn_error **err)
{
    char polls[24];
    const request q = {.r = state,
                       .script = list_script,
                       .pid = pid,
                       .args = {polls},
                       .ms = SCRIPT_MS + wait_ms};
    csn_process_info one, last = {.pid = 0};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, LIST_MAX);
    number(polls, wait_ms / POLL_MS);
    csn_status st = run_request(&q, &out, &code, err);
    for (size_t at = 0; st == CSN_OK && at < out.len; at += strlen(out.data + at) + 1) {
        if (!read_record(out.data + at, &one))
            continue;
        if (pid == 0 && fn(ctx, &one) != 0)
            return st;
        if (one.started_ms >= last.started_ms) /* pids are reused: take the latest process */
            last = one;
    }
    if (st == CSN_OK && pid != 0 && last.pid == pid)
        (void)fn(ctx, &last);
    return st;
}

/* ---- logs ------------------------------------------------------------------------------- */

/* DIR PID STREAM OFFSET POLLS: "TOTAL ENDED START\n", then the bytes from START. */
static const char logs_script[] = FIND ALIVE NAP
    "find \"$1\" \"$2\"; f=$d/$3; n=$5; read -r m x <\"$d/facts\"\n"
    "while :; do e=0; alive \"$d\" 2>\"$d/log\" || e=1; t=$(($(wc -c <\"$f\")))\n"
    "  [ \"$t\" -le \"$4\" ] && [ $e = 0 ] && [ \"$n\" -gt 0 ] || break\n"
    "  n=$((n - 1)); nap; done\n"
    "s=$4; [ \"$s\" -ge $((t - m)) ] || s=$((t - m)); [ \"$s\" -le \"$t\" ] || s=$t\n"
    "echo \"$t $e $s\"; tail -c +$((s + 1)) \"$f\" | head -c 61440\n";

static csn_status process_logs(void *state, int64_t pid, int stream, uint64_t offset,
                               uint64_t wait_ms, const csn_sink *sink, csn_log_chunk *ret,
                               csn_error **err)
{
    char from[24], polls[24];
    const request q = {.r = state,
                       .script = logs_script,
                       .pid = pid,
                       .args = {stream == CSN_STDERR ? "err" : "out", from, polls},
                       .ms = SCRIPT_MS + wait_ms};
    unsigned long long total = 0, start = 0;
    int code = -1, ended = 0, used = 0;
    csn_autobuf out;

    csn_buf_init(&out, 2 * CSN_LOG_CHUNK_MAX);
    number(from, offset < INT64_MAX ? offset : INT64_MAX);
    number(polls, wait_ms / POLL_MS);
    csn_status st = run_request(&q, &out, &code, err);
    if (st < 0)
        return st;
    if (out.len == 0 ||
        sscanf(out.data, "%llu %d %llu%n", &total, &ended, &start, &used) != 3 ||
        used >= (int)out.len || out.data[used] != '\n')
        return csn_fail(err, CSN_IO, "the output of process %lld cannot be read",
                        (long long)pid);
    size_t len = out.len - (size_t)used - 1;
    *ret = (csn_log_chunk){.offset = start,
                           .dropped = start > offset ? start - offset : 0,
                           .total = total,
                           .end = ended && start + len >= total};
    if (len > 0)
        (void)sink->write(sink->ctx, stream, out.data + used + 1, len);
    return CSN_OK;
}

/* ---- signals, stdin, terminal, ports ---------------------------------------------------- */

/* DIR PID SIGNAL: signals every process of the tree; KILL is repeated until no process is
 * left. */
static const char signal_script[] = FIND ALIVE
    "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
    "i=0; while [ $i -lt 20 ]; do n=\n"
    "  for f in $(grep -ls \"" CSN_REMOTE_ID_VAR "=${d##*/}\" /proc/[0-9]*/environ); do\n"
    "    p=${f#/proc/}; kill -s \"$3\" \"${p%/environ}\" 2>\"$d/log\" && n=1; done\n"
    "  [ \"$3\" = KILL ] && [ -n \"$n\" ] || break; i=$((i + 1)); done\n";

static csn_status process_signal(void *state, int64_t pid, int signo, csn_error **err)
{
    const char *name = csn_signal_name(signo);
    const request q = {.r = state,
                       .script = signal_script,
                       .pid = pid,
                       .args = {name ? name + strlen("SIG") : NULL},
                       .ms = SCRIPT_MS};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    if (!name)
        return csn_fail(err, CSN_UNSUPPORTED, "signal %d has no name for kill(1)", signo);
    return run_request(&q, &out, &code, err);
}

/* DIR PID: copies its own stdin to the process. */
static const char feed_script[] =
    FIND ALIVE "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
               "[ -f \"$d/holder\" ] || exit 102; cat >\"$d/in\"\n";
/* DIR PID: ends the process that holds the pipe open. */
static const char close_script[] =
    FIND ALIVE "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
               "[ -f \"$d/holder\" ] || exit 102; read -r h <\"$d/holder\"; rm \"$d/holder\"; "
               "kill \"$h\"\n";

typedef struct memory_source {
    const char *data;
    size_t left;
} memory_source;

static int64_t read_memory(void *ctx, void *buf, size_t len)
{
    memory_source *b = ctx;
    size_t n = len < b->left ? len : b->left;

    memcpy(buf, b->data, n);
    b->data += n;
    b->left -= n;
    return (int64_t)n;
}

static csn_status process_feed(void *state, int64_t pid, const void *data, size_t len,
                               uint64_t timeout_ms, csn_error **err)
{
    memory_source source = {.data = data, .left = len};
    const csn_source input = {.read = read_memory, .ctx = &source};
    const request q = {.r = state,
                       .script = data ? feed_script : close_script,
                       .pid = pid,
                       .input = data ? &input : NULL,
                       .ms = timeout_ms};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    csn_status st = run_request(&q, &out, &code, err);
    if (st == CSN_OK && code != 0)
        st = csn_fail(err, CSN_IO, "process %lld has no open stdin", (long long)pid);
    return st;
}

/* DIR PID ROWS COLS. stty sets rows and columns in two steps, and the process sees the size in
 * between; perl, if there is one, sets both at once (TIOCSWINSZ). */
static const char resize_script[] = FIND ALIVE
    "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
    "[ -f \"$d/tty\" ] || exit 102; read -r t <\"$d/tty\"\n"
    "perl -e 'ioctl(STDIN, 0x5414, pack(\"S4\", @ARGV, 0, 0)) or exit 1' \"$3\" \"$4\" "
    "<\"$t\" 2>\"$d/log\" || stty rows \"$3\" cols \"$4\" <\"$t\"\n";

static csn_status process_resize(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                                 csn_error **err)
{
    char high[24], wide[24];
    const request q = {
        .r = state, .script = resize_script, .pid = pid, .args = {high, wide}, .ms = SCRIPT_MS};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    number(high, rows);
    number(wide, cols);
    csn_status st = run_request(&q, &out, &code, err);
    if (st < 0 || code == 0)
        return st;
    if (code == EXIT_NO_INPUT)
        return csn_fail(err, CSN_INVALID, "process %lld has no terminal", (long long)pid);
    return csn_fail(err, CSN_IO, "the terminal of process %lld cannot be resized",
                    (long long)pid);
}

/* HEX POLLS */
static const char port_script[] =
    NAP "n=$2; until grep -qs \":$1 [0-9A-F]*:0000 0A \" /proc/net/tcp /proc/net/tcp6; do\n"
        "  [ \"$n\" -gt 0 ] || exit 101; n=$((n - 1)); nap; done\n";

static csn_status wait_port(void *state, uint16_t port, uint64_t timeout_ms, csn_error **err)
{
    char hex[8], polls[24];
    const char *const args[] = {hex, polls, NULL};
    const csn_remote_script s = {.text = port_script,
                                 .args = args,
                                 .deadline_ns = csn_deadline_in(timeout_ms + SCRIPT_MS)};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    snprintf(hex, sizeof(hex), "%04X", port);
    number(polls, timeout_ms / POLL_MS);
    csn_status st = csn_remote_run_script(state, &s, &out, &code, err);
    if (st == CSN_OK && code != 0)
        st = csn_fail(err, CSN_TIMEOUT, "nothing listens on port %u", port);
    return st;
}

const csn_process_ops csn_remote_process_ops = {
    .size = sizeof(csn_remote_process_ops),
    .start = csn_remote_start,
    .release_tied = csn_remote_release_tied,
    .list = process_list,
    .logs = process_logs,
    .signal = process_signal,
    .feed = process_feed,
    .resize = process_resize,
    .wait_port = wait_port,
};
