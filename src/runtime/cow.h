/* cow.h: the copy-on-write workspace of a sandbox.
 *
 * In a jail, three mounts lie at the place of the workspace, each covering the one before: the
 * tree of layers (layers/store.h), the host's directory, read-only, at `base` in it, and the
 * overlay. Snapshots, rollback and forks put another overlay in the place of the last one
 * (os/overlay.h), which takes the same time for any number of files.
 *
 * Where the host refuses an overlay (an old kernel, a state directory whose file system cannot
 * hold layers, a weaker level) the one layer is a copy of the directory, which is mounted as it
 * is; snapshots, rollback and forks copy it again. The backend local knows only copies.
 *
 * A Landlock rule speaks of a directory, not of a path: one on the overlay would not hold for
 * the next. The rule is therefore on the directory that the workspace lies in, which must not
 * be the root. */
#pragma once
#include "layers/store.h"
#include "layers/usage.h"
#include "runtime/runtime.h"

/* In the directory of a detached sandbox: the path of its tree. */
#define CSN_STATE_LAYERS "layers"
/* image: layers:TREE:NAME,NAME... */
#define CSN_COW_IMAGE "layers:"

typedef struct csn_cow {
    char *path;                  /* of the tree */
    int tree;                    /* O_RDONLY of it */
    int alive;                   /* lock-ID; -1: detached, and found by its directory */
    char names[CSN_LAYER_NAMES]; /* of the overlay at the start */
    char *host;                  /* the host's directory */
    char *copy;                  /* the directory that commands use instead; NULL: an overlay */
    bool like_source;            /* a fork of a sandbox for which the kernel made an overlay */
    csn_usage start;             /* of the copy, when it was made */
    bool switching;              /* a killed call has not changed the mount yet */
    pthread_mutex_t lock;        /* held while layers are switched */
    /* Mounts an overlay of other layers in place of the present one; NULL: a copy. */
    csn_status (*change_mount)(csn_runtime *rt, int tree, const char *names, csn_error **err);
} csn_cow;

/* cow_open.c. Checks the option `image`, before anything is created. */
csn_status csn_cow_check_image(const csn_runtime *rt, bool cow, csn_error **err);
/* Makes the layers of a new sandbox in rt->cow. Call it when what removes them runs. */
csn_status csn_cow_create(csn_runtime *rt, const char *host, bool copy, csn_error **err);
/* Finds the layers of a detached sandbox. */
csn_status csn_cow_find(csn_runtime *rt, csn_error **err);
/* The path of the tree that csn_cow_create makes or uses, for the sweeper: malloc'd, or NULL
 * with errno set. */
char *csn_cow_tree_path(const csn_runtime *rt);
/* Saves where the layers of a detached sandbox are. */
csn_status csn_cow_save(csn_runtime *rt, csn_error **err);
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
/* Changes the mount of a sandbox that was connected to, if a killed call has not. */
void csn_cow_finish(csn_runtime *rt);
