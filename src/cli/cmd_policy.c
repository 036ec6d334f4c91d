/* cmd_policy.c: `policy check`: a policy file explained in words.
 *
 * The library parses, exactly as --policy would; this says what the result means, so that a
 * person can see whether it is what was meant. Each sentence is collected first: without --json
 * one a line, with --json an array.
 *
 * What must hold: every field of the configuration that is set has its sentence, what is left
 * to a default is said where the default matters, and values of variables are never shown,
 * since they may be secrets. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/strv.h"
#include "cli/commands.h"
#include "cli/config_file.h"

typedef struct lines {
    char **v;
    bool failed;
} lines;

__attribute__((format(printf, 2, 3))) static void say(lines *l, const char *fmt, ...)
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

/* "label a, b, c": one sentence for a list, none for an empty one. */
static void say_list(lines *l, const char *label, const char *const *items, bool names_only)
{
    csn_autobuf text;
    int e = 0;

    csn_buf_init(&text, CSN_CONFIG_FILE_MAX * 2); /* first: every way out releases it */
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
        say(l, "%s: %s", label, text.data);
}

static void say_size(lines *l, const char *label, uint64_t bytes)
{
    char text[CSN_HUMAN_SIZE];

    if (bytes == CSN_NO_LIMIT)
        say(l, "%s: no limit", label);
    else if (bytes > 0)
        say(l, "%s: %s", label, csn_cli_human_size(bytes, text));
}

static void say_rule(lines *l, const csn_rule *r)
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
    say(l, "rule: %s %s of %s", r->allow ? "allow" : "refuse", words, r->path);
}

static void say_files(lines *l, const csn_config *c)
{
    say(l, "workspace, may be read and written: %s",
        c->workspace ? c->workspace : "the current directory");
    if (c->workdir)
        say(l, "commands start in: %s", c->workdir);
    say(l, "home: %s", c->home ? c->home : "a private directory, removed with the sandbox");
    say_list(l, "further workspaces", c->workspaces, false);
    say_list(l, "may be read", c->read, false);
    say_list(l, "may be written", c->write, false);
    say_list(l, "refused, also inside the above", c->deny, false);
    if (c->flags & CSN_OPEN_NOFOLLOW)
        say(l, "file calls refuse every symlink");
    for (size_t i = 0; i < c->rule_count; i++)
        say_rule(l, &c->rules[i]);
    if (c->rule_count > 1)
        say(l, "of several rules the most specific decides; of equal ones the refusal");
}

static void say_commands(lines *l, const csn_config *c)
{
    if (c->commands && !c->commands[0])
        say(l, "no command may be run");
    else if (c->commands)
        say_list(l, "may be run, nothing else", c->commands, false);
    else
        say(l, "any command may be run");
    say_list(l, "variables passed or set", c->env, true);
}

/* Does any rule of the list hold `wanted` at its start? */
static bool any_starts(const char *const *list, const char *wanted)
{
    for (; list && *list; list++)
        if (csn_str_starts(*list, wanted))
            return true;
    return false;
}

/* A port follows the last colon; one in brackets is a part of the address. */
static bool any_without_port(const char *const *list)
{
    for (; list && *list; list++) {
        const char *bracket = strrchr(*list, ']');
        if (!strchr(bracket ? bracket : *list, ':'))
            return true;
    }
    return false;
}

/* What the texts of the rules do not say by themselves. */
static void say_net_meaning(lines *l, const csn_config *c)
{
    bool all = c->network && strcmp(c->network, "all") == 0;

    if (any_starts(c->net_allow, "*.") || any_starts(c->net_deny, "*."))
        say(l, "*.NAME means every name below NAME, and not NAME itself");
    if (any_without_port(c->net_allow))
        say(l, "a host without a port may be reached on every port");
    if (c->net_deny && c->net_deny[0])
        say(l, "of network rules a refusal always wins");
    if (all || c->net_allow || c->packages)
        say(l, "loopback, private and metadata addresses stay closed, also to names that "
               "resolve to them, unless a rule names the address or a network among them");
    if (c->packages && c->packages[0])
        say(l, "a package manager may reach its public service and what your own "
               "configuration names; files of the project are not read for this");
}

static void say_network(lines *l, const csn_config *c)
{
    if (c->network && strcmp(c->network, "none") == 0 && (c->net_allow || c->packages))
        say(l, "network: none but what is named here");
    else if (c->network)
        say(l, "network: %s", c->network);
    else if (!c->net_allow && !c->packages)
        say(l, "network: as the backend has it by default");
    say_list(l, "hosts that may be reached", c->net_allow, false);
    say_list(l, "hosts that are refused", c->net_deny, false);
    say_list(l, "package managers that may be reached", c->packages, false);
    say_list(l, "ports inside that are shown on this host", c->publish, false);
    say_list(l, "ports of this host lent inward", c->host_ports, false);
    say_net_meaning(l, c);
}

static void say_limits(lines *l, const csn_config *c)
{
    char text[CSN_HUMAN_SIZE];

    say(l, "one command runs at most: %s",
        csn_cli_human_ms(c->timeout_ms ? c->timeout_ms : 30000, text));
    if (c->lifetime_ms)
        say(l, "the sandbox lives at most: %s", csn_cli_human_ms(c->lifetime_ms, text));
    say_size(l, "output kept per stream", c->output_max);
    say_size(l, "memory", c->memory_max);
    say_size(l, "disk", c->disk_max);
    say_size(l, "size of one file", c->file_max);
    if (c->pids_max)
        say(l, "processes at one time: %" PRIu64, c->pids_max);
    if (c->cpu_milli)
        say(l, "processors: %" PRIu64 ".%03" PRIu64, c->cpu_milli / 1000, c->cpu_milli % 1000);
    if (c->audit)
        say(l, "audit log: %s", strcmp(c->audit, "none") == 0 ? "off" : c->audit);
}

static void explain(lines *l, const csn_config *c)
{
    if (c->backend)
        say(l, "backend: %s", c->backend);
    if (c->image)
        say(l, "image: %s", c->image);
    say_files(l, c);
    say_commands(l, c);
    say_network(l, c);
    say_limits(l, c);
    if (c->flags & CSN_OPEN_ALLOW_WEAKER)
        say(l, "less isolation than the backend promises is accepted");
    if (c->backend && strcmp(c->backend, "local") == 0)
        say(l, "beware: the backend local does not isolate commands; file rules bind the file "
               "calls only");
}

static int answer(const csn_cli *c, const char *source, const lines *l)
{
    csn_answer a;

    if (!c->json) {
        for (char *const *p = l->v; p && *p; p++) {
            csn_cli_put_text(*p, strlen(*p));
            putchar('\n');
        }
        return 0;
    }
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kbool(j, "ok", true);
    csn_json_kstr(j, "source", source);
    csn_json_key(j, "explanation");
    csn_json_array(j);
    for (char *const *p = l->v; p && *p; p++)
        csn_json_str(j, *p);
    csn_json_array_end(j);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

static int run(csn_cli *c, void *opts)
{
    csn_config *config = NULL;
    csn_error *err = NULL;
    lines l = {0};

    (void)opts;
    if (strcmp(c->arg[0], "check") != 0)
        return csn_cli_usage(c, "caisson policy check FILE", "unknown word '%.64s'", c->arg[0]);
    if (csn_config_file_read(c->arg[1], &config, &err) < 0)
        return csn_cli_fail(c, err);
    explain(&l, config);
    int status =
        l.failed ? csn_cli_fail_text(c, CSN_NOMEM, "out of memory") : answer(c, c->arg[1], &l);
    csn_strv_free(l.v);
    csn_config_free(config);
    return status;
}

const csn_command csn_cmd_policy = {
    .name = "policy",
    .args = "WORD FILE",
    .usage = "check FILE",
    .summary = "check a policy file and explain it in words",
    .intro =
        "Reads a policy file as --policy would and says in words what it allows and refuses.\n"
        "A mistake in the file is an error that names it, and exit status 1. The format is\n"
        "described in caisson-policy(5). - is stdin.",
    .examples = "  caisson policy check agent.json\n",
    .run = run,
};
