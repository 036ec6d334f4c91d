/* process_control.c: questions about background processes, and what is done to them.
 *
 * Called by the core through the provider's ops table. Each is one script in the sandbox over
 * the directories that the watchers keep (process.c). The answers are the sandbox's word and no
 * more: bounded, and parsed as numbers and text. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/strv.h"
#include "remote/process.h"
#include "remote/remote.h"

#define ASK_MS    30000u
#define LIST_MAX  (4u * 1024u * 1024u)
#define NOT_THERE 101
#define NO_STDIN  102
#define STEP_MS   50u

/* BASE PID ...: d becomes the directory of that process; alive: does it still run? */
#define FIND                                                                                   \
    "find() { d=; for f in \"$1\"/*/pid; do read -r p <\"$f\" || continue\n"                   \
    "  [ \"$p\" != \"$2\" ] || d=${f%/pid}; done; [ -n \"$d\" ] || exit 101; }\n"
#define ALIVE                                                                                  \
    "alive() { [ ! -f \"$1/exit\" ] || return 1; read -r w <\"$1/w\"; kill -0 \"$w\" || "      \
    "[ ! -f \"$1/exit\" ] && kill -0 \"$w\"; }\n"
#define NAP "nap() { sleep 0.05 || sleep 1; }\n"

static csn_status ask(csn_remote *r, const char *text, const char *const *args,
                      const csn_source *input, uint64_t ms, csn_buf *out, int *ret_code,
                      csn_error **err)
{
    const csn_remote_script s = {
        .text = text, .args = args, .input = input, .deadline_ns = csn_deadline_in(ms)};

    return csn_remote_ask(r, &s, out, ret_code, err);
}

static csn_status no_such(int64_t pid, csn_error **err)
{
    return csn_fail(err, CSN_NOT_FOUND, "no running process %lld in this sandbox",
                    (long long)pid);
}

static void number(char buf[24], int64_t n)
{
    snprintf(buf, 24, "%lld", (long long)n);
}

/* ---- list ------------------------------------------------------------------------------- */

/* BASE PID STEPS: a line of facts, the command's text and a NUL for each. */
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

/* 129 to 128 + 64: a shell's way to say "ended by a signal". */
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
    csn_remote *r = state;
    char base[128], which[24], steps[24];
    const char *const args[] = {base, which, steps, NULL};
    csn_process_info one, last = {.pid = 0};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, LIST_MAX);
    csn_remote_base(r, base, sizeof(base));
    number(which, pid);
    number(steps, (int64_t)(wait_ms / STEP_MS));
    csn_status st = ask(r, list_script, args, NULL, ASK_MS + wait_ms, &out, &code, err);
    for (size_t at = 0; st == CSN_OK && at < out.len; at += strlen(out.data + at) + 1) {
        if (!read_record(out.data + at, &one))
            continue;
        if (pid == 0 && fn(ctx, &one) != 0)
            return st;
        if (one.started_ms >= last.started_ms) /* a number can come again: the latest */
            last = one;
    }
    if (st == CSN_OK && pid != 0 && last.pid == pid)
        (void)fn(ctx, &last);
    return st;
}

/* ---- logs ------------------------------------------------------------------------------- */

/* BASE PID STREAM OFFSET STEPS: "TOTAL ENDED START", then bytes from START on. */
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
    csn_remote *r = state;
    char base[128], which[24], from[24], steps[24];
    const char *const args[] = {base, which, stream == CSN_STDERR ? "err" : "out",
                                from, steps, NULL};
    unsigned long long total = 0, start = 0;
    int code = -1, ended = 0, used = 0;
    csn_autobuf out;

    csn_buf_init(&out, 2 * CSN_LOG_CHUNK_MAX);
    csn_remote_base(r, base, sizeof(base));
    number(which, pid);
    number(from, (int64_t)(offset < INT64_MAX ? offset : INT64_MAX));
    number(steps, (int64_t)(wait_ms / STEP_MS));
    csn_status st = ask(r, logs_script, args, NULL, ASK_MS + wait_ms, &out, &code, err);
    if (st < 0)
        return st;
    if (code == NOT_THERE)
        return no_such(pid, err);
    if (out.len == 0 ||
        sscanf(out.data, "%llu %d %llu%n", &total, &ended, &start, &used) != 3 ||
        used >= (int)out.len || out.data[used] != '\n')
        return csn_fail(err, CSN_IO, "the sandbox does not tell the output of %lld",
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

/* ---- acting ----------------------------------------------------------------------------- */

/* BASE PID SIGNAL: to all that has the mark; KILL until nobody is left. */
static const char signal_script[] = FIND ALIVE
    "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
    "i=0; while [ $i -lt 20 ]; do n=\n"
    "  for f in $(grep -ls \"" CSN_REMOTE_MARK "=${d##*/}\" /proc/[0-9]*/environ); do\n"
    "    p=${f#/proc/}; kill -s \"$3\" \"${p%/environ}\" 2>\"$d/log\" && n=1; done\n"
    "  [ \"$3\" = KILL ] && [ -n \"$n\" ] || break; i=$((i + 1)); done\n";

static csn_status process_signal(void *state, int64_t pid, int signo, csn_error **err)
{
    csn_remote *r = state;
    const char *name = csn_signal_name(signo);
    char base[128], which[24];
    const char *const args[] = {base, which, name ? name + 3 : "", NULL}; /* without SIG */
    csn_autobuf out;
    int code = -1;

    if (!name)
        return csn_fail(err, CSN_UNSUPPORTED, "signal %d has no name to send it by", signo);
    csn_buf_init(&out, 4096);
    csn_remote_base(r, base, sizeof(base));
    number(which, pid);
    csn_status st = ask(r, signal_script, args, NULL, ASK_MS, &out, &code, err);
    if (st == CSN_OK && code == NOT_THERE)
        st = no_such(pid, err);
    return st;
}

/* BASE PID: stdin becomes that of the process. */
static const char feed_script[] =
    FIND ALIVE "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
               "[ -f \"$d/holder\" ] || exit 102; cat >\"$d/in\"\n";
static const char shut_script[] =
    FIND ALIVE "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
               "[ -f \"$d/holder\" ] || exit 102; read -r h <\"$d/holder\"; rm \"$d/holder\"; "
               "kill \"$h\"\n";

typedef struct bytes {
    const char *data;
    size_t left;
} bytes;

static int64_t give_bytes(void *ctx, void *buf, size_t len)
{
    bytes *b = ctx;
    size_t n = len < b->left ? len : b->left;

    memcpy(buf, b->data, n);
    b->data += n;
    b->left -= n;
    return (int64_t)n;
}

static csn_status process_feed(void *state, int64_t pid, const void *data, size_t len,
                               uint64_t timeout_ms, csn_error **err)
{
    csn_remote *r = state;
    char base[128], which[24];
    const char *const args[] = {base, which, NULL};
    bytes b = {.data = data, .left = len};
    const csn_source input = {.read = give_bytes, .ctx = &b};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    csn_remote_base(r, base, sizeof(base));
    number(which, pid);
    csn_status st = ask(r, data ? feed_script : shut_script, args, data ? &input : NULL,
                        timeout_ms, &out, &code, err);
    if (st < 0)
        return st;
    if (code == NOT_THERE)
        return no_such(pid, err);
    if (code != 0)
        return csn_fail(err, CSN_IO, "process %lld has no open stdin", (long long)pid);
    return CSN_OK;
}

/* BASE PID ROWS COLS. stty sets one after the other, and the process hears of a size that is
 * neither; perl, where there is one, makes it one step (TIOCSWINSZ). */
static const char resize_script[] = FIND ALIVE
    "find \"$1\" \"$2\"; alive \"$d\" 2>\"$d/log\" || exit 101\n"
    "[ -f \"$d/tty\" ] || exit 102; read -r t <\"$d/tty\"\n"
    "perl -e 'ioctl(STDIN, 0x5414, pack(\"S4\", @ARGV, 0, 0)) or exit 1' \"$3\" \"$4\" "
    "<\"$t\" 2>\"$d/log\" || stty rows \"$3\" cols \"$4\" <\"$t\"\n";

static csn_status process_resize(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                                 csn_error **err)
{
    csn_remote *r = state;
    char base[128], which[24], high[24], wide[24];
    const char *const args[] = {base, which, high, wide, NULL};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    csn_remote_base(r, base, sizeof(base));
    number(which, pid);
    number(high, rows);
    number(wide, cols);
    csn_status st = ask(r, resize_script, args, NULL, ASK_MS, &out, &code, err);
    if (st < 0)
        return st;
    if (code == NOT_THERE)
        return no_such(pid, err);
    if (code == NO_STDIN)
        return csn_fail(err, CSN_INVALID, "process %lld has no terminal", (long long)pid);
    return code == 0 ? CSN_OK : csn_fail(err, CSN_IO, "the terminal keeps its size");
}

/* HEX STEPS */
static const char port_script[] =
    NAP "n=$2; until grep -qs \":$1 [0-9A-F]*:0000 0A \" /proc/net/tcp /proc/net/tcp6; do\n"
        "  [ \"$n\" -gt 0 ] || exit 101; n=$((n - 1)); nap; done\n";

static csn_status wait_port(void *state, uint16_t port, uint64_t timeout_ms, csn_error **err)
{
    csn_remote *r = state;
    char hex[8], steps[24];
    const char *const args[] = {hex, steps, NULL};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    snprintf(hex, sizeof(hex), "%04X", port);
    number(steps, (int64_t)(timeout_ms / STEP_MS));
    csn_status st = ask(r, port_script, args, NULL, timeout_ms + ASK_MS, &out, &code, err);
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
