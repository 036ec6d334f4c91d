/* cwd_check.c: may the current directory be shared without having been named?
 *
 * Called when a jail is made for which nobody named a workspace. Where somebody happens to be
 * says little about what they want to give away, and in some places it would be the system
 * itself (root in /etc), or everybody's homes. Those are refused; whoever means one of them
 * names it. One's own home is not among them: it is where many work, and all of it is what they
 * see. What must hold: a directory in which projects usually lie is shared, and the answer
 * costs nothing that can be felt. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Sources are kept below these, images of containers put their application there, and what is
 * to be quick lies in memory. */
static bool is_for_work(const char *dir)
{
    static const char *const places[] = {"/usr/src", "/usr/local/src", "/dev/shm"};
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
    static const char *const tops[] = {"/",    "/home", "/media",     "/mnt",     "/opt",
                                       "/srv", "/var",  "/var/cache", "/var/lib", "/var/log"};

    for (size_t i = 0; i < COUNT(trees); i++)
        if (csn_path_below(dir, trees[i]))
            return !is_for_work(dir);
    for (size_t i = 0; i < COUNT(tops); i++)
        if (strcmp(dir, tops[i]) == 0)
            return true;
    return false;
}

csn_status csn_jail_check_cwd(csn_error **err)
{
    csn_autofree char *dir = getcwd(NULL, 0);

    if (!dir)
        return csn_fail_errno(err, errno, "current directory");
    if (!is_of_the_system(dir))
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(dir);
    csn_status st = csn_fail(
        err, CSN_INVALID,
        "the current directory, %s, is the system's, and is not shared unless it is named",
        shown ? shown : "");
    bool root = strcmp(dir, "/") == 0; /* which cannot be shared at all */
    return csn_error_advise(st, err,
                            "go to the directory to work in, or name it: --workspace %s",
                            root ? "DIR" : "DIR ('.' for this one)");
}
