/* tool_schema.h: describes the tools of an agent: their names, arguments and results.
 *
 * The JSON Schema that clients see and the check of their arguments come from one table.
 * result_json.h writes the results with the members that the table promises. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "caisson/caisson.h"

typedef enum csn_tool_field_kind {
    CSN_TOOL_END = 0,
    CSN_TOOL_STRING,
    CSN_TOOL_INTEGER,
    CSN_TOOL_NUMBER,
    CSN_TOOL_BOOLEAN,
    CSN_TOOL_OBJECT,  /* with `fields` */
    CSN_TOOL_OBJECTS, /* list of objects */
    CSN_TOOL_STRINGS, /* list of strings */
    CSN_TOOL_MAP,     /* object whose members are strings, with any names */
} csn_tool_field_kind;

typedef struct csn_tool_field {
    csn_tool_field_kind kind;
    bool required;
    const char *name;
    const char *text;                    /* description for the model */
    const char *choices;                 /* STRING: "a|b|c"; NULL: anything */
    int64_t min, max;                    /* INTEGER; both 0: any */
    const struct csn_tool_field *fields; /* OBJECT, OBJECTS */
} csn_tool_field;

#define CSN_TOOL_READ_ONLY   (1u << 0)
#define CSN_TOOL_DESTRUCTIVE (1u << 1)
#define CSN_TOOL_IDEMPOTENT  (1u << 2)
#define CSN_TOOL_OPEN_WORLD  (1u << 3) /* may reach the network */
#define CSN_TOOL_COW         (1u << 4) /* only for a copy-on-write workspace */

typedef struct csn_tool_schema {
    const char *name;
    const char *title;
    const char *text;
    const csn_tool_field *input;
    const csn_tool_field *output; /* NULL: unstructured content */
    uint32_t hints;               /* CSN_TOOL_* */
} csn_tool_schema;

extern const csn_tool_schema csn_wire_tools[]; /* ends with a name of NULL */
const csn_tool_schema *csn_wire_tool_find(const char *name);

/* Writes one tool as MCP lists it. `facts` (or NULL) is appended to the description. `hints`
 * replaces those of the table: OPEN_WORLD depends on the sandbox. */
void csn_wire_tool(csn_json *j, const csn_tool_schema *t, const char *facts, uint32_t hints);

/* Writes "a|b" as the schema member "enum": ["a", "b"]. */
void csn_wire_choices(csn_json *j, const char *choices);

/* Checks arguments (NULL: none). CSN_INVALID names the wrong one and what is accepted. */
csn_status csn_wire_tool_check(const csn_tool_schema *t, const csn_jval *args, csn_error **err);
