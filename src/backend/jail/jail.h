/* jail.h: the state of a jail and the functions that the files of this backend share.
 *
 *   jail.c             the ops table
 *   jail_open.c        open, connect, destroy
 *   plan.c             turns a configuration into the list of mounts
 *   system_mounts.c    the mounts that every jail has; etc_files.h: /etc
 *   rootfs_template.h  a prepared root file system that many jails share
 *   host_sockets.c     masks sockets of host programs inside shares
 *   own_records.c      masks caisson's own directories inside shares
 *   cover.h            masks what a policy denies, and keys of the user's home
 *   cow_mount.c        mounts a workspace whose changes go to layers (runtime/cow.h)
 *   cwd_check.c        refuses to share a system directory by default
 *   orders.c           sends the keeper its spec and resources, reads READY or FAILED
 *   record.c           saves and loads what a process needs to attach to a detached jail
 *   sweeper.h          the program that cleans up after a jail
 *   limits.h           resource limits, and whether one ended a command
 *   network.h          the network, if there are rules for it
 *   protected.h        files of the workspace that commands must not change
 *   exec.c             foreground and background commands
 *   jail_environ.c     the environment of commands
 *   files.c            the file operations, with the uid of commands
 *   weaker_user.c      the user of a root caller's commands, if the host refuses id mapping
 *   landlock_only.c    a jail without namespaces, if the host refuses them
 *   layers.c           the layers of `info`
 *   explain_failure.c  finds out why a command failed; path_probe.c: the paths it names
 *   doctor.c           reports what this host supports */
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

/* A file or directory of the host that is visible inside. */
typedef struct csn_jail_share {
    const char *option; /* for messages: "workspace", "--read" ... */
    const char *host;   /* resolved */
    const char *inside;
    bool writable;
    bool dir;   /* must be a directory */
    bool file;  /* is not a directory */
    bool as_is; /* mounted without id mapping */
    bool cow;   /* changes go to layers: see runtime/cow.h */
} csn_jail_share;

#define CSN_JAIL_SHARES_MAX (CSN_SPEC_GIVEN_MAX - 1) /* one is reserved for the template */

typedef struct csn_jail_shares {
    size_t count;
    csn_jail_share v[]; /* the first is the workspace */
} csn_jail_shares;

/* The jail's part of a sandbox (csn_runtime.jail). A connected handle has only the members that
 * record.c stores. */
typedef struct csn_jail {
    csn_arena *arena;   /* owns all strings here */
    const char *weaker; /* why the host refuses what a full jail needs, or NULL */
    csn_jail_shares *shares;
    bool cow_copy;             /* the workspace is copied: no overlay is possible */
    bool cow_refused;          /* opening failed because of the overlay */
    struct csn_cow *cow;       /* rt->cow */
    struct csn_covers *covers; /* what is denied; see cover.h */
    csn_rule_info *hidden;     /* places of keys that are hidden, for `info` */
    size_t hidden_count;
    csn_mount *mounts; /* CSN_MOUNTS_MAX entries while planning, then trimmed */
    size_t mount_count;
    bool root;       /* the caller is uid 0 of its user namespace */
    bool idmapped;   /* root caller: the library mounts the shares (see orders.c) */
    bool other_user; /* root caller: commands run as another uid than the caller */
    bool as_root;    /* commands run as uid 0 of the host: see weaker_user.c */
    bool nested;     /* commands may make namespaces and mounts */
    const csn_jail_share *given[CSN_SPEC_GIVEN_MAX];
    size_t given_count;
    csn_jail_share cow_layers, cow_base; /* what is mounted below an overlay */
    csn_jail_share template;             /* if used; see rootfs_template.c */
    int template_lock;                   /* or -1 */
    const char *const *links;    /* links in the root directory (merged /usr); ends with NULL */
    unsigned host_uid, host_gid; /* uid of commands on the host */
    unsigned spare_uid;          /* root caller: a uid without account, if it may change to it;
                                    from it derive those of the gateway and its helpers */
    unsigned disk_uid, disk_gid; /* root caller: owner of the workspace, mapped to that uid */
    unsigned uid, gid;           /* uid of commands inside */
    csn_spawn_namespaces namespaces;
    char uid_map[48], gid_map[48];
    bool pending;        /* READY has not been received yet */
    csn_ready_msg ready; /* contents of READY */
    csn_jail_limits limits;
    csn_jail_sweeper sweeper;
    csn_jail_net *net;                /* NULL: only loopback */
    csn_protected *protected;         /* NULL until planned */
    const csn_deny_sink *end_denials; /* for the last scan; or NULL */
    const char *host_path;            /* the caller's PATH, before entries were dropped */
    const char *listed_home;          /* what listed_home.c found last, for listed_uid */
    unsigned listed_uid;
    bool listed_known;
    csn_layer layers[CSN_JAIL_LAYERS_MAX];
    size_t layer_count;
    csn_layer net_layers[2][CSN_JAIL_LAYERS_MAX]; /* [0]: the gateway runs; [1]: it has ended */
    bool refused;            /* opening failed because the host refuses what this level needs */
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

/* record.c. Save when all members are set. Load fails with CSN_UNAVAILABLE if there is no
 * record or another version wrote it. */
csn_status csn_jail_record_save(csn_runtime *rt, csn_error **err);
csn_status csn_jail_record_load(csn_runtime *rt, csn_error **err);

/* cwd_check.c. Checks the current directory if --workspace is not given. */
csn_status csn_jail_check_cwd(csn_error **err);

/* plan.c. Fills shares and the user of commands, which are needed to start the keeper. */
csn_status csn_jail_find_shares(csn_runtime *rt, csn_error **err);
/* Fills mounts, given, and the sandbox's base, home and rules. */
csn_status csn_jail_plan(csn_runtime *rt, csn_error **err);
/* Removes doubled slashes, `.` and a trailing slash. NULL for a path with `..`, which only the
 * kernel may resolve, or without memory. */
char *csn_jail_clean_path(csn_arena *a, const char *path);
/* Adds an entry. If the list is full, csn_jail_plan fails at its end. */
void csn_jail_add(csn_jail *j, uint32_t kind, uint32_t flags, uint32_t access, const char *from,
                  const char *to);

/* Marks the last entry as one that the library mounts and passes to the keeper. */
void csn_jail_give(csn_jail *j, const csn_jail_share *share);

/* Makes every directory between the root of a writable share and `rest` immovable inside, by
 * mounting it over itself. Call it for each covered path: if a command could rename a parent,
 * the next sandbox would mount its cover in the wrong place. */
void csn_jail_pin_parents(csn_jail *j, const csn_jail_share *share, const char *rest);

/* host_sockets.c. Masks sockets of host programs inside shares. Call it after the shares were
 * added. */
void csn_jail_cover_sockets(csn_jail *j, const csn_jail_share *shares, size_t count);
/* Masks `path` of the host in every share that contains it. */
void csn_jail_cover(csn_jail *j, const csn_jail_share *shares, size_t count, const char *path);

/* own_records.c. Masks caisson's own directories inside shares, likewise. */
csn_status csn_jail_cover_records(csn_jail *j, const csn_jail_share *shares, size_t count,
                                  csn_error **err);
/* Where nothing can be masked: refuses writable shares that contain one of them. */
csn_status csn_jail_refuse_records(csn_jail *j, const csn_jail_share *shares, size_t count,
                                   csn_error **err);
/* Refuses an audit log in a directory that commands can write. */
csn_status csn_jail_check_audit(const csn_runtime *rt, csn_error **err);

/* cow_mount.c. Checks the options that concern the workspace, before anything is created. */
csn_status csn_jail_cow_check(const csn_runtime *rt, csn_error **err);
/* Makes, or finds, the layers if the workspace is copy-on-write. */
csn_status csn_jail_cow_create(csn_runtime *rt, csn_error **err);
/* Finishes or undoes a commit to a workspace of the sandbox whose process was killed. Before
 * the first command, whether the workspace is copy-on-write or not. */
csn_status csn_jail_cow_recover(const csn_runtime *rt, csn_error **err);
csn_status csn_jail_cow_find(csn_runtime *rt, csn_error **err);
/* Adds the mounts. */
void csn_jail_cow_plan(csn_jail *j, const csn_jail_share *share);
/* Mounts an overlay of other layers. */
csn_status csn_jail_cow_change(csn_runtime *rt, int tree, const char *names, csn_error **err);

/* listed_home.c. The home directory of a user in /etc/passwd, or NULL. */
const char *csn_jail_listed_home(csn_jail *j, unsigned uid);

/* system_mounts.c. Adds programs, libraries, devices, /proc and /etc, if the host has them. */
void csn_jail_add_system(const csn_runtime *rt, csn_jail *j, const char *home,
                         const csn_jail_share *shares, size_t count);
/* rootfs_template.c. Adds the entries of `t`, and mount points for the shares. */
struct csn_rootfs_template;
void csn_jail_add_template(const csn_runtime *rt, csn_jail *j, struct csn_rootfs_template *t,
                           const csn_jail_share *shares, size_t count);

/* jail_environ.c. Adapts the environment of commands to the inside of the jail. */
csn_status csn_jail_environ(csn_runtime *rt, csn_error **err);
/* The login shell of the user inside. */
const char *csn_jail_shell(void);

/* weaker_user.c. Chooses the user of commands without id-mapped mounts. */
csn_status csn_weaker_user_choose(const csn_runtime *rt, csn_jail *j, csn_error **err);
/* Fails if the user of commands cannot use a share. */
csn_status csn_weaker_user_check(const csn_jail *j, const csn_jail_share *s, csn_error **err);
/* Sets other_user and as_root from host_uid. */
void csn_weaker_user_classify(csn_jail *j);
/* Masks what only root may read in /proc. */
void csn_weaker_user_cover_proc(csn_jail *j);
/* Describes the level in the layers of a jail with namespaces. */
csn_status csn_weaker_user_layers(csn_runtime *rt, csn_error **err);

/* landlock_only.c. The path of the private directories; run: the directory of the sandbox.
 * malloc'd, or NULL. */
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

/* files.c. Switches the thread's file-system uid to that of commands until
 * csn_fsuid_restore. */
csn_status csn_jail_fsuid_switch(const csn_runtime *rt, csn_fsuid *g, csn_error **err);
/* the file entries of the ops table */
extern const csn_file_ops csn_jail_file_ops;
