/* path_below.c: is a path below a directory, by name alone?
 *
 * A file of its own because the keeper needs it too, and nothing else of paths. Both come from
 * anywhere. `..` is a name like any other: who means more
 * has resolved them before. */
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
