/* cmd_why.c: `why`: checks an operation against the policy without performing it.
 *
 * The library uses the same rules as for the operation itself. The exit status is 0 whether the
 * operation is allowed or denied, and 1 if the check fails. The hint names the smallest rule
 * that would allow the operation. */
#include <string.h>

#include "cli/commands.h"
#include "wire/result_json.h"

static uint32_t op_of(const char *word)
{
    static const struct {
        const char *word;
        uint32_t op;
    } ops[] = {{"read", CSN_OP_READ},
               {"write", CSN_OP_WRITE},
               {"delete", CSN_OP_DELETE},
               {"exec", CSN_OP_EXEC},
               {"net", CSN_OP_NET}};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (strcmp(ops[i].word, word) == 0)
            return ops[i].op;
    return 0;
}

static void line(const char *key, const char *value)
{
    if (!value)
        return;
    printf("%-10s", key);
    csn_cli_put_name(value);
    putchar('\n');
}

static int check(csn_cli *c, void *opts)
{
    (void)opts;
    if (op_of(c->arg[1]) != 0)
        return 0;
    return csn_cli_unknown_word(c, "an operation", c->arg[1], "read|write|delete|exec|net");
}

static int run(csn_cli *c, void *opts)
{
    uint32_t op = op_of(c->arg[1]);
    csn_verdict *v = NULL;
    csn_error *err = NULL;
    int status = 0;

    (void)opts;
    if (csn_would_allow(c->sb, op, c->arg[2], &v, &err) < 0)
        return csn_cli_fail_value(c, err);
    if (c->json) {
        status = CSN_CLI_JSON(c, csn_wire_verdict, v);
    } else {
        puts(v->allowed ? "allowed" : "denied");
        line("resolved", v->why.resolved);
        line("rule", v->why.rule);
        line("source", v->why.source);
        line("enforced", v->enforced);
        line("to allow", v->allowed ? NULL : v->why.hint);
    }
    csn_verdict_free(v);
    return status;
}

const csn_command csn_cmd_why = {
    .name = "why",
    .args = "ID OP TARGET",
    .usage = "ID (read | write | delete | exec | net) TARGET",
    .summary = "whether the policy allows an operation, and which rule decides",
    .intro =
        "Checks an operation on a path, a command or a host against the policy of a\n"
        "sandbox. Prints the rule that decides and the smallest change that would allow it.\n"
        "Nothing is executed. The exit status is 0 for both verdicts.",
    .examples = "  caisson why $id read /etc/shadow\n"
                "  caisson why $id exec curl --json\n",
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
