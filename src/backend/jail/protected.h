/* protected.h: keeps commands from planting files in a workspace that programs of the host
 * would run.
 *
 *   protected.c            read-only mounts for protected files that exist at the start
 *   protected_targets.c    where links and hard links of these files lead
 *   protected_git.c        what git configs and .git files refer to
 *   protected_layout.c     file operations in directories that look like a repository
 *   protected_rules.c      exceptions of the user, and checks for file operations
 *   protected_changes.c    the time from which changes count, and denials of a command
 *   protected_scan.c       finds protected files that a command created or changed
 *   protected_places.c     checks targets that could not be made read-only
 *   protected_refers.c     checks what protected files below the root lead to
 *   protected_gitconfig.c  separates the user's lines of a git config from those of a command
 *   protected_cache.c      results of the last scan, stored between sandboxes
 *   protected_marks.c      changes that no scan has seen yet, stored between processes
 *   quarantine.c           moves a file out of the workspace
 *
 * The protected names, with reasons, are in the table of policy/protected_names.c. */
#pragma once
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "backend/jail/quarantine.h"
#include "base/arena.h"
#include "base/glob.h"
#include "base/pack.h"
#include "runtime/runtime.h"
#include "search/changed.h"

#define CSN_PROTECTED_PLACES 256u

struct csn_jail_share;

/* Identifies a file. Inode numbers are reused, so the birth time is part of it. */
typedef struct csn_protected_id {
    uint64_t dev, ino;
    int64_t sec, nsec;
} csn_protected_id;

/* A file or directory of a workspace that is mounted over itself. */
typedef struct csn_protected_place {
    const char *path; /* below the workspace, without links */
    const char *rule; /* why it is read-only; NULL: it is pinned but writable */
    csn_protected_id id;
    /* Checked by each scan; absent and link are not mounted. */
    bool absent; /* a protected file leads to it, and it does not exist yet */
    bool link;   /* a link on the way from a protected file to another place */
    bool shared; /* it, or a file in it, has further hard links, which may be writable */
} csn_protected_place;

/* A writable workspace. */
typedef struct csn_protected_tree {
    const char *host, *inside;
    const char
        *named; /* its absolute path if it is the same inside and on the host, else NULL */
    int fd;     /* the host's directory; if it was moved, through another mount, or -1 */
    int moved;  /* 0, or why its path does not lead to it any more (errno; ENOENT: removed,
                 * renamed or replaced): commands are refused, changes still scanned */
    uint64_t dev, ino;
    csn_protected_place *places; /* up to CSN_PROTECTED_PLACES */
    size_t place_count;
    const char *config; /* text of .git/config at the start, or NULL */
    csn_changed_memory cache;
    csn_scan_cache plain;      /* git configs that refer to no other file */
    bool has_cache;            /* cache.were is from a complete scan */
    struct timespec cached_at; /* when that scan began */
    ino_t record_ino;          /* of the file with this cache; 0: none */
    size_t recorded;           /* cache.known.added when it was loaded or saved */
    int mark_fd;               /* of protected_marks.c; -1: not open */
    int64_t mark_slot;         /* -1: none */
} csn_protected_tree;

#define CSN_PROTECTED_ADOPTED 16u

/* Changes of sandboxes that ended before they were scanned. */
typedef struct csn_protected_adopted {
    struct timespec since; /* if count > 0: of the oldest one */
    size_t count;
    int64_t slots[CSN_PROTECTED_ADOPTED];
    uint32_t held[CSN_PROTECTED_PLACES]; /* what was read-only in all of them */
    size_t held_count;
    bool others; /* a sandbox that lives has changes that were not scanned */
} csn_protected_adopted;

/* A protected path that the user allows commands to write. */
typedef struct csn_protected_exception {
    const char *path; /* inside, absolute; NULL: a glob */
    csn_glob_set *glob;
    const char *pattern; /* the text of the glob */
    bool from_base;      /* relative to the first workspace */
    bool target;         /* not a protected name: counts for targets of protected files only */
} csn_protected_exception;

/* Contents of the file that handles of a detached sandbox share. */
typedef struct csn_protected_stamp {
    int64_t sec, nsec, clean;
} csn_protected_stamp;

typedef struct csn_protected_found {
    struct csn_protected_found *next;
    csn_denial denial;
} csn_protected_found;

typedef struct csn_protected {
    csn_arena *arena; /* the jail's */
    csn_protected_tree *trees;
    size_t tree_count;
    csn_protected_exception *exceptions;
    size_t exception_count;
    const char *base;           /* the first workspace, inside */
    pthread_mutex_t lock;       /* never held during a scan */
    struct timespec since;      /* changes before this time were scanned */
    bool clean;                 /* and the sandbox has changed nothing since */
    unsigned running;           /* commands of this handle that run */
    uint64_t change_count;      /* commands and file operations so far */
    int stamp;                  /* the file of csn_protected_stamp; -1: not detached */
    int children;               /* /proc/PID/task/PID/children of the keeper, or -1 */
    pthread_mutex_t scan_lock;  /* taken before `lock`; also for the caches of the trees */
    csn_scan_cache reported;    /* files that stay in place and were reported */
    csn_protected_found *found; /* when the sandbox was opened; told with the first command */
    csn_quarantine quarantine;
    bool prepared; /* it is known what is where in the workspaces */
    int store;     /* directory of the records and marks; -1: not open */
} csn_protected;

/* protected.c. Adds mounts; call it after the shares were added. */
csn_status csn_protected_plan(csn_runtime *rt, const struct csn_jail_share *shares,
                              size_t count, csn_error **err);
/* Creates the stamp file of a detached sandbox. */
csn_status csn_protected_share(csn_runtime *rt, csn_error **err);
/* Opens the stamp file in a connected handle. */
csn_status csn_protected_join(csn_runtime *rt, csn_error **err);
/* The part of a detached sandbox's record; get needs the shares. */
void csn_protected_put(const csn_protected *g, csn_packer *o);
int csn_protected_get(csn_runtime *rt, csn_unpacker *in); /* 0 or -errno */
/* Makes mounts of up to `max` workspaces, which do not keep the host from unmounting them, for
 * the sweeper to hold. Returns their number; the caller closes them. */
size_t csn_protected_clone_trees(const csn_runtime *rt, int *ret, size_t max);
/* Call when a connected handle has the root of the jail: opens workspaces that were moved. */
void csn_protected_reopen(csn_runtime *rt);
/* Fails if a workspace was removed, renamed or replaced after the sandbox was opened. */
csn_status csn_protected_check_trees(const csn_runtime *rt, csn_error **err);
void csn_protected_release(csn_protected *g);
/* Identifies a path without following a link. False: absent. */
bool csn_protected_identify(int dir, const char *path, csn_protected_id *ret);
/* True for an errno that means that the path is absent or unreachable. After others it may
 * exist. */
bool csn_protected_is_absent(int error);

/* protected_targets.c. A path as the host resolves it, below a workspace. */
typedef struct csn_protected_path {
    const csn_protected_tree *t;
    void (*on_link)(void *ctx, const char *link); /* each link on the way; may be NULL */
    void *ctx;
    char at[PATH_MAX];   /* what was reached, below the workspace, without links */
    char rest[PATH_MAX]; /* what is missing after that */
    struct stat st;      /* of `at` */
    int links;
} csn_protected_path;
/* path: below the workspace, or absolute on the host. 1: it exists; 0: it is outside of the
 * workspace; -ENOENT, -ENOTDIR: `rest` is missing; other -errno: unknown. */
int csn_protected_resolve(csn_protected_path *p, const char *path);

/* protected_layout.c. csn_runtime.wants_content: names that are judged by their content, or
 * that make a directory a repository. */
bool csn_protected_wants_content(const char *name);
/* Why writing the path is refused, malloc'd: a directory above it is a repository, or becomes
 * one. tree: rename or symlink. content: what the file will hold, or -1 while it is unknown. */
char *csn_protected_layout(const csn_runtime *rt, const csn_protected_tree *t,
                           const char *below, bool tree, int content);

/* protected_rules.c */
csn_status csn_protected_read_rules(csn_runtime *rt, const struct csn_jail_share *shares,
                                    size_t count, csn_error **err);
/* True if an exception allows writing this path (inside, absolute, resolved). */
bool csn_protected_is_excepted(const csn_protected *g, const char *path);
/* The same for a file to which a protected one leads, which --write may name too. */
bool csn_protected_is_excepted_target(const csn_protected *g, const char *path);
/* True if there is an exception for this directory or for something in it. */
bool csn_protected_has_exception(const csn_protected *g, const char *path);
/* The reason why a path below the tree is protected, or NULL. tree: CSN_OP_TREE or 0. ret_place
 * (may be NULL): NULL if the name is the reason, else the place. */
const char *csn_protected_rule(const csn_protected_tree *t, const char *below, uint32_t tree,
                               const char **ret_place);
/* csn_runtime.check_change */
csn_status csn_protected_check(const csn_runtime *rt, uint32_t op, const char *asked,
                               const char *resolved, csn_error **err);
/* csn_runtime.check_content */
csn_status csn_protected_check_content(const csn_runtime *rt, const char *asked,
                                       const char *resolved, int content, csn_error **err);
/* Reports one denial. resolved may be NULL. */
void csn_protected_report(const csn_deny_sink *denials, const csn_protected_tree *t,
                          const char *below, const char *rule, const char *resolved);
/* True if a path of --write names a protected file in a writable workspace: it is an exception
 * and needs no mount. */
bool csn_protected_is_rule_for(const struct csn_jail_share *shares, size_t count,
                               const char *path);

/* protected_changes.c. Call these before and after each command, however it ended. */
void csn_protected_command_begin(csn_runtime *rt, struct timespec *ret_began);
/* 0 or -errno: not all changes could be checked. */
int csn_protected_command_end(csn_runtime *rt, const struct timespec *began,
                              const csn_deny_sink *denials);
/* Entries of the ops table. */
csn_status csn_protected_explain(void *state, const csn_exec_req *req, const csn_exec_end *end,
                                 const csn_output *out, const csn_output *text,
                                 csn_error **err);
void csn_protected_rescan(void *state, const csn_deny_sink *denials);
/* Call before a file operation that changes something. */
void csn_protected_note_change(csn_runtime *rt);
/* Call when no process of the sandbox runs; denials may be NULL. */
void csn_protected_final_scan(csn_runtime *rt, const csn_deny_sink *denials);
/* Call when the sandbox is opened, before its protected files are mounted: scans what sandboxes
 * left that ended before a scan. */
void csn_protected_finish(csn_runtime *rt);
/* Reads and writes the stamp file: the time from which changes count. */
void csn_protected_stamp_read(csn_protected *g);
void csn_protected_stamp_write(const csn_protected *g);

/* protected_gitconfig.c. The text of .git/config without the lines that it had at the start;
 * malloc'd. NULL: they cannot be separated. */
char *csn_protected_gitconfig_strip(const csn_protected_tree *t, const char *text, size_t len,
                                    size_t *ret_len);

/* protected_cache.c. The result of the last scan of this workspace by any sandbox. load does
 * nothing if the tree has a later one; same: it has the places that were loaded or saved. */
void csn_protected_cache_load(csn_protected *g, csn_protected_tree *t);
void csn_protected_cache_save(csn_protected *g, csn_protected_tree *t, bool same);
/* The directory in the state directory; a descriptor that stays open, or -errno. */
int csn_protected_store(csn_protected *g);

/* protected_marks.c. Marks all workspaces as changed since g->since, or as scanned. */
void csn_protected_marks_set(const csn_runtime *rt, csn_protected *g);
void csn_protected_marks_clear(const csn_protected *g);
/* Finds marks whose owner has ended and locks them until release. */
void csn_protected_marks_adopt(csn_runtime *rt, csn_protected_tree *t,
                               csn_protected_adopted *ret);
void csn_protected_marks_release(const csn_protected_tree *t, const csn_protected_adopted *a,
                                 bool scanned);
/* True if the path was read-only for all adopted ones. */
bool csn_protected_marks_held(const csn_protected_adopted *a, const char *path);

/* protected_places.c. Calls move for everything that must not be at a place that is absent, a
 * link or shared. 0 or -errno: something could not be checked. */
typedef void (*csn_protected_move_fn)(void *ctx, int dir, const char *name, const char *below,
                                      const char *rule);
int csn_protected_check_places(const csn_protected_tree *t, const struct timespec *since,
                               csn_protected_move_fn move, void *ctx);

/* Moves what is at this path, below the workspace. */
void csn_protected_move_path(const csn_protected_tree *t, const char *path, const char *rule,
                             csn_protected_move_fn move, void *ctx);

/* protected_refers.c. Checks what a hit with `old` leads to. False: it leads somewhere, and the
 * result of the last scan is not loaded. */
bool csn_protected_check_refers(csn_protected_tree *t, const struct timespec *since,
                                bool loaded, const csn_changed *hit, csn_protected_move_fn move,
                                void *ctx);

/* protected_scan.c. Scans all workspaces and quarantines protected files that are not harmless;
 * denials may be NULL. Includes changes of sandboxes that ended before they were scanned; since
 * NULL: only those. 0 or -errno: something could not be scanned. Needs the scan lock. */
int csn_protected_scan(csn_runtime *rt, const struct timespec *since,
                       const csn_deny_sink *denials);
/* Call before the first change: finds out which directories are where. */
void csn_protected_prepare(csn_runtime *rt);
