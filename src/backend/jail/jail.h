/* jail.h: what the files of this directory share.
 *
 *   jail.c             the ops table
 *   jail_open.c        open, connect, destroy
 *   plan.c             from a configuration to the list of mounts: what is where inside
 *   system_mounts.c    the part of that list that every jail has; etc_files.h: /etc
 *   rootfs_template.h  a root file system that many jails share, made once
 *   host_sockets.c     sockets of the host in a share, which must not be reached
 *   cwd_check.c        whether the current directory may be shared without being named
 *   orders.c           what the keeper is sent at its start, and what it answers
 *   record.c           what another process needs to attach to a detached jail
 *   sweeper.h          the program that cleans up after a jail
 *   limits.h           limits on the use of the machine, and whether one ended a command
 *   network.h          the network, if there are rules for it
 *   protected.h        files of the workspace that commands must not change
 *   exec.c             foreground and background commands; stdin_feed.h: a terminal as stdin
 *   jail_environ.c     the environment of commands
 *   files.c            the file operations, as the user that commands are
 *   landlock_only.c    a jail without namespaces, where the host refuses them
 *   layers.c           the layers of `info`
 *   explain_failure.c  why a command failed; path_probe.c: what a path is, inside and outside
 *   doctor.c           what this host supports */
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

#define CSN_JAIL_SHARES_MAX (CSN_SPEC_GIVEN_MAX - 1) /* the other is the template */

typedef struct csn_jail_shares {
    size_t count;
    csn_jail_share v[]; /* the first is the workspace */
} csn_jail_shares;

/* The jail's part of a sandbox (csn_runtime.jail). Of the plan, a connected handle has only
 * what record.c lists. */
typedef struct csn_jail {
    csn_arena *arena;   /* owns all strings here */
    const char *weaker; /* CSN_LEVEL_LANDLOCK_ONLY: why there are no namespaces */
    csn_jail_shares *shares;
    char **denied;     /* paths inside that are covered */
    csn_mount *mounts; /* room for CSN_MOUNTS_MAX while it is planned, then for those it has */
    size_t mount_count;
    bool privileged; /* a root caller makes the mounts of its shares itself (see orders.c) */
    const csn_jail_share *given[CSN_SPEC_GIVEN_MAX];
    size_t given_count;
    csn_jail_share template;     /* if it has one; see rootfs_template.c */
    int template_lock;           /* or -1 */
    const char *const *links;    /* of its root, to directories of the host; ends with NULL */
    unsigned host_uid, host_gid; /* the user of commands, on the host */
    unsigned disk_uid, disk_gid; /* the workspace's owner, whose files on disk are theirs */
    unsigned uid, gid;           /* the user of commands, inside */
    csn_spawn_namespaces namespaces;
    char uid_map[48], gid_map[48];
    bool pending;        /* READY was not awaited yet */
    csn_ready_msg ready; /* what READY said */
    csn_jail_limits limits;
    csn_jail_sweeper sweeper;
    csn_jail_net *net;        /* NULL: loopback and nothing else */
    csn_protected *protected; /* NULL until it is planned */
    const char *host_path;    /* the caller's PATH: some of it does not exist inside */
    csn_layer layers[CSN_JAIL_LAYERS_MAX];
    size_t layer_count;
    csn_layer net_layers[2][CSN_JAIL_LAYERS_MAX]; /* with a gateway, and when it has ended */
    bool no_namespaces;                           /* the host refuses them: it cannot start */
    const char *place, *tmp; /* landlock_only.c: the private directories; else NULL */
} csn_jail;

/* jail_open.c */
csn_status csn_jail_open(const csn_config *config, const char *id, void **ret_state,
                         csn_error **err);
csn_status csn_jail_connect(const csn_config *config, const char *id, void **ret_state,
                            csn_error **err);
csn_status csn_jail_ready(void *state, csn_error **err);
csn_status csn_jail_commit(void *state, csn_error **err);
csn_status csn_jail_destroy(void *state, csn_error **err);
void csn_jail_close(void *state);

/* orders.c */
csn_status csn_jail_send_orders(csn_runtime *rt, csn_error **err);
csn_status csn_jail_send_resources(csn_runtime *rt, csn_error **err);
csn_status csn_jail_await_ready(csn_runtime *rt, csn_error **err);
csn_status csn_jail_ask_root(csn_runtime *rt, csn_error **err);
csn_status csn_jail_spawn_failed(csn_runtime *rt, enum csn_spawn_stage stage, int errnum,
                                 csn_error **err);

/* record.c. Save: after everything else is known. Load: fails with CSN_UNAVAILABLE when there
 * is no record that this version can read. */
csn_status csn_jail_record_save(csn_runtime *rt, csn_error **err);
csn_status csn_jail_record_load(csn_runtime *rt, csn_error **err);

/* cwd_check.c. For a jail whose workspace was not named. */
csn_status csn_jail_check_cwd(csn_error **err);

/* plan.c. Shares and the user of commands: what must be known before the keeper is started. */
csn_status csn_jail_find_shares(csn_runtime *rt, csn_error **err);
/* Fills mounts, given, and the sandbox's base, home and rules. */
csn_status csn_jail_plan(csn_runtime *rt, csn_error **err);
/* The rules for file calls, from shares and denied. */
csn_status csn_jail_make_rules(csn_runtime *rt, csn_error **err);
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
void csn_jail_add_system(const csn_runtime *rt, csn_jail *j, const char *home,
                         const csn_jail_share *shares, size_t count);
/* rootfs_template.c. Adds the entries of `t`, and mount points for the shares. */
struct csn_rootfs_template;
void csn_jail_add_template(const csn_runtime *rt, csn_jail *j, struct csn_rootfs_template *t,
                           const csn_jail_share *shares, size_t count);

/* jail_environ.c. The environment, made to agree with what is inside. */
csn_status csn_jail_environ(csn_runtime *rt, csn_error **err);
/* The shell that the user has inside. */
const char *csn_jail_shell(void);

/* landlock_only.c. Where the private directories will be; run: the runtime directory. malloc'd,
 * or NULL. */
char *csn_landlock_only_place(const csn_runtime *rt, const char *run);
csn_status csn_landlock_only_plan(csn_runtime *rt, const csn_jail_share *v, size_t count,
                                  csn_error **err);
csn_status csn_landlock_only_rules(csn_runtime *rt, csn_error **err);
void csn_landlock_only_confinement(const csn_jail *j, csn_confinement *w);
void csn_landlock_only_limits(const csn_runtime *rt, csn_confinement *w);
csn_status csn_landlock_only_layers(csn_runtime *rt, csn_error **err);
void csn_landlock_only_ended(const csn_runtime *rt);

/* doctor.c: an entry of the ops table */
csn_status csn_jail_diagnose(const char *workspace, csn_check_fn fn, void *ctx,
                             csn_error **err);

/* exec.c: entries of the ops table */
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
csn_status csn_jail_fsuid_switch(const csn_runtime *rt, csn_fsuid *g, csn_error **err);
/* the file entries of the ops table */
extern const csn_file_ops csn_jail_file_ops;
