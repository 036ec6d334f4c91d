/* exec_opts.h: runs the command of `run` and `exec` with their EXEC OPTIONS. */
#pragma once
#include "cli/cli.h"

typedef struct csn_exec_cli {
    const char *command; /* -c */
    const char *cwd, *keep, *session;
    char **env;
    char **allowed_domains, **package_managers;
    uint64_t timeout, output_max;
    bool use_stdin, no_stdin, merge, restart, detach, sudo, pty, no_pty;
    bool own_stderr; /* with pty: stderr is no part of the terminal */
} csn_exec_cli;

extern const csn_opt csn_exec_opt_table[];

/* Returns 0, or an exit status after reporting options that exclude each other. */
int csn_exec_opts_check(const csn_cli *c, const csn_exec_cli *x);
/* Runs the command in c->sb and returns the exit status of caisson. */
int csn_exec_opts_run(csn_cli *c, const csn_exec_cli *x);
/* True if the sandbox is one of this machine (jail, local). */
bool csn_cli_is_here(const csn_cli *c);
/* Prints on stderr what the sandbox denied a command, and files it quarantined. */
void csn_cli_denials(const csn_cli *c, const csn_denial *items, size_t count, bool failed);
/* For csn_on_denial; ctx is the csn_cli. */
void csn_cli_end_denial(void *ctx, const csn_denial *d);

/* stdio.c: decides for `run` what the command has as stdin, from what this program has. */
void csn_cli_choose_stdio(csn_exec_cli *x, bool json);

/* terminal.c: puts the terminal on stdin, if there is one, in raw mode, so that each byte typed
 * reaches the command; and back. Signals that stop or end this program restore it. */
void csn_cli_raw_begin(void);
void csn_cli_raw_end(void);
/* True if this program may use its terminal: it is not a background job. */
bool csn_cli_in_foreground(void);
/* Connects a process with a pty to this terminal until it ends; frees it. If a
 * signal ended it after the deadline (0: none), the status is that of a timeout. */
int csn_cli_terminal(csn_cli *c, csn_process *p, uint64_t deadline);
/* The size of this terminal, 24 x 80 if there is none. */
void csn_cli_terminal_size(uint16_t *ret_rows, uint16_t *ret_cols);
