/* project_edit.h: adds grants to a policy file. */
#pragma once
#include "base/buf.h"
#include "caisson/caisson.h"

/* Appends the document `text` (NULL: an empty one) with the values of `add`, for people: one
 * member a line. Lists are extended, numbers replaced; everything else stays. */
csn_status csn_project_edit(const char *text, size_t len, const char *what,
                            const csn_config *add, csn_buf *out, csn_error **err);
/* Adds to the caisson.json of the workspace (NULL: the current directory), makes it if there is
 * none, and trusts the result. CSN_DENIED if it is not trusted and has grants or profiles. */
csn_status csn_project_add(const char *workspace, const csn_config *add, csn_error **err);
/* Appends a compact JSON object with one member of an object a line. */
void csn_json_lines(csn_buf *out, const char *json, size_t len);
