/* policy_schema.h: the JSON Schema of policy files. */
#pragma once
#include "base/json_write.h"

void csn_policy_schema(csn_json *j);

/* Appends the URI of the installed file: that of the tree that contains this program, which may
 * have been moved, else that of the prefix it was compiled for. It needs no escapes in JSON. */
void csn_policy_schema_uri(csn_buf *to);
