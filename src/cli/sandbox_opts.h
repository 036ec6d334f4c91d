/* sandbox_opts.h: SANDBOX OPTIONS, shared by run and create. */
#pragma once
#include "base/arena.h"
#include "caisson/caisson.h"
#include "cli/args.h"
#include "cli/cli.h"

typedef struct csn_sandbox_opts {
    const char *backend, *home, *workdir, *net, *image;
    const char *name; /* create only: its table is there */
    char **workspace, **read, **write, **deny, **commands, **env;
    char **allow, **packages, **publish, **host_ports, **policy;
    uint64_t memory, pids, cpus, disk, file_max, lifetime, timeout, output_max;
    bool nofollow, allow_weaker;
} csn_sandbox_opts;

extern const csn_opt csn_sandbox_opt_table[];

/* The configuration these options mean: the user's config.json, then each --policy file, then
 * the options; lists append, single values override. Everything in *ret lives in the arena. */
csn_status csn_sandbox_opts_config(const csn_sandbox_opts *o, csn_arena *a, csn_config *ret,
                                   csn_error **err);
/* After opening: one line on stderr when the sandbox has less than its backend promises. */
void csn_sandbox_opts_warn(const csn_cli *c, const csn_config *config);
