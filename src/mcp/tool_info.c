/* tool_info.c: the tool `sandbox_info`: describes the sandbox to the model. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "mcp/tool.h"
#include "wire/result_json.h"

CSN_DEFINE_CLEANUP(csn_info_result, csn_info_free)
CSN_DEFINE_CLEANUP(csn_file_list, csn_file_list_free)

static void put_text(csn_buf *to, const csn_info_result *r)
{
    csn_buf_printf(to,
                   "Sandbox %s\nbackend: %s\nisolation: %s\nworking directory: %s\n"
                   "home: %s\nlayers:",
                   r->id, r->backend, r->isolation, r->workdir ? r->workdir : "?",
                   r->home ? r->home : "?");

    for (size_t i = 0; i < r->layer_count; i++)
        csn_buf_printf(to, "\n  %s: %s%s%s", r->layers[i].name, r->layers[i].status,
                       r->layers[i].detail ? ", " : "",
                       r->layers[i].detail ? r->layers[i].detail : "");
}

csn_status csn_tool_info(csn_tool_call *c, csn_error **err)
{
    CSN_CLEANUP(csn_info_freep) csn_info_result *r = NULL;
    CSN_CLEANUP(csn_file_list_freep) csn_file_list *l = NULL;
    csn_autobuf text;

    /* The first operation starts the sandbox, and only a running one knows what it enforces:
     * run one that changes nothing. */
    csn_buf_init(&text, 65536);
    csn_status st = csn_stat(c->sb, ".", 0, &l, err);
    if (st == CSN_OK)
        st = csn_info(c->sb, &r, err);
    if (st < 0)
        return st;
    put_text(&text, r);
    if (text.err != 0)
        return csn_fail_errno(err, text.err, "sandbox_info");
    csn_tool_result_text(c->out, text.data, text.len);
    if (c->note)
        csn_tool_result_text(c->out, c->note, strlen(c->note));
    csn_wire_info(csn_tool_result_data(c->out), r);
    return CSN_OK;
}
