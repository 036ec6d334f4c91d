/* options.c: the table of sandbox options.
 *
 * The order is that of `caisson help run` and of the table in caisson-policy(5). Only data:
 * values are read in core/config.c and cli/args.c, and checked in core. */
#include "base/options.h"

#include <string.h>

#include "base/agent_presets.h"
#include "base/limits.h"
#include "caisson/backend.h"

#define AT(field) offsetof(csn_config, field)

const csn_option csn_options[] = {
    {"backend", CSN_TYPE_STRING, AT(backend), 0, .flag = "backend", .metavar = "NAME",
     .help = "jail (default; or $CAISSON_BACKEND), local, e2b, vercel, dagger, docker",
     .direction = CSN_DIRECTION_SAME},
    {"name", CSN_TYPE_STRING, AT(name), 0, .flag = "name", .direction = CSN_DIRECTION_WIDENS},
    {"workspace", CSN_TYPE_STRING, AT(workspace), CSN_OPTION_WORKSPACE, .flag = "workspace",
     .metavar = "HOST[:INSIDE][:rw|ro|cow]",
     .help = "the directory to work in; default: the current one; auto: its git repository",
     .direction = CSN_DIRECTION_PROJECT},
    {"workspaces", CSN_TYPE_LIST, AT(workspaces), CSN_OPTION_WORKSPACES, .flag = "workspace",
     .direction = CSN_DIRECTION_WIDENS},
    {"create_workspace", CSN_TYPE_FLAG, AT(flags), CSN_OPTION_CREATE,
     .flag = "create-workspace", .help = "make the workspace if it is missing",
     .open_flag = CSN_OPEN_CREATE, .direction = CSN_DIRECTION_WIDENS},
    {"cow", CSN_TYPE_FLAG, AT(flags), CSN_OPTION_COW, .flag = "cow",
     .help = "keep changes apart from the workspace until commit; as HOST:cow", .word = "cow",
     .open_flag = CSN_OPEN_COW, .direction = CSN_DIRECTION_NARROWS},
    {"undo", CSN_TYPE_FLAG, AT(flags), CSN_OPTION_UNDO, .flag = "undo",
     .help = "with --cow: a snapshot before each command, for undo", .open_flag = CSN_OPEN_UNDO,
     .direction = CSN_DIRECTION_NARROWS},
    {"record_changes", CSN_TYPE_FLAG, AT(flags), CSN_OPTION_RECORD, .flag = "record-changes",
     .help = "with --cow: the files that a command changed go to the audit log",
     .open_flag = CSN_OPEN_RECORD, .direction = CSN_DIRECTION_NARROWS},
    {"workdir", CSN_TYPE_STRING, AT(workdir), 0, .flag = "workdir", .metavar = "PATH",
     .help = "first working directory; default: the workspace",
     .direction = CSN_DIRECTION_NARROWS},
    {"read", CSN_TYPE_LIST, AT(read), CSN_OPTION_READ, .flag = "read", .metavar = "DIR",
     .help = "another directory that may be read", .direction = CSN_DIRECTION_WIDENS},
    {"write", CSN_TYPE_LIST, AT(write), CSN_OPTION_WRITE, .flag = "write", .metavar = "DIR",
     .help = "another directory that may be written", .direction = CSN_DIRECTION_WIDENS},
    {"deny", CSN_TYPE_LIST, AT(deny), CSN_OPTION_DENY, .flag = "deny", .metavar = "PATH",
     .help = "refuse this path inside the above; patterns: '**/.env*'",
     .direction = CSN_DIRECTION_NARROWS},
    {"deny_missing_ok", CSN_TYPE_LIST, AT(deny_missing_ok), CSN_OPTION_DENY_MISSING,
     .flag = "deny-missing-ok", .metavar = "PATH",
     .help = "the same for a path that may not exist yet", .direction = CSN_DIRECTION_NARROWS},
    {"rules", CSN_TYPE_RULES, AT(rules), CSN_OPTION_RULES, .flag = NULL,
     .direction = CSN_DIRECTION_DENIALS},
    {"agent", CSN_TYPE_STRING, AT(agent), CSN_OPTION_AGENT, .flag = "agent", .metavar = "NAME",
     .help = "home, hosts and variables for claude, codex or gemini; caisson policy agent NAME",
     .choices = CSN_AGENT_NAMES, .direction = CSN_DIRECTION_WIDENS},
    {"home", CSN_TYPE_STRING, AT(home), CSN_OPTION_HOME, .flag = "home", .metavar = "DIR",
     .help = "host directory for HOME; default: a private one",
     .direction = CSN_DIRECTION_WIDENS},
    {"commands", CSN_TYPE_LIST, AT(commands), 0, .flag = "allow-command", .metavar = "NAME",
     .help = "run only commands with this name; may be repeated",
     .direction = CSN_DIRECTION_SUBSET},
    {"network.mode", CSN_TYPE_STRING, AT(network), CSN_OPTION_NETWORK, .flag = "net",
     .metavar = "none|all", .help = "network, when no host is named", .word = "network",
     .choices = "none|all", .direction = CSN_DIRECTION_NONE},
    {"network.allow", CSN_TYPE_LIST, AT(net_allow), CSN_OPTION_NET_ALLOW, .flag = "allow",
     .metavar = "HOST[:PORT]", .help = "a host that may be reached", .word = "network_hosts",
     .direction = CSN_DIRECTION_WIDENS},
    {"network.deny", CSN_TYPE_LIST, AT(net_deny), CSN_OPTION_NET_DENY, .flag = NULL,
     .direction = CSN_DIRECTION_NARROWS},
    {"network.packages", CSN_TYPE_LIST, AT(packages), CSN_OPTION_PACKAGES, .flag = "packages",
     .metavar = "LIST",
     .help = "hosts of package managers: npm,pip,cargo,go ... (caisson(1) lists all)",
     .word = "packages", .direction = CSN_DIRECTION_WIDENS},
    {"network.publish", CSN_TYPE_LIST, AT(publish), CSN_OPTION_PUBLISH, .flag = "publish",
     .metavar = "PORT", .help = "make a port inside reachable on the host's loopback",
     .word = "publish", .direction = CSN_DIRECTION_WIDENS},
    {"network.host_ports", CSN_TYPE_LIST, AT(host_ports), CSN_OPTION_HOST_PORTS,
     .flag = "host-port", .metavar = "PORT",
     .help = "make a port of the host's loopback reachable inside", .word = "host_ports",
     .direction = CSN_DIRECTION_WIDENS},
    {"env", CSN_TYPE_ENV, AT(env), 0, .flag = "env", .metavar = "NAME[=VALUE]",
     .help = "a variable for every command", .direction = CSN_DIRECTION_WIDENS},
    {"timeout", CSN_TYPE_DURATION, AT(timeout_ms), 0, .flag = "timeout", .metavar = "DURATION",
     .help = "of one command; default: none for run, 120s for mcp, else 30s",
     .direction = CSN_DIRECTION_SMALLER, .usual = CSN_TIMEOUT_MS_DEFAULT},
    {"output_max", CSN_TYPE_SIZE, AT(output_max), 0, .flag = "max-output", .metavar = "SIZE",
     .help = "bytes kept per stream with --json, default 1M",
     .direction = CSN_DIRECTION_SMALLER, .usual = CSN_OUTPUT_MAX_DEFAULT},
    {"limits.memory", CSN_TYPE_SIZE, AT(memory_max), CSN_OPTION_MEMORY, .flag = "memory",
     .metavar = "SIZE", .help = "memory of all commands together",
     .direction = CSN_DIRECTION_SMALLER, .usual = CSN_USUAL_MEMORY},
    {"limits.pids", CSN_TYPE_COUNT, AT(pids_max), CSN_OPTION_PIDS, .flag = "pids",
     .metavar = "N", .help = "processes at one time", .direction = CSN_DIRECTION_SMALLER,
     .usual = CSN_PIDS_DEFAULT},
    {"limits.cpus", CSN_TYPE_CPUS, AT(cpu_milli), CSN_OPTION_CPUS, .flag = "cpus",
     .metavar = "N", .help = "processors, such as 0.5 or 2", .direction = CSN_DIRECTION_SMALLER,
     .usual = CSN_NO_LIMIT},
    {"limits.disk", CSN_TYPE_SIZE, AT(disk_max), CSN_OPTION_DISK, .flag = "disk",
     .metavar = "SIZE", .help = "what may be written in all",
     .direction = CSN_DIRECTION_SMALLER, .usual = CSN_DISK_DEFAULT},
    {"limits.file_size", CSN_TYPE_SIZE, AT(file_max), CSN_OPTION_FILE_SIZE,
     .flag = "limit-file", .metavar = "SIZE", .help = "size of one file",
     .direction = CSN_DIRECTION_SMALLER, .usual = CSN_NO_LIMIT},
    {"lifetime", CSN_TYPE_DURATION, AT(lifetime_ms), CSN_OPTION_LIFETIME, .flag = "lifetime",
     .metavar = "DURATION", .help = "of the sandbox", .direction = CSN_DIRECTION_SMALLER,
     .usual = CSN_LIFETIME_MS_DEFAULT},
    {"image", CSN_TYPE_STRING, AT(image), CSN_OPTION_IMAGE, .flag = "image", .metavar = "NAME",
     .help = "image or template, where a backend has them", .word = "image",
     .direction = CSN_DIRECTION_WIDENS},
    {"nofollow", CSN_TYPE_FLAG, AT(flags), CSN_OPTION_NOFOLLOW, .flag = "nofollow",
     .help = "file calls refuse every symlink", .open_flag = CSN_OPEN_NOFOLLOW,
     .direction = CSN_DIRECTION_NARROWS},
    {"allow_weaker", CSN_TYPE_FLAG, AT(flags), 0, .flag = "allow-weaker",
     .help = "accept less isolation than the backend promises",
     .open_flag = CSN_OPEN_ALLOW_WEAKER, .direction = CSN_DIRECTION_WIDENS},
    {"nested", CSN_TYPE_FLAG, AT(flags), CSN_OPTION_NESTED, .flag = "nested",
     .help = "commands may make namespaces and mounts, for sandboxes inside",
     .open_flag = CSN_OPEN_NESTED, .direction = CSN_DIRECTION_WIDENS},
    {"detached", CSN_TYPE_FLAG, AT(flags), CSN_OPTION_DETACHED, .open_flag = CSN_OPEN_DETACHED,
     .direction = CSN_DIRECTION_WIDENS},
    {"audit", CSN_TYPE_STRING, AT(audit), 0, .flag = "audit", .metavar = "FILE|none",
     .help = "file for the audit log, or no log; default: one per sandbox",
     .direction = CSN_DIRECTION_WIDENS},
    {"audit_keep", CSN_TYPE_COUNT, AT(audit_keep), 0, .flag = "audit-keep", .metavar = "DAYS",
     .help = "days of use that logs of ended sandboxes are kept, default 30",
     .direction = CSN_DIRECTION_WIDENS},
    {"audit_max", CSN_TYPE_SIZE, AT(audit_max), 0, .flag = "audit-max", .metavar = "SIZE",
     .help = "of all logs together, default 1G; the oldest are removed",
     .direction = CSN_DIRECTION_WIDENS},
    {.name = NULL},
};
_Static_assert(sizeof(csn_options) / sizeof(csn_options[0]) <= CSN_OPTION_COUNT,
               "CSN_OPTION_COUNT is too small");

const char *csn_option_key(const csn_option *o, const char *group)
{
    const char *dot = strchr(o->name, '.');
    size_t len = dot ? (size_t)(dot - o->name) : 0;

    if (!group)
        return dot ? NULL : o->name;
    return dot && strlen(group) == len && memcmp(group, o->name, len) == 0 ? dot + 1 : NULL;
}

bool csn_option_is_set(const csn_option *o, const csn_config *c)
{
    switch (o->type) {
    case CSN_TYPE_STRING:
        return *csn_option_string(o, c) != NULL;
    case CSN_TYPE_LIST:
    case CSN_TYPE_ENV:
        return *csn_option_list(o, c) != NULL;
    case CSN_TYPE_RULES:
        return c->rule_count > 0;
    case CSN_TYPE_FLAG:
        return (c->flags & o->open_flag) != 0;
    case CSN_TYPE_SIZE:
    case CSN_TYPE_COUNT:
    case CSN_TYPE_CPUS:
    case CSN_TYPE_DURATION:
        return *csn_option_number(o, c) != 0;
    }
    return false;
}
