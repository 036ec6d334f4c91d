/* command_record.h: what is done around each command of a copy-on-write workspace: a snapshot
 * for csn_undo, and the list of changed files for the audit log. */
#pragma once
#include "core/internal.h"

typedef struct csn_command_record csn_command_record;

/* Call it before a command. With CSN_OPEN_UNDO or CSN_OPEN_RECORD it takes an automatic
 * snapshot, unless another command runs. *ret is NULL if nothing is to be recorded. On failure
 * the command must not run: it could not be undone. */
csn_status csn_command_record_begin(csn_call *c, csn_command_record **ret, csn_error **err);
/* Adds the files that the command changed to the call's audit line. Call it after the command,
 * and free the record after csn_call_end. Accepts NULL. */
void csn_command_record_end(csn_call *c, csn_command_record *r);
void csn_command_record_free(csn_command_record *r);
