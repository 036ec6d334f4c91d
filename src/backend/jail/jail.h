/* jail.h: what the files of this directory share.
 *
 *   jail.c    the ops table, what is refused
 *   layers.c  what holds, in words
 *   cwd_check.c    is the current directory fit to be shared without having been named?
 *   plan.c    from a configuration to the list of mounts: what is where inside
 *   system_mounts.c  the part of that list which is the same for everybody
 *   rootfs_template.h   what of the root is the same for many, made once; etc_files.h: the part
 * that is /etc jail_environ.c the environment, made to agree with it host_sockets.c what of the
 * host lies in a share and must not be reached start.c   starting the keeper behind its walls,
 * and understanding why it could not limits.c  what bounds its use of the machine, and whether
 * that ended a command sweeper.h the program that cleans up after it network.h     the network,
 * if there are rules for it protected.h   what keeps a workspace from becoming host code
 *   stdin.c   what of the caller's a command may have as its standard input
 *   files.c   the file operations, as the user that commands are
 *   doctor.c  which of all that this host can give
 *   landlock_only.c  the same without namespaces, where they are refused and that is allowed
 *   explain_failure.c why a command failed; path_probe.c what a path is, inside and outside */
#pragma once
#include "backend/jail/layers.h"
#include "backend/jail/limits.h"
#include "backend/jail/network.h"
#include "backend/jail/protected.h"
#include "backend/jail/sweeper.h"
#include "base/arena.h"
#include "os/fsuid.h"
#include "runtime/runtime.h"

#define CSN_JAIL_USER "sandbox"

/* A tree of the host that is to be seen inside. */
typedef struct csn_jail_share {
    const char *option; /* for messages: "workspace", "--read" ... */
    const char *host;   /* resolved */
    const char *inside;
    bool writable;
    bool dir;   /* must be a directory */
    bool file;  /* is none */
    bool as_is; /* given as it is on disk, with its owners */
} csn_jail_share;

/* The jail's own part of a kept sandbox (csn_runtime.own). */
typedef struct csn_jail {
    csn_arena *arena; /* owns all strings here */
    struct csn_jail_shares *shares;
    csn_mount *mounts; /* room for CSN_MOUNTS_MAX while it is planned, then for those it has */
    size_t mount_count;
    /* A privileged caller makes the mounts of its shares itself (see start.c). */
    bool privileged;
    const csn_jail_share *given[CSN_SPEC_GIVEN_MAX];
    size_t given_count;
    csn_jail_share frame;        /* if it has one; see rootfs_template.c */
    int frame_lock;              /* or -1 */
    const char *const *links;    /* of its root, to directories of the host's; ends with NULL */
    unsigned host_uid, host_gid; /* who commands are on the host */
    unsigned disk_uid, disk_gid; /* whose files on disk are theirs: the workspace's owner */
    unsigned uid, gid;           /* who they are inside */
    csn_spawn_namespaces walls;
    char uid_map[48], gid_map[48];
    bool pending;        /* the keeper has not told yet that its walls stand */
    csn_ready_msg ready; /* what the keeper reported when it was confined */
    csn_jail_limits limits;
    csn_jail_sweeper sweeper;
    csn_jail_net *net;     /* NULL: loopback and nothing else */
    csn_protected *guard;  /* NULL until it is planned */
    const char *host_path; /* the caller's PATH: some of it is not there inside */
    csn_layer layers[CSN_JAIL_LAYERS_MAX];
    size_t layer_count;
    csn_layer net_layers[2][CSN_JAIL_LAYERS_MAX]; /* with a gateway, and when it has ended */
    bool no_namespaces;                           /* why it could not be started */
    const char *place, *tmp; /* landlock_only.c: the private directories; else NULL */
} csn_jail;

/* plan.c. What is shared, and who commands are: what the keeper is born with. */
/* For a jail without a named workspace. */
csn_status csn_jail_check_cwd(csn_error **err);
csn_status csn_jail_begin(csn_runtime *k, csn_error **err);
/* Fills mounts, given, and the sandbox's base, home and rules. */
csn_status csn_jail_plan(csn_runtime *k, csn_error **err);
/* Adds an entry. -1: there is no room; the list is checked for that once, at the end. */
void csn_jail_add(csn_jail *j, uint32_t kind, uint32_t flags, uint32_t access, const char *from,
                  const char *to);

/* Makes the entry that was added last one that the library mounts, not the keeper. */
void csn_jail_give(csn_jail *j, const csn_jail_share *share);

/* Something is covered at `rest` of the share: the directories above it stay where they are.
 * With one of them moved, the next sandbox would not know where to put its cover. */
void csn_jail_pin_parents(csn_jail *j, const csn_jail_share *share, const char *rest);

/* host_sockets.c. Sockets of the host's programs, and caisson's own records, where a share
 * would show them. After the shares are mounted. */
csn_status csn_jail_cover_host(csn_jail *j, const csn_jail_share *shares, size_t count,
                               csn_error **err);

/* system_mounts.c. Programs, libraries, devices, /proc and /etc, as far as the host has them.
 */
void csn_jail_add_system(const csn_runtime *k, csn_jail *j, const char *home,
                         const csn_jail_share *shares, size_t count);
/* rootfs_template.c. What is in `f`, and places for the shares. */
struct csn_rootfs_template;
void csn_jail_add_template(const csn_runtime *k, csn_jail *j, struct csn_rootfs_template *f,
                           const csn_jail_share *shares, size_t count);

/* jail_environ.c. The environment, made to agree with what is inside. */
csn_status csn_jail_environ(csn_runtime *k, csn_error **err);
/* The shell that the user has inside. */
const char *csn_jail_shell(void);

/* start.c: entries of csn_runtime_kind */
csn_status csn_jail_spawn_opts(csn_runtime *k, csn_spawn_opts *o, csn_error **err);
void csn_jail_fill_spec(csn_runtime *k, csn_keeper_spec *spec);
csn_status csn_jail_started(csn_runtime *k, csn_error **err);
csn_status csn_jail_ready(void *state, csn_error **err); /* entry of the ops table */
void csn_jail_chown_pipe(csn_runtime *k, int fd);
csn_status csn_jail_spawn_failed(csn_runtime *k, enum csn_spawn_stage stage, int errnum,
                                 csn_error **err);

/* landlock_only.c. The kind to open a sandbox as when namespaces were what failed, or that one
 * which is found again has; NULL: none. */
const csn_runtime_kind *csn_landlock_only_instead(csn_runtime *k, const csn_error *because,
                                                  const csn_runtime_kind *weaker,
                                                  char **ret_because);
/* Where the private directories will be; run: the runtime directory. malloc'd, or NULL. */
char *csn_landlock_only_place(const csn_runtime *k, const char *run);
csn_status csn_landlock_only_plan(csn_runtime *k, const csn_jail_share *v, size_t count,
                                  csn_error **err);
void csn_landlock_only_walls(const csn_jail *j, csn_confinement *w);
void csn_landlock_only_limits(const csn_runtime *k, csn_confinement *w);
csn_status csn_landlock_only_note(csn_runtime *k, csn_error **err);
csn_status csn_landlock_only_layers(csn_runtime *k, csn_error **err);
void csn_landlock_only_ended(const csn_runtime *k);

/* doctor.c: an entry of the ops table */
csn_status csn_jail_diagnose(const char *workspace, csn_check_fn fn, void *ctx,
                             csn_error **err);

/* stdin.c: entries of the ops table */
csn_status csn_jail_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                         csn_exec_end *ret, csn_error **err);
csn_status csn_jail_start(void *state, const csn_exec_req *req, uint64_t output_max,
                          int64_t *ret_pid, void **ret_tie, csn_error **err);

/* explain_failure.c: an entry of the ops table */
csn_status csn_jail_explain(void *state, const csn_exec_req *req, const csn_exec_end *end,
                            const csn_output *out, const csn_output *text, csn_error **err);

/* files.c. From here on files are touched as the user that commands are, until
 * csn_fsuid_restore.
 */
csn_status csn_jail_fsuid_switch(const csn_runtime *k, csn_fsuid *g, csn_error **err);
/* the file entries of the ops table */
extern const csn_file_ops csn_jail_file_ops;
