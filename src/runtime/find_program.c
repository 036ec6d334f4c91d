/* find_program.c: finds the programs that are installed with this library. */
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "runtime/link.h"

#define PROGRAM      "caisson-keeper"
#define PROGRAM_SPAN (64ul << 20) /* maximum distance of program text from its headers */

static const char *path_for_tests;

void csn_keeper_path_set(const char *path)
{
    path_for_tests = path;
}

/* True if this code is linked into the program, not into a shared library. */
static bool linked_in(void)
{
    uintptr_t here = (uintptr_t)&csn_keeper_path_set;
    unsigned long base = getauxval(AT_PHDR), entry = getauxval(AT_ENTRY);

    /* A program's headers and entry are close to its text; a library is mapped elsewhere. */
    return base != 0 && here >= base && here - base < PROGRAM_SPAN && entry >= base &&
           entry - base < PROGRAM_SPAN;
}

/* The directory of the file that contains this code. Read from /proc, because dladdr may return
 * a relative path, which is wrong after a chdir. malloc'd, NULL if unknown. */
static char *own_dir(void)
{
    uintptr_t here = (uintptr_t)&csn_keeper_path_set, lo, hi;
    char exe[PATH_MAX];
    ssize_t n = linked_in() ? readlink("/proc/self/exe", exe, sizeof(exe) - 1) : -1;

    if (n > 0) {
        exe[n] = '\0';
        return csn_path_dir(exe);
    }
    FILE *maps = fopen("/proc/self/maps", "re");
    csn_autofree char *line = NULL;
    char *dir = NULL;
    size_t cap = 0;

    while (maps && !dir && getline(&line, &cap, maps) > 0) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &lo, &hi) != 2 || here < lo || here >= hi)
            continue;
        char *path = strchr(line, '/'), *slash = path ? strrchr(path, '/') : NULL;
        if (!slash)
            break;
        *slash = '\0';
        dir = strdup(path);
    }
    if (maps)
        fclose(maps);
    return dir;
}

static pthread_once_t own_once = PTHREAD_ONCE_INIT;
static char *own; /* cached, because reading /proc/self/maps is slow */

static void find_own(void)
{
    own = own_dir();
}

/* Tries the directory of the library (a build directory), then CSN_LIBEXEC_DIR. No environment
 * variable overrides this: an agent that can set variables must not choose the program. */
csn_status csn_program_find(const char *name, char **ret, csn_error **err)
{
    csn_autofree char *for_tests = path_for_tests ? csn_path_dir(path_for_tests) : NULL;
    csn_autofree char *beside = NULL, *installed = NULL;

    (void)pthread_once(&own_once, find_own);
    const char *dir = path_for_tests ? for_tests : own;
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
