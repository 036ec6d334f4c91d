/* statedir.c: finds and makes the user's state, runtime and configuration directories.
 *
 * Invariant: every directory returned belongs to the user, and no other user or sandbox can
 * redirect its path (os/checked_dir.c), because sockets in it are trusted by name. HOME is used
 * before the user database, which serves daemons without an environment. */
#include "os/statedir.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/checked_dir.h"

static const char *const variables[] = {[CSN_DIR_STATE] = "XDG_STATE_HOME",
                                        [CSN_DIR_RUNTIME] = "XDG_RUNTIME_DIR",
                                        [CSN_DIR_CONFIG] = "XDG_CONFIG_HOME",
                                        [CSN_DIR_DATA] = "XDG_DATA_HOME"};
/* Below the home. */
static const char *const places[] = {[CSN_DIR_STATE] = ".local/state",
                                     [CSN_DIR_RUNTIME] = ".local/state",
                                     [CSN_DIR_CONFIG] = ".config",
                                     [CSN_DIR_DATA] = ".local/share"};

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
    const char *xdg = getenv(variables[which]);
    char *path = NULL;

    if (xdg && xdg[0] == '/')
        return asprintf(&path, "%s/caisson", xdg) < 0 ? NULL : path;
    const char *state = getenv("XDG_STATE_HOME");
    const char *tail = which == CSN_DIR_RUNTIME ? "/run" : "";
    if (which == CSN_DIR_RUNTIME && state && state[0] == '/')
        return asprintf(&path, "%s/caisson%s", state, tail) < 0 ? NULL : path;
    csn_autofree char *home = home_dir();
    if (!home) {
        errno = ENOENT;
        return NULL;
    }
    return asprintf(&path, "%s/%s/caisson%s", home, places[which], tail) < 0 ? NULL : path;
}

char *csn_statedir_path(int which, const char *sub)
{
    csn_autofree char *root = root_path(which);
    char *path = NULL;

    if (!root)
        return NULL;
    return asprintf(&path, "%s%s%s", root, sub ? "/" : "", sub ? sub : "") < 0 ? NULL : path;
}

char *csn_statedir_default(int which, const char *home, unsigned i)
{
    char *path = NULL;
    int n = -1;

    if (i == 0)
        n = asprintf(&path, "%s/%s/caisson%s", home, places[which],
                     which == CSN_DIR_RUNTIME ? "/run" : "");
    else if (i == 1 && which == CSN_DIR_RUNTIME)
        n = asprintf(&path, "/run/user/%u/caisson", (unsigned)geteuid());
    return n < 0 ? NULL : path;
}

static int locate(int which, const char *sub, bool make, char **ret_path)
{
    csn_autofree char *path = csn_statedir_path(which, sub);

    if (!path)
        return errno ? -errno : -ENOMEM;
    csn_autofd int fd = csn_checked_dir_open(path, make ? CSN_CHECKED_MAKE : 0, NULL);
    if (fd >= 0 && ret_path)
        *ret_path = CSN_STEAL(path);
    return fd < 0 ? fd : csn_steal_fd(&fd);
}

int csn_statedir_open(int which, const char *sub, char **ret_path)
{
    return locate(which, sub, true, ret_path);
}

int csn_statedir_find(int which, const char *sub, char **ret_path)
{
    return locate(which, sub, false, ret_path);
}

/* ---- errors ---- */

static csn_status fail_owner(csn_error **err, int which, const char *path,
                             const csn_dir_fault *f)
{
    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE, "%s: %s belongs to user %u, and we are user %u", path,
                 f->path, (unsigned)f->owner, (unsigned)geteuid());

    return csn_error_advise(st, err, "%sset HOME and %s to directories of your own",
                            geteuid() == 0 ? "use sudo without -E, or " : "", variables[which]);
}

csn_status csn_statedir_fail(csn_error **err, int errnum, int which, const char *sub)
{
    static const char *const names[] = {[CSN_DIR_STATE] = "state",
                                        [CSN_DIR_RUNTIME] = "runtime",
                                        [CSN_DIR_CONFIG] = "configuration",
                                        [CSN_DIR_DATA] = "data"};
    csn_autofree char *path = csn_statedir_path(which, sub);
    csn_dir_fault f = {0};

    int fd = path ? csn_checked_dir_open(path, 0, &f) : -1;
    if (fd >= 0)
        close(fd);
    csn_status st = CSN_OK;
    switch (f.kind) {
    case CSN_DIR_FAULT_OWNER:
        st = fail_owner(err, which, path, &f);
        break;
    case CSN_DIR_FAULT_LINK:
        st = csn_fail(err, CSN_UNAVAILABLE,
                      "%s: %s is a symlink, which a sandbox could have made", path, f.path);
        st = csn_error_advise(st, err, "set %s to the directory that it leads to",
                              variables[which]);
        break;
    case CSN_DIR_FAULT_WRITABLE:
        st = csn_fail(err, CSN_UNAVAILABLE, "%s: other users can write to %s", path, f.path);
        st = csn_error_advise(st, err, "chmod go-w %s, or set %s to a directory of your own",
                              f.path, variables[which]);
        break;
    case CSN_DIR_FAULT_NONE:
        st = csn_fail(err, errnum == ENOMEM ? CSN_NOMEM : CSN_IO, "%s: %s",
                      path ? path : "no home directory", strerrordesc_np(errnum));
        st = csn_error_advise(st, err, "set %s to a directory that only you can write",
                              variables[which]);
        break;
    }
    return csn_wrap(st, err, "%s directory", names[which]);
}
