/* internal.h: the handle of a sandbox and one public call, shared by the files of the core.
 *
 * Every public function is csn_call_begin, the work, csn_call_end. `tools/map src/core` lists
 * the files. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "caisson/backend.h"
#include "core/audit.h"
#include "core/command_policy.h"
#include "core/fallback.h"

struct csn_sandbox {
    const csn_backend_ops *ops;
    void *register_data;
    csn_config *config;   /* a complete copy */
    csn_config *expanded; /* what the backend gets, with presets as rules; NULL: config */
    char *id;
    int64_t created_ms;
    char **env; /* NAME=value that the core adds to every command, or NULL */
    csn_policy *policy;
    csn_audit *audit;
    int stop_fd; /* eventfd: readable once the sandbox is closing or being destroyed */

    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t idle;     /* `running` decreased, or opening ended */
    void *state;             /* the backend's */
    const csn_layer *layers; /* the backend's, as long as its state lives */
    size_t layer_count;
    bool opened, opening, closing, gone;
    unsigned running;
    unsigned open_failures; /* openings that failed; the two below are of the last one */
    csn_status open_status;
    char *open_why;
    csn_config *current; /* with network rules that were replaced; NULL: as opened */
    char *workdir;       /* as agents name it; NULL: the backend's own */
    char *home;          /* likewise */
    const char *shell;   /* "bash" or "sh" once known */
};

/* One public call, from begin to end. */
typedef struct csn_call {
    csn_sandbox *sb;
    csn_fs fs;
    int32_t
        stop_fds[2]; /* readable when a derived operation must stop: the sandbox is closing */
    csn_audit_event event;
    char *paths[2]; /* joined ones, freed by end */
    const char *asked[2];
    uint64_t started_ns;
    unsigned path_count;
    bool quiet; /* a query: no audit line */
} csn_call;

/* Checks the handle, opens a lazy backend (once for all threads), counts the call. */
csn_status csn_call_begin(csn_call *c, csn_sandbox *sb, const char *op, const char *target,
                          csn_error **err);
/* Joins the path of the caller to the working directory; lives until end. */
csn_status csn_call_path(csn_call *c, const char *asked, const char **ret, csn_error **err);
/* Replaces joined paths in the message by those of the caller. */
csn_status csn_call_rephrase(const csn_call *c, csn_status st, csn_error **err);
/* Sets op and path of the error, writes the audit line, ends the call. Returns `st`, or the
 * failure of the audit log: an operation that cannot be recorded has failed. */
csn_status csn_call_end(csn_call *c, csn_status st, csn_error **err);
/* csn_call_end for a call with a result: *ret (a T **; NULL: not wanted) gets it on success,
 * else it is freed. */
csn_status csn_call_return(csn_call *c, csn_status st, void *result, void *ret,
                           csn_error **err);
char *csn_sandbox_workdir(csn_sandbox *sb); /* malloc'd copy, or NULL */

/* Takes an options struct of any version into out, which is `size` bytes: a shorter one is from
 * an older caller, a longer one is fine while its unknown tail is zero. NULL: all defaults. */
csn_status csn_opts_take(const void *opts, void *out, size_t size, const char *what,
                         csn_error **err);
csn_status csn_flags_check(uint32_t flags, uint32_t known, const char *what, csn_error **err);

/* fs.c: the file operations, native or derived. */
csn_status csn_fs_stat(const csn_fs *fs, const char *path, uint32_t flags, csn_file_stat *ret,
                       char **ret_target, csn_error **err);
csn_status csn_fs_read(const csn_fs *fs, const char *path, uint32_t flags, uint64_t offset,
                       uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                       csn_error **err);
csn_status csn_fs_write(const csn_fs *fs, const csn_write_req *reqs, size_t count,
                        csn_written *rets, csn_error **err);
csn_status csn_fs_mkdir(const csn_fs *fs, const char *path, uint32_t flags, csn_error **err);
csn_status csn_fs_chmod(const csn_fs *fs, const char *path, uint32_t mode, csn_error **err);
csn_status csn_fs_symlink(const csn_fs *fs, const char *target, const char *path,
                          csn_error **err);
csn_status csn_fs_remove(const csn_fs *fs, const char *path, uint32_t flags, csn_error **err);
csn_status csn_fs_rename(const csn_fs *fs, const char *from, const char *to, uint32_t flags,
                         csn_error **err);
csn_status csn_fs_list(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err);
csn_status csn_fs_walk(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err);
/* CSN_WRONG_TYPE if `path` is not a directory; the message names it as `shown`. */
csn_status csn_fs_check_dir(const csn_fs *fs, const char *path, uint32_t flags,
                            const char *shown, csn_error **err);
/* The whole of a file into memory, at most max bytes (CSN_TOO_LARGE). */
csn_status csn_fs_slurp(const csn_fs *fs, const char *path, uint32_t flags, size_t max,
                        csn_buf *out, csn_error **err);

/* registry.c */
csn_status csn_registry_find(const char *name, const csn_backend_ops **ret, void **ret_data,
                             csn_error **err);
/* The options that a backend honours, CSN_OPTION_DETACHED included. */
uint64_t csn_registry_options(const csn_backend_ops *ops);
/* The names of the built-in backends that honour an option; returns their number. */
#define CSN_BUILT_IN_MAX 8u
size_t csn_registry_honouring(uint64_t option, const char *names[CSN_BUILT_IN_MAX]);
/* Removes what sandboxes of this user left behind whose owner was killed while opening them. */
void csn_registry_sweep(void);
/* File operations on any host directory, by the local backend; for export and import. */
csn_status csn_registry_host_open(const char *dir, bool make, csn_fs *ret, csn_error **err);
void csn_registry_host_close(csn_fs *fs);
