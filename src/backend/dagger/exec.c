/* exec.c: runs one command with a query that returns when the command has ended.
 *
 * The engine does not stream, transports text only, treats exit codes 128 to 191 as failures of
 * its own (and discards the command's changes), and has no timeout. A wrapper script in the
 * container therefore runs the command, limits its output, kills its process tree at the
 * deadline and prints a report; the script itself always exits with 0. The command can
 * manipulate the report: its size is limited and its format checked, and a forged report
 * falsifies only the result of that command.
 *
 * Invariants: the request is sent once. Without a complete report the exit status is unknown.
 * The current container is replaced only by a response that has both the wrapper's output and
 * the id of the new container. Output is delivered after the step lock has been released,
 * because the receiver may use the sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dagger/dagger.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define SELECTION_MAX (8u * 1024u * 1024u)
/* Limits per stream: INLINE bytes are in the report itself; HEAD bytes of the start and TAIL
 * bytes of the end are kept in files. INLINE is one byte over the default output limit. */
#define INLINE   1048577u
#define INLINE_S "1048577"
#define HEAD     268435456u
#define HEAD_S   "268435456"
#define BLOCKS_S "4096" /* of 64 KiB: HEAD */
#define TAIL     16777216u
#define TAIL_S   "16777216"
#define WINDOW   4194304u /* bytes per fetch */
#define FETCH_MS 60000u

/* DIR SECONDS ARGV...: creates DIR; SECONDS may be empty. `others` signals the command and its
 * descendants, that is every process except pid 1 and those with the step variable. A process
 * inside execve has no arguments and no variables yet and may belong to the wrapper: it is
 * skipped until it has arguments. Each stream goes to a file of up to HEAD bytes; the rest is
 * counted, and its last TAIL bytes are kept. The shell's own message ("Killed") distinguishes a
 * signal from an exit code. */
static const char wrapper[] =
    "case ${BASH_VERSION:+x} in x) set +o posix ;; esac\n"
    "d=$1 t=$2; shift 2; u=$(umask); umask 077\n"
    "mkdir -p /tmp && mkdir \"$d\" && mkfifo \"$d/po\" \"$d/pe\" && : >\"$d/note\" || {\n"
    "  echo n; exit 0; }\n"
    "exec 2>\"$d/note\"\n"
    "others() { for p in $(grep -Ls \"" CSN_DAGGER_STEP_VAR "=$" CSN_DAGGER_STEP_VAR
    "\" /proc/[0-9]*/environ); do\n"
    "  p=${p#/proc/}; p=${p%/environ}\n"
    "  [ \"$p\" = 1 ] || ! grep -qs '' \"/proc/$p/cmdline\" || grep -qs \"" CSN_DAGGER_STEP_VAR
    "=$" CSN_DAGGER_STEP_VAR "\" \"/proc/$p/environ\" || kill -s \"$1\" \"$p\"; done; }\n"
    "take() { dd bs=65536 count=" BLOCKS_S " iflag=fullblock of=\"$d/$1\" 2>/dev/null ||\n"
    "    : >\"$d/lost\"\n"
    "  [ $(($(wc -c <\"$d/$1\"))) -ge " HEAD_S " ] || return 0\n"
    "  mkfifo \"$d/$1.f\"; wc -c <\"$d/$1.f\" >\"$d/$1.m\" &\n"
    "  tee \"$d/$1.f\" | tail -c " TAIL_S " >\"$d/$1.t\"; wait $!; }\n"
    "w=; [ -z \"$t\" ] || { (sleep \"$t\" || sleep $((${t%.*} + 1)); : >\"$d/late\"\n"
    "  others TERM; sleep 0.2 || sleep 1; others KILL; others KILL\n"
    "  ) </dev/null >/dev/null 2>&1 & w=$!; }\n"
    "take o <\"$d/po\" >/dev/null 2>&1 & o=$!\n"
    "take e <\"$d/pe\" >/dev/null 2>&1 & e=$!\n"
    "(unset " CSN_DAGGER_STEP_VAR
    "; umask \"$u\"; exec \"$@\") </dev/null >\"$d/po\" 2>\"$d/pe\"\n"
    "x=$?\n"
    ":\n"
    "s=0; l=0; [ ! -s \"$d/note\" ] || s=1; [ ! -e \"$d/late\" ] || l=1\n"
    "case $x in 130 | 141) s=1 ;; esac\n"
    "[ -z \"$w\" ] || kill \"$w\"\n"
    "(while :; do others KILL; sleep 0.1 || sleep 1; done) </dev/null >/dev/null 2>&1 & k=$!\n"
    "wait \"$o\" \"$e\"; kill \"$k\"\n"
    "[ ! -e \"$d/lost\" ] || { echo lost; exit 0; }\n"
    "echo \"x $x $s $l\"; big=\n"
    "part() { n=$(wc -c <\"$d/$1\") m=0 q=0\n"
    "  [ ! -e \"$d/$1.m\" ] || { m=$(cat \"$d/$1.m\"); q=$(wc -c <\"$d/$1.t\"); }\n"
    "  [ $((n)) -le " INLINE_S " ] || big=1; echo \"$1 $((n)) $((m)) $((q))\"; }\n"
    "part o; part e\n"
    "head -c " INLINE_S " \"$d/o\" | base64; echo -; head -c " INLINE_S
    " \"$d/e\" | base64; echo .\n"
    "[ -n \"$big\" ] || rm -rf \"$d\"\n"
    "exit 0\n";

typedef struct stream_report {
    uint64_t head, rest, tail; /* bytes: start kept, after the start, end kept */
    char *bytes;               /* the first INLINE bytes */
    size_t len;
} stream_report;

typedef struct report {
    csn_remote *r;
    const csn_remote_cmd *cmd;
    csn_remote_exit *exit;
    char dir[64];
    stream_report streams[3]; /* by CSN_STDOUT, CSN_STDERR */
    char *output_container;   /* has the files with the rest of the output; or NULL */
} report;

/* ---- the report ------------------------------------------------------------------------- */

static bool decode_stream(stream_report *p, const char *text, size_t len)
{
    uint64_t want = p->head < INLINE ? p->head : INLINE;

    if (p->head > HEAD || p->tail > TAIL || p->tail > p->rest || (p->rest && p->head != HEAD))
        return false;
    p->bytes = malloc(3 * (len / 4) + 3);
    long n = p->bytes ? csn_base64_decode(text, len, p->bytes) : -1;
    p->len = n < 0 ? 0 : (size_t)n;
    return n >= 0 && (uint64_t)n == want;
}

static bool parse_report(report *p, const char *text)
{
    unsigned long long v[6];
    int code = -1, signalled = 0, late = 0, used = 0;

    if (sscanf(text, "x %d %d %d\no %llu %llu %llu\ne %llu %llu %llu\n%n", &code, &signalled,
               &late, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &used) != 9 ||
        used == 0 || code < 0 || code > 255)
        return false;
    text += used;
    size_t first = strcspn(text, "-");
    const char *next = text[first] ? text + first + 1 : "";
    size_t second = strcspn(next, ".");
    stream_report *o = &p->streams[CSN_STDOUT], *e = &p->streams[CSN_STDERR];
    *o = (stream_report){.head = v[0], .rest = v[1], .tail = v[2]};
    *e = (stream_report){.head = v[3], .rest = v[4], .tail = v[5]};
    if (!next[second] || !decode_stream(o, text, first) || !decode_stream(e, next, second))
        return false;
    p->exit->ended = true;
    p->exit->timed_out = late == 1;
    bool by_signal = signalled == 1 && code > 128 && code < 128 + 65;
    p->exit->signal = by_signal ? code - 128 : 0;
    p->exit->exit_code = by_signal ? -1 : code;
    return true;
}

/* ---- delivering the output -------------------------------------------------------------- */

/* Reads a part of an output file of the wrapper. */
static csn_status fetch(const report *p, const char *file, uint64_t from, uint64_t len,
                        char **ret)
{
    csn_auto_dagger_response a = {0};
    csn_autobuf selection;
    char first[24], count[24];

    csn_buf_init(&selection, 64u * 1024u);
    snprintf(first, sizeof(first), "%llu", (unsigned long long)from + 1);
    snprintf(count, sizeof(count), "%llu", (unsigned long long)len);
    if (csn_dagger_append(
            &selection, "withExec(args: [\"/bin/sh\", \"-c\", ?, \"sh\", ?, ?, ?]) { stdout }",
            "tail -c +$2 \"$1\" | head -c $3 | base64", file, first, count) != 0)
        return CSN_NOMEM;
    const csn_dagger_query q = {.what = "read output",
                                .container = p->output_container,
                                .selection = selection.data,
                                .retry = CSN_HTTP_IDEMPOTENT,
                                .deadline_ns = csn_deadline_in(FETCH_MS),
                                .cancel_fds = p->cmd->cancel_fds};
    csn_status st = csn_dagger_send(p->r, &q, &a, NULL);
    const char *text = csn_jval_string(csn_dagger_at(a.data, "withExec.stdout"));
    if (st < 0 || !text)
        return st < 0 ? st : CSN_IO;
    size_t size = strlen(text);
    csn_autofree char *bytes = malloc(3 * (size / 4) + 3);
    long n = bytes ? csn_base64_decode(text, size, bytes) : -1;
    if (n < 0 || (uint64_t)n != len)
        return CSN_IO;
    *ret = CSN_STEAL(bytes);
    return CSN_OK;
}

static int deliver(const report *p, int stream, const void *data, uint64_t len)
{
    return len == 0 ? 0 : p->cmd->on_output(p->cmd->ctx, stream, data, len);
}

/* Delivers bytes [from, to) of a file; bytes that cannot be fetched are only counted. */
static int deliver_file(const report *p, int stream, const char *suffix, uint64_t from,
                        uint64_t to)
{
    char file[96];

    snprintf(file, sizeof(file), "%s/%c%s", p->dir, stream == CSN_STDERR ? 'e' : 'o', suffix);
    while (from < to && p->output_container && p->cmd->wants(p->cmd->ctx, stream)) {
        uint64_t len = to - from < WINDOW ? to - from : WINDOW;
        csn_autofree char *bytes = NULL;
        if (fetch(p, file, from, len, &bytes) < 0)
            break;
        int stop = deliver(p, stream, bytes, len);
        if (stop)
            return stop;
        from += len;
    }
    return deliver(p, stream, NULL, to - from);
}

static void deliver_stream(const report *p, int stream)
{
    const stream_report *s = &p->streams[stream];

    if (deliver(p, stream, s->bytes, s->len) == 0 &&
        deliver_file(p, stream, "", s->len, s->head) == 0 &&
        deliver(p, stream, NULL, s->rest - s->tail) == 0)
        (void)deliver_file(p, stream, ".t", 0, s->tail);
}

/* ---- the query -------------------------------------------------------------------------- */

static int append_args(csn_buf *b, const char *const *list)
{
    int e = 0;

    for (size_t i = 0; list[i] && e == 0; i++)
        e = csn_dagger_append(b, ", ?", list[i]);
    return e;
}

/* The step variable also makes each command unique, so the engine does not return a cached
 * result. */
static int append_selection(csn_buf *b, const csn_remote_cmd *cmd, const char *dir)
{
    unsigned ms = cmd->deadline_ns ? (unsigned)csn_deadline_poll_ms(cmd->deadline_ns) : 0;
    char seconds[24] = "";

    if (cmd->deadline_ns)
        snprintf(seconds, sizeof(seconds), "%u.%03u", ms / 1000, ms % 1000);
    int e = csn_dagger_append(b,
                              "withEnvVariable(name: \"" CSN_DAGGER_STEP_VAR
                              "\", value: ?) { withExec(args: [\"/bin/sh\", \"-c\", ?, \"sh\", "
                              "?, ?",
                              cmd->exec_id, wrapper, dir, seconds);
    if (e == 0 && cmd->env && cmd->env[0])
        e = csn_buf_puts(b, ", \"env\"");
    if (e == 0 && cmd->env)
        e = append_args(b, cmd->env);
    e = e ? e : append_args(b, cmd->argv);
    return e ? e
             : csn_buf_puts(b, "], expect: ANY) { stdout withoutEnvVariable(name: "
                               "\"" CSN_DAGGER_STEP_VAR "\") { sync } } }");
}

/* Keeps the output files in output_container; the sandbox's new container does not have
 * them. */
static csn_status commit_without_output(report *p, const char *id, csn_error **err)
{
    static const int32_t none[] = {-1, -1, -1};
    csn_autofree char *clean = NULL;
    csn_autobuf selection;

    csn_buf_init(&selection, 1024);
    p->output_container = strdup(id);
    if (!p->output_container ||
        csn_dagger_append(&selection, "withoutDirectory(path: ?) { sync }", p->dir) != 0)
        return csn_fail(err, CSN_NOMEM, "run a command");
    const csn_dagger_query q = {.what = "run a command",
                                .container = id,
                                .selection = selection.data,
                                .retry = CSN_HTTP_IDEMPOTENT,
                                .deadline_ns = csn_deadline_in(FETCH_MS),
                                .cancel_fds = none};
    csn_status st = csn_dagger_send_for_id(p->r, &q, "withoutDirectory.sync", &clean, err);
    return st == CSN_OK ? csn_dagger_commit(p->r, clean, err) : st;
}

/* Handles a query that failed: the engine could not start the wrapper, or the wrapper
 * failed. */
static csn_status query_failed(report *p, const csn_dagger_response *a, csn_status st)
{
    if (a->exec_error) {
        p->exit->started = true; /* the wrapper failed; its changes are lost */
    } else if (strstr(a->message, "argument list too long")) {
        snprintf(p->exit->spawn_error, sizeof(p->exit->spawn_error), "argument list too long");
        return CSN_OK;
    }
    return st;
}

static csn_status conclude(report *p, const csn_dagger_response *a, csn_error **err)
{
    const csn_jval *at = csn_dagger_at(a->data, "withEnvVariable.withExec");
    const char *text = csn_jval_string(csn_jval_get(at, "stdout"));
    const char *id = csn_dagger_id_at(at, "withoutEnvVariable.sync");

    if (!text || !id)
        return csn_fail(err, CSN_IO, "run a command: the response of the engine is incomplete");
    if (strcmp(text, "n\n") == 0) {
        snprintf(p->exit->spawn_error, sizeof(p->exit->spawn_error),
                 "/tmp of the sandbox is not writable");
        return CSN_OK;
    }
    p->exit->started = true;
    bool complete = parse_report(p, text);
    bool more = p->streams[CSN_STDOUT].head > INLINE || p->streams[CSN_STDERR].head > INLINE;
    csn_status st = CSN_OK;
    if (p->cmd->read_only)
        p->output_container = complete && more ? strdup(id) : NULL;
    else
        st = complete && more ? commit_without_output(p, id, err)
                              : csn_dagger_commit(p->r, id, err);
    if (st < 0 || complete)
        return st;
    return csn_fail(err, CSN_IO, "the command disturbed its wrapper: no report");
}

static csn_status run_on(report *p, const char *container, csn_error **err)
{
    const csn_remote_cmd *cmd = p->cmd;
    csn_auto_dagger_response a = {0};
    csn_autobuf selection;

    csn_buf_init(&selection, SELECTION_MAX);
    int e = append_selection(&selection, cmd, p->dir);
    if (e != 0)
        return csn_fail_errno(err, e, "run a command");
    const csn_dagger_query q = {.what = "run a command",
                                .container = container,
                                .selection = selection.data,
                                .retry = CSN_HTTP_ONCE,
                                .deadline_ns = cmd->deadline_ns,
                                .cancel_fds = cmd->cancel_fds,
                                .on_interrupt = cmd->on_interrupt,
                                .ctx = cmd->ctx};
    csn_status st = csn_dagger_send(p->r, &q, &a, err);
    p->exit->sent = a.sent;
    return st < 0 ? query_failed(p, &a, st) : conclude(p, &a, err);
}

/* With the step lock: no other command replaces the container meanwhile. */
static csn_status run_step(report *p, csn_error **err)
{
    const csn_remote_cmd *cmd = p->cmd;
    csn_status st = csn_dagger_step_begin(p->r, cmd->deadline_ns, cmd->cancel_fds, err);

    if ((st == CSN_TIMEOUT || st == CSN_CANCELLED) && cmd->on_interrupt)
        (void)cmd->on_interrupt(cmd->ctx, st);
    if (st < 0)
        return st;
    st = run_on(p, csn_dagger_of(p->r)->container, err);
    csn_step_lock_release(csn_dagger_of(p->r)->step_lock);
    return st;
}

/* A read-only command needs no lock; the container that it produces is dropped. */
static csn_status run_read_only(report *p, csn_error **err)
{
    csn_autofree char *container = NULL;
    csn_status st = csn_dagger_current(p->r, &container, err);

    return st < 0 ? st : run_on(p, container, err);
}

csn_status csn_dagger_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err)
{
    report p = {.r = r, .cmd = cmd, .exit = ret};

    snprintf(p.dir, sizeof(p.dir), "/tmp/.caisson-%s.d", cmd->exec_id);
    csn_status st = cmd->read_only ? run_read_only(&p, err) : run_step(&p, err);
    if (ret->ended) {
        deliver_stream(&p, CSN_STDOUT);
        deliver_stream(&p, CSN_STDERR);
    }
    free(p.streams[CSN_STDOUT].bytes);
    free(p.streams[CSN_STDERR].bytes);
    free(p.output_container);
    return st;
}
