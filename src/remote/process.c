/* process.c: starts background processes in a remote sandbox, using only provider->run.
 *
 * For each process a supervisor script runs in the sandbox and keeps a directory with pid,
 * output and exit status. This file keeps no state: any handle can find the process and read
 * its output from the first byte. process_control.c reads these directories.
 *
 * Output is stored in files of the sandbox. The last output_max bytes of each stream can be
 * read, but the files hold all of it and use the sandbox's disk space. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/strv.h"
#include "remote/internal.h"

#define START_MS 60000u

/* DIR EXEC_ID MAX FLAGS TIMEOUT_S STARTED_MS TEXT CWD ARGV...: prints "pid N" or "no REASON".
 * The process runs in the foreground of the supervisor: a POSIX shell ignores SIGINT in
 * background jobs. A shell prints its own pid and then execs the program. script(1) provides
 * the terminal; it takes a command line, so arguments are passed in variables, which need no
 * quoting. */
static const char supervisor_script[] =
    "d=$1/$2; m=$2; fl=$4; t=$5\n"
    "umask 077; mkdir -p \"$d\" || { echo 'no place'; exit 125; }\n"
    "exec 3>&1 >\"$d/log\"\n"
    "echo $$ >\"$d/w\"; echo \"$3 $6 $fl\" >\"$d/facts\"; printf %s \"$7\" >\"$d/text\"\n"
    "c=$8; shift 8\n"
    "gone() { rm -rf \"$d\"; echo \"no $1\" >&3; exit 125; }\n"
    "[ -z \"$c\" ] || cd \"$c\" 2>\"$d/log\" || gone directory\n"
    "x=$(command -v \"$1\" 2>&1) || gone program\n"
    ": >\"$d/out\"; : >\"$d/err\"\n"
    "h= k=\n"
    "case $fl in *[ip]*) mkfifo \"$d/in\" || gone pipe\n"
    "  sleep 2147483647 3>&- >\"$d/in\" & h=$!; echo $h >\"$d/holder\" ;;\n"
    "*) ln -s /dev/null \"$d/in\" ;; esac\n"
    "if [ \"$t\" != 0 ]; then\n"
    "  ( exec 3>&-; sleep \"$t\"; for s in TERM KILL KILL; do\n"
    "    for f in $(grep -ls \"" CSN_REMOTE_ID_VAR "=$m\" /proc/[0-9]*/environ); do\n"
    "      p=${f#/proc/}; kill -s $s \"${p%/environ}\"; done; sleep 0.2 || sleep 1; done\n"
    "  ) >\"$d/log\" 2>&1 & k=$!\n"
    "fi\n"
    "e=$d/err; case $fl in *m*) e=$d/out ;; esac\n"
    "umask 022\n"
    "f='echo $$ >\"$1/pid.new\"; mv \"$1/pid.new\" \"$1/pid\"\n"
    "  echo \"pid $$\" >&3; exec 3>&-; shift; exec \"$@\"'\n"
    "case $fl in\n"
    "*p*) x=$(command -v script 2>&1) && x=$(command -v stty 2>&1) || gone terminal\n"
    "  i=0 CSN_A=; for a; do i=$((i + 1)); eval \"CSN_$i=\\$a; export CSN_$i\"\n"
    "    CSN_A=\"$CSN_A \\\"\\$CSN_$i\\\"\"; done; CSN_N=$i CSN_D=$d CSN_F=$f CSN_T=${fl#*p}\n"
    "  export CSN_A CSN_N CSN_D CSN_F CSN_T TERM=\"${TERM:-xterm-256color}\"\n"
    "  SHELL=/bin/sh " CSN_REMOTE_ID_VAR "=$m script -qefc 'tty >\"$CSN_D/tty\"; stty $CSN_T\n"
    "    eval \"set -- sh -c \\\"\\$CSN_F\\\" sh \\\"\\$CSN_D\\\" $CSN_A\"\n"
    "    while [ \"$CSN_N\" -gt 0 ]; do unset \"CSN_$CSN_N\"; CSN_N=$((CSN_N - 1)); done\n"
    "    unset CSN_A CSN_N CSN_D CSN_F CSN_T; exec \"$@\"' /dev/null \\\n"
    "    <\"$d/in\" >>\"$d/out\" 2>&1 ;;\n"
    "*) " CSN_REMOTE_ID_VAR
    "=$m sh -c \"$f\" sh \"$d\" \"$@\" <\"$d/in\" >>\"$d/out\" 2>>\"$e\" ;;\n"
    "esac\n"
    "r=$?; echo $r >\"$d/exit.new\"; mv \"$d/exit.new\" \"$d/exit\"\n"
    "[ -z \"$h\" ] || kill \"$h\"; [ -z \"$k\" ] || kill \"$k\"\n";

/* CSN_EXEC_TIED: the process is killed when its handle is released. */
typedef struct tied_process {
    csn_remote *r;
    char exec_id[32];
} tied_process;

/* The supervisor's first line of output. */
typedef struct first_line {
    char text[64];
    size_t len;
    bool complete;
} first_line;

static int collect_line(void *ctx, int stream, const void *data, size_t len)
{
    first_line *l = ctx;
    const char *p = data;

    for (size_t i = 0; stream == CSN_STDOUT && i < len && !l->complete; i++) {
        if (p[i] == '\n' || l->len == sizeof(l->text) - 1)
            l->complete = true;
        else
            l->text[l->len++] = p[i];
    }
    l->text[l->len] = '\0';
    return l->complete;
}

void csn_remote_process_dir(const csn_remote *r, char *buf, size_t size)
{
    snprintf(buf, size, "/tmp/.caisson-%s", r->id);
}

static csn_status command_text(const csn_exec_req *req, csn_buf *b, csn_error **err)
{
    int e = 0;

    csn_buf_init(b, CSN_COMMAND_TEXT_MAX);
    if (req->command)
        e = csn_buf_append(b, req->command, strnlen(req->command, CSN_COMMAND_TEXT_MAX));
    for (size_t i = 0; !req->command && req->argv[i] && e == 0; i++) {
        if (i > 0)
            e = csn_buf_putc(b, ' ');
        e = e ? e
              : csn_buf_append(b, req->argv[i],
                               strnlen(req->argv[i], CSN_COMMAND_TEXT_MAX - b->len));
    }
    return e == ENOMEM ? csn_fail(err, CSN_NOMEM, "start") : CSN_OK;
}

static csn_status supervisor_args(const csn_remote *r, const csn_exec_req *req,
                                  uint64_t output_max, const char *exec_id, char ***ret,
                                  csn_error **err)
{
    char dir[128], max[24], flags[64], timeout[24] = "0", started[24];
    csn_autobuf text;
    int e = 0;

    csn_remote_process_dir(r, dir, sizeof(dir));
    snprintf(max, sizeof(max), "%llu", (unsigned long long)output_max);
    snprintf(started, sizeof(started), "%lld", (long long)csn_wall_ms());
    if (req->flags & CSN_EXEC_PTY)
        snprintf(flags, sizeof(flags), "-p rows %u cols %u", req->rows ? req->rows : 24u,
                 req->cols ? req->cols : 80u);
    else
        snprintf(flags, sizeof(flags), "-%s%s", req->flags & CSN_EXEC_MERGE ? "m" : "",
                 req->flags & CSN_EXEC_STDIN ? "i" : "");
    if (req->deadline_ns)
        snprintf(timeout, sizeof(timeout), "%.3f",
                 (double)csn_deadline_poll_ms(req->deadline_ns) / 1000.0);
    csn_status st = command_text(req, &text, err);
    if (st < 0)
        return st;
    const char *const script[] = {"sh", "-c", supervisor_script, "sh", NULL};
    const char *const params[] = {dir,
                                  exec_id,
                                  max,
                                  flags,
                                  timeout,
                                  started,
                                  text.data ? text.data : "",
                                  req->cwd ? req->cwd : "",
                                  NULL};
    const char *const *lists[] = {script, params, req->argv};
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (size_t i = 0; lists[l][i] && e == 0; i++)
            e = csn_strv_push(ret, lists[l][i]);
    return e == 0 ? CSN_OK : csn_fail(err, CSN_NOMEM, "start");
}

static csn_status start_error(const csn_exec_req *req, const first_line *l, csn_error **err)
{
    if (strcmp(l->text, "no program") == 0)
        return csn_fail(err, CSN_NOT_FOUND, "%.200s: command not found", req->argv[0]);
    if (strcmp(l->text, "no directory") == 0)
        return csn_fail(err, CSN_NOT_FOUND, "cwd '%.200s': no such directory", req->cwd);
    if (strcmp(l->text, "no terminal") == 0)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "a terminal needs script(1) and stty(1) in the sandbox");
    return csn_fail(err, CSN_UNAVAILABLE, "the sandbox did not start the process");
}

static csn_status run_supervisor(csn_remote *r, const csn_exec_req *req, char **argv,
                                 int64_t *ret_pid, csn_error **err)
{
    const csn_exec_req supervisor = {.size = sizeof(supervisor),
                                     .argv = (const char *const *)argv,
                                     .env = req->env,
                                     .input_fd = -1,
                                     .cancel_fds = {-1, -1}};
    csn_remote_exit x = {.exit_code = -1};
    csn_remote_wrapper w = {.exec_id = ""};
    first_line line = {.len = 0};
    long long pid = 0;

    csn_status st = csn_remote_wrapper_build(&w, &supervisor, NULL, err);
    const csn_remote_cmd cmd = {
        .argv = (const char *const *)w.argv,
        .env = w.env,
        .as_root = (req->flags & CSN_EXEC_SUDO) != 0,
        .detached = true,
        .input_fd = -1,
        .deadline_ns = csn_deadline_in(START_MS),
        .cancel_fds = {req->cancel_fds[0], req->cancel_fds[1], r->stop_fd},
        .on_output = collect_line,
        .ctx = &line,
    };
    if (st == CSN_OK)
        st = r->provider->run(r, &cmd, &x, err);
    csn_remote_wrapper_release(&w);
    if (st < 0)
        return st;
    if (sscanf(line.text, "pid %lld", &pid) != 1 || pid <= 0)
        return start_error(req, &line, err);
    *ret_pid = pid;
    return CSN_OK;
}

csn_status csn_remote_start(void *state, const csn_exec_req *req, uint64_t output_max,
                            int64_t *ret_pid, void **ret_tie, csn_error **err)
{
    csn_remote *r = state;
    csn_autofree tied_process *t = calloc(1, sizeof(*t));
    char **argv = NULL;

    if (!t || csn_remote_random_id(t->exec_id) != 0)
        return csn_fail(err, CSN_NOMEM, "start");
    if (req->input || req->input_fd >= 0)
        return csn_fail(
            err, CSN_UNSUPPORTED,
            "backend '%s' cannot pass a descriptor as stdin to a background process",
            r->provider->name);
    csn_status st = supervisor_args(r, req, output_max ? output_max : CSN_OUTPUT_MAX_DEFAULT,
                                    t->exec_id, &argv, err);
    if (st == CSN_OK)
        st = run_supervisor(r, req, argv, ret_pid, err);
    csn_strv_free(argv);
    if (st < 0)
        return st;
    t->r = r;
    *ret_tie = req->flags & CSN_EXEC_TIED ? CSN_STEAL(t) : NULL;
    return CSN_OK;
}

void csn_remote_release_tied(void *p)
{
    tied_process *t = p;

    if (!t)
        return;
    csn_remote_kill(t->r, t->exec_id);
    free(t);
}
