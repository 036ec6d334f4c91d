/* explain_failure.c: finds out why a command failed and which grant would have helped.
 *
 * The core calls this once after a failed command. The command's output is hostile and only
 * suggests paths to check (policy/explain.h); path_probe.c checks them. This file adds the
 * limits, network and system calls of the jail. Invariants: only limits and refusals that this
 * jail has are reported, and hints name only options that exist. */
#include "backend/jail/explain_failure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "base/strv.h"
#include "policy/netrules.h"

static const char *value_in(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    const char *found = NULL;

    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
            found = env[i] + len + 1;
    return found;
}

static const char *env_value(const csn_runtime *rt, const csn_exec_req *req, const char *name)
{
    const char *own = value_in(req->env, name);
    return own ? own : value_in((const char *const *)rt->environ_base, name);
}

/* True for system calls that fail inside (by seccomp or for lack of capabilities) but would
 * succeed for the caller: all of them for root, also set-id bits (CSN_SECCOMP_NOSUID), else
 * those that need no capability. */
static bool refuses(void *ctx, const char *call)
{
    static const char *const unprivileged[] = {
        "unshare", "clone", "io_uring_setup", "keyctl", "add_key", "perf_event_open", NULL};
    static const char *const nested[] = {"unshare", "clone",  "mount",
                                         "umount2", "chroot", NULL};
    const csn_path_probe_ctx *p = ctx;
    const csn_jail *j = p->rt->jail;

    if (strcmp(call, "ptrace") == 0 || (j->nested && csn_strv_has(nested, call)))
        return false;
    return j->root || csn_strv_has(unprivileged, call);
}

/* 0: a higher limit would not help, because there is no private tmpfs or the file system of the
 * workspace is full. */
static uint64_t disk_limit(const csn_runtime *rt)
{
    struct statvfs fs;

    if (rt->level != CSN_LEVEL_NAMESPACES)
        return 0; /* no private tmpfs */
    if (fstatvfs(rt->base.fd, &fs) == 0 && (fs.f_bavail == 0 || (fs.f_files && !fs.f_favail)))
        return 0;
    return csn_jail_limit_disk(rt);
}

static csn_explain_text text_of(const csn_output *o)
{
    return (csn_explain_text){
        .data = o->data, .len = o->len, .cut = o->total > o->len, .head = (size_t)o->head};
}

/* Without network rules the host that the program printed becomes the hint. With rules, the
 * gateway has reported its refusals already (network_events.c). */
static void report_net(const csn_runtime *rt, const csn_exec_req *req, csn_denial d)
{
    char hint[CSN_NETRULE_TEXT + 16];
    const csn_jail *j = rt->jail;

    if (j->net)
        return;
    d.hint = NULL;
    if (d.target && rt->level == CSN_LEVEL_NAMESPACES)
        d.hint = csn_jail_net_hint(req, d.target, hint, sizeof(hint));
    req->denials->tell(req->denials->ctx, &d);
}

static void report(const csn_runtime *rt, const csn_exec_req *req, const csn_explain_out *found)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->items[i].op, "net") == 0)
            report_net(rt, req, found->items[i]);
        else
            req->denials->tell(req->denials->ctx, &found->items[i]);
    }
}

csn_status csn_jail_explain(void *state, const csn_exec_req *req, const csn_exec_end *end,
                            const csn_output *out, const csn_output *text, csn_error **err)
{
    csn_runtime *rt = state;
    const csn_config *c = rt->config;
    const csn_jail *j = rt->jail;
    const char *user_home = getenv("HOME");
    csn_explain_out found;

    if (rt->ended || !req->denials)
        return CSN_OK;
    csn_autofree csn_path_probe_ctx *p = calloc(1, sizeof(*p));
    if (!p)
        return csn_fail(err, CSN_NOMEM, "explain");
    csn_autofd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    csn_autofree char *host_home = user_home ? realpath(user_home, NULL) : NULL;
    p->rt = rt;
    p->host_root = root;
    p->inside_root = rt->level == CSN_LEVEL_NAMESPACES ? rt->root.fd : root;
    csn_explain_in in = {
        .err = text_of(text),
        .exit_code = end->exit_code > 0 ? end->exit_code : 0,
        .signal = end->signal,
        .argv0 = req->argv[0],
        .cwd = req->cwd ? req->cwd : rt->base.path,
        .home = rt->home.path,
        .host_home = host_home,
        .host_path = j->host_path,
        .path = env_value(rt, req, "PATH"),
        .libs = env_value(rt, req, "LD_LIBRARY_PATH"),
        .probe = csn_path_probe,
        .refuses = refuses,
        .ctx = p,
        .net_rule = !c->network || strcmp(c->network, "none") == 0 ? "network none" : NULL,
        .disk_max = disk_limit(rt),
        .file_max = rt->file_max,
        .memory_max = c->memory_max == CSN_NO_LIMIT ? 0 : c->memory_max,
        .pids_max = csn_jail_limit_pids(rt),
    };
    if (text->len == 0) /* merged, or a program that complains on its stdout */
        in.out = text_of(out);
    csn_status st =
        root < 0 ? csn_fail_errno(err, errno, "explain") : csn_explain(&in, &found, err);
    if (st < 0)
        return st;
    report(rt, req, &found);
    csn_explain_release(&found);
    return CSN_OK;
}
