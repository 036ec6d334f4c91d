/* workspace.h: the mode of a workspace, and making the one of a sandbox that is being opened.
 */
#pragma once
#include "caisson/caisson.h"

/* Sets CSN_OPEN_COW if the workspace is given as DIR:cow. Refuses options that need it. */
csn_status csn_workspace_mode(csn_config *c, csn_error **err);

/* With CSN_OPEN_CREATE: makes missing workspaces, private to the user, with their parents.
 * Clears the flag if the first one exists already. */
csn_status csn_workspace_create(csn_config *c, csn_error **err);
/* Adds the hint to an error of opening that is due to a missing workspace. */
csn_status csn_workspace_advise(csn_status st, const csn_config *c, csn_error **err);
/* The sandbox could not be opened: removes the workspace that was made for it. */
void csn_workspace_undo(const csn_config *c);
