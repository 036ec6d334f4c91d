/* exec.c: runs commands in a jail: prepares the command's own network, scans protected files
 * afterwards, and reports refused connections.
 *
 * No descriptor of the caller is passed as stdin (runtime/exec.c, process_input.c), because a
 * descriptor permits more than reading: a pipe can be opened again for writing, a socket is
 * both, the owner of a file may change its mode and times, and a terminal can be read and
 * changed after the command. No layer of the jail restricts that. */
#include "backend/jail/cover.h"
#include "backend/jail/jail.h"
#include "base/error.h"
#include "runtime/cow.h"

csn_status csn_jail_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                         csn_exec_end *ret, csn_error **err)
{
    csn_runtime *rt = state;
    csn_exec_network net = CSN_EXEC_NETWORK_NONE;
    csn_exec_extra extra = CSN_EXEC_EXTRA_NONE;
    csn_jail_net_watch watch = {.req = req};
    struct timespec began, changed_from;
    csn_status st = csn_protected_check_trees(rt, err);

    if (st == CSN_OK)
        st = csn_cover_renew(rt, err);
    if (st == CSN_OK && req->net_allow)
        st = csn_exec_network_begin(rt, req->net_allow, req->deadline_ns, &net, err);
    if (st == CSN_OK) {
        const csn_jail_net_since since = csn_jail_net_begin(rt);
        const csn_jail_limit_hits before = csn_jail_limits_hits(rt);
        csn_protected_command_begin(rt, &began);
        (void)clock_gettime(CLOCK_REALTIME_COARSE, &changed_from);
        extra.sockets = net.sockets;
        csn_jail_net_watch_begin(rt, &watch, &extra);
        st = csn_runtime_exec_with(rt, req, &extra, sink, ret, err);
        csn_jail_net_watch_end(&extra);
        if (st == CSN_OK)
            csn_jail_limits_explain(rt, &before, ret);
        ret->unchecked = csn_protected_command_end(rt, &began, req->denials) < 0;
        csn_cow_collect(rt, changed_from);
        csn_cover_report(rt, req->denials);
        csn_jail_net_report(rt, since, req);
    }
    csn_exec_network_end(&net);
    return st;
}

csn_status csn_jail_start(void *state, const csn_exec_req *req, uint64_t output_max,
                          int64_t *ret_pid, void **ret_tie, csn_error **err)
{
    csn_status st = csn_protected_check_trees(state, err);

    if (st == CSN_OK)
        st = csn_cover_renew(state, err);
    if (st < 0)
        return st;
    csn_protected_note_change(state);
    return csn_runtime_start(state, req, output_max, ret_pid, ret_tie, err);
}
