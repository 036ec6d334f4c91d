/* layer_access.c: opens the layers of a copy-on-write workspace.
 *
 * The backend passes descriptors, never paths: what is compared and committed are exactly the
 * directories that it mounted. */
#include "core/layer_access.h"

#include <unistd.h>

#include "layers/commit.h"
#include "layers/originals.h"

_Static_assert(CSN_WORKSPACE_LAYERS_MAX <= CSN_LAYERS_MAX, "a stack holds all layers");

static csn_status not_cow(const csn_sandbox *sb, csn_error **err)
{
    csn_status st = csn_fail(err, CSN_UNSUPPORTED, "the workspace is not copy-on-write");

    if (!sb->ops->workspace)
        return csn_error_advise(st, err, "backend '%s' has no such workspaces", sb->ops->name);
    return csn_error_advise(st, err, "open the sandbox with --cow, or --workspace DIR:cow");
}

csn_status csn_layer_access_open(csn_sandbox *sb, csn_layer_access *ret, csn_error **err)
{
    csn_workspace_layers l = {.base = -1, .store = -1, .originals = -1};

    *ret = (csn_layer_access){.stack = {.base = -1}, .store = -1, .originals = -1};
    if (!csn_sandbox_is_cow(sb))
        return not_cow(sb, err);
    csn_status st = sb->ops->workspace->open_layers(sb->state, &l, err);
    if (st < 0)
        return st;
    ret->stack.base = l.base;
    ret->stack.count = l.count < CSN_WORKSPACE_LAYERS_MAX ? l.count : CSN_WORKSPACE_LAYERS_MAX;
    for (size_t i = 0; i < ret->stack.count; i++)
        ret->stack.layers[i] = l.layers[i];
    ret->store = l.store;
    ret->originals = l.originals;
    ret->since = (struct timespec){.tv_sec = l.since_s, .tv_nsec = l.since_ns};
    ret->running = l.running != 0;
    return CSN_OK;
}

csn_status csn_layer_access_recover(csn_sandbox *sb, csn_layer_access *ret, csn_error **err)
{
    csn_commit_recovery recovery;
    csn_status st = csn_layer_access_open(sb, ret, err);

    if (st == CSN_OK)
        st = csn_commit_recover(ret->store, ret->stack.base, &recovery, err);
    if (st == CSN_OK && ret->originals >= 0)
        st = csn_originals_settle(ret->originals, &ret->stack, err);
    return st;
}

void csn_layer_access_close(csn_layer_access *a)
{
    if (a->store >= 0 && a->stack.base >= 0)
        close(a->store);
    if (a->originals >= 0 && a->stack.base >= 0)
        close(a->originals);
    if (a->stack.base >= 0)
        csn_layer_stack_close(&a->stack);
    *a = (csn_layer_access){.stack = {.base = -1}, .store = -1, .originals = -1};
}
