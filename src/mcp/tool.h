/* tool.h: what a tool is given, and the tools there are.
 *
 * A tool does one thing by calls of libcaisson and writes its result. It returns a status below
 * zero and an error when it could not do its job; what a command did is a result. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

#include "base/json_read.h"
#include "caisson/caisson.h"
#include "mcp/result.h"
#include "mcp/session_sandbox.h"

typedef struct csn_tool_call {
    csn_mcp_sandbox *room;
    csn_sandbox *sb;
    const csn_jval *args; /* checked against the schema; or NULL */
    csn_cancel *cancel;
    const atomic_bool *cancelled;  /* the same as a question */
    atomic_uint_fast64_t *printed; /* counts output for progress; NULL: nobody asked */
    uint64_t timeout_ms;           /* of a command that names none */
    uint64_t output_max;           /* bytes of a stream that are shown */
    const char *note;              /* to be told along with the result, or NULL */
    csn_tool_result *out;
    /* Set by the tool: work that is left for after the answer was sent. */
    void (*after)(struct csn_tool_call *c);
    bool ask_cwd;
} csn_tool_call;

typedef csn_status (*csn_tool_fn)(csn_tool_call *c, csn_error **err);
csn_tool_fn csn_tool_find(const char *name); /* NULL: none */

csn_status csn_tool_bash(csn_tool_call *c, csn_error **err);
csn_status csn_tool_process(csn_tool_call *c, csn_error **err);
csn_status csn_tool_read(csn_tool_call *c, csn_error **err);
csn_status csn_tool_write(csn_tool_call *c, csn_error **err);
csn_status csn_tool_edit(csn_tool_call *c, csn_error **err);
csn_status csn_tool_ls(csn_tool_call *c, csn_error **err);
csn_status csn_tool_glob(csn_tool_call *c, csn_error **err);
csn_status csn_tool_grep(csn_tool_call *c, csn_error **err);
csn_status csn_tool_delete(csn_tool_call *c, csn_error **err);
csn_status csn_tool_info(csn_tool_call *c, csn_error **err);
