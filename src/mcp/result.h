/* result.h: builds the result of a tool call: content for the model, and the same as structured
 * data. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/json_write.h"
#include "caisson/caisson.h"

typedef struct csn_tool_result {
    csn_buf content; /* a JSON array, complete after csn_tool_result_write */
    csn_json items;
    csn_buf data; /* an object, or empty */
    csn_json fields;
    bool is_error;
} csn_tool_result;

void csn_tool_result_init(csn_tool_result *r);
void csn_tool_result_release(csn_tool_result *r);
void csn_tool_result_clear(csn_tool_result *r); /* as after init */

void csn_tool_result_text(csn_tool_result *r, const char *text, size_t len);
void csn_tool_result_image(csn_tool_result *r, const char *mime, const void *p, size_t len);
/* A whole file that is not an image. `path` becomes its URI. */
void csn_tool_result_document(csn_tool_result *r, const char *path, const char *mime,
                              const void *p, size_t len);
/* Returns the writer for one object of structured content; null members are omitted. */
csn_json *csn_tool_result_data(csn_tool_result *r);
/* Replaces the result by the error, with the rule that refused it and the hint. */
void csn_tool_result_fail(csn_tool_result *r, const csn_error *err);

/* Adds "content", "structuredContent" and "isError" to an open object. 0 or errno. */
int csn_tool_result_write(csn_tool_result *r, csn_json *into);

/* Appends a denial as one line of text. */
void csn_tool_denial_text(csn_buf *to, const csn_denial *d);
