/* statedir.c: finds, makes and checks the user's state, runtime and configuration directories.
 *
 * Invariant: every directory returned belongs to the user and only the user can write to it,
 * because sockets in it are trusted by name. HOME is used before the user database, which
 * serves daemons without an environment. */
#include "os/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static char *home_dir(void)
{
    const char *home = getenv("HOME");
    struct passwd pw, *found = NULL;
    char buf[4096];

    if (home && home[0] == '/')
        return strdup(home);
    if (getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) == 0 && found && found->pw_dir &&
        found->pw_dir[0] == '/')
        return strdup(found->pw_dir);
    return NULL;
}

/* Returns the malloc'd path of a root directory, or NULL with errno set. */
static char *root_path(int which)
{
    static const char *const names[] = {[CSN_DIR_STATE] = "XDG_STATE_HOME",
                                        [CSN_DIR_RUNTIME] = "XDG_RUNTIME_DIR",
                                        [CSN_DIR_CONFIG] = "XDG_CONFIG_HOME"};
    const char *xdg = getenv(names[which]);
    char *path = NULL;

    if (xdg && xdg[0] == '/')
        return asprintf(&path, "%s/caisson", xdg) < 0 ? NULL : path;
    const char *state = getenv("XDG_STATE_HOME");
    const char *tail = which == CSN_DIR_RUNTIME ? "/run" : "";
    if (which != CSN_DIR_CONFIG && state && state[0] == '/')
        return asprintf(&path, "%s/caisson%s", state, tail) < 0 ? NULL : path;
    csn_autofree char *home = home_dir();
    if (!home) {
        errno = ENOENT;
        return NULL;
    }
    const char *below = which == CSN_DIR_CONFIG ? ".config" : ".local/state";
    return asprintf(&path, "%s/%s/caisson%s", home, below, tail) < 0 ? NULL : path;
}

/* Makes every missing directory above an absolute path. */
static int make_parents(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        int rc = mkdir(path, 0700);
        int e = errno;
        *p = '/';
        if (rc < 0 && e != EEXIST && e != EISDIR && e != EROFS && e != EACCES)
            return -e;
    }
    return 0;
}

static int check_private(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_uid == geteuid() && (st.st_mode & 0022) == 0 ? 0 : -EPERM;
}

static int open_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

char *csn_statedir_path(int which, const char *sub)
{
    csn_autofree char *root = root_path(which);
    char *path = NULL;

    if (!root)
        return NULL;
    return asprintf(&path, "%s%s%s", root, sub ? "/" : "", sub ? sub : "") < 0 ? NULL : path;
}

static int locate(int which, const char *sub, bool make, char **ret_path)
{
    csn_autofree char *path = csn_statedir_path(which, sub);

    if (!path)
        return errno ? -errno : -ENOMEM;
    csn_autofd int fd = open_dir(path);
    if (fd == -ENOENT && make) {
        int rc = make_parents(path);
        if (rc < 0)
            return rc;
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -errno;
        fd = open_dir(path);
    }
    if (fd < 0)
        return fd;
    int rc = check_private(fd);
    if (rc < 0)
        return rc;
    if (ret_path)
        *ret_path = CSN_STEAL(path);
    return csn_steal_fd(&fd);
}

int csn_statedir_open(int which, const char *sub, char **ret_path)
{
    return locate(which, sub, true, ret_path);
}

int csn_statedir_find(int which, const char *sub, char **ret_path)
{
    return locate(which, sub, false, ret_path);
}
