/* policy.c: rules for paths. Everything below the workspace may be read and written, `secret`
 * not at all and `docs` not changed. The rules hold for file calls and for commands.
 * csn_would_allow asks without trying; a denial names the rule.
 *
 *   cc -std=c11 -Wall policy.c $(pkg-config --cflags --libs caisson) -o policy && ./policy */
#define _POSIX_C_SOURCE 200809L
#include <caisson/caisson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static csn_status ask(csn_sandbox *sb, uint32_t op, const char *path, csn_error **err)
{
    csn_verdict *verdict = NULL;
    csn_status st = csn_would_allow(sb, op, path, &verdict, err);

    if (st == CSN_OK)
        printf("%s %s: %s\n", op == CSN_OP_READ ? "read" : "write", path,
               verdict->allowed ? "allowed" : verdict->why.rule);
    csn_verdict_free(verdict);
    return st;
}

/* A command that a rule stops ends as any other that fails; the result has the denial. */
static csn_status try_command(csn_sandbox *sb, csn_error **err)
{
    csn_exec_result *res = NULL;
    csn_status st = csn_sh(sb, "echo changed >docs/manual", NULL, &res, err);

    if (st == CSN_OK)
        printf("command: exit %d, %d denial\n", res->exit_code, (int)res->denial_count);
    csn_exec_result_free(res);
    return st;
}

int main(void)
{
    /* As a file for `caisson run --policy FILE`: see caisson-policy(5). */
    const char *const deny[] = {"secret", NULL};
    const csn_rule keep = {.ops = CSN_OP_WRITE | CSN_OP_DELETE, .allow = 0, .path = "docs"};
    char dir[] = "/tmp/caisson-policy-XXXXXX";
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    if (!mkdtemp(dir) || chdir(dir) < 0 || mkdir("secret", 0755) < 0 || mkdir("docs", 0755) < 0)
        return 1;
    int ok = csn_open(CSN_OPTS(csn_config, .deny = deny, .rules = &keep, .rule_count = 1), &sb,
                      &err) == CSN_OK &&
             ask(sb, CSN_OP_READ, "secret/key", &err) == CSN_OK &&
             ask(sb, CSN_OP_READ, "docs/manual", &err) == CSN_OK &&
             ask(sb, CSN_OP_WRITE, "docs/manual", &err) == CSN_OK &&
             try_command(sb, &err) == CSN_OK;
    if (!ok)
        fprintf(stderr, "%s\n", csn_error_message(err));
    csn_close(sb);
    csn_error_free(err);
    rmdir("secret");
    rmdir("docs");
    rmdir(dir);
    return ok ? 0 : 1;
}
