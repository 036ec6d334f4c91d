/* sandbox_opts.c: from SANDBOX OPTIONS to one csn_config.
 *
 * run and create call it. Three sources are laid over one another: the user's own config.json,
 * the files of --policy, the options. Lists append (a policy file can only be added to, also by
 * denials), single values override. The library checks what the values mean; here only the
 * forms that are this program's own are taken apart (HOST:INSIDE:MODE, comma lists).
 *
 * What must hold: an option is never dropped. A value the library has no field for in this form
 * still reaches it, so that the backend can refuse it. */
#include "cli/sandbox_opts.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/strv.h"
#include "cli/config_file.h"

#define AT(field) offsetof(csn_sandbox_opts, field)

const csn_opt csn_sandbox_opt_table[] = {
    {CSN_OPT_STR, 0, "backend", AT(backend), "NAME",
     "jail (default; or $CAISSON_BACKEND), local, e2b, vercel, dagger, docker", NULL},
    {CSN_OPT_LIST, 0, "workspace", AT(workspace), "HOST[:INSIDE][:rw|ro|cow]",
     "the directory to work in; default: the current one", NULL},
    {CSN_OPT_STR, 0, "workdir", AT(workdir), "PATH",
     "first working directory; default: the workspace", NULL},
    {CSN_OPT_LIST, 0, "read", AT(read), "DIR", "another directory that may be read", NULL},
    {CSN_OPT_LIST, 0, "write", AT(write), "DIR", "another directory that may be written", NULL},
    {CSN_OPT_LIST, 0, "deny", AT(deny), "PATH", "refuse this path inside the above", NULL},
    {CSN_OPT_STR, 0, "home", AT(home), "DIR", "host directory for HOME; default: a private one",
     NULL},
    {CSN_OPT_LIST, 0, "allow-command", AT(commands), "NAME",
     "run only commands named so; may be repeated", NULL},
    {CSN_OPT_STR, 0, "net", AT(net), "none|all", "network, when no host is named", "none|all"},
    {CSN_OPT_LIST, 0, "allow", AT(allow), "HOST[:PORT]", "a host that may be reached", NULL},
    {CSN_OPT_LIST, 0, "packages", AT(packages), "LIST",
     "hosts of package managers: npm,pip,uv,cargo,go,maven,apt,gem,github", NULL},
    {CSN_OPT_LIST, 0, "publish", AT(publish), "PORT", "show a port inside on our loopback",
     NULL},
    {CSN_OPT_LIST, 0, "host-port", AT(host_ports), "PORT", "lend a port of our loopback", NULL},
    {CSN_OPT_LIST, 0, "env", AT(env), "NAME[=VALUE]", "a variable for every command", NULL},
    {CSN_OPT_DURATION, 0, "timeout", AT(timeout), "DURATION",
     "of one command, default 30s; none: no limit", NULL},
    {CSN_OPT_SIZE, 0, "max-output", AT(output_max), "SIZE",
     "bytes kept per stream with --json, default 1M", NULL},
    {CSN_OPT_SIZE, 0, "output-max", AT(output_max), "SIZE", NULL, NULL},
    {CSN_OPT_SIZE, 0, "memory", AT(memory), "SIZE", "memory of all commands together", NULL},
    {CSN_OPT_COUNT, 0, "pids", AT(pids), "N", "processes at one time", NULL},
    {CSN_OPT_CPUS, 0, "cpus", AT(cpus), "N", "processors, such as 0.5 or 2", NULL},
    {CSN_OPT_SIZE, 0, "disk", AT(disk), "SIZE", "what may be written in all", NULL},
    {CSN_OPT_SIZE, 0, "limit-file", AT(file_max), "SIZE", "size of one file", NULL},
    {CSN_OPT_DURATION, 0, "lifetime", AT(lifetime), "DURATION", "of the sandbox", NULL},
    {CSN_OPT_LIST, 0, "policy", AT(policy), "FILE.json", "rules from a file, caisson-policy(5)",
     NULL},
    {CSN_OPT_STR, 0, "image", AT(image), "NAME", "image or template, where a backend has them",
     NULL},
    {CSN_OPT_FLAG, 0, "nofollow", AT(nofollow), NULL, "file calls refuse every symlink", NULL},
    {CSN_OPT_FLAG, 0, "allow-weaker", AT(allow_weaker), NULL,
     "accept less isolation than the backend promises", NULL},
    {CSN_OPT_END},
};

/* "a,b" as two items. 0 or ENOMEM. */
static int split_commas(char *const *from, csn_arena *a, const char *const **ret)
{
    char **flat = NULL;
    int e = 0;

    for (; from && *from && e == 0; from++) {
        for (const char *p = *from; *p && e == 0;) {
            size_t n = strcspn(p, ",");
            csn_autofree char *word = strndup(p, n);
            if (!word)
                e = -1;
            else if (n > 0)
                e = csn_strv_push(&flat, word);
            p += n + (p[n] == ',');
        }
    }
    if (e == 0 && flat) {
        *ret = (const char *const *)csn_arena_strv(a, (const char *const *)flat);
        e = *ret ? 0 : -1;
    }
    csn_strv_free(flat);
    return e;
}

/* The first workspace is the base, every other one goes to the list as it was written. `:rw` is
 * the default and left out, so that a plain directory is one for every backend. */
static csn_status take_workspaces(const csn_sandbox_opts *o, csn_arena *a, csn_config *c,
                                  csn_error **err)
{
    size_t n = csn_strv_len((const char *const *)o->workspace);

    if (n == 0)
        return CSN_OK;
    const char **list = csn_arena_array(a, n + 1, sizeof(*list));
    if (!list)
        return csn_fail(err, CSN_NOMEM, "workspaces");
    memcpy(list, o->workspace, n * sizeof(*list));
    size_t len = strlen(list[0]);
    bool rw = len > 3 && strcmp(list[0] + len - 3, ":rw") == 0;
    c->workspace = csn_arena_memdup(a, list[0], rw ? len - 3 : len);
    if (!c->workspace)
        return csn_fail(err, CSN_NOMEM, "workspaces");
    if (n > 1)
        c->workspaces = list + 1;
    return CSN_OK;
}

/* The options alone; strings still borrow from argv. */
static csn_status from_options(const csn_sandbox_opts *o, csn_arena *a, csn_config *c,
                               csn_error **err)
{
    *c = (csn_config){
        .size = sizeof(*c),
        .flags = (o->nofollow ? CSN_OPEN_NOFOLLOW : 0) |
                 (o->allow_weaker ? CSN_OPEN_ALLOW_WEAKER : 0),
        .backend = o->backend,
        .name = o->name,
        .workdir = o->workdir,
        .home = o->home,
        .read = (const char *const *)o->read,
        .write = (const char *const *)o->write,
        .deny = (const char *const *)o->deny,
        .commands = (const char *const *)o->commands,
        .env = (const char *const *)o->env,
        .timeout_ms = o->timeout,
        .output_max = o->output_max,
        .lifetime_ms = o->lifetime,
        .memory_max = o->memory,
        .pids_max = o->pids,
        .cpu_milli = o->cpus,
        .disk_max = o->disk,
        .file_max = o->file_max,
        .network = o->net,
        .net_allow = (const char *const *)o->allow,
        .publish = (const char *const *)o->publish,
        .host_ports = (const char *const *)o->host_ports,
        .image = o->image,
    };
    if (split_commas(o->packages, a, &c->packages) != 0)
        return csn_fail(err, CSN_NOMEM, "packages");
    return take_workspaces(o, a, c, err);
}

csn_status csn_sandbox_opts_config(const csn_sandbox_opts *o, csn_arena *a, csn_config *ret,
                                   csn_error **err)
{
    csn_config all = {.size = sizeof(all)}, own;

    csn_status st = csn_config_file_defaults(a, &all, err);
    for (char *const *p = o->policy; st == CSN_OK && p && *p; p++)
        st = csn_config_file_overlay(a, &all, *p, err);
    if (st == CSN_OK)
        st = from_options(o, a, &own, err);
    if (st == CSN_OK)
        st = csn_config_overlay(a, &all, &own, err);
    if (st == CSN_OK)
        *ret = all;
    return st;
}

void csn_sandbox_opts_warn(const csn_cli *c, const csn_config *config)
{
    csn_info_result *r = NULL;

    if (!(config->flags & CSN_OPEN_ALLOW_WEAKER) || csn_info(c->sb, &r, NULL) < 0)
        return;
    for (size_t i = 0; i < r->layer_count; i++)
        if (strcmp(r->layers[i].name, "rung") == 0 && strcmp(r->layers[i].status, "on") != 0)
            csn_cli_note(c, "weaker isolation: %s", r->layers[i].detail);
    csn_info_free(r);
}
