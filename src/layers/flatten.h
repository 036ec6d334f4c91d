/* flatten.h: merges the older layers of a stack into one, so that stacks stay short. */
#pragma once
#include "layers/changes.h"

/* Merges s->layers[from] (the newest of them) to the oldest into the empty directory `to`: an
 * upper directory that has the same meaning above s->base. Whiteouts stay in directories that
 * the base has, too (or may have: s->base is -1 or cannot be searched); opaque directories stay
 * opaque. A directory gets the attributes of the newest layer that has it.
 *
 * The layers are frozen and stay as they are. Regular files become hard links to theirs where
 * both are on one file system, so `to` must be frozen, too: use it below another layer, never
 * as the one that is written to. Elsewhere, content is copied.
 *
 * Returns 0 or -errno; -EINVAL: there is no layer `from`. After a failure `to` has a part of
 * the result: remove it. */
int csn_layer_flatten(const csn_layer_stack *s, size_t from, int to);
