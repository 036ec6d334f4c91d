/* runtime.h: a sandbox whose processes a keeper holds and whose files are reached through held
 * descriptors. The backends on this machine are such sandboxes with a kind of their own.
 *
 *   runtime.c     its life: made, found again, ended
 *   rundir.c   its runtime directory, and those that were left behind
 *   grants.c   base, home and granted directories as held descriptors; which a path is below
 *   target.c   a path on its way to the kernel and through the policy (files.h)
 *   file.c     stat read list walk
 *   change.c   mkdir symlink remove rename cleanup
 *   write.c    atomic writes
 *   batch.c    many of them, all or nothing
 *   watch.c    file events
 *   host.c     any host directory, for export and import
 *   link.c   starting a keeper, reaching a detached one, one request and its answer
 *   exec.c     foreground commands
 *   session.c  persistent shells
 *   process.c  background processes
 *   environ.c  the environment of commands */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "caisson/backend.h"
#include "keeper/spec.h"
#include "policy/rules.h"
#include "os/spawn.h"

typedef struct csn_grant {
    char *path; /* resolved, absolute */
    int fd;     /* O_PATH | O_DIRECTORY */
    bool writable;
} csn_grant;

typedef struct csn_kept csn_kept;

/* Beside an operation: it brings or takes what is below the path too, or makes a link of it. */
#define CSN_OP_TREE (1u << 31)

/* Counts of the limits that were hit so far. */
typedef struct csn_kept_mark {
    uint64_t memory, pids;
    uint64_t memory_peak;
} csn_kept_mark;

typedef struct csn_kept_kind csn_kept_kind;
/* What a backend adds. All functions may be NULL. */
struct csn_kept_kind {
    const char *name; /* of the backend */
    bool eager;       /* the keeper runs from open on, not from the first command */
    bool rooted;      /* paths are those of the keeper's own root, see csn_kept.root */
    bool judged;      /* paths are the host's, and every one is judged by the rules */
    bool ahead;       /* eager: the keeper is born before `prepare`, and has its orders after */
    /* What must be known before the keeper is born. */
    csn_status (*begin)(csn_kept *k, csn_error **err);
    /* What it is born into. */
    csn_status (*birth)(csn_kept *k, csn_orphan *o, csn_error **err);
    /* Makes base, home, grants and rules. */
    csn_status (*prepare)(csn_kept *k, csn_error **err);
    /* Its orders beyond the common ones. */
    void (*arm)(csn_kept *k, csn_keeper_spec *spec);
    /* It runs now, or was found again: whatever is left to do. */
    csn_status (*started)(csn_kept *k, csn_error **err);
    /* It could not be run: says why (errnum > 0). */
    csn_status (*refused)(csn_kept *k, enum csn_orphan_stage stage, int errnum,
                          csn_error **err);
    /* It could not be opened as this kind (because: the error), or is being found again
     * (NULL): another kind that it is to be, or NULL. *ret_because is to be freed. */
    const csn_kept_kind *(*instead)(csn_kept *k, const csn_error *because, char **ret_because);
    /* A pipe of ours that a command gets: it may open it again, as /dev/stdout. */
    void (*lend)(csn_kept *k, int fd);
    /* A command is about to start; it has ended: was a limit of the sandbox the reason? */
    void (*mark)(csn_kept *k, csn_kept_mark *ret);
    void (*judge)(csn_kept *k, const csn_kept_mark *before, csn_exec_end *end);
    /* Beyond the rules: may this be written or deleted? op: CSN_OP_*, and CSN_OP_TREE. Asked
     * for what a path led to, after the rules let it pass. */
    csn_status (*veto)(const csn_kept *k, uint32_t op, const char *asked, const char *resolved,
                       csn_error **err);
    /* The sandbox has ended for good, or could not be opened: what its keeper does not take
     * along. */
    void (*ended)(csn_kept *k);
    void (*release)(csn_kept *k); /* frees k->own */
};

struct csn_kept {
    const csn_kept_kind *kind;
    void *own;                /* the backend's */
    const csn_config *config; /* the core's; outlives us */
    char *id;
    char *because;            /* why it is not the kind that was asked for; NULL: it is */
    bool detached, connected; /* connected: found again, not made here */
    _Atomic bool extended;    /* its end was moved by this handle */
    csn_grant base, home;
    csn_grant root;    /* rooted, judged: "/" of the keeper; all paths are looked up in it */
    csn_grant *grants; /* read and write directories */
    size_t grant_count;
    csn_rules *rules;
    char *run_path; /* runtime directory of this sandbox, or NULL before it is needed */
    int run_fd;     /* or -1 */
    pthread_mutex_t commit_lock; /* check-and-rename of writes is one at a time */
    int commit_fd;               /* the same among processes; -1 when not detached */
    pthread_mutex_t keeper_lock; /* starting the keeper happens once */
    int keeper_fd;               /* SEQPACKET to the keeper, or -1 */
    int keeper_pidfd;            /* or -1 */
    int64_t keeper_pid;
    struct csn_kept_birth *birth;    /* while it is on its way; see link.c */
    bool unordered;                  /* it waits for its orders */
    _Atomic int64_t resting;         /* a channel between two commands, see exec.c; -1: none */
    _Atomic uint64_t spawns;         /* how often it was asked to start something */
    _Atomic uint64_t alone_after;    /* after that one ended, nothing else was left */
    char *program;                   /* that the keeper runs, when it was started here */
    unsigned keeper_uid, keeper_gid; /* of one that was found again */
    uid_t file_uid;                  /* who touches files: the caller, or who commands are */
    uint64_t file_max;               /* size of one file that a command writes; 0: no limit */
    uint64_t memory_each;            /* address space of one process; 0: no limit */
    char **environ_base;             /* NAME=value for every command */
    bool gone;
};

/* runtime.c */
csn_kept *csn_kept_new(const csn_kept_kind *kind, const csn_config *config, const char *id);
void csn_kept_free(csn_kept *l);
csn_status csn_kept_open(const csn_kept_kind *kind, const csn_config *config, const char *id,
                         void **ret_state, csn_error **err);
csn_status csn_kept_connect(const csn_kept_kind *kind, const csn_config *config, const char *id,
                            void **ret_state, csn_error **err);
/* Ends a detached one that csn_kept_connect could not speak to. */
csn_status csn_kept_put_down(const csn_kept_kind *kind, const csn_config *config,
                             const char *id, csn_error **err);
/* It is on record now, and lives on without this process. */
csn_status csn_kept_settle(void *state, csn_error **err);
csn_status csn_kept_destroy(void *state, csn_error **err);
void csn_kept_close(void *state);
/* Everything but the layers. */
csn_status csn_kept_info(csn_kept *l, csn_info_result *ret, csn_error **err);

/* exec.c. The channel that waits for the next command, if there is one, is closed. */
void csn_kept_channel_drop(csn_kept *l);

/* rundir.c. Makes and locks run_path, once. And: removes directories whose maker was killed. */
csn_status csn_kept_run_dir(csn_kept *l, csn_error **err);
/* A file in it could not be opened. When there is no directory any more, its keeper has died.
 */
csn_status csn_kept_run_failed(csn_kept *l, int errnum, const char *what, csn_error **err);
/* Sockets in it, by name: descriptors, or -errno. Only after run_dir, or of one found again.
 * -ETIMEDOUT: nobody takes the connection. */
int csn_kept_run_listen(const csn_kept *l, const char *name, int backlog);
int csn_kept_run_connect(const csn_kept *l, const char *name);
void csn_kept_sweep(void);

/* host.c. A state for file operations below any host directory: no home, no commands, no
 * policy. Close it with csn_kept_close. */
csn_status csn_kept_host_open(const char *dir, bool make, void **ret_state, csn_error **err);

/* grants.c. Paths of agents to descriptors. */
csn_status csn_kept_grants_open(csn_kept *l, csn_error **err);
void csn_kept_grants_close(csn_kept *l);
/* Which grant an agent path is below, by name only, and the rest of the path to give to the
 * kernel ("." for the grant itself). `/x` is base/x unless it names the base, the home or a
 * granted directory by its host path. Never fails: what is below nothing else is below the
 * base. */
const csn_grant *csn_kept_grant_of(const csn_kept *l, const char *path, const char **ret_rest);
/* The resolved host path of a held descriptor, from the kernel. malloc'd, NULL on failure. */
char *csn_kept_fd_path(int fd);
/* Does the policy let `op` be done to the resolved path? CSN_DENIED with the denial filled in.
 */
csn_status csn_kept_judge(const csn_kept *l, uint32_t op, const char *asked,
                          const char *resolved, csn_error **err);

/* file.c and write.c: entries of the ops table */
csn_status csn_kept_stat(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                         char **ret_target, csn_error **err);
csn_status csn_kept_read(void *state, const char *path, uint32_t flags, uint64_t offset,
                         uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                         csn_error **err);
csn_status csn_kept_write(void *state, const csn_write_req *reqs, size_t count,
                          csn_written *rets, csn_error **err);
csn_status csn_kept_mkdir(void *state, const char *path, uint32_t flags, csn_error **err);
csn_status csn_kept_chmod(void *state, const char *path, uint32_t mode, csn_error **err);
csn_status csn_kept_symlink(void *state, const char *target, const char *path, csn_error **err);
csn_status csn_kept_remove(void *state, const char *path, uint32_t flags, csn_error **err);
csn_status csn_kept_rename(void *state, const char *from, const char *to, uint32_t flags,
                           csn_error **err);
csn_status csn_kept_list(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                         void *ctx, csn_error **err);
csn_status csn_kept_walk(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                         void *ctx, csn_error **err);
csn_status csn_kept_cleanup(void *state, csn_error **err);
csn_status csn_kept_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                          csn_error **err);
csn_status csn_kept_watch_next(void *watch, uint64_t timeout_ms, csn_event *ret,
                               csn_error **err);
void csn_kept_watch_free(void *watch);
/* An O_PATH directory descriptor for a command's cwd, policy checked, and its resolved path
 * (NULL when the kernel does not say). */
csn_status csn_kept_open_cwd(csn_kept *l, const char *path, int *ret_fd, char **ret_path,
                             csn_error **err);
csn_status csn_kept_path_judge(void *state, uint32_t op, const char *path, char **ret_resolved,
                               csn_error **err);

/* link.c */
/* By open: it is on its way, without orders. And: it runs now, or could not be run; then
 * whatever else failed since does not count (os/spawn.h). */
csn_status csn_kept_keeper_ahead(csn_kept *l, csn_error **err);
csn_status csn_kept_keeper_born(csn_kept *l, csn_error **err);
csn_status csn_kept_keeper_start(csn_kept *l, csn_error **err);   /* once; later calls: OK */
csn_status csn_kept_keeper_connect(csn_kept *l, csn_error **err); /* detached, by socket */
/* Kills one that is there and does not answer; it is found as by connect. */
csn_status csn_kept_keeper_put_down(csn_kept *l, csn_error **err);
/* When the keeper will end by itself, since the epoch; 0: never. */
csn_status csn_kept_expiry(csn_kept *l, int64_t *ret_ms, csn_error **err);
csn_status csn_kept_keeper_settle(csn_kept *l, csn_error **err);
void csn_kept_keeper_end(csn_kept *l); /* kills everything it holds and waits */

/* exec.c and process.c: entries of the ops table */
csn_status csn_kept_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                         csn_exec_end *ret, csn_error **err);
/* The same for a command whose sockets are made by who reads `sockets` (os/socket_divert.h). */
csn_status csn_kept_exec_apart(csn_kept *l, const csn_exec_req *req, int sockets,
                               const csn_sink *sink, csn_exec_end *ret, csn_error **err);
csn_status csn_kept_start(void *state, const csn_exec_req *req, uint64_t output_max,
                          int64_t *ret_pid, void **ret_tie, csn_error **err);
void csn_kept_untie(void *tie);
csn_status csn_kept_processes(void *state, int64_t pid, uint64_t wait_ms, csn_process_fn fn,
                              void *ctx, csn_error **err);
csn_status csn_kept_logs(void *state, int64_t pid, int stream, uint64_t offset,
                         uint64_t wait_ms, const csn_sink *sink, csn_log_chunk *ret,
                         csn_error **err);
csn_status csn_kept_signal(void *state, int64_t pid, int signo, csn_error **err);
csn_status csn_kept_feed(void *state, int64_t pid, const void *data, size_t len,
                         uint64_t timeout_ms, csn_error **err);
csn_status csn_kept_resize(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                           csn_error **err);
csn_status csn_kept_wait_port(void *state, uint16_t port, uint64_t timeout_ms, csn_error **err);
csn_status csn_kept_extend(void *state, uint64_t ms, csn_error **err);

/* What every ops table of a kept sandbox has. */
#define CSN_KEPT_OPS                                                                           \
    .close = csn_kept_close, .destroy = csn_kept_destroy, .settle = csn_kept_settle,           \
    .untie = csn_kept_untie, .processes = csn_kept_processes, .logs = csn_kept_logs,           \
    .signal = csn_kept_signal, .feed = csn_kept_feed, .resize = csn_kept_resize,               \
    .wait_port = csn_kept_wait_port, .extend = csn_kept_extend

/* environ.c. The clean environment: an allow-list of the caller's variables, what the config
 * adds, HOME always the sandbox's. malloc'd strv. */
csn_status csn_kept_environ_new(const csn_kept *l, char ***ret, csn_error **err);
