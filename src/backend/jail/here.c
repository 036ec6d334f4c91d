/* here.c: may the current directory be shared without having been named?
 *
 * Called when a jail is made for which nobody named a workspace. Where somebody happens to be
 * says little about what they want to give away, and in some places it would be the system
 * itself (root in /etc), or every key of a user (the home). Those are refused; whoever means
 * one of them names it. What must hold: a directory in which projects usually lie is not among
 * them, and the answer costs nothing that can be felt. The caller's environment is trusted. */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Sources are kept below these, and images of containers put their application there. */
static bool is_for_sources(const char *dir)
{
    static const char *const places[] = {"/usr/src", "/usr/local/src"};
    bool is = false;

    for (size_t i = 0; i < COUNT(places); i++) {
        const char *rest = csn_path_below(dir, places[i]);
        is = is || (rest && *rest);
    }
    return is;
}

static bool is_of_the_system(const char *dir)
{
    /* with all below them */
    static const char *const trees[] = {
        "/bin",  "/boot", "/dev",  "/etc", "/lib", "/lib32",   "/lib64",    "/libx32",
        "/proc", "/run",  "/sbin", "/sys", "/usr", "/var/run", "/var/spool"};
    /* in which others keep what is theirs: not these themselves */
    static const char *const tops[] = {"/",    "/media",     "/mnt",     "/opt",    "/srv",
                                       "/var", "/var/cache", "/var/lib", "/var/log"};

    for (size_t i = 0; i < COUNT(trees); i++)
        if (csn_path_below(dir, trees[i]))
            return !is_for_sources(dir);
    for (size_t i = 0; i < COUNT(tops); i++)
        if (strcmp(dir, tops[i]) == 0)
            return true;
    return false;
}

/* Is it a home, or does it hold one? `home` is what a variable says: one that was set for a
 * single program, as tests do, has nothing of the user's in it, so the user database is asked
 * before anything is refused for it. */
static bool is_a_home(const char *dir, const char *home)
{
    char real[PATH_MAX], buf[4096];
    struct passwd pw, *found = NULL;
    const char *below = csn_path_below(dir, "/home");

    if (strcmp(dir, "/root") == 0 || (below && !strchr(below, '/')))
        return true;
    if (!home || !realpath(home, real) || !csn_path_below(real, dir))
        return false;
    if (getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) != 0 || !found || !found->pw_dir)
        return true;
    return realpath(found->pw_dir, real) && csn_path_below(real, dir);
}

csn_status csn_jail_check_here(csn_error **err)
{
    csn_autofree char *dir = getcwd(NULL, 0);
    bool system = dir && is_of_the_system(dir);

    if (!dir)
        return csn_fail_errno(err, errno, "current directory");
    if (!system && !is_a_home(dir, getenv("HOME")))
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(dir);
    csn_status st = csn_fail(
        err, CSN_INVALID,
        "the current directory, %s, is %s, and is not shared unless it is named",
        shown ? shown : "", system ? "the system's" : "a home directory, or holds one");
    bool root = strcmp(dir, "/") == 0; /* which cannot be shared at all */
    return csn_error_advise(st, err,
                            "go to the directory to work in, or name it: --workspace %s",
                            root ? "DIR" : "DIR ('.' for this one)");
}
