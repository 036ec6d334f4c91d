/* commit_report.c: prints the result of a commit.
 *
 * Paths come from inside the sandbox; on a terminal they are printed in visible form. */
#include "cli/commit_report.h"

#include <string.h>

#include "base/buf.h"

#define NAMES_MAX 10u /* of conflicts in one message */

static const char *word_of(const csn_change *c, bool dry)
{
    switch (c->outcome) {
    case CSN_OUTCOME_APPLIED:
        if (c->kind == CSN_CHANGE_DELETED)
            return dry ? "would delete" : "deleted";
        return dry ? "would write" : "written";
    case CSN_OUTCOME_MERGED:
        return dry ? "would merge" : "merged";
    case CSN_OUTCOME_CONFLICT:
        return "conflict";
    case CSN_OUTCOME_KEPT:
        return "kept";
    case CSN_OUTCOME_HELD:
        return "held back";
    case CSN_OUTCOME_SAME:
    case CSN_OUTCOME_NONE:
        break;
    }
    return "same";
}

void csn_commit_print(const csn_commit_result *r, bool dry)
{
    dry |= !r->written;
    for (size_t i = 0; i < r->count; i++) {
        const csn_change *c = &r->changes[i];
        const char *why = c->why ? c->why : c->outcome == CSN_OUTCOME_HELD ? c->held : NULL;
        printf("%-*s ", dry ? 12 : 9, word_of(c, dry));
        csn_cli_put_name(c->path);
        printf(why ? " (%s)\n" : "\n", why);
    }
}

int csn_commit_conflicts(const csn_cli *c, const csn_commit_result *r, const char *written)
{
    csn_autobuf text, hint;

    if (c->json) /* the answer has them */
        return CSN_EXIT_FAILED;
    csn_buf_init(&text, 65536);
    csn_buf_init(&hint, 65536);
    csn_buf_printf(&text, "%zu %s, nothing was written: ", r->conflict_count,
                   r->conflict_count == 1 ? "conflict" : "conflicts");
    for (size_t i = 0; i < r->conflict_count && i < NAMES_MAX; i++) {
        csn_buf_puts(&text, i > 0 ? ", " : "");
        csn_cli_escape(&text, r->conflicts[i].path, strlen(r->conflicts[i].path));
    }
    if (r->conflict_count > NAMES_MAX)
        csn_buf_puts(&text, ", ...");
    csn_buf_puts(&hint, "--mine keeps the host's files, --theirs takes the sandbox's, "
                        "--resolved PATH=FILE gives one content; ");
    if (written)
        csn_buf_printf(&hint, "all versions are in '%s'", written);
    else
        csn_buf_puts(&hint, "--conflicts DIR writes all versions");
    csn_cli_message(c->cmd->name, text.err ? "conflicts" : text.data,
                    hint.err ? NULL : hint.data);
    return CSN_EXIT_FAILED;
}
