/* cmd_policy.c: `policy`: explains a policy file in words, prints the schema.
 *
 * The library parses the file as --policy does; policy_explain.c describes the result, one
 * sentence per line, or as an array with --json. */
#include <string.h>

#include "base/strv.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/policy_explain.h"
#include "cli/policy_schema.h"

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

static const struct {
    const char *name;
    size_t args; /* after the word */
    const char *usage;
    int (*run)(csn_cli *c);
} words[] = {
    {"check", 1, "caisson policy check FILE", run_check},
    {"schema", 0, "caisson policy schema", run_schema},
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
    return csn_cli_usage(c, "caisson policy check FILE", "unknown word '%.64s'", c->arg[0]);
}

const csn_command csn_cmd_policy = {
    .name = "policy",
    .args = "WORD [FILE]",
    .usage = "check FILE | schema",
    .summary = "check a policy file and explain it in words",
    .intro =
        "check reads a policy file as --policy would and says in words what it allows and\n"
        "refuses. A mistake in the file is an error that names it, and exit status 1. The\n"
        "format is described in caisson-policy(5). - is stdin.\n"
        "\n"
        "schema prints the JSON Schema of the format, for editors.",
    .examples = "  caisson policy check agent.json\n",
    .run = run,
};
