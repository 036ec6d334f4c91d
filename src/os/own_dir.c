/* own_dir.c: finds the directory of the file that contains this code.
 *
 * Programs and modules of the same installation are looked for there. The kernel tells the
 * path; dladdr may return a relative one, which is wrong after a chdir, and one with symbolic
 * links. No environment variable changes the answer. */
#include "os/own_dir.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

#define PROGRAM_SPAN (64ul << 20) /* maximum distance of program text from its headers */

/* True if this code is linked into the program, not into a shared library. */
static bool linked_in(void)
{
    uintptr_t here = (uintptr_t)&csn_own_dir;
    unsigned long base = getauxval(AT_PHDR), entry = getauxval(AT_ENTRY);

    /* A program's headers and entry are close to its text; a library is mapped elsewhere. */
    return base != 0 && here >= base && here - base < PROGRAM_SPAN && entry >= base &&
           entry - base < PROGRAM_SPAN;
}

/* malloc'd, or NULL. */
static char *find(void)
{
    uintptr_t here = (uintptr_t)&csn_own_dir, lo, hi;
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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *own; /* cached, because reading /proc/self/maps is slow */

static void find_once(void)
{
    own = find();
}

const char *csn_own_dir(void)
{
    (void)pthread_once(&once, find_once);
    return own;
}
