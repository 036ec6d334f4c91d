/* exec_opts.h: runs the command of `run` and `exec` with their EXEC OPTIONS. */
#pragma once
#include "cli/cli.h"

typedef struct csn_exec_cli {
    const char *command; /* -c */
    const char *cwd, *keep, *session;
    char **env;
    char **allowed_domains, **package_managers;
    uint64_t timeout, output_max;
    bool use_stdin, merge, restart, detach, pty;
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

/* terminal.c: connects a process with a pty to this terminal until it ends; frees it. If a
 * signal ended it after the deadline (0: none), the status is that of a timeout. */
int csn_cli_terminal(csn_cli *c, csn_process *p, uint64_t deadline);
/* The size of this terminal, 24 x 80 if there is none. */
void csn_cli_terminal_size(uint16_t *ret_rows, uint16_t *ret_cols);
