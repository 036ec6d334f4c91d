/* path_below.c: is a path below a directory, compared as text?
 *
 * In a file of its own because the keeper needs nothing else of path.c. `..` is compared like
 * any name; callers resolve paths first. */
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
