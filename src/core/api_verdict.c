/* api_verdict.c: csn_would_allow: checks an operation against the policy.
 *
 * The backend checks paths, because it resolves them as the operation would; the core checks
 * commands and hosts. A denial is a result: it contains the rule that decided and the smallest
 * change that would allow the operation. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "core/api_network.h"
#include "core/denials.h"
#include "core/internal.h"
#include "core/result.h"
#include "core/rule_info.h"
#include "policy/rules.h"

static csn_status check(csn_call *c, uint32_t op, const char *target, char **ret_resolved,
                        csn_error **err)
{
    const char *joined = NULL;

    if (op == CSN_OP_EXEC)
        return csn_policy_command(c->sb->policy, target, NULL, NULL, err);
    if (op == CSN_OP_NET && c->sb->ops->network)
        return csn_network_would_allow(c->sb, target, err);
    if (op == CSN_OP_NET)
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no network rules",
                        c->sb->ops->name);
    if (!csn_fs_files(&c->fs)->check_path)
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no path rules",
                        c->sb->ops->name);
    csn_status st = csn_call_path(c, target, &joined, err);
    return st < 0 ? st
                  : c->sb->ops->files->check_path(c->sb->state, op, joined, ret_resolved, err);
}

static csn_status decide(csn_call *c, uint32_t op, const char *target, csn_verdict *v,
                         csn_error **err)
{
    csn_arena *a = csn_result_arena(v);
    csn_autofree char *resolved = NULL;
    csn_error *why = NULL;
    csn_status st = csn_call_rephrase(c, check(c, op, target, &resolved, &why), &why);
    csn_denial d = {.op = csn_op_name(op), .target = target, .resolved = resolved};

    if (st == CSN_DENIED || st == CSN_OUTSIDE) {
        const csn_denial *found = csn_error_denial(why);
        if (found)
            d = *found;
        else
            d.rule = csn_error_message(why);
    } else if (st < 0) {
        if (err)
            *err = why;
        else
            csn_error_free(why);
        return st;
    }
    v->allowed = st == CSN_OK;
    v->enforced = csn_rule_info_enforced(c->sb->ops, c->sb->config, d.source);
    int e = csn_denial_copy(a, &d, &v->why);
    csn_error_free(why);
    return e == 0 ? CSN_OK : csn_fail(err, CSN_NOMEM, "would_allow");
}

csn_status csn_would_allow(csn_sandbox *sb, uint32_t op, const char *target, csn_verdict **ret,
                           csn_error **err)
{
    csn_call c;
    csn_status st = CSN_OK;

    if (!ret || !csn_op_name(op) || !target || !*target)
        st = csn_fail(err, CSN_INVALID, "would_allow: one operation and a target are needed");
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "would_allow", target, err);
    if (st < 0)
        return csn_error_note(st, err, "would_allow", NULL);
    csn_verdict *v = csn_result_new(sizeof(*v));
    st = v ? decide(&c, op, target, v, err) : csn_fail(err, CSN_NOMEM, "would_allow");
    return csn_call_return(&c, st, v, ret, err);
}

void csn_verdict_free(csn_verdict *v)
{
    csn_result_free(v);
}
