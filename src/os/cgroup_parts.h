/* cgroup_parts.h: what the files of os/cgroup share. Nobody else includes it. */
#pragma once
#include <stddef.h>

#include "os/cgroup.h"

#define CSN_CGROUP_DEPTH_MAX 12 /* of nested groups that are looked at */
#define CSN_CGROUP_STEPS_MAX 8
#define CSN_CGROUP_PATIENCE  1000u /* ms for the last tasks of a group to vanish */

/* ---- cgroup_io.c: their small files ---- */

/* dir/name; -ENAMETOOLONG. */
int csn_cgroup_join(char ret[CSN_CGROUP_PATH_MAX], const char *dir, const char *name);
int csn_cgroup_put(const char *dir, const char *file, const char *text);
/* At most size - 1 bytes and a NUL: the length, or -errno. */
ssize_t csn_cgroup_get(const char *dir, const char *file, char *buf, size_t size);
/* The number that is all of the file, or that follows `key` at the start of a line of text. */
uint64_t csn_cgroup_number(const char *dir, const char *file);
uint64_t csn_cgroup_field(const char *text, const char *key);
/* Is it one of the words of a list? seps: what is between them. */
bool csn_cgroup_lists(const char *list, const char *seps, const char *word);
bool csn_cgroup_has_process(const char *dir);
/* Calls fn with the path of each group directly below; stops when it returns non-zero. */
int csn_cgroup_each_child(const char *dir, int (*fn)(void *ctx, const char *path), void *ctx);
/* One group and what is nested in it; -EBUSY, -ENOENT as rmdir. */
int csn_cgroup_drop(const csn_cgroup_host *host, const char *path);
const char *csn_cgroup_kind_name(int kind);

/* ---- cgroup_find.c: where the hierarchies are ---- */

typedef struct csn_cgroup_place {
    bool listed; /* the caller's own group in it is known */
    bool mounted, read_only;
    char path[CSN_CGROUP_PATH_MAX]; /* of the own group, as the kernel calls it */
    char top[CSN_CGROUP_PATH_MAX];  /* the mount point */
    char own[CSN_CGROUP_PATH_MAX];  /* the directory of the own group, or "" */
} csn_cgroup_place;

typedef struct csn_cgroup_map {
    csn_cgroup_place v1[CSN_CGROUP_KINDS]; /* listed: the controller is v1's */
    csn_cgroup_place v2;
} csn_cgroup_map;

int csn_cgroup_find(const csn_cgroup_host *host, csn_cgroup_map *ret);
/* Can it be written? The reason why not. */
csn_cgroup_why csn_cgroup_writable(const char *path);
uid_t csn_cgroup_uid(const csn_cgroup_host *host);

/* ---- cgroup_v2.c: which group of the one hierarchy gets ours ---- */

typedef struct csn_cgroup_parent {
    csn_cgroup_why why;
    int rc;                         /* the kernel's answer, when it refused */
    char path[CSN_CGROUP_PATH_MAX]; /* or what stood in the way */
    bool caisson_made;              /* the group that holds root's sandboxes is new */
} csn_cgroup_parent;

/* kinds: bits of what is needed. Only looks. */
void csn_cgroup_v2_find(const csn_cgroup_host *host, const csn_cgroup_place *p, unsigned kinds,
                        csn_cgroup_parent *ret);
/* As above, and enables the controllers for children. */
void csn_cgroup_v2_prepare(const csn_cgroup_host *host, const csn_cgroup_place *p,
                           unsigned kinds, csn_cgroup_parent *ret);

/* ---- cgroup_limits.c: limits as text in files ---- */

typedef struct csn_cgroup_step {
    const char *file;
    bool optional; /* kernels without it are fine */
    char text[48];
} csn_cgroup_step;

/* Is it something a kernel could take? -EINVAL. */
int csn_cgroup_limits_check(const csn_cgroup_limits *l);
size_t csn_cgroup_steps(int version, unsigned kinds, const csn_cgroup_limits *l,
                        csn_cgroup_step ret[CSN_CGROUP_STEPS_MAX]);
