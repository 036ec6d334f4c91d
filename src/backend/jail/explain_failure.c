/* explain_failure.c: why a command in a jail failed: what it lacked, and which grant would give
 * it that.
 *
 * An entry of the ops table, called by the core once after a command that failed. What the
 * command printed is hostile text and only says where to look (policy/explain.h); path_probe.c
 * says what is really there. This file knows what else of the jail may have been in the way:
 * its limits, its network, its system calls. What must hold: the command is not touched,
 * nothing is said of a limit or a refusal that this jail does not have, and no hint names what
 * this build cannot do. */
#include "backend/jail/explain_failure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

/* What the command had in its environment. */
static const char *variable(const csn_runtime *rt, const csn_exec_req *req, const char *name)
{
    const char *own = value_in(req->env, name);
    return own ? own : value_in((const char *const *)rt->environ_base, name);
}

/* Calls that the system-call wall or the lack of rights refuses, and that the caller could make
 * outside: root all of them, anybody those that need no rights. ptrace works inside. */
static bool refuses(void *ctx, const char *call)
{
    static const char *const anybodys[] = {"unshare", "clone",   "io_uring_setup",
                                           "keyctl",  "add_key", NULL};
    const csn_path_probe_ctx *l = ctx;
    const csn_jail *j = l->rt->jail;

    if (strcmp(call, "ptrace") == 0)
        return false;
    return j->privileged || csn_strv_has(anybodys, call);
}

/* A workspace that is full is the host's: no limit of ours would help. */
static uint64_t disk_limit(const csn_runtime *rt)
{
    struct statvfs fs;

    if (rt->level != CSN_LEVEL_NAMESPACES)
        return 0; /* no private space: all of it is the host's */
    if (fstatvfs(rt->base.fd, &fs) == 0 && (fs.f_bavail == 0 || (fs.f_files && !fs.f_favail)))
        return 0;
    return rt->config->disk_max ? rt->config->disk_max : CSN_JAIL_DISK_DEFAULT;
}

static csn_explain_text text_of(const csn_output *o)
{
    return (csn_explain_text){
        .data = o->data, .len = o->len, .cut = o->total > o->len, .head = (size_t)o->head};
}

/* A program that found no network names the host: that is the rule it needs. Where there are
 * rules the gateway knows better and has told, and what it let through was not refused by us.
 */
static void tell_net(const csn_runtime *rt, const csn_exec_req *req, csn_denial d)
{
    char hint[CSN_NETRULE_TEXT + 16];
    const csn_jail *j = rt->jail;
    csn_netrule rule;

    if (j->net)
        return;
    d.hint = NULL;
    if (d.target && rt->level == CSN_LEVEL_NAMESPACES &&
        csn_netrule_parse(d.target, &rule, NULL) &&
        snprintf(hint, sizeof(hint), "--allow %s", d.target) < (int)sizeof(hint))
        d.hint = hint;
    req->denials->tell(req->denials->ctx, &d);
}

static void tell(const csn_runtime *rt, const csn_exec_req *req, const csn_explain_out *found)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->items[i].op, "net") == 0)
            tell_net(rt, req, found->items[i]);
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
    const char *path = value_in(req->env, "PATH"), *user_home = getenv("HOME");
    csn_explain_out found;

    if (rt->ended || !req->denials)
        return CSN_OK;
    csn_autofree csn_path_probe_ctx *l = calloc(1, sizeof(*l));
    if (!l)
        return csn_fail(err, CSN_NOMEM, "explain");
    csn_autofd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    csn_autofree char *host_home = user_home ? realpath(user_home, NULL) : NULL;
    l->rt = rt;
    l->host_root = root;
    l->inside_root = rt->level == CSN_LEVEL_NAMESPACES ? rt->root.fd : root;
    csn_explain_in in = {
        .err = text_of(text),
        .exit_code = end->exit_code > 0 ? end->exit_code : 0,
        .signal = end->signal,
        .argv0 = req->argv[0],
        .cwd = req->cwd ? req->cwd : rt->base.path,
        .home = rt->home.path,
        .host_home = host_home,
        .host_path = path ? path : j->host_path,
        .host_libs = variable(rt, req, "LD_LIBRARY_PATH"),
        .probe = csn_path_probe,
        .refuses = refuses,
        .ctx = l,
        .net_rule = !c->network || strcmp(c->network, "none") == 0 ? "network none" : NULL,
        .disk_max = disk_limit(rt),
        .file_max = rt->file_max,
        .memory_max = c->memory_max,
        .pids_max = c->pids_max ? c->pids_max : CSN_JAIL_PIDS_DEFAULT,
    };
    if (text->len == 0) /* merged, or a program that complains on its stdout */
        in.out = text_of(out);
    csn_status st =
        root < 0 ? csn_fail_errno(err, errno, "explain") : csn_explain(&in, &found, err);
    if (st < 0)
        return st;
    tell(rt, req, &found);
    csn_explain_release(&found);
    return CSN_OK;
}
