/* workspace_json.h: writes snapshots, changes and commits of a workspace as JSON, with the
 * rules of result_json.h. */
#pragma once
#include "base/json_write.h"
#include "caisson/caisson.h"

void csn_wire_snapshot(csn_json *j, const csn_snapshot_result *r);
void csn_wire_snapshots(csn_json *j, const csn_snapshot_list *l);
/* {"changes":[...],"files","lines_added","lines_removed","patch"?}. A patch that is not UTF-8
 * is "patch_base64". */
void csn_wire_diff(csn_json *j, const csn_diff_result *r);
/* {"written","applied","merged","held","changes":[...],"conflicts":[...]}. */
void csn_wire_commit(csn_json *j, const csn_commit_result *r);

const char *csn_wire_change_name(csn_change_kind kind);        /* "added" ... */
const char *csn_wire_outcome_name(csn_commit_outcome outcome); /* "applied" ...; NULL: none */
