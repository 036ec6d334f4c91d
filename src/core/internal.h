/* internal.h: the sandbox handle and the state of one public call, shared by the files of the
 * core.
 *
 * Every public function is csn_call_begin, the work, csn_call_end. `tools/map src/core` lists
 * the files. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "caisson/backend.h"
#include "core/audit.h"
#include "core/command_policy.h"
#include "core/fallback.h"

struct csn_sandbox {
    const csn_backend_ops *ops;
    void *register_data;
    csn_config *config;   /* deep copy of the caller's */
    csn_config *expanded; /* the backend's: presets replaced by rules; NULL: config */
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
    unsigned open_failures; /* number of failed openings; the two below describe the last one */
    csn_status open_status;
    char *open_why;
    csn_config *current; /* config after csn_network_set; NULL: as opened */
    char *forked_from;   /* the id of the sandbox that csn_fork copied, or NULL */
    char *workdir;       /* as agents name it; NULL: the backend's own */
    char *home;          /* as agents name it, or NULL */
    const char *shell;   /* "bash" or "sh" once known */
    csn_deny_sink end;   /* of csn_on_denial; tell NULL: none */
};

/* One public call, from begin to end. */
typedef struct csn_call {
    csn_sandbox *sb;
    csn_fs fs;
    int32_t stop_fds[2]; /* readable when the sandbox is closing: derived operations stop */
    csn_audit_event event;
    char *paths[2]; /* joined paths, freed by csn_call_end */
    const char *asked[2];
    uint64_t started_ns;
    unsigned path_count;
    bool quiet; /* a query: no audit line */
} csn_call;

/* Checks the handle, opens a lazy backend (once for all threads), counts the call. An operation
 * with an effect that the audit log could not record is refused. */
csn_status csn_call_begin(csn_call *c, csn_sandbox *sb, const char *op, const char *target,
                          csn_error **err);
/* Joins the caller's path to the working directory. *ret is valid until csn_call_end. */
csn_status csn_call_path(csn_call *c, const char *asked, const char **ret, csn_error **err);
/* Replaces joined paths in the message with the paths that the caller gave. */
csn_status csn_call_rephrase(const csn_call *c, csn_status st, csn_error **err);
/* Sets op and path of the error, writes the audit line, ends the call. Returns `st`; for a
 * question or a read also the failure of the audit log. */
csn_status csn_call_end(csn_call *c, csn_status st, csn_error **err);
/* csn_call_end for a call with a result: stores it in *ret (a T **) on success; frees it on
 * failure or if ret is NULL. */
csn_status csn_call_return(csn_call *c, csn_status st, void *result, void *ret,
                           csn_error **err);
char *csn_sandbox_workdir(csn_sandbox *sb); /* malloc'd copy, or NULL */
static inline bool csn_sandbox_is_cow(const csn_sandbox *sb)
{
    return sb->ops->workspace && (sb->config->flags & CSN_OPEN_COW);
}

/* Copies an options struct of any version to `out` of `size` bytes. A shorter struct is from an
 * older caller; a longer one is accepted if its unknown tail is zero. NULL: all defaults. */
csn_status csn_opts_take(const void *opts, void *out, size_t size, const char *what,
                         csn_error **err);
csn_status csn_flags_check(uint32_t flags, uint32_t known, const char *what, csn_error **err);

/* api_info.c. The state of a detached sandbox, as in csn_sandbox_entry, or CSN_STATE_GONE. */
#define CSN_STATE_GONE    "gone"
#define CSN_STATE_UNKNOWN "unknown" /* its provider knows no such sandbox */
csn_status csn_sandbox_state(const char *id, const char **ret, csn_error **err);
/* The name of the backend, which is the first part of an id; "" if there is none. */
void csn_id_backend(const char *id, char ret[CSN_NAME_BYTES_MAX + 1]);

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
/* Reads a whole file into memory; CSN_TOO_LARGE if it has more than max bytes. */
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
/* Removes the remains of this user's sandboxes whose owner or keeper was killed; all: of every
 * one, else of a few, so that the caller is not delayed. */
void csn_registry_sweep(bool all);
/* Opens a host directory with the file operations of the local backend, for export and
 * import. */
csn_status csn_registry_host_open(const char *dir, bool make, csn_fs *ret, csn_error **err);
void csn_registry_host_close(csn_fs *fs);
