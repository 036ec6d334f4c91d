/* find_program.c: finds the programs that are installed with this library, and programs that
 * commands would find in their PATH. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/beneath.h"
#include "os/own_dir.h"
#include "runtime/link.h"

#define PROGRAM "caisson-keeper"

static const char *path_for_tests;

void csn_keeper_path_set(const char *path)
{
    path_for_tests = path;
}

/* Tries the directory of the library (a build directory, or the unpacked archive of `make
 * dist`), then CSN_LIBEXEC_DIR. No environment variable overrides this: an agent that can set
 * variables must not choose the program. */
csn_status csn_program_find(const char *name, char **ret, csn_error **err)
{
    csn_autofree char *for_tests = path_for_tests ? csn_path_dir(path_for_tests) : NULL;
    csn_autofree char *beside = NULL, *installed = NULL;

    const char *dir = path_for_tests ? for_tests : csn_own_dir();
    if (dir && asprintf(&beside, "%s/%s", dir, name) < 0)
        beside = NULL;
    if (asprintf(&installed, CSN_LIBEXEC_DIR "/%s", name) < 0) {
        installed = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", name);
    }
    if (beside && access(beside, X_OK) == 0) {
        *ret = CSN_STEAL(beside);
        return CSN_OK;
    }
    if (access(installed, X_OK) == 0) {
        *ret = CSN_STEAL(installed);
        return CSN_OK;
    }
    return csn_fail(err, CSN_UNAVAILABLE, "%s not found: neither %s nor %s is there", name,
                    beside ? beside : "beside the library", installed);
}

csn_status csn_keeper_find(char **ret, csn_error **err)
{
    if (!path_for_tests)
        return csn_program_find(PROGRAM, ret, err);
    *ret = strdup(path_for_tests);
    return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "keeper");
}

/* ---- programs of commands ---- */

static bool is_program(const csn_runtime *rt, const char *path)
{
    csn_autofd int fd = rt->level == CSN_LEVEL_NONE
                            ? open(path, O_PATH | O_CLOEXEC)
                            : csn_beneath_open(rt->root.fd, path, O_PATH, CSN_BENEATH_ROOTED);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

char *csn_runtime_find_program(void *state, const char *name)
{
    const csn_runtime *rt = state;
    const char *dir = NULL;

    for (char **v = rt->environ_base; v && *v; v++)
        if (csn_str_starts(*v, "PATH="))
            dir = *v + strlen("PATH=");
    while (dir && *dir) {
        size_t len = strcspn(dir, ":");
        csn_autofree char *path = NULL;
        if (dir[0] == '/' && asprintf(&path, "%.*s/%s", (int)len, dir, name) < 0)
            return NULL;
        if (path && is_program(rt, path))
            return CSN_STEAL(path);
        dir += len + (dir[len] == ':');
    }
    return NULL;
}
