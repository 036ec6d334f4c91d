/* cmd_destroy.c: `destroy`: ends sandboxes and removes their files.
 *
 * A failure is reported and the other ids are still destroyed. A name that no sandbox has is no
 * failure, because nothing is left to destroy, as with an id whose sandbox has ended. It may
 * also be a typing error, so a line on stderr says so. --json prints one object: the ids that
 * were destroyed, the names that no sandbox has, what the last scan moved to quarantine, and
 * the first error. */
#include "base/nearest.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "cli/exec_opts.h"
#include "wire/result_json.h"

/* The denials as they come, as elements of a JSON array. */
typedef struct report {
    csn_cli *c;
    csn_json *denials;
} report;

static void note_denial(void *ctx, const csn_denial *d)
{
    const report *r = ctx;

    csn_cli_end_denial(r->c, d);
    if (r->c->json)
        csn_wire_denial(r->denials, d);
}

static void put_names(csn_json *j, const char *key, char *const *names)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (; names && *names; names++)
        csn_json_str(j, *names);
    csn_json_array_end(j);
}

/* Names the nearest sandbox, if there is one of a similar name. */
static void note_absent(const csn_cli *c, const char *name)
{
    csn_sandbox_list *l = NULL;
    const char *meant = NULL;

    (void)csn_sandboxes(&l, NULL);
    for (size_t i = 0; l && i < l->count && !meant; i++)
        meant = l->items[i].name
                    ? csn_nearest(name, (const char *const[]){l->items[i].name, NULL})
                    : NULL;
    csn_cli_note(c, "no sandbox has the name '%s', so there is nothing to destroy%s%s%s", name,
                 meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
    csn_sandbox_list_free(l);
}

static int run(csn_cli *c, void *opts)
{
    csn_error *first = NULL;
    char **gone = NULL, **absent = NULL;
    int status = 0;
    csn_cli plain = *c;
    csn_answer a;
    report r = {.c = c};

    (void)opts;
    plain.json = false; /* errors of single ids go to stderr only */
    if (c->json) {
        r.denials = csn_answer_begin(&a);
        csn_json_object(r.denials);
        csn_json_key(r.denials, "denials");
        csn_json_array(r.denials);
    }
    for (const char *const *id = c->arg; *id; id++) {
        csn_error *err = NULL;
        csn_status st = csn_destroy_id_report(*id, note_denial, &r, &err);
        if (st == CSN_OK || st == CSN_NOT_FOUND) {
            if (csn_strv_push(st == CSN_OK ? &gone : &absent, *id) != 0)
                status = CSN_EXIT_FAILED;
            if (st == CSN_NOT_FOUND)
                note_absent(c, *id);
            csn_error_free(err);
            continue;
        }
        /* 2 if all that failed have no valid syntax */
        bool wrong = csn_error_code(err) == CSN_INVALID && status != CSN_EXIT_FAILED;
        status = wrong ? CSN_EXIT_USAGE : CSN_EXIT_FAILED;
        if (c->json && !first)
            first = err;
        else
            csn_cli_fail(&plain, err);
    }
    if (c->json) {
        csn_json_array_end(r.denials);
        put_names(r.denials, "destroyed", gone);
        put_names(r.denials, "absent", absent);
        if (first) {
            csn_json_key(r.denials, "error");
            csn_wire_error(r.denials, first, c->cmd->name);
        }
        csn_json_object_end(r.denials);
        int failed = csn_answer_end(c, &a);
        status = failed ? failed : status;
    }
    if (first)
        csn_cli_fail(&plain, first);
    csn_strv_free(gone);
    csn_strv_free(absent);
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
        "answer is killed; the rest of one that has ended is removed. One that has ended\n"
        "already is no error; a name that no sandbox has is named on stderr. Protected files\n"
        "that were made since the last command are moved to quarantine and reported.",
    .examples = "  caisson destroy $id\n"
                "  caisson destroy build test --json\n",
    .run = run,
};
