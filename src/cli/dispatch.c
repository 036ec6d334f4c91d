/* dispatch.c: parses the options of a subcommand and runs it.
 *
 * It uses only the public API of the library (plus base and wire), so every other program can
 * do the same.
 *
 * Invariants:
 *  - SIGPIPE is ignored: a write to a closed pipe is an error to report.
 *  - Descriptors 0, 1 and 2 are open; otherwise a file opened later would become stdout.
 *  - The command line is checked before anything is opened or changed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/sandbox_opts.h"

/* ---- arguments ----------------------------------------------------------------------- */

/* Computes from cmd->args how many arguments are required and how many are allowed. */
static void count_args(const char *args, size_t *ret_min, size_t *ret_max)
{
    *ret_min = *ret_max = 0;
    for (const char *p = args; *p;) {
        size_t n = strcspn(p, " ");
        if (*p != '[')
            (*ret_min)++;
        (*ret_max)++;
        if (n > 3 && strncmp(p + n - 3, "...", 3) == 0)
            *ret_max = SIZE_MAX;
        p += n + (p[n] == ' ');
    }
}

/* The nth word of cmd->args, without brackets and dots. */
static const char *arg_name(const char *args, size_t nth, char buf[64])
{
    const char *p = args;

    while (nth-- > 0)
        p += strcspn(p, " ") + 1;
    p += strspn(p, "[");
    snprintf(buf, 64, "%.*s", (int)strcspn(p, " ]."), p);
    return buf;
}

static int check_args(const csn_cli *c)
{
    size_t min, max;
    char word[128];

    count_args(c->cmd->args, &min, &max);
    if (c->nargs < min)
        return csn_cli_usage(c, NULL, "missing argument %s",
                             arg_name(c->cmd->args, c->nargs, word));
    if (c->nargs > max) {
        csn_args_quote(c->arg[max], word, sizeof(word));
        return csn_cli_usage(
            c, c->cmd->flags & CSN_CMD_REST ? "the command to run goes after --" : NULL,
            "unexpected argument '%s'", word);
    }
    for (size_t i = 0; i < c->nargs && i < min; i++)
        if (!c->arg[i][0])
            return csn_cli_usage(c, NULL, "argument %s is empty",
                                 arg_name(c->cmd->args, i, word));
    return 0;
}

/* Finds --json before "--" without parsing options: a parse error must be printed as JSON
 * too. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

/* ---- running ------------------------------------------------------------------------- */

static int connect_sandbox(csn_cli *c)
{
    csn_error *err = NULL;
    char quoted[128];

    csn_args_quote(c->arg[0], quoted, sizeof(quoted));
    if (!csn_name_valid(c->arg[0]))
        return csn_cli_usage(c, "caisson list shows the ids and names",
                             "'%s' is not the id or name of a sandbox", quoted);
    return csn_connect(c->arg[0], &c->sb, &err) < 0 ? csn_cli_fail(c, err) : 0;
}

static int run_command(csn_cli *c, void *opts)
{
    int status = c->cmd->check ? c->cmd->check(c, opts) : 0;
    if (status)
        return status;
    bool connect = (c->cmd->flags & CSN_CMD_SANDBOX) && c->nargs > 0;
    status = connect ? connect_sandbox(c) : 0;
    if (status)
        return status;
    status = c->cmd->run(c, opts);
    if (connect)
        csn_close(c->sb);
    return csn_cli_flush(c, status);
}

static int parse_and_run(const csn_command *cmd, int argc, char **argv)
{
    csn_autofree void *opts = calloc(1, cmd->opts_size ? cmd->opts_size : 1);
    csn_cli c = {.cmd = cmd, .json = wants_json(argc, argv)};
    csn_args args = {
        .groups = cmd->groups, .into = opts, .rest_ok = (cmd->flags & CSN_CMD_REST) != 0};
    csn_usage why;
    int status;

    if (!opts)
        return csn_cli_fail_text(&c, CSN_NOMEM, "out of memory");
    if (cmd->defaults)
        memcpy(opts, cmd->defaults, cmd->opts_size);
    bool ok = csn_args_parse(&args, argc, argv, &why);
    c.json = args.json || (!ok && c.json);
    c.arg = args.pos;
    c.nargs = args.npos;
    c.argv = args.rest;
    c.args = &args;
    if (args.help) {
        csn_cli_help_command(cmd);
        status = csn_cli_flush(&c, 0);
    } else if (!ok) {
        status = csn_cli_usage(&c, why.hint, "%s", why.message);
    } else {
        status = check_args(&c);
        if (status == 0)
            status = run_command(&c, opts);
    }
    csn_args_release(&args);
    return status;
}

/* Opens /dev/null for each closed standard descriptor. stdout gets it read-only, so that a
 * write fails and is reported. */
static bool open_standard_fds(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        if (open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
            return false;
    }
    return true;
}

int csn_cli_dispatch(const csn_command *cmd, int argc, char **argv)
{
    if (!open_standard_fds())
        return CSN_EXIT_FAILED;
    signal(SIGPIPE, SIG_IGN);
    csn_sandbox_opts_init();
    return parse_and_run(cmd, argc, argv);
}
