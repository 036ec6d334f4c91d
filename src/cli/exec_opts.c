/* exec_opts.c: runs the command of `run` and `exec`.
 *
 * A command runs in the foreground, with its output copied as it comes (captured with --json),
 * in the background (-d), or on a terminal (-t). The exit status is that of the
 * command; 124 to 127 and 128+n report timeouts, refusals and signals.
 *
 * Invariants: output is copied byte for byte and never truncated; if the reader closes stdout
 * or a signal arrives, the command is cancelled; stdout gets only the output of the command.
 * The output is untrusted and never interpreted. */
#include "cli/exec_opts.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strv.h"
#include "wire/result_json.h"

#define AT(field) offsetof(csn_exec_cli, field)

const csn_opt csn_exec_opt_table[] = {
    {CSN_OPT_STR, 'c', NULL, AT(command), "STRING", "run a shell string (bash, else sh)", NULL},
    {CSN_OPT_STR, 0, "cwd", AT(cwd), "PATH", "working directory of this command", NULL},
    {CSN_OPT_LIST, 0, "env", AT(env), "NAME=VALUE", "a variable for this command", NULL},
    {CSN_OPT_LIST, 0, "allowed-domain", AT(allowed_domains), "HOST[:PORT]",
     "limit this command to this host of the sandbox's network", NULL},
    {CSN_OPT_LIST, 0, "package-manager", AT(package_managers), "NAME",
     "the same for the hosts of npm, pip ...", NULL},
    {CSN_OPT_DURATION, 0, "timeout", AT(timeout), "DURATION",
     "end it after this long; default 30s, or none with -d or -t", NULL},
    {CSN_OPT_FLAG, 0, "stdin", AT(use_stdin), NULL, "pass standard input to the command", NULL},
    {CSN_OPT_FLAG, 0, "no-stdin", AT(no_stdin), NULL, "its standard input is /dev/null", NULL},
    {CSN_OPT_SIZE, 0, "max-output", AT(output_max), "SIZE",
     "bytes kept per stream with --json, default 1M", NULL},
    {CSN_OPT_SIZE, 0, "output-max", AT(output_max), "SIZE", NULL, NULL},
    {CSN_OPT_STR, 0, "keep", AT(keep), "head|tail|both", "which part to keep of longer output",
     "head|tail|both"},
    {CSN_OPT_FLAG, 0, "merge", AT(merge), NULL, "stdout and stderr in one stream, in order",
     NULL},
    {CSN_OPT_STR, 0, "session", AT(session), "NAME",
     "a shell that keeps its directory and variables", NULL},
    {CSN_OPT_FLAG, 0, "restart", AT(restart), NULL, "start the session again", NULL},
    {CSN_OPT_FLAG, 'd', "detach", AT(detach), NULL, "run in the background and print the pid",
     NULL},
    {CSN_OPT_FLAG, 0, "sudo", AT(sudo), NULL, "run as root inside; only e2b and vercel", NULL},
    {CSN_OPT_FLAG, 't', "pty", AT(pty), NULL, "run on a terminal, connected to this one", NULL},
    {CSN_OPT_FLAG, 'T', "no-pty", AT(no_pty), NULL, "run without a terminal", NULL},
    {CSN_OPT_END},
};

/* An id begins with its backend. */
bool csn_cli_is_here(const csn_cli *c)
{
    const char *id = csn_id(c->sb);

    return id && (csn_str_starts(id, "jail-") || csn_str_starts(id, "local-"));
}

int csn_exec_opts_check(const csn_cli *c, const csn_exec_cli *x)
{
    if (!x->command && !c->argv)
        return csn_cli_usage(c, "-c 'make test' or -- make test", "no command to run");
    if (x->command && c->argv)
        return csn_cli_usage(c, NULL, "give the command after -c or after --, not both");
    if (c->argv && !c->argv[0])
        return csn_cli_usage(c, NULL, "no command after --");
    if (x->session && !x->command)
        return csn_cli_usage(c, "a session runs shell strings", "--session needs -c");
    if (x->restart && !x->session)
        return csn_cli_usage(c, NULL, "--restart needs --session");
    if (x->detach && x->pty)
        return csn_cli_usage(c, NULL, "-d and -t exclude each other");
    if (x->pty && x->no_pty)
        return csn_cli_usage(c, NULL, "-t and -T exclude each other");
    if (x->use_stdin && x->no_stdin)
        return csn_cli_usage(c, NULL, "--stdin and --no-stdin exclude each other");
    if (x->pty && x->no_stdin)
        return csn_cli_usage(c, "-t passes on what you type",
                             "-t and --no-stdin exclude each other");
    if (x->pty && x->session)
        return csn_cli_usage(c, NULL, "-t and --session exclude each other");
    if (x->pty && c->json)
        return csn_cli_usage(c, NULL, "-t and --json exclude each other");
    if (x->pty && x->use_stdin)
        return csn_cli_usage(c, "-t already passes on what you type",
                             "-t and --stdin exclude each other");
    return 0;
}

static void fill(const csn_exec_cli *x, csn_exec_opts *o)
{
    *o = (csn_exec_opts){
        .size = sizeof(*o),
        .cwd = x->cwd,
        .env = (const char *const *)x->env,
        .timeout_ms = x->timeout,
        .output_max = x->output_max,
        .session = x->session,
        .allowed_domains = (const char *const *)x->allowed_domains,
        .package_managers = (const char *const *)x->package_managers,
    };
    if (x->merge)
        o->flags |= CSN_EXEC_MERGE;
    if (x->keep && strcmp(x->keep, "tail") == 0)
        o->flags |= CSN_EXEC_KEEP_TAIL;
    if (x->keep && strcmp(x->keep, "both") == 0)
        o->flags |= CSN_EXEC_KEEP_BOTH;
    if (x->restart)
        o->flags |= CSN_EXEC_RESTART;
    if (x->sudo)
        o->flags |= CSN_EXEC_SUDO;
    if (x->use_stdin || x->pty) {
        o->flags |= CSN_EXEC_STDIN_FD;
        o->stdin_fd = STDIN_FILENO;
    }
    if (!x->pty)
        return;
    o->flags |= CSN_EXEC_PTY | (x->own_stderr ? 0 : CSN_EXEC_MERGE);
    csn_cli_terminal_size(&o->rows, &o->cols);
    o->timeout_ms = x->timeout ? x->timeout : CSN_NO_LIMIT;
}

/* ---- in the foreground --------------------------------------------------------------- */

typedef struct live {
    int out_error; /* errno of a failed write to stdout */
    bool err_gone; /* stderr has no reader; the command continues */
    bool in_line;  /* the last byte on stdout was no newline */
} live;

static int pass_on(void *ctx, int stream, const void *data, size_t len)
{
    live *l = ctx;

    if (stream == CSN_STDERR) {
        if (!l->err_gone && csn_cli_write(STDERR_FILENO, data, len) != 0)
            l->err_gone = true;
        return csn_cli_caught() != 0;
    }
    l->in_line = len > 0 && ((const char *)data)[len - 1] != '\n';
    l->out_error = csn_cli_write(STDOUT_FILENO, data, len);
    return l->out_error != 0;
}

/* Printed at once, because a program may retry for minutes. The line at the end has the hint,
 * too. */
static void tell_denial(void *ctx, const csn_denial *d)
{
    csn_cli_note(ctx, "denied %s '%s': the sandbox's network does not allow it", d->op,
                 d->target ? d->target : "");
}

/* Prints where a protected file was moved. The sandbox finds such files after the command
 * ended. */
static void note_protected(const csn_cli *c, const csn_denial *d)
{
    if (!d->source || strcmp(d->source, "protected by default") != 0 || !d->target)
        return;
    if (d->rule)
        csn_cli_note(c, "'%s': %s", d->target, d->rule);
    if (d->resolved)
        csn_cli_note(c, "'%s' was quarantined: it is now %s", d->target, d->resolved);
}

/* A protected file that was moved away, by its full path. */
static bool is_protected(const csn_denial *d)
{
    return d->source && strcmp(d->source, "protected by default") == 0 && d->target &&
           d->target[0] == '/' && d->resolved && d->resolved[0] == '/';
}

/* True for two protected files in one directory. */
static bool same_dir(const csn_denial *a, const csn_denial *b)
{
    size_t n = (size_t)(strrchr(a->target, '/') - a->target);

    return (size_t)(strrchr(b->target, '/') - b->target) == n &&
           memcmp(a->target, b->target, n) == 0;
}

#define NAMES_SHOWN 4u

/* Prints one line for all protected files that are in the directory of items[at]. Returns
 * false, and prints nothing, if there is only this one. */
static bool note_directory(const csn_cli *c, const csn_denial *items, size_t count, size_t at)
{
    int dir = (int)(strrchr(items[at].target, '/') - items[at].target);
    size_t files = 0, hidden = 0;
    csn_autobuf names;
    char rest[96] = "";

    csn_buf_init(&names, NAMES_SHOWN * 1024);
    for (size_t i = at; i < count; i++) {
        if (!is_protected(&items[i]) || !same_dir(&items[i], &items[at]))
            continue;
        hidden += items[i].resolved &&
                  same_dir(&(csn_denial){.target = items[i].resolved}, &items[at]);
        if (files++ < NAMES_SHOWN)
            csn_buf_printf(&names, "%s%s", names.len ? ", " : "", items[i].target + dir + 1);
    }
    if (files < 2)
        return false;
    if (hidden > 0)
        snprintf(rest, sizeof(rest), "; %zu of them stay there as .csn-aside-*", hidden);
    csn_cli_note(c,
                 "%zu files in '%.*s' were quarantined: %s%s; caisson aside shows them%s; to "
                 "allow them: --write %.*s",
                 files, dir, items[at].target, names.data ? names.data : "",
                 files > NAMES_SHOWN ? ", ..." : "", rest, dir, items[at].target);
    return true;
}

/* True if an earlier item is a protected file of the same directory. */
static bool noted_before(const csn_denial *items, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_protected(&items[i]) && same_dir(&items[i], &items[at]))
            return true;
    return false;
}

/* For --ask. A grant for a file that programs outside run is not offered in passing. */
static void collect_hint(const csn_cli *c, const csn_denial *d)
{
    bool protected = d->source && strcmp(d->source, "protected by default") == 0;

    if (c->hints && d->hint && !protected &&
        !csn_strv_has((const char *const *)*c->hints, d->hint))
        (void)csn_strv_push(c->hints, d->hint);
}

void csn_cli_denials(const csn_cli *c, const csn_denial *items, size_t count, bool failed)
{
    for (size_t i = 0; i < count; i++) {
        const csn_denial *d = &items[i];
        if (!failed && strcmp(d->op, "net") == 0)
            continue; /* the command succeeded without it; --json and `net` report it */
        collect_hint(c, d);
        if (strcmp(d->op, "limit") == 0 && d->rule) {
            csn_cli_note(c, "%s%s%s", d->rule, d->hint ? "; to allow more: " : "",
                         d->hint ? d->hint : "");
            continue;
        }
        if (strcmp(d->op, "net") == 0 && !d->target) {
            csn_cli_note(c, "denied net: a connection to an address outside the sandbox; to "
                            "allow it: --allow HOST:PORT");
            continue;
        }
        if (is_protected(d) && (noted_before(items, i) || note_directory(c, items, count, i)))
            continue;
        const char *how = d->hint ? "; " : "";
        note_protected(c, d);
        if (d->hint &&
            csn_str_starts(d->hint,
                           "--")) /* otherwise the hint explains why no option is offered */
            how = d->rule && strcmp(d->rule, "outside the sandbox") == 0
                      ? "; to allow it, if the host has it: "
                      : "; to allow it: ";
        csn_cli_note(c, "denied %s%s%s%s%s%s", d->op, d->target ? " '" : "",
                     d->target ? d->target : "", d->target ? "'" : "", how,
                     d->hint ? d->hint : "");
    }
}

void csn_cli_end_denial(void *ctx, const csn_denial *d)
{
    csn_cli_denials(ctx, d, 1, true);
}

/* Prints why the command was ended and what was denied; --json reports the same. */
static void explain(const csn_cli *c, const csn_exec_result *r)
{
    if (r->timed_out)
        csn_cli_note(c, "the command was ended: its timeout passed (--timeout)");
    else if (r->killed_by && strcmp(r->killed_by, "signal") != 0 &&
             strcmp(r->killed_by, "cancel") != 0)
        csn_cli_note(c, "the command was ended by a limit or rule: %s", r->killed_by);
    csn_cli_denials(c, r->denials, r->denial_count, r->failed != 0);
}

static int exit_status(const csn_exec_result *r)
{
    if (r->timed_out)
        return CSN_EXIT_TIMEOUT;
    if (r->killed_by && strcmp(r->killed_by, "policy") == 0)
        return CSN_EXIT_REFUSED;
    return csn_cli_command_status(r->exit_code, r->signal);
}

/* Printed with --json too, because a person must act on it. */
static void warn_unchecked(const csn_cli *c, const csn_exec_result *r)
{
    if (r->unchecked)
        csn_cli_note(c,
                     "not all changes in the workspace could be checked for files that "
                     "programs outside run (git hooks, editor tasks, ...); use no git, editor "
                     "or shell in it before a later command in a sandbox on it, for example "
                     "caisson run -- true, ends without this message");
}

static int answer(const csn_cli *c, const csn_exec_result *r, const live *l)
{
    int status = exit_status(r);

    warn_unchecked(c, r);
    if (c->json) {
        int failed = CSN_CLI_JSON(c, csn_wire_exec, r);
        if (failed)
            return failed;
    } else if (l->out_error == EPIPE ? !r->timed_out : l->out_error != 0 && !csn_cli_caught()) {
        /* A reader that leaves after the timeout does not change how the command ended. */
        return csn_cli_write_failed(c, l->out_error);
    } else {
        explain(c, r);
    }
    return csn_cli_exit_of(status);
}

static int run_foreground(csn_cli *c, const csn_exec_cli *x)
{
    csn_exec_result *r = NULL;
    csn_cancel *cancel = NULL;
    csn_error *err = NULL;
    csn_exec_opts o;
    live l = {0};
    int status;

    if (csn_cancel_new(&cancel, &err) < 0)
        return csn_cli_fail(c, err);
    csn_cli_catch_signals(cancel);
    fill(x, &o);
    o.cancel = cancel;
    if (!c->json) {
        o.on_output = pass_on;
        o.on_output_ctx = &l;
        o.on_denial = tell_denial;
        o.on_denial_ctx = c;
    }
    if (x->pty)
        csn_cli_raw_begin();
    csn_status st = x->command ? csn_sh(c->sb, x->command, &o, &r, &err)
                               : csn_exec(c->sb, c->argv, &o, &r, &err);
    csn_cli_raw_end();
    if (x->pty && st == CSN_OK && r->signal != 0 && l.in_line) /* "^C", as a shell does */
        (void)csn_cli_write(STDERR_FILENO, "\n", 1);
    if (st < 0 && l.out_error == EPIPE) {
        csn_error_free(err);
        status = CSN_EXIT_BROKEN_PIPE;
    } else {
        status = st < 0 ? csn_cli_fail(c, err) : answer(c, r, &l);
    }
    csn_exec_result_free(r);
    csn_cli_catch_signals(NULL); /* a late signal must not use the freed handle */
    csn_cancel_free(cancel);
    return status;
}

/* ---- in the background, on a terminal ------------------------------------------------ */

static csn_status start(csn_cli *c, const csn_exec_cli *x, const csn_exec_opts *o,
                        csn_process **ret, csn_error **err)
{
    if (x->command)
        return csn_start_sh(c->sb, x->command, o, ret, err);
    return csn_start(c->sb, c->argv, o, ret, err);
}

static int run_background(csn_cli *c, const csn_exec_cli *x)
{
    csn_process *p = NULL;
    csn_error *err = NULL;
    csn_exec_opts o;

    fill(x, &o);
    if (start(c, x, &o, &p, &err) < 0)
        return csn_cli_fail(c, err);
    int64_t pid = csn_process_pid(p);
    csn_process_free(p);
    if (c->json) {
        csn_answer a;
        csn_json *j = csn_answer_begin(&a);
        csn_json_object(j);
        csn_json_kint(j, "pid", pid);
        csn_json_object_end(j);
        return csn_answer_end(c, &a);
    }
    printf("%lld\n", (long long)pid);
    return csn_cli_flush(c, 0);
}

/* For backends whose terminals belong to background processes. */
static int run_remote_terminal(csn_cli *c, const csn_exec_cli *x)
{
    csn_process *p = NULL;
    csn_error *err = NULL;
    csn_exec_opts o;

    fill(x, &o);
    o.flags = (o.flags & ~CSN_EXEC_STDIN_FD) | CSN_EXEC_TIED;
    o.timeout_ms = x->timeout;
    /* Computed before the start, so that it is never later than the timeout in the sandbox. */
    uint64_t deadline = x->timeout ? csn_deadline_in(x->timeout) : 0;
    if (start(c, x, &o, &p, &err) < 0)
        return csn_cli_fail(c, err);
    return csn_cli_terminal(c, p, deadline);
}

int csn_exec_opts_run(csn_cli *c, const csn_exec_cli *x)
{
    if (x->detach)
        return run_background(c, x);
    if (x->pty && !csn_cli_is_here(c))
        return run_remote_terminal(c, x);
    return run_foreground(c, x);
}
