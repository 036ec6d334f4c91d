/* release.c: removes what an ended sandbox leaves of its copy-on-write workspace.
 *
 * Runs in the library when a sandbox is destroyed and in the sweeper when its keeper has ended,
 * possibly at the same time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "layers/store.h"
#include "os/atomic.h"
#include "os/checked_dir.h"
#include "os/tree.h"

/* Made by this sandbox, and used by no other. Most layers of a tree with many sandboxes are not
 * made by this one. */
static bool is_own(int tree, const char *name, const char *id)
{
    char path[CSN_OVERLAY_NAME + CSN_NAME_BYTES_MAX + 8];

    if (strlen(name) != CSN_OVERLAY_NAME)
        return false;
    snprintf(path, sizeof(path), "%s/by-%s", name, id);
    if (faccessat(tree, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    snprintf(path, sizeof(path), "%s/shared", name);
    return faccessat(tree, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static void remove_own_layers(int tree, const char *id)
{
    int fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_own(tree, e->d_name, id))
            (void)csn_tree_remove_force(tree, e->d_name);
    if (d)
        closedir(d);
}

/* What a process left that was killed while it replaced a record. Records are written under the
 * lock of the tree, so none of these files is in use. */
static void remove_temporary_records(int tree)
{
    int fd = openat(tree, "stacks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, CSN_TEMP_PREFIX, strlen(CSN_TEMP_PREFIX)) == 0)
            (void)unlinkat(fd, e->d_name, 0);
    if (d)
        closedir(d);
}

static void remove_sandbox(int tree, const char *id)
{
    char name[CSN_NAME_BYTES_MAX + 16];

    remove_own_layers(tree, id);
    snprintf(name, sizeof(name), CSN_LAYER_UNFINISHED "%s", id);
    (void)csn_tree_remove_force(tree, name);
    snprintf(name, sizeof(name), "stacks/%s", id);
    (void)unlinkat(tree, name, 0);
    snprintf(name, sizeof(name), "originals-%s", id);
    (void)csn_tree_remove_force(tree, name);
    remove_temporary_records(tree);
}

void csn_layer_tree_release(const char *path, const char *id)
{
    char lock[CSN_NAME_BYTES_MAX + 16], parent[CSN_PATH_MAX + 1];
    const char *slash = strrchr(path, '/');

    if (!slash || slash == path || (size_t)(slash - path) > CSN_PATH_MAX)
        return;
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    csn_autofd int dir = csn_checked_dir_open(parent, 0, NULL);
    csn_autofd int tree =
        dir < 0 ? -1 : openat(dir, slash + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree < 0 || flock(tree, LOCK_EX) < 0)
        return;
    /* The first file of a sandbox, and the last to be removed. */
    snprintf(lock, sizeof(lock), "lock-%s", id);
    if (faccessat(tree, lock, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        remove_sandbox(tree, id);
    (void)unlinkat(tree, lock, 0);
    /* A fork adds its record while it holds the lock, or finds the directory gone. */
    if (unlinkat(tree, "stacks", AT_REMOVEDIR) == 0 || errno == ENOENT)
        (void)csn_tree_remove_force(dir, slash + 1);
}
