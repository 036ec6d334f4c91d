/* jail.c: the ops table of the jail backend, which isolates commands by kernel features.
 *
 * The keeper of a jail is pid 1 of its own namespaces and has completed all steps of
 * keeper/boot/confine.h before it serves requests. Commands are its children; file operations
 * resolve paths below the root that it has built. Works for root and for ordinary users. */
#include "backend/jail/jail.h"

#include "backend/jail/export.h"
#include "base/error.h"
#include "runtime/cow.h"

static csn_status jail_check(const csn_config *c, csn_error **err)
{
    csn_status st = csn_jail_limits_check(c, err);

    return st < 0 || c->workspace ? st : csn_jail_check_cwd(err);
}

static csn_status jail_open(const csn_config *config, const char *id, void *register_data,
                            void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_jail_open(config, id, ret_state, err);
}

static csn_status jail_connect(const csn_config *config, const char *id, void *register_data,
                               void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_jail_connect(config, id, ret_state, err);
}

static csn_status jail_force_destroy(const csn_config *config, const char *id,
                                     void *register_data, csn_error **err)
{
    (void)register_data;
    return csn_runtime_force_destroy("jail", config, id, err);
}

static csn_status jail_probe(const char *id, void *register_data, const char **ret,
                             csn_error **err)
{
    (void)register_data;
    return csn_runtime_state(id, ret, err);
}

static csn_status jail_info(void *state, csn_info_result *ret, csn_error **err)
{
    csn_runtime *rt = state;
    const csn_jail *j = rt->jail;
    bool listed = rt->write_dirs || rt->read_dirs;

    for (size_t i = 0; !listed && i < j->shares->count; i++) {
        const csn_jail_share *s = &j->shares->v[i];
        csn_status st = csn_runtime_info_dir(rt, s->inside, s->writable, err);
        if (st < 0)
            return st;
    }
    ret->layers = csn_jail_net_layers(state);
    ret->layer_count = j->layer_count;
    ret->rules = j->hidden;
    ret->rule_count = j->hidden_count;
    return csn_runtime_info(state, ret, err);
}

static void jail_report_end(void *state, const csn_deny_sink *denials)
{
    ((csn_runtime *)state)->jail->end_denials = denials;
}

static const csn_process_ops processes = {CSN_RUNTIME_PROCESS_OPS, .start = csn_jail_start,
                                          .rescan = csn_protected_rescan};

static const csn_network_ops network = {.size = sizeof(network),
                                        .set_rules = csn_jail_network_set,
                                        .events = csn_jail_network_events};

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_CWD | CSN_CAP_SESSION | CSN_CAP_SPAWN | CSN_CAP_PTY | CSN_CAP_ENV |
            CSN_CAP_USAGE | CSN_CAP_OWNED | CSN_CAP_BINDS,
    .name = "jail",
    .isolation = "kernel",
    .options = CSN_OPTION_WORKSPACE | CSN_OPTION_WORKSPACES | CSN_OPTION_CREATE |
               CSN_OPTION_READ | CSN_OPTION_WRITE | CSN_OPTION_DENY | CSN_OPTION_DENY_MISSING |
               CSN_OPTION_RULES | CSN_OPTION_HOME | CSN_OPTION_NOFOLLOW | CSN_OPTION_NETWORK |
               CSN_OPTION_NET_ALLOW | CSN_OPTION_NET_DENY | CSN_OPTION_PACKAGES |
               CSN_OPTION_PUBLISH | CSN_OPTION_HOST_PORTS | CSN_OPTION_MEMORY |
               CSN_OPTION_PIDS | CSN_OPTION_CPUS | CSN_OPTION_DISK | CSN_OPTION_FILE_SIZE |
               CSN_OPTION_LIFETIME | CSN_OPTION_NESTED | CSN_OPTION_AGENT | CSN_OPTION_COW |
               CSN_OPTION_IMAGE,
    .exec = csn_jail_exec,
    .files = &csn_jail_file_ops,
    .processes = &processes,
    .network = &network,
    .check = jail_check,
    .open = jail_open,
    .connect = jail_connect,
    .set_stop_fd = csn_runtime_set_stop_fd,
    .await_ready = csn_jail_ready,
    .force_destroy = jail_force_destroy,
    .close = csn_jail_close,
    .destroy = csn_jail_destroy,
    .commit = csn_jail_commit,
    .extend = csn_runtime_extend,
    .find_program = csn_runtime_find_program,
    .info = jail_info,
    .explain = csn_protected_explain,
    .diagnose = csn_jail_diagnose,
    .report_end = jail_report_end,
    .workspace = &csn_cow_ops,
    .probe = jail_probe,
};

const csn_backend_ops *csn_jail_backend(void)
{
    return &ops;
}
