/* path_below.c: test by text comparison whether a path is below a directory.
 *
 * Separate from path.c because the keeper links only this function. `..` is compared like any
 * name; callers resolve paths first. */
#include <string.h>

#include "base/path.h"

/* Both are walked together, so doubled and trailing slashes on either side do not matter. */
const char *csn_path_below(const char *path, const char *dir)
{
    for (;;) {
        path += strspn(path, "/");
        dir += strspn(dir, "/");
        size_t n = strcspn(dir, "/");
        if (n == 0)
            return path;
        if (strcspn(path, "/") != n || memcmp(path, dir, n) != 0)
            return NULL;
        path += n;
        dir += n;
    }
}
