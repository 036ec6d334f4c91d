/* cli.h: what the subcommands share: their table rows, the open sandbox, and how to answer.
 *
 * A subcommand is one csn_command, defined in its own file and listed in main.c. dispatch.c
 * parses the options into a zeroed struct of opts_size bytes, connects the sandbox named by the
 * first argument when CSN_CMD_SANDBOX is set, and calls run, whose result is the exit status.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json_write.h"
#include "caisson/caisson.h"
#include "cli/args.h"

#define CSN_EXIT_FAILED      1
#define CSN_EXIT_USAGE       2
#define CSN_EXIT_TIMEOUT     124
#define CSN_EXIT_BROKEN      125 /* run, exec: caisson itself failed */
#define CSN_EXIT_REFUSED     126
#define CSN_EXIT_NOT_FOUND   127
#define CSN_EXIT_SIGNAL      128 /* + n */
#define CSN_EXIT_BROKEN_PIPE 141 /* as if SIGPIPE had ended us */

#define CSN_CMD_SANDBOX (1u << 0) /* the first argument is a sandbox, connected by main */
#define CSN_CMD_REST    (1u << 1) /* "--" starts a command to run */
#define CSN_CMD_RUNS    (1u << 2) /* failures exit 125..127, not 1 */
#define CSN_CMD_NO_JSON (1u << 3) /* --json changes nothing here; help does not offer it */

typedef struct csn_cli csn_cli;

typedef struct csn_command {
    const char *name;
    const char *args;     /* "ID PATH [OTHER]", "ID..." */
    const char *usage;    /* the synopsis after the name; NULL: args + [OPTIONS] */
    const char *summary;  /* one line for the overview */
    const char *intro;    /* what a newcomer needs to know */
    const char *examples; /* one a line */
    csn_opt_group groups[CSN_ARGS_GROUPS + 1];
    size_t opts_size;
    uint32_t flags; /* CSN_CMD_* */
    /* NULL, or: do the arguments make sense? 0, or an exit status after a message. Called
     * before anything is touched; arguments are complete, c->sb is not open. */
    int (*check)(csn_cli *c, void *opts);
    int (*run)(csn_cli *c, void *opts);
} csn_command;

struct csn_cli {
    const csn_command *cmd;
    bool json;
    const char *const *arg; /* positional, NULL-terminated: arg[n] is NULL when not given */
    size_t nargs;
    const char *const *argv; /* after "--", or NULL */
    csn_sandbox *sb;         /* with CSN_CMD_SANDBOX; main closes it */
};

extern const csn_command *const csn_cli_commands[]; /* NULL-terminated, in reading order */
const csn_command *csn_cli_find(const char *name);
/* Parses argv, the words after the subcommand's name, and runs it. Returns the exit status. */
int csn_cli_dispatch(const csn_command *cmd, int argc, char **argv);

/* ---- report.c: answering -------------------------------------------------------------------
 */

/* Prints the error (and frees it); returns the exit status it means for this subcommand. */
int csn_cli_fail(const csn_cli *c, csn_error *err);
/* A failure found by the program itself, same form. */
int csn_cli_fail_text(const csn_cli *c, csn_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Wrong usage: one line and a hint (may be NULL); returns CSN_EXIT_USAGE. */
int csn_cli_usage(const csn_cli *c, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A remark on stderr that is no failure. */
void csn_cli_note(const csn_cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Builds one JSON value and prints it as one line of stdout. */
typedef struct csn_answer {
    csn_buf buf;
    csn_json json;
} csn_answer;
csn_json *csn_answer_begin(csn_answer *a);
int csn_answer_end(const csn_cli *c, csn_answer *a); /* 0, or an exit status after a message */
/* The answer of a verb that returns nothing: {"ok":true} with --json, silence without. */
int csn_cli_done(const csn_cli *c);

/* All of it to a descriptor; waits where it must. 0 or errno; EINTR after a signal to us. */
int csn_cli_write(int fd, const void *data, size_t len);
/* Flushes stdout; `status`, or the status of a failed write. EPIPE is silent. */
int csn_cli_flush(const csn_cli *c, int status);
/* For loops that may write nothing for long: has the reader of stdout gone away? */
bool csn_cli_reader_gone(void);

/* ---- text.c: for people --------------------------------------------------------------------
 */

/* A name to stdout. On a terminal control bytes and bad UTF-8 are escaped; else byte for byte.
 */
void csn_cli_put_name(const char *name);
void csn_cli_put_text(const char *text, size_t len); /* the same, tabs stay */
/* The same for stderr, always escaped. */
void csn_cli_escape(FILE *to, const char *text, size_t len);
#define CSN_HUMAN_SIZE 32
const char *csn_cli_human_size(uint64_t bytes, char buf[CSN_HUMAN_SIZE]);
const char *csn_cli_human_ms(uint64_t ms, char buf[CSN_HUMAN_SIZE]);
/* "2026-11-15 07:43" in UTC; "-" for 0. */
const char *csn_cli_human_time(int64_t ms, char buf[CSN_HUMAN_SIZE]);

/* ---- signals.c: stopping -------------------------------------------------------------------
 */

/* SIGINT, SIGTERM and SIGHUP fire the cancel handle (may be NULL) from now on. */
void csn_cli_catch_signals(csn_cancel *cancel);
int csn_cli_caught(void); /* the first signal, 0: none */
/* `status`, or 128+n when a signal stopped us. */
int csn_cli_exit_of(int status);

/* ---- input.c: bytes from files and stdin ---------------------------------------------------
 */

/* A whole file ("-": stdin) of at most max bytes, NUL added. malloc'd. */
csn_status csn_cli_slurp(const char *path, size_t max, char **ret, size_t *ret_len,
                         csn_error **err);
/* A csn_read_fn over standard input. */
int64_t csn_cli_read_stdin(void *ctx, void *buf, size_t len);
/* A csn_write_fn to standard output; ctx is an int that gets the errno. */
int csn_cli_write_stdout(void *ctx, const void *data, size_t len);

/* ---- help.c --------------------------------------------------------------------------------
 */

void csn_cli_help_command(const csn_command *cmd);
void csn_cli_help_overview(FILE *to);
