/* protected.h: keeping a writable workspace from becoming code on the host.
 *
 *   protected.c       which places of a workspace are held fixed while the sandbox lives
 *   protected_rules.c   what the user opened, and whether a path is closed to file operations
 *   protected_changes.c  from when on changes count, and what a command was refused
 *   protected_scan.c  after a command: what changed, is it harmless
 *   protected_gitconfig.c  the user's own git config, changed by the user while a command runs
 *   protected_cache.c  between sandboxes: where directories with meaningful names were
 *   quarantine.c       taking a file out of the workspace
 *
 * Which names are protected, and why, is the table of policy/protected_names.c. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "backend/jail/quarantine.h"
#include "base/arena.h"
#include "base/glob.h"
#include "base/pack.h"
#include "runtime/runtime.h"
#include "search/changed.h"

#define CSN_PROTECTED_PLACES 128u

struct csn_jail_share;

/* Which file or directory it is. Numbers of inodes are used again; with the time of birth they
 * are not. */
typedef struct csn_protected_id {
    uint64_t dev, ino;
    int64_t sec, nsec;
} csn_protected_id;

/* Something in a workspace that is mounted over itself in the sandbox. */
typedef struct csn_protected_place {
    const char *path; /* below the workspace, without a link in it */
    const char *rule; /* read-only, because of this; NULL: it only cannot be moved */
    csn_protected_id id;
    bool absent; /* a git config includes it, but it was not there: nothing is mounted */
} csn_protected_place;

/* A writable workspace. */
typedef struct csn_protected_tree {
    const char *host, *inside;
    const char *named; /* its absolute path where that is the same for both; NULL: it is not */
    int fd;            /* the host's directory; connected: -1 if another one has its path */
    csn_protected_place *places; /* up to CSN_PROTECTED_PLACES */
    size_t place_count;
    const char *config; /* of git, as it was at the start; NULL: there was none */
    csn_changed_memory memory;
    bool remembers;             /* memory.were is of a whole scan, */
    struct timespec remembered; /* which began then */
    bool scanned;               /* by this handle: worth writing down */
} csn_protected_tree;

/* What the user said may be written although it is protected. */
typedef struct csn_protected_exception {
    const char *path; /* inside, absolute; NULL: a glob */
    csn_glob_set *glob;
    const char *pattern; /* the text of the glob */
    bool from_base;      /* it is relative to the workspace */
} csn_protected_exception;

/* The file that processes with the same sandbox share. */
typedef struct csn_protected_stamp {
    int64_t sec, nsec, clean;
} csn_protected_stamp;

typedef struct csn_protected {
    csn_arena *arena; /* the jail's */
    csn_protected_tree *trees;
    size_t tree_count;
    csn_protected_exception *opened;
    size_t open_count;
    const char *base;          /* the first workspace, inside */
    pthread_mutex_t lock;      /* never held for long: a scan may be */
    struct timespec since;     /* what changed before was looked at */
    bool clean;                /* and nothing of the sandbox can have changed anything after */
    unsigned running;          /* commands of this handle */
    uint64_t begun;            /* commands and file operations that ever were */
    int stamp;                 /* the same for other processes that have the sandbox; or -1 */
    int children;              /* the kernel's list of the keeper's; or -1 */
    pthread_mutex_t scan_lock; /* taken before the other; and for what a tree remembers */
    csn_scan_cache told;       /* files that are left in place, and were told once */
    csn_quarantine aside;
} csn_protected;

/* protected.c. After the shares are mounted: adds mounts. */
csn_status csn_protected_plan(csn_runtime *rt, const struct csn_jail_share *shares,
                              size_t count, csn_error **err);
/* Makes the file that handles of a detached sandbox share. */
csn_status csn_protected_share(csn_runtime *rt, csn_error **err);
/* Opens it in a connected handle. */
csn_status csn_protected_join(csn_runtime *rt, csn_error **err);
/* The part of a detached sandbox's record; get: after the shares are known. */
void csn_protected_put(const csn_protected *g, csn_packer *o);
int csn_protected_get(csn_runtime *rt, csn_unpacker *in); /* 0 or -errno */
/* Are the workspaces where they were when the sandbox was made? Nothing may change them if not:
 * it could not be scanned. */
csn_status csn_protected_check_trees(const csn_runtime *rt, csn_error **err);
void csn_protected_release(csn_protected *g);
/* What is at the path, itself and not where it points to. False: nothing. */
bool csn_protected_identify(int dir, const char *path, csn_protected_id *ret);
/* There is nothing, or nothing that could be reached from here. Any other failure says nothing
 * about what is there. */
bool csn_protected_is_absent(int error);

/* protected_rules.c */
csn_status csn_protected_read_rules(csn_runtime *rt, const struct csn_jail_share *shares,
                                    size_t count, csn_error **err);
/* Is the path (inside, absolute, resolved) opened by a rule? */
bool csn_protected_is_excepted(const csn_protected *g, const char *path);
/* Does a rule open something in this directory, or itself? */
bool csn_protected_has_exception(const csn_protected *g, const char *path);
/* Why may the path below the tree not be written? NULL: it may. tree: CSN_OP_TREE or 0. */
const char *csn_protected_rule(const csn_protected_tree *t, const char *below, uint32_t tree);
/* csn_runtime.check_change */
csn_status csn_protected_check(const csn_runtime *rt, uint32_t op, const char *asked,
                               const char *resolved, csn_error **err);
/* One refusal, in the words of all of them. resolved may be NULL. */
void csn_protected_report(const csn_deny_sink *denials, const csn_protected_tree *t,
                          const char *below, const char *rule, const char *resolved);
/* For --write: is this path of the host a protected one in a writable workspace? It needs no
 * mount of its own then. */
bool csn_protected_is_rule_for(const struct csn_jail_share *shares, size_t count,
                               const char *path);

/* protected_changes.c. A command begins; it has ended, in whatever way. */
void csn_protected_command_begin(csn_runtime *rt, struct timespec *ret_began);
void csn_protected_command_end(csn_runtime *rt, const struct timespec *began,
                               const csn_deny_sink *denials);
/* Entries of the ops table. */
csn_status csn_protected_explain(void *state, const csn_exec_req *req, const csn_exec_end *end,
                                 const csn_output *out, const csn_output *text,
                                 csn_error **err);
void csn_protected_rescan(void *state, const csn_deny_sink *denials);
/* A file operation is about to change something. */
void csn_protected_note_change(csn_runtime *rt);
/* Nothing of the sandbox runs any more. */
void csn_protected_final_scan(csn_runtime *rt);
/* What this or another process noted: from when on changes count. */
void csn_protected_stamp_read(csn_protected *g);
void csn_protected_stamp_write(const csn_protected *g);

/* protected_gitconfig.c. A later git config of the workspace's root without the lines that the
 * user's own had at the start; malloc'd. NULL: they cannot be told apart. */
char *csn_protected_gitconfig_strip(const csn_protected_tree *t, const char *text, size_t len,
                                    size_t *ret_len);

/* protected_cache.c. What the last scan of this workspace found, by whatever sandbox. */
void csn_protected_cache_load(csn_protected_tree *t);
void csn_protected_cache_save(csn_protected *g);

/* protected_scan.c. Looks through all workspaces and sets aside what is not harmless; denials
 * may be NULL. 0 or -errno: not everything could be looked at. With the scan lock held. */
int csn_protected_scan(csn_runtime *rt, const struct timespec *since,
                       const csn_deny_sink *denials);
