/* policy_explain.c: describes a configuration in words, one sentence a line.
 *
 * Invariants: every field that is set has a sentence; values of variables are not printed,
 * since they may be secrets. */
#include "cli/policy_explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/agent_presets.h"
#include "base/strv.h"
#include "cli/cli.h"
#include "cli/config_file.h"

__attribute__((format(printf, 2, 3))) static void add(csn_lines *l, const char *fmt, ...)
{
    csn_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        text = NULL;
    if (n < 0 || csn_strv_push(&l->v, text) != 0)
        l->failed = true;
}

/* Adds "label: a, b, c", or nothing for an empty list. */
static void add_list(csn_lines *l, const char *label, const char *const *items, bool names_only)
{
    csn_autobuf text;
    int e = 0;

    csn_buf_init(&text, CSN_CONFIG_FILE_MAX * 2); /* initialised before any return */
    if (!items || !items[0])
        return;
    for (size_t i = 0; items[i] && e == 0; i++) {
        size_t len = names_only ? strcspn(items[i], "=") : strlen(items[i]);
        e = csn_buf_puts(&text, i ? ", " : "");
        if (e == 0)
            e = csn_buf_append(&text, items[i], len);
    }
    if (e != 0)
        l->failed = true;
    else
        add(l, "%s: %s", label, text.data);
}

static void add_size(csn_lines *l, const char *label, uint64_t bytes)
{
    char text[CSN_HUMAN_SIZE];

    if (bytes == CSN_NO_LIMIT)
        add(l, "%s: no limit", label);
    else if (bytes > 0)
        add(l, "%s: %s", label, csn_cli_human_size(bytes, text));
}

static void add_rule(csn_lines *l, const csn_rule *r)
{
    static const struct {
        uint32_t op;
        const char *word;
    } ops[] = {{CSN_OP_READ, "read"},
               {CSN_OP_WRITE, "write"},
               {CSN_OP_DELETE, "delete"},
               {CSN_OP_EXEC, "exec"},
               {CSN_OP_NET, "net"}};
    char words[64] = "";
    size_t n = 0;

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (r->ops & ops[i].op)
            n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s", n ? ", " : "",
                                  ops[i].word);
    add(l, "rule: %s %s of %s%s", r->allow ? "allow" : "refuse", words, r->path,
        r->ops & CSN_RULE_FILES ? ", for file calls only" : "");
}

static void add_files(csn_lines *l, const csn_config *c)
{
    const char *mode = c->workspace ? strrchr(c->workspace, ':') : NULL;

    add(l, "workspace, may be read%s: %s",
        mode && strcmp(mode, ":ro") == 0 ? "" : " and written",
        c->workspace ? c->workspace : "the current directory");
    if (c->workdir)
        add(l, "commands start in: %s", c->workdir);
    if (c->home || !c->agent)
        add(l, "home: %s", c->home ? c->home : "a private directory, removed with the sandbox");
    add_list(l, "further workspaces", c->workspaces, false);
    add_list(l, "may be read", c->read, false);
    add_list(l, "may be written", c->write, false);
    add_list(l, "refused, also inside the above", c->deny, false);
    add_list(l, "refused as soon as it exists", c->deny_missing_ok, false);
    if (c->flags & CSN_OPEN_NOFOLLOW)
        add(l, "file calls refuse every symlink");
    for (size_t i = 0; i < c->rule_count; i++)
        add_rule(l, &c->rules[i]);
    if (c->rule_count > 1)
        add(l, "the most specific rule decides; of equally specific ones a refusal wins");
}

static void add_commands(csn_lines *l, const csn_config *c)
{
    if (c->commands && !c->commands[0])
        add(l, "no command may be run");
    else if (c->commands)
        add_list(l, "may be run, nothing else", c->commands, false);
    else
        add(l, "any command may be run");
    add_list(l, "variables passed or set", c->env, true);
}

/* True if any rule of the list starts with `wanted`. */
static bool any_starts(const char *const *list, const char *wanted)
{
    for (; list && *list; list++)
        if (csn_str_starts(*list, wanted))
            return true;
    return false;
}

/* True if any rule has no port. A port follows the last colon outside brackets. */
static bool any_without_port(const char *const *list)
{
    for (; list && *list; list++) {
        const char *bracket = strrchr(*list, ']');
        if (!strchr(bracket ? bracket : *list, ':'))
            return true;
    }
    return false;
}

/* Adds effects of the rules that their text does not show. */
static void add_net_notes(csn_lines *l, const csn_config *c)
{
    bool all = c->network && strcmp(c->network, "all") == 0;

    if (any_starts(c->net_allow, "*.") || any_starts(c->net_deny, "*."))
        add(l, "*.NAME means every name below NAME, and not NAME itself");
    if (any_without_port(c->net_allow))
        add(l, "a host without a port may be reached on every port");
    if (c->net_deny && c->net_deny[0])
        add(l, "of network rules, a refusal always wins");
    if (all || c->net_allow || c->packages)
        add(l, "loopback, private and metadata addresses stay closed, also to names that "
               "resolve to them, unless a rule names the address or a network among them");
    if (c->packages && c->packages[0])
        add(l, "a package manager may reach its public service and what your own "
               "configuration names; files of the project are not read for this");
}

static void add_network(csn_lines *l, const csn_config *c)
{
    if (c->network && strcmp(c->network, "none") == 0 && (c->net_allow || c->packages))
        add(l, "network: only the hosts named here");
    else if (c->network)
        add(l, "network: %s", c->network);
    else if (!c->net_allow && !c->packages && !c->agent)
        add(l, "network: the default of the backend");
    add_list(l, "hosts that may be reached", c->net_allow, false);
    add_list(l, "hosts that are refused", c->net_deny, false);
    add_list(l, "package managers that may be reached", c->packages, false);
    add_list(l, "ports of the sandbox published on this machine", c->publish, false);
    add_list(l, "ports of this machine reachable inside", c->host_ports, false);
    add_net_notes(l, c);
}

static void add_limits(csn_lines *l, const csn_config *c)
{
    char text[CSN_HUMAN_SIZE];

    if (c->timeout_ms)
        add(l, "one command runs at most: %s", csn_cli_human_ms(c->timeout_ms, text));
    else
        add(l, "one command runs at most: 30s, with caisson run as long as it likes");
    if (c->lifetime_ms)
        add(l, "the sandbox lives at most: %s", csn_cli_human_ms(c->lifetime_ms, text));
    add_size(l, "output kept per stream", c->output_max);
    add_size(l, "memory", c->memory_max);
    add_size(l, "disk", c->disk_max);
    add_size(l, "size of one file", c->file_max);
    if (c->pids_max)
        add(l, "processes at one time: %" PRIu64, c->pids_max);
    if (c->cpu_milli)
        add(l, "processors: %" PRIu64 ".%03" PRIu64, c->cpu_milli / 1000, c->cpu_milli % 1000);
    if (c->audit)
        add(l, "audit log: %s", strcmp(c->audit, "none") == 0 ? "off" : c->audit);
}

/* What a row grants, in the words of the other lines. */
static const char *label_of(const csn_agent_row *r)
{
    static const struct {
        const char *option, *label;
    } labels[] = {{"home", "home, kept in caisson's data directory"},
                  {CSN_AGENT_LOGIN, "its login, in that home"},
                  {"network.allow", "host that may be reached"},
                  {"network.packages", "package manager that may be reached"},
                  {"env", "variable"}};

    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        if (strcmp(labels[i].option, r->option) == 0)
            return labels[i].label;
    return r->option;
}

void csn_policy_explain_agent(csn_lines *l, const char *agent)
{
    for (const csn_agent_row *r = csn_agent_rows; r->agent; r++)
        if (strcmp(r->agent, agent) == 0)
            add(l, "%s: %s: %s (%s)", agent, label_of(r), r->value, r->why);
}

void csn_policy_explain(csn_lines *l, const csn_config *c)
{
    if (c->backend)
        add(l, "backend: %s", c->backend);
    if (c->agent)
        csn_policy_explain_agent(l, c->agent);
    if (c->image)
        add(l, "image: %s", c->image);
    add_files(l, c);
    add_commands(l, c);
    add_network(l, c);
    add_limits(l, c);
    if (c->flags & CSN_OPEN_ALLOW_WEAKER)
        add(l, "less isolation than the backend promises is accepted");
    if (c->flags & CSN_OPEN_NESTED)
        add(l, "commands may make namespaces and mounts, for sandboxes inside");
    if (c->backend && strcmp(c->backend, "local") == 0)
        add(l, "warning: the backend local does not isolate commands; file rules apply to file "
               "calls only");
}
