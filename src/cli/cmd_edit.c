/* cmd_edit.c: `edit`: replaces exact text in a file, one or many times, all or nothing.
 *
 * OLD and NEW come from the command line, or a list of edits from a JSON file or stdin
 * (wire/edits_json.c). Text is taken literally, without escapes or patterns. The library
 * matches and writes atomically, and refuses a file that changed in between. */
#include <stddef.h>

#include "base/arena.h"
#include "cli/commands.h"
#include "wire/edits_json.h"
#include "wire/result_json.h"

#define EDITS_MAX ((size_t)64 << 20) /* bytes of a file of edits */

typedef struct edit_opts {
    const char *edits;
    bool all, nofollow;
} edit_opts;

static int check(csn_cli *c, void *opts)
{
    const edit_opts *o = opts;

    if (!o->edits && c->nargs < 4)
        return csn_cli_usage(c, "or --edits FILE.json", "missing argument %s",
                             c->nargs < 3 ? "OLD" : "NEW");
    if (o->edits && c->nargs > 2)
        return csn_cli_usage(c, NULL, "--edits and OLD exclude each other");
    if (o->edits && o->all)
        return csn_cli_usage(c, "put \"replace_all\": true into the file",
                             "--edits and --all exclude each other");
    return 0;
}

/* Takes the edits from the command line (OLD and NEW) or from the file. Returns 0 or an exit
 * status. */
static int take_edits(csn_cli *c, const edit_opts *o, csn_arena *a, csn_edit_item *one,
                      csn_edit_item **ret, size_t *ret_count)
{
    csn_autofree char *text = NULL;
    csn_error *err = NULL;
    size_t len = 0;

    if (!o->edits) {
        *one = (csn_edit_item){
            .old_string = c->arg[2], .new_string = c->arg[3], .replace_all = o->all};
        *ret = one;
        *ret_count = 1;
        return 0;
    }
    if (csn_cli_slurp(o->edits, EDITS_MAX, &text, &len, &err) < 0 ||
        csn_wire_edits(text, len, o->edits, a, ret, ret_count, &err) < 0)
        return csn_cli_fail(c, err);
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    const edit_opts *o = opts;
    csn_edit_result *r = NULL;
    csn_error *err = NULL;
    csn_edit_item one, *edits = NULL;
    size_t count = 0;

    if (!a)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    int status = take_edits(c, o, a, &one, &edits, &count);
    if (status)
        return status;
    uint32_t flags = o->nofollow ? CSN_FILE_NOFOLLOW : 0;
    if (csn_edit(c->sb, c->arg[1], edits, count, flags, &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_edit, r);
    csn_edit_result_free(r);
    return status;
}

#define AT(field) offsetof(edit_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 0, "all", AT(all), NULL, "replace every occurrence", NULL},
    {CSN_OPT_STR, 0, "edits", AT(edits), "FILE.json",
     "[{\"old_string\", \"new_string\", \"replace_all\"}]; - is stdin", NULL},
    {CSN_OPT_FLAG, 0, "nofollow", AT(nofollow), NULL, "refuse symlinks in the path", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_edit = {
    .name = "edit",
    .args = "ID PATH [OLD] [NEW]",
    .usage = "ID PATH (OLD NEW [--all] | --edits FILE.json)",
    .summary = "replace exact text in a file",
    .intro =
        "Replaces OLD by NEW, both taken literally. OLD must occur exactly once unless\n"
        "--all is given. A file of edits is applied in order, all of them or none. If the\n"
        "file changes in between, nothing is written. Text with a leading dash goes after\n"
        "--.",
    .examples = "  caisson edit $id main.c 'int x;' 'long x;'\n"
                "  caisson edit $id main.c foo bar --all --json\n"
                "  caisson edit $id main.c --edits edits.json\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(edit_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
