/* toml.h: reads the part of TOML that policies of other programs use. */
#pragma once
#include "base/buf.h"
#include "caisson/caisson.h"

/* Appends the document as JSON. Accepts tables, inline tables, dotted and quoted keys, strings
 * of one line, booleans, whole numbers and arrays of strings. Anything else is CSN_INVALID with
 * line and column. `what` names the document. */
csn_status csn_toml_to_json(const char *text, size_t len, const char *what, csn_buf *out,
                            csn_error **err);
