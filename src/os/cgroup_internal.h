/* cgroup_internal.h: shared by the files os/cgroup*.c. */
#pragma once
#include <stddef.h>

#include "os/cgroup.h"

#define CSN_CGROUP_DEPTH_MAX 12 /* nested groups visited */

/* ---- cgroup_io.c: the files of a group ---- */

/* dir/name; -ENAMETOOLONG. */
int csn_cgroup_join(char ret[CSN_CGROUP_PATH_MAX], const char *dir, const char *name);
int csn_cgroup_write(const char *dir, const char *file, const char *text);
/* Reads at most size - 1 bytes and adds a NUL. Returns the length, or -errno. */
ssize_t csn_cgroup_read(const char *dir, const char *file, char *buf, size_t size);
/* The number in the file, or with a key the number after it at the start of a line; else
 * CSN_CGROUP_UNKNOWN. */
uint64_t csn_cgroup_read_u64(const char *dir, const char *file, const char *key);
/* Is `word` one of the words of `list`, which are separated by any of `seps`? */
bool csn_cgroup_list_has(const char *list, const char *seps, const char *word);
bool csn_cgroup_has_process(const char *dir);
/* Calls fn with the path of each group directly below; stops when it returns non-zero. */
int csn_cgroup_each_child(const char *dir, int (*fn)(void *ctx, const char *path), void *ctx);
int csn_cgroup_mkdir(const csn_cgroup_host *host, const char *path);
/* Removes a group and those nested in it; -EBUSY, -ENOENT as rmdir. */
int csn_cgroup_rmdir(const csn_cgroup_host *host, const char *path);
const char *csn_cgroup_kind_name(int kind);

/* ---- cgroup_find.c: the mounted hierarchies ---- */

typedef struct csn_cgroup_hierarchy {
    bool listed; /* in /proc/self/cgroup */
    bool mounted, read_only;
    char self[CSN_CGROUP_PATH_MAX]; /* the caller's group, as /proc/self/cgroup names it */
    char top[CSN_CGROUP_PATH_MAX];  /* the mount point */
    char own[CSN_CGROUP_PATH_MAX];  /* the directory of the caller's group, or "" */
} csn_cgroup_hierarchy;

typedef struct csn_cgroup_hierarchies {
    csn_cgroup_hierarchy v1[CSN_CGROUP_KINDS]; /* listed: v1 has the controller */
    csn_cgroup_hierarchy v2;
} csn_cgroup_hierarchies;

int csn_cgroup_find(const csn_cgroup_host *host, csn_cgroup_hierarchies *ret);
/* Is the path writable for the caller? The reason if not. */
csn_cgroup_why csn_cgroup_writable(const char *path);
uid_t csn_cgroup_uid(const csn_cgroup_host *host);
/* Cuts the last component off `dir`; false at `top`. */
bool csn_cgroup_climb(char *dir, const char *top);

/* ---- cgroup_v2.c: the parent group in the unified hierarchy ---- */

typedef struct csn_cgroup_parent {
    csn_cgroup_why why;
    int rc;                         /* CSN_CGROUP_REFUSED: the kernel's answer */
    char path[CSN_CGROUP_PATH_MAX]; /* the parent, or the obstacle */
    bool caisson_made;              /* root's group `caisson` is new */
} csn_cgroup_parent;

/* Finds the group in which groups with the controllers `kinds` can be created. change: enables
 * the missing controllers and makes root's group `caisson`. */
void csn_cgroup_v2_parent(const csn_cgroup_host *host, const csn_cgroup_hierarchy *h,
                          unsigned kinds, bool change, csn_cgroup_parent *ret);
