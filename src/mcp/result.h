/* result.h: what a tool gives back: content for the model, and the same as data. */
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
/* A file that is no image, whole. `path` becomes part of its address. */
void csn_tool_result_document(csn_tool_result *r, const char *path, const char *mime,
                              const void *p, size_t len);
/* The writer of structured content, for one object; members that are null are left out. */
csn_json *csn_tool_result_data(csn_tool_result *r);
/* Turns the result into a failure that tells what was wrong, which rule refused it and what
 * would help. */
void csn_tool_result_fail(csn_tool_result *r, const csn_error *err);

/* "content", "structuredContent" and "isError" into an object that is open. 0 or errno. */
int csn_tool_result_write(csn_tool_result *r, csn_json *into);

/* A denial in one line of text. */
int csn_tool_denial_text(csn_buf *to, const csn_denial *d);
