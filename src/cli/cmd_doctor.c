/* cmd_doctor.c: `doctor`: what this host can give a sandbox, and what to do about the rest.
 *
 * The library tries and reports; this prints one line a finding, and below it what to do. The
 * texts are the library's own and the kernel's; a path in them is printed as a name. */
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
        return "the backend jail has all its walls here";
    if (strcmp(rung, "weaker") == 0)
        return "the backend jail works here only with --allow-weaker, without namespaces";
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
        csn_answer a;
        csn_wire_doctor(csn_answer_begin(&a), r);
        status = csn_answer_end(c, &a);
    } else {
        for (size_t i = 0; i < r->count; i++)
            print_check(&r->items[i]);
        printf("%-15s%-9s%s\n", "rung", r->rung, conclusion(r->rung));
    }
    if (status == 0 && !r->ok)
        status = CSN_EXIT_FAILED;
    csn_doctor_result_free(r);
    return status;
}

const csn_command csn_cmd_doctor = {
    .name = "doctor",
    .args = "[WORKSPACE]",
    .summary = "what this host can give a sandbox, and how to get the rest",
    .intro =
        "Tries every layer of the backend jail by itself, opens a real sandbox on WORKSPACE\n"
        "(the current directory), looks at it from inside and removes it. Tells what holds,\n"
        "what does not, why, and what to do about it.\n"
        "\n"
        "Exit status: 0 when nothing is missing, 1 when something is.",
    .examples = "  caisson doctor\n"
                "  caisson doctor --json\n"
                "  caisson doctor ~/project\n",
    .run = run,
};
