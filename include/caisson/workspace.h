/* workspace.h: workspaces that can be compared, kept, thrown away and forked.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A workspace of the mode `cow` (HOST:cow) keeps the changes of a sandbox in layers above the
 * host's directory, which stays as it is until csn_commit. Snapshots and forks work on some
 * other backends too. Where a call does not work it returns CSN_UNSUPPORTED.
 *
 * A part of caisson.h, which includes it; the rules for calls are explained there. */
#ifndef CAISSON_WORKSPACE_H
#define CAISSON_WORKSPACE_H

#include "caisson/caisson.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum csn_change_kind {
    CSN_CHANGE_ADDED = 1,
    CSN_CHANGE_DELETED,
    CSN_CHANGE_MODIFIED, /* content, or the text of a link */
    CSN_CHANGE_META,     /* mode, attributes or time of modification only */
    CSN_CHANGE_TYPE,     /* a file became a directory, a link ... */
} csn_change_kind;

#ifdef __cplusplus
}
#endif
#endif
