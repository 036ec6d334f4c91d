/* project.h: finds a project's caisson.json and applies it to a configuration. */
#pragma once
#include "base/arena.h"
#include "base/hash.h"
#include "cli/config_file.h"
#include "cli/narrow.h"

#define CSN_PROJECT_FILE "caisson.json"

typedef struct csn_project {
    char *path; /* of the file, absolute and without links; NULL: there is none */
    char *dir;  /* its directory */
    char *text;
    size_t len;
    char hash[CSN_HASH_HEX]; /* of text */
} csn_project;

/* Looks for caisson.json in the directory `start` and above it, up to the caller's home, a
 * mount point or a directory of another user, which it leaves out. A file that exists and
 * cannot be used is an error: a sandbox must not run with fewer rules than the project has. */
csn_status csn_project_find(const char *start, csn_project *ret, csn_error **err);
void csn_project_release(csn_project *p);
/* True if csn_project_find would not answer that there is none. After false csn_project_find
 * gives that answer for the same `start` without a second search. */
bool csn_project_exists(const char *start);

/* The directory of the host that a `workspace` names; malloc'd, NULL: out of memory. */
char *csn_workspace_host(const char *workspace);

/* The file with the profile, if it has one of that name. Paths are as in the file. */
csn_status csn_project_parse(const csn_project *p, csn_profile *profile, csn_arena *a,
                             csn_config *ret, csn_error **err);
/* CSN_INVALID that names what the file grants and the user has not trusted. */
csn_status csn_project_check(const csn_project *p, const csn_config *c,
                             const csn_narrow_base *base, bool *ret_trusted, csn_error **err);
/* Makes host paths absolute, and relative paths of denials those of the directory `workspace`
 * (absolute, without links). */
csn_status csn_project_resolve(const csn_project *p, csn_config *c, const char *workspace,
                               csn_arena *a, csn_error **err);

/* Overlays *all, the user's own configuration, with the project's file, if there is one.
 * `policy` and `given` (--policy and the options) come after it and are not changed; they
 * decide where the workspace is. `timeout_ms`: of a command if none of them sets one, on this
 * machine; 0: the library's default. *ret_commands: the commands of a file that is not trusted,
 * which replace all others; else NULL. */
csn_status csn_project_overlay(csn_arena *a, csn_config *all, const csn_config *policy,
                               const csn_config *given, uint64_t timeout_ms,
                               csn_profile *profile, const char *const **ret_commands,
                               csn_error **err);
