/* policy_schema.h: the JSON Schema of policy files. */
#pragma once
#include "base/json_write.h"

void csn_policy_schema(csn_json *j);

/* Where it is installed. */
#define CSN_POLICY_SCHEMA_FILE CSN_DATA_DIR "/policy.schema.json"
