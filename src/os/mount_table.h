/* mount_table.h: the mounts of this process, and the paths at which a file is visible because
 * of them. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct csn_mount_entry {
    uint64_t dev;     /* of the file system */
    const char *root; /* the directory or file of that file system */
    const char *at;   /* where it is mounted */
} csn_mount_entry;

typedef struct csn_mount_table {
    csn_mount_entry *v; /* in the order in which they were mounted */
    size_t count;
    char *text; /* holds the strings */
} csn_mount_table;

/* Reads /proc/self/mountinfo. 0 or -errno. */
int csn_mount_table_read(csn_mount_table *t);
/* Parses the text of that file, which the table takes; for tests. */
int csn_mount_table_parse(csn_mount_table *t, char *text);
void csn_mount_table_release(csn_mount_table *t);

/* Calls fn with every other path of what is at `path` (absolute, resolved), or of a part of it.
 * Paths that other mounts hide are among them: compare the inode of `alias` with that of
 * `same`, its path below `path`. A result other than 0 stops, and is returned; else 0 or
 * -ENOMEM. */
typedef int (*csn_mount_alias_fn)(void *ctx, const char *alias, const char *same);
int csn_mount_table_aliases(const csn_mount_table *t, const char *path, csn_mount_alias_fn fn,
                            void *ctx);
