/* cmd_doctor.c: `doctor`: checks what this host supports and prints how to fix the rest.
 *
 * The library makes the checks. This file prints a line for each, with the fix below it. */
#include <string.h>

#include "cli/commands.h"
#include "wire/result_json.h"

static void print_check(const csn_check *c)
{
    printf("%-15s%-9s", c->name, c->status);
    csn_cli_put_name(c->detail ? c->detail : "");
    putchar('\n');
    if (c->fix)
        printf("%-24s-> %s\n", "", c->fix);
}

static const char *conclusion(const char *rung)
{
    if (strcmp(rung, "full") == 0)
        return "the backend jail has every layer of isolation here";
    if (strcmp(rung, "weaker") == 0)
        return "the backend jail works here only with --allow-weaker, with less isolation";
    return "the backend jail does not work here";
}

static int run(csn_cli *c, void *opts)
{
    csn_doctor_result *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    (void)opts;
    if (csn_doctor(c->arg[0], &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json) {
        status = CSN_CLI_JSON(c, csn_wire_doctor, r);
    } else {
        for (size_t i = 0; i < r->count; i++)
            print_check(&r->items[i]);
        printf("%-15s%-9s%s\n", "isolation", r->rung, conclusion(r->rung));
    }
    if (status == 0 && !r->ok)
        status = CSN_EXIT_FAILED;
    csn_doctor_result_free(r);
    return status;
}

const csn_command csn_cmd_doctor = {
    .name = "doctor",
    .args = "[WORKSPACE]",
    .summary = "check what this host supports, and how to fix the rest",
    .intro =
        "Checks every layer of the backend jail, opens a sandbox on WORKSPACE (default: the\n"
        "current directory), inspects it from inside and removes it. Prints what works,\n"
        "what does not, why, and how to fix it.\n"
        "\n"
        "Exit status: 0 when nothing is missing, 1 when something is.",
    .examples = "  caisson doctor\n"
                "  caisson doctor --json\n"
                "  caisson doctor ~/project\n",
    .run = run,
};
