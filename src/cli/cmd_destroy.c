/* cmd_destroy.c: `destroy`: ends sandboxes and removes their files.
 *
 * A failure is reported and the other ids are still destroyed. --json prints one object: the
 * ids that were destroyed, and the first error. */
#include "base/strv.h"
#include "cli/commands.h"
#include "wire/result_json.h"

static int answer(const csn_cli *c, char *const *gone, const csn_error *first)
{
    csn_answer a;
    csn_json *j = csn_answer_begin(&a);

    csn_json_object(j);
    csn_json_key(j, "destroyed");
    csn_json_array(j);
    for (; gone && *gone; gone++)
        csn_json_str(j, *gone);
    csn_json_array_end(j);
    if (first) {
        csn_json_key(j, "error");
        csn_wire_error(j, first, c->cmd->name);
    }
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

static int run(csn_cli *c, void *opts)
{
    csn_error *first = NULL;
    char **gone = NULL;
    int status = 0;
    csn_cli plain = *c;

    (void)opts;
    plain.json = false; /* errors of single ids go to stderr only */
    for (const char *const *id = c->arg; *id; id++) {
        csn_error *err = NULL;
        if (csn_destroy_id(*id, &err) == CSN_OK) {
            if (csn_strv_push(&gone, *id) != 0)
                status = CSN_EXIT_FAILED;
            continue;
        }
        status = CSN_EXIT_FAILED;
        if (c->json && !first)
            first = err;
        else
            csn_cli_fail(&plain, err);
    }
    if (c->json) {
        int failed = answer(c, gone, first);
        status = failed ? failed : status;
    }
    if (first)
        csn_cli_fail(&plain, first);
    csn_strv_free(gone);
    return status;
}

const csn_command csn_cmd_destroy = {
    .name = "destroy",
    .args = "ID...",
    .usage = "ID...",
    .summary = "end sandboxes and remove everything of them",
    .intro =
        "Ends every process of the sandbox and removes what belongs to it. Your workspace\n"
        "directory stays as it is. Several ids or names may be given. One that does not\n"
        "answer is killed; the rest of one that has ended is removed. An id that does not\n"
        "exist, or was destroyed before, is an error.",
    .examples = "  caisson destroy $id\n"
                "  caisson destroy build test --json\n",
    .run = run,
};
