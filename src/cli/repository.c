/* repository.c: finds the top of a git repository, for --workspace auto.
 *
 * The directory that is found becomes writable in a sandbox, so a directory above must not be
 * taken because another user has put a .git into it (/tmp/.git), or because the home directory
 * is a repository of settings. git itself has the same rule for owners (safe.directory). */
#include "cli/repository.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if this user owns the file and it is one of these types. */
static bool is_own(const char *path, mode_t a, mode_t b, struct stat *ret)
{
    if (lstat(path, ret) < 0 || ret->st_uid != geteuid())
        return false;
    return (ret->st_mode & S_IFMT) == a || (ret->st_mode & S_IFMT) == b;
}

static bool is_same_file(const char *path, const struct stat *st)
{
    struct stat other;

    return path && stat(path, &other) == 0 && other.st_dev == st->st_dev &&
           other.st_ino == st->st_ino;
}

/* .git is a file in a submodule or a work tree, whose repository may be further up. */
bool csn_repository_find(const char *cwd, char ret[CSN_PATH_MAX])
{
    char dir[CSN_PATH_MAX], git[CSN_PATH_MAX + 8];
    struct stat start, st, entry;
    bool found = false;

    if (strlen(cwd) >= sizeof(dir) || stat(cwd, &start) < 0)
        return false;
    memcpy(dir, cwd, strlen(cwd) + 1);
    while (strcmp(dir, "/") != 0 && is_own(dir, S_IFDIR, S_IFDIR, &st) &&
           st.st_dev == start.st_dev && !is_same_file(getenv("HOME"), &st)) {
        snprintf(git, sizeof(git), "%s/.git", dir);
        if (is_own(git, S_IFDIR, S_IFREG, &entry) && (!found || S_ISDIR(entry.st_mode))) {
            memcpy(ret, dir, strlen(dir) + 1);
            found = true;
            if (S_ISDIR(entry.st_mode))
                break;
        }
        char *slash = strrchr(dir, '/');
        slash[slash == dir] = '\0';
    }
    return found;
}
