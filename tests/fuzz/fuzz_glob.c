/* fuzz_glob.c: a pattern on the first line, a path on the second.
 *
 * Two things must hold beside not crashing: pruning never hides a match (every directory above
 * a matching path may be descended into), and a path with each byte escaped is a pattern that
 * matches itself. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/glob.h"

CSN_DEFINE_CLEANUP(csn_glob_set, csn_glob_free)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void check_pattern(const char *pattern, char *path)
{
    CSN_CLEANUP(csn_glob_freep) csn_glob_set *g = NULL;
    csn_error *err = NULL;

    (void)csn_glob_has_magic(pattern);
    if (csn_glob_compile(pattern, &g, &err) < 0) {
        must(!g && csn_error_message(err)[0]);
        csn_error_free(err);
        return;
    }
    bool matches = csn_glob_match(g, path);
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        bool more = slash[1 + strspn(slash + 1, "./")] != '\0';
        *slash = '\0';
        bool descend = csn_glob_may_descend(g, path);
        must(!matches || !more || descend);
        matches = matches && more;
    }
}

static void check_escaped(const char *path)
{
    CSN_CLEANUP(csn_glob_freep) csn_glob_set *g = NULL;
    csn_autofree char *pattern = malloc(2 * strlen(path) + 1);
    char *p = pattern;

    if (!pattern || !path[0] || strlen(path) > 2000)
        return;
    for (const char *s = path; *s; s++) {
        if (*s != '/' && *s != '.')
            *p++ = '\\';
        *p++ = *s;
    }
    *p = '\0';
    must(csn_glob_compile(pattern, &g, NULL) == CSN_OK);
    must(csn_glob_match(g, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autofree char *pattern = strndup((const char *)data, size);
    char *newline = pattern ? strchr(pattern, '\n') : NULL;

    if (!newline)
        return 0;
    *newline = '\0';
    check_escaped(newline + 1);
    check_pattern(pattern, newline + 1);
    return 0;
}
