/* flatten.c: the merge of several layers. The rules are those of overlayfs; see copy_walk.c. */
#include "layers/flatten.h"

#include <errno.h>

#include "layers/copy_walk.h"

int csn_layer_flatten(const csn_layer_stack *s, size_t from, int to)
{
    csn_copy_walk w = {.base = s->base};
    csn_replica r;

    if (s->count > CSN_LAYERS_MAX || from >= s->count)
        return -EINVAL;
    for (size_t i = from; i < s->count; i++)
        w.tree[w.count++] = (csn_entry_tree){s->layers[i], true};
    int rc = csn_replica_init(&r, to, CSN_COPY_LAYER);
    r.share = true;
    if (rc == 0)
        rc = csn_copy_walk_run(&w, &r);
    csn_replica_release(&r);
    return rc;
}
