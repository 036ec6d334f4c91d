/* tool.c: finds tools by name and reads their arguments. */
#include "mcp/tool.h"

#include <string.h>

static const struct {
    const char *name;
    csn_tool_fn run;
} tools[] = {
    {"bash", csn_tool_bash},         {"process", csn_tool_process},
    {"read", csn_tool_read},         {"write", csn_tool_write},
    {"edit", csn_tool_edit},         {"ls", csn_tool_ls},
    {"glob", csn_tool_glob},         {"grep", csn_tool_grep},
    {"delete", csn_tool_delete},     {"sandbox_info", csn_tool_info},
    {"diff", csn_tool_diff},         {"commit", csn_tool_commit},
    {"discard", csn_tool_discard},   {"snapshot", csn_tool_snapshot},
    {"rollback", csn_tool_rollback}, {"undo", csn_tool_undo},
};

csn_tool_fn csn_tool_find(const char *name)
{
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        if (strcmp(tools[i].name, name) == 0)
            return tools[i].run;
    return NULL;
}

csn_status csn_tool_args(const csn_tool_call *c, const csn_tool_arg *list, csn_error **err)
{
    csn_status st = CSN_OK;

    for (const csn_tool_arg *a = list; st == CSN_OK && a->name; a++) {
        if (a->text)
            st = csn_jget_str(c->args, a->name, a->text, err);
        else if (a->number)
            st = csn_jget_u64(c->args, a->name, a->number, err);
        else
            st = csn_jget_bool(c->args, a->name, a->flag, err);
    }
    return st;
}
