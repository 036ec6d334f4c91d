/* schema.h: the tools of an agent: what they are called, what they take, what they give.
 *
 * One table is the JSON Schema that clients are shown, the check of what they send, and the
 * promise about what they get back. The words are those of the public structs and of the other
 * front ends; results are written by encode.h. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "caisson/caisson.h"

typedef enum csn_field_kind {
    CSN_FIELD_END = 0,
    CSN_FIELD_STRING,
    CSN_FIELD_INTEGER,
    CSN_FIELD_NUMBER,
    CSN_FIELD_BOOLEAN,
    CSN_FIELD_OBJECT,  /* of `fields` */
    CSN_FIELD_OBJECTS, /* a list of them */
    CSN_FIELD_STRINGS, /* a list of strings */
} csn_field_kind;

typedef struct csn_field {
    csn_field_kind kind;
    bool required;
    const char *name;
    const char *text;               /* what it means, for the model */
    const char *choices;            /* STRING: "a|b|c"; NULL: anything */
    int64_t min, max;               /* INTEGER; both 0: any */
    const struct csn_field *fields; /* OBJECT, OBJECTS */
} csn_field;

#define CSN_TOOL_READ_ONLY   (1u << 0)
#define CSN_TOOL_DESTRUCTIVE (1u << 1)
#define CSN_TOOL_IDEMPOTENT  (1u << 2)
#define CSN_TOOL_OPEN_WORLD  (1u << 3) /* reaches what the sandbox's network policy lets it */

typedef struct csn_tool_schema {
    const char *name;
    const char *title;
    const char *text;
    const csn_field *input;
    const csn_field *output; /* NULL: plain content, nothing structured */
    uint32_t hints;          /* CSN_TOOL_* */
} csn_tool_schema;

extern const csn_tool_schema csn_wire_tools[]; /* ends with a name of NULL */
const csn_tool_schema *csn_wire_tool_find(const char *name);

/* One tool as MCP lists it. `facts` (or NULL) is added to the description; hints are given
 * because OPEN_WORLD depends on the sandbox. */
void csn_wire_tool(csn_json *j, const csn_tool_schema *t, const char *facts, uint32_t hints);

/* Do the arguments (NULL: none) fit? CSN_INVALID that says what is wrong and what is known. */
csn_status csn_wire_tool_check(const csn_tool_schema *t, const csn_jval *args, csn_error **err);
