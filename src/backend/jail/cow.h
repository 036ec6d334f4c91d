/* cow.h: the copy-on-write workspace of a jail.
 *
 * Inside, three mounts lie at the place of the workspace, each covering the one before: the
 * tree of layers (layers/store.h), the host's directory, read-only, at `base` in it, and the
 * overlay. Snapshots, rollback and forks put another overlay in the place of the last one
 * (os/overlay.h), which takes the same time for any number of files.
 *
 * Where the host refuses an overlay (an old kernel, a state directory whose file system cannot
 * hold layers, a weaker level) the one layer is a copy of the directory, which is mounted as it
 * is; snapshots, rollback and forks copy it again.
 *
 * A Landlock rule speaks of a directory, not of a path: one on the overlay would not hold for
 * the next. The rule is therefore on the directory that the workspace lies in, which must not
 * be the root. */
#pragma once
#include "backend/jail/jail.h"
#include "layers/store.h"
#include "layers/usage.h"

/* In the directory of a detached sandbox: the path of its tree. */
#define CSN_STATE_LAYERS "layers"
/* image: layers:TREE:NAME,NAME... */
#define CSN_COW_IMAGE "layers:"

typedef struct csn_cow {
    char *path;                  /* of the tree */
    int tree;                    /* O_RDONLY of it */
    int alive;                   /* lock-ID; -1: detached, and found by its directory */
    char names[CSN_LAYER_NAMES]; /* of the overlay at the start */
    const char *host;            /* the host's directory */
    bool like_source;            /* a fork of a sandbox for which the kernel made an overlay */
    csn_usage start;             /* of the copy, when it was made */
    csn_jail_share layers, base; /* what is mounted; for a root caller id-mapped */
    pthread_mutex_t lock;        /* held while layers are switched */
} csn_cow;

/* cow_open.c. Checks the options that concern the workspace, before anything is created. */
csn_status csn_cow_check(const csn_runtime *rt, csn_error **err);
/* Makes the layers of a new sandbox. Call it when the sweeper, which removes them, runs. */
csn_status csn_cow_create(csn_runtime *rt, csn_error **err);
/* Finds the layers of a detached sandbox. */
csn_status csn_cow_find(csn_runtime *rt, csn_error **err);
/* The path of the tree that csn_cow_create makes or uses, for the sweeper: malloc'd, or NULL
 * with errno set. */
char *csn_cow_tree_path(const csn_runtime *rt);
/* Adds the mounts. */
void csn_cow_plan(csn_jail *j, const csn_jail_share *share);
/* Saves where the layers of a detached sandbox are. */
csn_status csn_cow_save(csn_runtime *rt, csn_error **err);
/* Finishes or undoes a commit to a workspace of the sandbox whose process was killed. Before
 * the first command, whether the workspace is copy-on-write or not. */
csn_status csn_cow_recover(const csn_runtime *rt, csn_error **err);
/* Removes the layers after the end of the sandbox. */
void csn_cow_ended(const csn_runtime *rt);
void csn_cow_release(csn_cow *c);

/* cow_originals.c. Keeps the host's versions of files that a command has changed since `began`
 * (CLOCK_REALTIME_COARSE), for three-way merges. If it fails, commit knows less: it reports a
 * conflict where it could have merged. */
void csn_cow_collect(const csn_runtime *rt, struct timespec began);
/* The same for one file that a file call is about to change; path: inside, absolute. */
void csn_cow_keep(const csn_runtime *rt, const char *path);
/* A fork knows what the sandbox knew that made its layers. */
int csn_cow_inherit(const csn_cow *c, const char *names, const char *id);

/* cow.c */
extern const csn_workspace_ops csn_cow_ops;
