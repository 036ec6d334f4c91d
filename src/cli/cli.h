/* cli.h: declarations that all subcommands share: their descriptions, exit statuses, output,
 * input and signals.
 *
 * A subcommand is one csn_command, defined in its cmd_*.c and declared in commands.h.
 * dispatch.c parses the options into a struct of opts_size bytes (zeroed, or a copy of
 * `defaults`), connects the sandbox
 * named by the first argument when CSN_CMD_SANDBOX is set, and calls run, whose result is the
 * exit status. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json_write.h"
#include "caisson/caisson.h"
#include "cli/args.h"

#define CSN_EXIT_FAILED      1
#define CSN_EXIT_USAGE       2
#define CSN_EXIT_PARTLY      3 /* policy import: a key has no equal */
#define CSN_EXIT_TIMEOUT     124
#define CSN_EXIT_BROKEN      125 /* run, exec: caisson itself failed */
#define CSN_EXIT_REFUSED     126
#define CSN_EXIT_NOT_FOUND   127
#define CSN_EXIT_SIGNAL      128 /* + n */
#define CSN_EXIT_BROKEN_PIPE 141 /* as a shell reports SIGPIPE */

#define CSN_CMD_SANDBOX                                                                        \
    (1u << 0) /* the first argument, if given, is a sandbox, which dispatch.c connects */
#define CSN_CMD_REST    (1u << 1) /* "--" starts a command to run */
#define CSN_CMD_RUNS    (1u << 2) /* failures exit 125..127, not 1 */
#define CSN_CMD_NO_JSON (1u << 3) /* --json changes nothing; help does not list it */

typedef struct csn_cli csn_cli;

typedef struct csn_command {
    const char *name;
    const char *args;     /* "ID PATH [OTHER]", "ID..." */
    const char *usage;    /* the synopsis after the name; NULL: args + [OPTIONS] */
    const char *summary;  /* for the overview */
    const char *intro;    /* the paragraphs after the synopsis */
    const char *examples; /* one a line */
    csn_opt_group groups[CSN_ARGS_GROUPS + 1];
    size_t opts_size;
    const void *defaults; /* opts_size bytes, or NULL: zeros */
    uint32_t flags;       /* CSN_CMD_* */
    /* NULL, or checks options and arguments before anything is opened. Returns 0, or an exit
     * status after printing a message. c->sb is not set. */
    int (*check)(csn_cli *c, void *opts);
    int (*run)(csn_cli *c, void *opts);
} csn_command;

struct csn_cli {
    const csn_command *cmd;
    bool json;
    const char *const *arg; /* positional, NULL-terminated: arg[n] is NULL when not given */
    size_t nargs;
    const char *const *argv; /* after "--", or NULL */
    const csn_args *args;    /* the parsed command line */
    csn_sandbox *sb;         /* with CSN_CMD_SANDBOX; dispatch.c closes it */
    char ***hints;           /* NULL, or the hints of all denials are collected here */
};

extern const csn_command *const csn_cli_commands[]; /* NULL-terminated, in the order of help */
/* A task in help: its title, and the first of its commands. */
typedef struct csn_cli_group {
    const char *title; /* NULL ends the list */
    const csn_command *first;
} csn_cli_group;
extern const csn_cli_group csn_cli_groups[];
const csn_command *csn_cli_find(const char *name);
/* Reports that there is no such command and suggests one; returns CSN_EXIT_USAGE. */
int csn_cli_unknown_command(const char *name);
/* Parses argv, the words after the subcommand's name, and runs it. Returns the exit status. */
int csn_cli_dispatch(const csn_command *cmd, int argc, char **argv);

/* ---- report.c: results and failures -------------------------------------------------- */

/* Prints and frees the error; returns the exit status for this subcommand: CSN_EXIT_USAGE if
 * the library does not accept the value of an option that was typed. */
int csn_cli_fail(const csn_cli *c, csn_error *err);
/* The same for a call whose arguments are words of the command line: each one that is not
 * accepted is wrong usage. */
int csn_cli_fail_value(const csn_cli *c, csn_error *err);
/* As csn_cli_fail, for a failure of the command-line program itself. */
int csn_cli_fail_text(const csn_cli *c, csn_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports a word that is none of `words` ("a|b"): `what` names its place, such as "a shell".
 * Suggests a similar one; returns CSN_EXIT_USAGE. */
int csn_cli_unknown_word(const csn_cli *c, const char *what, const char *word,
                         const char *words);
/* Reports wrong usage in one line, with a hint (may be NULL); returns CSN_EXIT_USAGE. */
int csn_cli_usage(const csn_cli *c, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints a notice, not a failure, on stderr. */
void csn_cli_note(const csn_cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints `caisson: OP: MESSAGE` and `hint: HINT` on stderr with one write. op and hint may be
 * NULL. */
void csn_cli_message(const char *op, const char *message, const char *hint);

/* Builds one JSON value and prints it as one line of stdout. */
typedef struct csn_answer {
    csn_buf buf;
    csn_json json;
} csn_answer;
csn_json *csn_answer_begin(csn_answer *a);
int csn_answer_end(const csn_cli *c, csn_answer *a); /* 0, or an exit status after a message */
/* One result as the JSON that `encode` (csn_wire_*) writes: CSN_CLI_JSON(c, csn_wire_read, r).
 */
#define CSN_CLI_JSON(c, encode, ...)                                                           \
    ({                                                                                         \
        csn_answer answer_;                                                                    \
        encode(csn_answer_begin(&answer_), __VA_ARGS__);                                       \
        csn_answer_end(c, &answer_);                                                           \
    })
/* Ends a command whose call has no result: {"ok":true} with --json, nothing without. A failed
 * call is reported and its error freed. */
int csn_cli_finish(const csn_cli *c, csn_status st, csn_error **err);
/* Prints the id of a new sandbox, with its name (may be NULL) in JSON. rules: also what
 * enforces its rules, on stderr or in the object. */
int csn_cli_print_id(const csn_cli *c, csn_sandbox *sb, const char *name, bool rules);

/* Writes all bytes; waits if the descriptor is non-blocking and full. Returns 0 or errno; EINTR
 * after a caught signal. */
int csn_cli_write(int fd, const void *data, size_t len);
/* Reports a failed write to stdout (not EPIPE, which is silent); returns the exit status. */
int csn_cli_write_failed(const csn_cli *c, int error);
/* Flushes stdout. Returns `status`, or the status of a failed write. */
int csn_cli_flush(const csn_cli *c, int status);
/* True if the reader of stdout has closed it. For loops that may not write for a long time. */
bool csn_cli_reader_gone(void);

/* ---- flag_names.c: options in messages of the library --------------------------------- */

/* Replaces the name of a field at the start of the message by the option that was typed for it.
 * Returns false if there is none. */
bool csn_cli_name_flags(const csn_cli *c, csn_error *err);
/* Replaces the first `len` bytes of the message by --flag, with the value that was typed (the
 * nth of a list) if the message does not show it. */
void csn_cli_name_flag(const csn_cli *c, csn_error *err, size_t len, const char *flag,
                       size_t nth);

/* ---- text.c: text for people --------------------------------------------------------- */

/* Prints a name on stdout. On a terminal, control bytes and invalid UTF-8 are escaped; a pipe
 * or file gets the bytes unchanged. */
void csn_cli_put_name(const char *name);
void csn_cli_put_text(const char *text, size_t len); /* as csn_cli_put_name; keeps tabs */
void csn_cli_put_json(const char *text, size_t len); /* the same for a JSON document */
bool csn_cli_on_terminal(void);                      /* stdout is one */
/* Print in visible form wherever it goes; line ends and tabs are kept. */
void csn_cli_put_lines(const char *text, size_t len);
/* The same for a file that comes in chunks: csn_write_fn, ctx is a csn_cli_shown; then the end.
 */
typedef struct csn_cli_shown {
    char tail[4];
    size_t tail_len;
    int error;
} csn_cli_shown;
int csn_cli_show_chunk(void *ctx, const void *data, size_t len);
void csn_cli_show_end(csn_cli_shown *s);
/* Appends text with control bytes and invalid UTF-8 escaped. */
void csn_cli_escape(csn_buf *to, const char *text, size_t len);
#define CSN_HUMAN_SIZE 32
const char *csn_cli_human_size(uint64_t bytes, char buf[CSN_HUMAN_SIZE]);
const char *csn_cli_human_ms(uint64_t ms, char buf[CSN_HUMAN_SIZE]);
/* "2026-11-15 07:43" in UTC; "-" for 0. */
const char *csn_cli_human_time(int64_t ms, char buf[CSN_HUMAN_SIZE]);

/* ---- signals.c: SIGINT, SIGTERM and SIGHUP ------------------------------------------- */

/* From this call on, SIGINT, SIGTERM and SIGHUP fire the cancel handle (may be NULL). */
void csn_cli_catch_signals(csn_cancel *cancel);
int csn_cli_caught(void); /* the first signal, 0: none */
/* Returns `status`, or 128+n after a caught signal n. */
int csn_cli_exit_of(int status);
/* The exit status for a command that exited with `exit_code` (-1: a signal ended it). */
int csn_cli_command_status(int exit_code, const char *signal);

/* terminal.c: restores the terminal; for signal handlers. */
void csn_cli_raw_restore(void);
bool csn_cli_is_raw(void); /* terminal.c: a line on the terminal needs a carriage return */

/* ---- input.c: bytes from files and stdin --------------------------------------------- */

/* Reads a whole file ("-": stdin) of at most max bytes and adds a NUL. *ret is malloc'd. */
csn_status csn_cli_slurp(const char *path, size_t max, char **ret, size_t *ret_len,
                         csn_error **err);
/* A csn_read_fn over standard input. */
int64_t csn_cli_read_stdin(void *ctx, void *buf, size_t len);
/* A csn_write_fn to standard output; ctx points to an int that receives the errno. */
int csn_cli_write_stdout(void *ctx, const void *data, size_t len);

/* ---- help.c -------------------------------------------------------------------------- */

void csn_cli_help_command(const csn_command *cmd);
void csn_cli_help_overview(FILE *to);
