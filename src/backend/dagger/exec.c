/* exec.c: one command: a query that is answered when it has ended.
 *
 * The engine streams nothing, carries text only, takes exit codes from 128 to 191 for failures
 * of its own (and then forgets what the command did to its files), and knows no timeout. So a
 * wrapper inside runs the command, measures and bounds its output, ends its tree at the
 * deadline, and prints a report; the wrapper itself always ends with 0.
 *
 * The report is from a container in which the command could do as it liked: it is text of that
 * command, bounded and checked, and can lie only about the command itself. What must hold: one
 * request, never repeated; no report, no known end; the sandbox becomes what the engine says it
 * is, together with the answer or not at all. Bytes are told after the turn was given back: who
 * gets them may use the sandbox. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dagger/dagger.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define SELECT_MAX (8u * 1024u * 1024u)
#define INLINE     1048577u /* of a stream, in the report: one byte over the usual limit */
#define INLINE_S   "1048577"
#define KEPT       268435456u /* of the start of a stream */
#define KEPT_S     "268435456"
#define BLOCKS_S   "4096"    /* of 64 KiB: KEPT */
#define TAIL       16777216u /* of its end, if there is more */
#define TAIL_S     "16777216"
#define WINDOW     4194304u
#define FETCH_MS   60000u

/* $1: a directory to make; $2: seconds, or nothing; the rest is the command. `others` are all
 * processes but the first and those that have our variable: the command and what it left. One
 * that is being exec'd has neither arguments nor variables yet, and may be our own: it is
 * looked at again after it has the former.
 * A stream goes to a file up to KEPT; of the rest the end is kept, and all of it counted. The
 * shell's own word on a signal ("Killed") tells it from an exit with that number. */
static const char wrapper[] =
    "case ${BASH_VERSION:+x} in x) set +o posix ;; esac\n"
    "d=$1 t=$2; shift 2; u=$(umask); umask 077\n"
    "mkdir -p /tmp && mkdir \"$d\" && mkfifo \"$d/po\" \"$d/pe\" && : >\"$d/note\" || {\n"
    "  echo n; exit 0; }\n"
    "exec 2>\"$d/note\"\n"
    "others() { for p in $(grep -Ls \"" CSN_DAGGER_TURN "=$" CSN_DAGGER_TURN
    "\" /proc/[0-9]*/environ); do\n"
    "  p=${p#/proc/}; p=${p%/environ}\n"
    "  [ \"$p\" = 1 ] || ! grep -qs '' \"/proc/$p/cmdline\" || grep -qs \"" CSN_DAGGER_TURN
    "=$" CSN_DAGGER_TURN "\" \"/proc/$p/environ\" || kill -s \"$1\" \"$p\"; done; }\n"
    "take() { dd bs=65536 count=" BLOCKS_S " iflag=fullblock of=\"$d/$1\" 2>/dev/null ||\n"
    "    : >\"$d/lost\"\n"
    "  [ $(($(wc -c <\"$d/$1\"))) -ge " KEPT_S " ] || return 0\n"
    "  mkfifo \"$d/$1.f\"; wc -c <\"$d/$1.f\" >\"$d/$1.m\" &\n"
    "  tee \"$d/$1.f\" | tail -c " TAIL_S " >\"$d/$1.t\"; wait $!; }\n"
    "w=; [ -z \"$t\" ] || { (sleep \"$t\" || sleep $((${t%.*} + 1)); : >\"$d/late\"\n"
    "  others TERM; sleep 0.2 || sleep 1; others KILL; others KILL\n"
    "  ) </dev/null >/dev/null 2>&1 & w=$!; }\n"
    "take o <\"$d/po\" >/dev/null 2>&1 & o=$!\n"
    "take e <\"$d/pe\" >/dev/null 2>&1 & e=$!\n"
    "(unset " CSN_DAGGER_TURN "; umask \"$u\"; exec \"$@\") </dev/null >\"$d/po\" 2>\"$d/pe\"\n"
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

typedef struct part {
    uint64_t head, rest, tail; /* bytes of the start, after it, and of those kept at the end */
    char *bytes;               /* the first of them */
    size_t len;
} part;

typedef struct report {
    csn_remote *r;
    const csn_remote_cmd *cmd;
    csn_remote_exit *exit;
    char dir[64];
    part parts[3]; /* by CSN_STDOUT, CSN_STDERR */
    char *left;    /* a state in which more of the output lies; or NULL */
} report;

/* ---- the report ------------------------------------------------------------------------- */

static bool take_part(part *p, const char *text, size_t len)
{
    uint64_t want = p->head < INLINE ? p->head : INLINE;

    if (p->head > KEPT || p->tail > TAIL || p->tail > p->rest || (p->rest && p->head != KEPT))
        return false;
    p->bytes = malloc(3 * (len / 4) + 3);
    long n = p->bytes ? csn_base64_decode(text, len, p->bytes) : -1;
    p->len = n < 0 ? 0 : (size_t)n;
    return n >= 0 && (uint64_t)n == want;
}

static bool read_report(report *p, const char *text)
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
    part *o = &p->parts[CSN_STDOUT], *e = &p->parts[CSN_STDERR];
    *o = (part){.head = v[0], .rest = v[1], .tail = v[2]};
    *e = (part){.head = v[3], .rest = v[4], .tail = v[5]};
    if (!next[second] || !take_part(o, text, first) || !take_part(e, next, second))
        return false;
    p->exit->ended = true;
    p->exit->late = late == 1;
    bool by_signal = signalled == 1 && code > 128 && code < 128 + 65;
    p->exit->signal = by_signal ? code - 128 : 0;
    p->exit->exit_code = by_signal ? -1 : code;
    return true;
}

/* ---- telling the output ----------------------------------------------------------------- */

static int put_fetch(csn_buf *b, const char *file, uint64_t from, uint64_t len)
{
    int e = csn_buf_puts(b, "withExec(args: [\"/bin/sh\", \"-c\", "
                            "\"tail -c +$2 \\\"$1\\\" | head -c $3 | base64\", \"sh\", ");

    e = e ? e : csn_dagger_literal(b, file);
    return e ? e
             : csn_buf_printf(b, ", \"%llu\", \"%llu\"]) { stdout }",
                              (unsigned long long)from + 1, (unsigned long long)len);
}

/* A piece of a file that the wrapper left; the answer may be asked for again. */
static csn_status fetch(const report *p, const char *file, uint64_t from, uint64_t len,
                        char **ret)
{
    csn_autoanswer a = {0};
    csn_autobuf select;

    csn_buf_init(&select, 64u * 1024u);
    if (put_fetch(&select, file, from, len) != 0)
        return CSN_NOMEM;
    const csn_dagger_query q = {.on = p->left,
                                .type = "Container",
                                .select = &select,
                                .what = "read output",
                                .repeat = CSN_HTTP_SAFE,
                                .deadline_ns = csn_deadline_in(FETCH_MS),
                                .cancel_fds = p->cmd->cancel_fds};
    csn_status st = csn_dagger_ask(p->r, &q, &a, NULL);
    const char *text =
        st == CSN_OK ? csn_jval_string(csn_dagger_at(a.at, "withExec.stdout")) : NULL;
    if (!text)
        return st < 0 ? st : CSN_IO;
    size_t size = strlen(text);
    csn_autofree char *bytes = malloc(3 * (size / 4) + 3);
    long n = bytes ? csn_base64_decode(text, size, bytes) : -1;
    if (n < 0 || (uint64_t)n != len)
        return CSN_IO;
    *ret = CSN_STEAL(bytes);
    return CSN_OK;
}

static int tell(const report *p, int stream, const void *data, uint64_t len)
{
    return len == 0 ? 0 : p->cmd->on_output(p->cmd->ctx, stream, data, len);
}

/* Bytes from..to of a file that was left; those that cannot be had are counted. */
static int tell_file(const report *p, int stream, const char *suffix, uint64_t from,
                     uint64_t to)
{
    char file[96];

    snprintf(file, sizeof(file), "%s/%c%s", p->dir, stream == CSN_STDERR ? 'e' : 'o', suffix);
    while (from < to && p->left && p->cmd->wants(p->cmd->ctx, stream)) {
        uint64_t len = to - from < WINDOW ? to - from : WINDOW;
        csn_autofree char *bytes = NULL;
        if (fetch(p, file, from, len, &bytes) < 0)
            break;
        int stop = tell(p, stream, bytes, len);
        if (stop)
            return stop;
        from += len;
    }
    return tell(p, stream, NULL, to - from);
}

static void tell_stream(const report *p, int stream)
{
    const part *s = &p->parts[stream];

    if (tell(p, stream, s->bytes, s->len) == 0 &&
        tell_file(p, stream, "", s->len, s->head) == 0 &&
        tell(p, stream, NULL, s->rest - s->tail) == 0)
        (void)tell_file(p, stream, ".t", 0, s->tail);
}

/* ---- the query -------------------------------------------------------------------------- */

static int put_args(csn_buf *b, const csn_remote_cmd *cmd, const char *dir)
{
    unsigned ms = cmd->deadline_ns ? (unsigned)csn_deadline_poll_ms(cmd->deadline_ns) : 0;
    char seconds[24] = "";

    if (cmd->deadline_ns)
        snprintf(seconds, sizeof(seconds), "%u.%03u", ms / 1000, ms % 1000);
    const char *const first[] = {"/bin/sh", "-c", wrapper, "sh", dir, seconds, NULL};
    const char *const *lists[] = {first, cmd->env && cmd->env[0] ? cmd->env : NULL, cmd->argv};
    int e = csn_buf_puts(b, "[");
    for (size_t l = 0; l < 3 && e == 0; l++) {
        if (l == 1 && lists[l])
            e = csn_buf_puts(b, ", \"env\"");
        for (size_t i = 0; lists[l] && lists[l][i] && e == 0; i++) {
            e = l + i > 0 ? csn_buf_puts(b, ", ") : 0;
            e = e ? e : csn_dagger_literal(b, lists[l][i]);
        }
    }
    return e ? e : csn_buf_puts(b, "]");
}

/* The variable also makes every command a new one to the engine's cache. */
static int put_select(csn_buf *b, const csn_remote_cmd *cmd, const char *dir)
{
    int e = csn_buf_puts(b, "withEnvVariable(name: \"" CSN_DAGGER_TURN "\", value: ");

    e = e ? e : csn_dagger_literal(b, cmd->mark);
    e = e ? e : csn_buf_puts(b, ") { withExec(args: ");
    e = e ? e : put_args(b, cmd, dir);
    return e ? e
             : csn_buf_puts(
                   b, ", expect: ANY) { stdout withoutEnvVariable(name: \"" CSN_DAGGER_TURN
                      "\") { sync } } }");
}

/* Output is left in the state: the sandbox becomes one without it, we read it from this. */
static csn_status leave_behind(report *p, const char *id, csn_error **err)
{
    csn_autoanswer a = {0};
    csn_autobuf select;

    csn_buf_init(&select, 1024);
    p->left = strdup(id);
    if (!p->left ||
        csn_buf_printf(&select, "withoutDirectory(path: \"%s\") { sync }", p->dir) != 0)
        return csn_fail(err, CSN_NOMEM, "run a command");
    const csn_dagger_query q = {.on = id,
                                .type = "Container",
                                .select = &select,
                                .what = "run a command",
                                .repeat = CSN_HTTP_SAFE,
                                .deadline_ns = csn_deadline_in(FETCH_MS),
                                .cancel_fds = (const int32_t[]){-1, -1, -1}};
    csn_status st = csn_dagger_ask(p->r, &q, &a, err);
    if (st < 0)
        return st;
    const char *clean = csn_dagger_id_at(a.at, "withoutDirectory.sync");
    return csn_dagger_become(p->r, clean ? clean : id, err);
}

/* The engine could not even run the wrapper, or lost it. */
static csn_status not_run(report *p, const csn_dagger_answer *a, csn_status st)
{
    if (a->exec_error) {
        p->exit->started = true; /* and what it did to files is lost */
    } else if (strstr(a->said, "argument list too long")) {
        snprintf(p->exit->why, sizeof(p->exit->why), "argument list too long");
        return CSN_OK;
    }
    return st;
}

static csn_status conclude(report *p, const csn_dagger_answer *a, csn_error **err)
{
    const csn_jval *at = csn_dagger_at(a->at, "withEnvVariable.withExec");
    const char *text = csn_jval_string(csn_jval_get(at, "stdout"));
    const char *id = csn_dagger_id_at(at, "withoutEnvVariable.sync");

    if (!text || !id)
        return csn_fail(err, CSN_IO, "the answer of the engine lacks what was asked");
    if (strcmp(text, "n\n") == 0) {
        snprintf(p->exit->why, sizeof(p->exit->why), "the sandbox has no /tmp to write to");
        return CSN_OK;
    }
    p->exit->started = true;
    bool whole = read_report(p, text);
    bool more = p->parts[CSN_STDOUT].head > INLINE || p->parts[CSN_STDERR].head > INLINE;
    csn_status st = CSN_OK;
    if (p->cmd->reads)
        p->left = whole && more ? strdup(id) : NULL;
    else
        st = whole && more ? leave_behind(p, id, err) : csn_dagger_become(p->r, id, err);
    if (st < 0 || whole)
        return st;
    return csn_fail(err, CSN_IO, "the wrapper of the command was disturbed");
}

static csn_status run_on(report *p, const char *container, csn_error **err)
{
    const csn_remote_cmd *cmd = p->cmd;
    csn_autoanswer a = {0};
    csn_autobuf select;

    csn_buf_init(&select, SELECT_MAX);
    int e = put_select(&select, cmd, p->dir);
    if (e != 0)
        return csn_fail_errno(err, e, "run a command");
    const csn_dagger_query q = {.on = container,
                                .type = "Container",
                                .select = &select,
                                .what = "run a command",
                                .repeat = CSN_HTTP_ONCE,
                                .deadline_ns = cmd->deadline_ns,
                                .cancel_fds = cmd->cancel_fds,
                                .on_alarm = cmd->on_alarm,
                                .ctx = cmd->ctx};
    csn_status st = csn_dagger_ask(p->r, &q, &a, err);
    p->exit->sent = a.sent;
    return st < 0 ? not_run(p, &a, st) : conclude(p, &a, err);
}

/* With the turn, from the state that nobody else can replace meanwhile. */
static csn_status run_step(report *p, csn_error **err)
{
    const csn_remote_cmd *cmd = p->cmd;
    csn_status st = csn_dagger_begin(p->r, cmd->deadline_ns, cmd->cancel_fds, err);

    if ((st == CSN_TIMEOUT || st == CSN_CANCELLED) && cmd->on_alarm)
        (void)cmd->on_alarm(cmd->ctx, st);
    if (st < 0)
        return st;
    st = run_on(p, csn_dagger_of(p->r)->container, err);
    csn_step_lock_give(csn_dagger_of(p->r)->turn);
    return st;
}

/* Aside: what it makes is left to the engine, and nobody waits for anybody. */
static csn_status run_aside(report *p, csn_error **err)
{
    csn_autofree char *container = NULL;
    csn_status st = csn_dagger_now(p->r, &container, err);

    return st < 0 ? st : run_on(p, container, err);
}

csn_status csn_dagger_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err)
{
    report p = {.r = r, .cmd = cmd, .exit = ret};

    snprintf(p.dir, sizeof(p.dir), "/tmp/.caisson-%s.d", cmd->mark);
    csn_status st = cmd->reads ? run_aside(&p, err) : run_step(&p, err);
    if (ret->ended) {
        tell_stream(&p, CSN_STDOUT);
        tell_stream(&p, CSN_STDERR);
    }
    free(p.parts[CSN_STDOUT].bytes);
    free(p.parts[CSN_STDERR].bytes);
    free(p.left);
    return st;
}
