/* layer_copy.c: a layer that is a copy of the whole workspace, where an overlay is impossible.
 */
#include <errno.h>
#include <sys/xattr.h>

#include "layers/copy_tree.h"
#include "layers/store.h"

int csn_layer_copy(int from, int to)
{
    int rc = csn_tree_copy(from, to, 0, NULL);

    if (rc == 0 && fsetxattr(to, "user.overlay.opaque", "y", 1, 0) < 0)
        rc = -errno;
    return rc;
}
