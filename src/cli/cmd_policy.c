/* cmd_policy.c: `policy`: explains a policy file in words, prints the schema, and translates
 * policies of other sandboxes.
 *
 * The library parses the file as --policy does; policy_explain.c describes the result, one
 * sentence per line, or as an array with --json. */
#include <string.h>

#include "base/agent_presets.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/policy_explain.h"
#include "cli/policy_import.h"
#include "cli/policy_schema.h"
#include "cli/project_edit.h"

static int answer(const csn_cli *c, const char *source, const csn_lines *l)
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

static int run_check(csn_cli *c)
{
    csn_config *config = NULL;
    csn_error *err = NULL;
    csn_lines l = {0};

    if (csn_config_file_read(c->arg[1], &config, &err) < 0)
        return csn_cli_fail(c, err);
    csn_policy_explain(&l, config);
    int status =
        l.failed ? csn_cli_fail_text(c, CSN_NOMEM, "out of memory") : answer(c, c->arg[1], &l);
    csn_strv_free(l.v);
    csn_config_free(config);
    return status;
}

static int run_schema(csn_cli *c)
{
    csn_answer a;

    csn_policy_schema(csn_answer_begin(&a));
    return csn_answer_end(c, &a);
}

/* ---- agent --------------------------------------------------------------------------- */

static void put_agent_json(csn_json *j, const char *agent)
{
    csn_json_object(j);
    csn_json_kbool(j, "ok", true);
    csn_json_kstr(j, "agent", agent);
    csn_json_key(j, "grants");
    csn_json_array(j);
    for (const csn_agent_row *r = csn_agent_rows; r->agent; r++) {
        if (strcmp(r->agent, agent) != 0)
            continue;
        csn_json_object(j);
        csn_json_kstr(j, "option", r->option);
        csn_json_kstr(j, "value", r->value);
        csn_json_kstr(j, "reason", r->why);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
    csn_json_object_end(j);
}

static int run_agent(csn_cli *c)
{
    const char *agent = c->arg[1];
    csn_lines l = {0};
    csn_answer a;

    if (!csn_agent_known(agent))
        return csn_cli_unknown_word(c, "an agent with a preset", agent, CSN_AGENT_NAMES);
    if (c->json) {
        put_agent_json(csn_answer_begin(&a), agent);
        return csn_answer_end(c, &a);
    }
    csn_policy_explain_agent(&l, agent);
    int status =
        l.failed ? csn_cli_fail_text(c, CSN_NOMEM, "out of memory") : answer(c, agent, &l);
    csn_strv_free(l.v);
    return status;
}

/* ---- import -------------------------------------------------------------------------- */

typedef struct losses {
    const csn_cli *c;
    csn_json *json; /* NULL: lines on stderr */
    size_t count;
} losses;

static void note_loss(void *ctx, const char *key, const char *reason)
{
    losses *l = ctx;

    l->count++;
    if (!l->json) {
        csn_cli_note(l->c, "%s has no equal: %s", key, reason);
        return;
    }
    csn_json_object(l->json);
    csn_json_kstr(l->json, "key", key);
    csn_json_kstr(l->json, "reason", reason);
    csn_json_object_end(l->json);
}

static int print_policy(const csn_cli *c, const csn_buf *policy, int status)
{
    csn_autobuf text;

    csn_buf_init(&text, 16 * CSN_CONFIG_FILE_MAX);
    csn_json_lines(&text, policy->data, policy->len);
    if (text.err)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    csn_cli_put_json(text.data, text.len);
    return status;
}

static int run_import(csn_cli *c)
{
    csn_autofree char *text = NULL;
    csn_autobuf policy;
    size_t len = 0;
    csn_error *err = NULL;
    csn_config *config = NULL;
    csn_answer a;
    losses l = {.c = c};

    csn_buf_init(&policy, 8 * CSN_CONFIG_FILE_MAX);
    if (strcmp(c->arg[1], "srt") != 0 && strcmp(c->arg[1], "codex") != 0)
        return csn_cli_unknown_word(c, "a format of policy import", c->arg[1], "srt|codex");
    if (csn_cli_slurp(c->arg[2], CSN_CONFIG_FILE_MAX, &text, &len, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json) {
        l.json = csn_answer_begin(&a);
        csn_json_object(l.json);
        csn_json_key(l.json, "lost");
        csn_json_array(l.json);
    }
    csn_status st =
        csn_policy_import(c->arg[1], text, len, c->arg[2], &policy, note_loss, &l, &err);
    if (st == CSN_OK) /* the result must be a policy */
        st = csn_config_parse(policy.data, policy.len, c->arg[2], &config, &err);
    csn_config_free(config);
    if (st < 0 && c->json)
        csn_buf_release(&a.buf);
    if (st < 0)
        return csn_cli_fail(c, err);
    int status = l.count > 0 ? CSN_EXIT_PARTLY : 0;
    if (!c->json)
        return print_policy(c, &policy, status);
    csn_json_array_end(l.json);
    csn_json_key(l.json, "policy");
    csn_json_raw(l.json, policy.data, policy.len);
    csn_json_object_end(l.json);
    int failed = csn_answer_end(c, &a);
    return failed ? failed : status;
}

static const struct {
    const char *name;
    size_t args; /* after the word */
    const char *usage;
    int (*run)(csn_cli *c);
} words[] = {
    {"check", 1, "caisson policy check FILE", run_check},
    {"agent", 1, "caisson policy agent " CSN_AGENT_NAMES, run_agent},
    {"schema", 0, "caisson policy schema", run_schema},
    {"import", 2, "caisson policy import srt|codex FILE", run_import},
};

static int run(csn_cli *c, void *opts)
{
    (void)opts;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(c->arg[0], words[i].name) != 0)
            continue;
        if (c->nargs != words[i].args + 1)
            return csn_cli_usage(c, words[i].usage, "%s argument for %s",
                                 c->nargs <= words[i].args ? "missing" : "unexpected",
                                 words[i].name);
        return words[i].run(c);
    }
    return csn_cli_unknown_word(c, "a word of policy", c->arg[0], "check|agent|schema|import");
}

const csn_command csn_cmd_policy = {
    .name = "policy",
    .args = "WORD [NAME] [FILE]",
    .usage = "check FILE | agent NAME | import srt|codex FILE | schema",
    .summary = "check a policy file and explain it in words",
    .intro =
        "check reads a policy file as --policy would and says in words what it allows and\n"
        "refuses. A mistake in the file is an error that names it, and exit status 1. The\n"
        "format is described in caisson-policy(5). - is stdin.\n"
        "\n"
        "agent lists what --agent NAME grants, each with its reason.\n"
        "\n"
        "import translates the settings of srt (JSON) or the config.toml of codex to a policy\n"
        "on stdout, and names each key that has no equal on stderr, with the reason. Exit\n"
        "status 0: everything was translated; 3: some of it.\n"
        "\n"
        "schema prints the JSON Schema of the format, for editors.",
    .examples = "  caisson policy check agent.json\n"
                "  caisson policy agent claude\n"
                "  caisson policy import srt ~/.srt-settings.json >caisson.json\n"
                "  caisson policy import codex ~/.codex/config.toml >agent.json\n",
    .run = run,
};
