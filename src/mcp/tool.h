/* tool.h: the interface of a tool.
 *
 * A tool performs one operation through libcaisson and writes its result. It fails if it could
 * not perform the operation; a command that exits with an error is a result. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

#include "base/json_read.h"
#include "caisson/caisson.h"
#include "mcp/result.h"
#include "mcp/session_sandbox.h"

typedef struct csn_tool_call {
    csn_mcp_sandbox *session_sandbox;
    csn_sandbox *sb;
    const csn_jval *args; /* checked against the schema, or NULL */
    csn_cancel *cancel;
    const atomic_bool *cancelled;  /* whether cancel was fired */
    atomic_uint_fast64_t *printed; /* counts output for progress, or NULL */
    uint64_t timeout_ms;           /* default timeout of a command */
    uint64_t output_max;           /* most bytes of a stream to show */
    const char *note;              /* appended to the result, or NULL */
    csn_tool_result *out;
    /* Set by the tool, called after the reply was sent. */
    void (*after)(struct csn_tool_call *c);
    bool query_cwd;
} csn_tool_call;

typedef csn_status (*csn_tool_fn)(csn_tool_call *c, csn_error **err);
csn_tool_fn csn_tool_find(const char *name); /* NULL: none */

/* An argument and the variable for its value; one of the three pointers is set. A name of NULL
 * ends a list. */
typedef struct csn_tool_arg {
    const char *name;
    const char **text;
    uint64_t *number;
    bool *flag;
} csn_tool_arg;
/* Stores the arguments in their variables; a missing argument leaves its variable unchanged. */
csn_status csn_tool_args(const csn_tool_call *c, const csn_tool_arg *list, csn_error **err);

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
csn_status csn_tool_diff(csn_tool_call *c, csn_error **err);
csn_status csn_tool_commit(csn_tool_call *c, csn_error **err);
csn_status csn_tool_discard(csn_tool_call *c, csn_error **err);
csn_status csn_tool_snapshot(csn_tool_call *c, csn_error **err);
csn_status csn_tool_rollback(csn_tool_call *c, csn_error **err);
csn_status csn_tool_undo(csn_tool_call *c, csn_error **err);
