/* copy_tree.c: the copy of one tree. */
#include "layers/copy_tree.h"

#include "layers/copy_walk.h"

int csn_tree_copy(int from, int to, unsigned flags, csn_tree_copied *ret)
{
    csn_copy_walk w = {.tree = {{from, true}}, .count = 1, .verbatim = true, .base = -1};
    csn_replica r;
    int rc = csn_replica_init(&r, to, flags);

    if (rc == 0)
        rc = csn_copy_walk_run(&w, &r);
    if (rc == 0 && ret)
        *ret = r.done;
    csn_replica_release(&r);
    return rc;
}
