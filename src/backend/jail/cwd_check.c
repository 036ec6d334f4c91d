/* cwd_check.c: refuses to share the current directory by default when it belongs to the system.
 *
 * Without --workspace the current directory becomes the workspace. In /etc or /home that would
 * share far more than intended, so such directories must be named. The caller's own home
 * directory is permitted: many users work there. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Directories below these hold projects although they are part of a system tree. */
static bool is_work_dir(const char *dir)
{
    static const char *const places[] = {"/usr/src", "/usr/local/src", "/dev/shm"};
    bool is = false;

    for (size_t i = 0; i < COUNT(places); i++) {
        const char *rest = csn_path_below(dir, places[i]);
        is = is || (rest && *rest);
    }
    return is;
}

static bool is_system_dir(const char *dir)
{
    /* refused with everything below */
    static const char *const trees[] = {
        "/bin",  "/boot", "/dev",  "/etc", "/lib", "/lib32",   "/lib64",    "/libx32",
        "/proc", "/run",  "/sbin", "/sys", "/usr", "/var/run", "/var/spool"};
    /* refused themselves, but not the directories below */
    static const char *const tops[] = {"/",    "/home", "/media",     "/mnt",     "/opt",
                                       "/srv", "/var",  "/var/cache", "/var/lib", "/var/log"};

    for (size_t i = 0; i < COUNT(trees); i++)
        if (csn_path_below(dir, trees[i]))
            return !is_work_dir(dir);
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
    if (!is_system_dir(dir))
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(dir);
    csn_status st =
        csn_fail(err, CSN_INVALID,
                 "current directory %s: belongs to the system and is not shared by default",
                 shown ? shown : "");
    bool root = strcmp(dir, "/") == 0; /* cannot be shared at all */
    return csn_error_advise(st, err,
                            "change to the project directory, or name it: --workspace %s",
                            root ? "DIR" : "DIR ('.' for this one)");
}
