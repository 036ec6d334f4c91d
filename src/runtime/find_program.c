/* find_program.c: finds the programs that are installed with this library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
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
