/* cmd_run.c: `run`: runs one command in a new sandbox and destroys the sandbox.
 *
 * The sandbox is not detached, so the keeper ends it when this process ends, SIGKILL included.
 * Invariant: the sandbox is never detached and has no name, even if the user's configuration
 * sets both. With a name, two runs at the same time would collide. */
#include <string.h>

#include "base/arena.h"
#include "base/strv.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/exec_opts.h"
#include "cli/git_identity.h"
#include "cli/run_review.h"
#include "cli/sandbox_opts.h"
#include "cli/tool_dirs.h"

typedef struct run_opts {
    csn_sandbox_opts sandbox;
    csn_exec_cli exec;
    csn_ask_opts ask;
    csn_review_opts review;
    char **hints; /* of one run */
} run_opts;

static int check(csn_cli *c, void *opts)
{
    const run_opts *o = opts;

    int wrong = csn_exec_opts_check(c, &o->exec);
    if (wrong)
        return wrong;
    if (o->exec.detach)
        return csn_cli_usage(c, "caisson create, then caisson exec ID -d",
                             "-d needs a sandbox that stays");
    return csn_ask_check(c, &o->ask);
}

#define GIT_FATAL 128 /* git's exit status outside of a repository */

static bool is_git(const csn_cli *c, const csn_exec_cli *x)
{
    return x->command ? csn_str_starts(x->command, "git ") : strcmp(c->argv[0], "git") == 0;
}

static int run_once(csn_cli *c, run_opts *o, const csn_config *config)
{
    csn_exec_cli exec = o->exec;
    csn_error *err = NULL;

    if (csn_open(config, &c->sb, &err) < 0)
        return csn_sandbox_opts_fail(c, &o->sandbox, config, err);
    csn_sandbox_opts_warn(c, config);
    csn_on_denial(c->sb, csn_cli_end_denial, c);
    csn_cli_git_identity(c, config);
    /* The sandbox of another machine costs money, so the library's default stays there. */
    if (csn_cli_is_here(c)) {
        exec.timeout = config->timeout_ms ? config->timeout_ms : CSN_NO_LIMIT;
        csn_cli_choose_stdio(&exec, c->json);
    }
    int status = csn_exec_opts_run(c, &exec);
    if (status == GIT_FATAL && is_git(c, &exec) && !c->json)
        csn_sandbox_opts_hint_repository(c, config);
    if (csn_review_is_cow(config))
        status = csn_review_run(c, &o->review, status);
    csn_close(c->sb);
    return status;
}

/* Runs the command again as long as the user allows something more. */
static int run_and_ask(csn_cli *c, run_opts *o, csn_arena *a, csn_config *config)
{
    bool again = true;
    int status = 0;

    while (again) {
        c->hints = &o->hints;
        again = false;
        status = run_once(c, o, config);
        int failed = csn_cli_caught() ? 0
                     : o->ask.file
                         ? csn_ask_write(c, &o->ask, (const char *const *)o->hints)
                         : csn_ask_user(c, a, (const char *const *)o->hints, config, &again);
        csn_strv_free(CSN_STEAL(o->hints));
        if (failed)
            return failed;
    }
    return csn_cli_exit_of(status);
}

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    run_opts *o = opts;
    csn_error *err = NULL;
    csn_config config;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    o->sandbox.timeout_ms = CSN_NO_LIMIT;
    if (csn_sandbox_opts_config(&o->sandbox, a, &config, &err) < 0)
        return csn_cli_fail(c, err);
    /* defaults for detached sandboxes do not apply */
    config.name = NULL;
    config.flags &= ~CSN_OPEN_DETACHED;
    int wrong = csn_review_check(c, &o->review, &config);
    if (wrong)
        return wrong;
    const char *first = c->argv ? c->argv[0] : NULL;
    bool any = !first || csn_tool_starts_others(first);
    if (csn_tool_dirs_add(c, a, &config, any ? NULL : first, &err) < 0)
        return csn_cli_fail(c, err);
    return o->ask.ask || o->ask.file ? run_and_ask(c, o, a, &config) : run_once(c, o, &config);
}

const csn_command csn_cmd_run = {
    .name = "run",
    .args = "",
    .usage = "[SANDBOX OPTIONS] [EXEC OPTIONS] (-c STRING | -- ARGV...)",
    .summary = "run one command in a fresh sandbox, then remove the sandbox",
    .intro =
        "Opens a sandbox, runs one command in it and destroys the sandbox, whatever\n"
        "happens. After -- the words are passed as they are, no shell sees them; -c runs a\n"
        "shell string. It may run as long as it likes, unless --timeout says otherwise.\n"
        "\n"
        "Output is passed on as it comes, and so is standard input, if it is a pipe or a\n"
        "file. If standard input and output are your terminal, the command has one, too:\n"
        "colours, line editing, ^C and the window size work as without a sandbox. -T: no\n"
        "terminal, --no-stdin: no input.\n"
        "\n"
        "With --cow the command works on a copy-on-write workspace. At its end caisson lists\n"
        "the changes on stderr and asks on a terminal what to keep. Without a terminal they\n"
        "are thrown away, unless --commit-on says otherwise.\n"
        "\n"
        "Exit status: the command's own; 124 timeout; 125 caisson failed; 126 refused by\n"
        "policy or not executable; 127 not found; 128+n ended by signal n; 2 wrong usage of\n"
        "caisson.\n"
        "Durations: 500ms 30s 10m 1h, a bare number is seconds. Sizes: 512K 64M 2G.",
    .examples = "  caisson run -- make test\n"
                "  caisson run --backend local --timeout 5m -c 'npm ci && npm test'\n"
                "  caisson run --read /usr/share/dict --deny .git --json -- ./untrusted\n"
                "  caisson run --cow --commit-on success -- make format\n"
                "  caisson run -- python3\n"
                "  caisson run -- sort <names.txt\n",
    .groups = {{"Sandbox options", csn_sandbox_opt_table, offsetof(run_opts, sandbox)},
               {"Exec options", csn_exec_opt_table, offsetof(run_opts, exec)},
               {"After denials", csn_ask_opt_table, offsetof(run_opts, ask)},
               {"Copy-on-write workspace", csn_review_opt_table, offsetof(run_opts, review)}},
    .opts_size = sizeof(run_opts),
    .flags = CSN_CMD_REST | CSN_CMD_RUNS,
    .check = check,
    .run = run,
};
