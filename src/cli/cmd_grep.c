/* cmd_grep.c: `grep`: searches file contents.
 *
 * Matches are printed as by grep(1): path:line:text, path-line-text for context, -- between
 * groups. A signal cancels the search. Pattern and files are untrusted; the matcher limits the
 * steps of an expression. No match is exit status 0: status 1 means that the search failed. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "cli/commands.h"
#include "wire/result_json.h"

#define CONTEXT_MAX 10000

typedef struct grep_opts {
    const char *glob;
    uint64_t context, max;
    bool regex, ignore_case, gitignore;
} grep_opts;

static void print_matches(const csn_grep_result *r, bool groups)
{
    for (size_t i = 0; i < r->count; i++) {
        const csn_grep_match *m = &r->items[i], *last = i ? m - 1 : NULL;
        if (groups && last && (m->line != last->line + 1 || strcmp(m->path, last->path) != 0))
            puts("--");
        char mark = m->is_context ? '-' : ':';
        csn_cli_put_name(m->path);
        printf("%c%" PRIu64 "%c", mark, m->line, mark);
        csn_cli_put_text(m->text, m->text_len);
        putchar('\n');
    }
}

static int search(csn_cli *c, const grep_opts *o, csn_cancel *cancel)
{
    csn_grep_opts go = {.size = sizeof(go),
                        .path = c->nargs > 2 ? c->arg[2] : NULL,
                        .glob = o->glob,
                        .context = (uint32_t)o->context,
                        .max = o->max,
                        .cancel = cancel};
    csn_grep_result *r = NULL;
    csn_error *err = NULL;
    int status = 0;

    go.flags = (o->regex ? CSN_GREP_REGEX : 0) | (o->ignore_case ? CSN_GREP_IGNORE_CASE : 0) |
               (o->gitignore ? CSN_GREP_GITIGNORE : 0);
    if (csn_grep(c->sb, c->arg[1], &go, &r, &err) < 0)
        return csn_cli_fail_value(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_grep, r);
    else
        print_matches(r, o->context > 0);
    if (r->truncated)
        csn_cli_note(c, "more matches exist: raise --max to see them");
    csn_grep_result_free(r);
    return status;
}

static int check(csn_cli *c, void *opts)
{
    const grep_opts *o = opts;

    if (o->context > CONTEXT_MAX)
        return csn_cli_usage(c, NULL, "-C takes at most %d lines, not %" PRIu64, CONTEXT_MAX,
                             o->context);
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    csn_cancel *cancel = NULL;
    csn_error *err = NULL;

    if (csn_cancel_new(&cancel, &err) < 0)
        return csn_cli_fail_value(c, err);
    csn_cli_catch_signals(cancel);
    int status = search(c, opts, cancel);
    csn_cli_catch_signals(NULL);
    csn_cancel_free(cancel);
    return status;
}

#define AT(field) offsetof(grep_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_STR, 0, "glob", AT(glob), "GLOB", "only files whose path matches", NULL},
    {CSN_OPT_FLAG, 0, "regex", AT(regex), NULL, "PATTERN is a regular expression (PCRE2)",
     NULL},
    {CSN_OPT_FLAG, 'i', "ignore-case", AT(ignore_case), NULL, "upper and lower case match",
     NULL},
    {CSN_OPT_FLAG, 0, "gitignore", AT(gitignore), NULL,
     "leave out what .gitignore files name, and .git", NULL},
    {CSN_OPT_U64, 'C', "context", AT(context), "N", "lines around each match", NULL},
    {CSN_OPT_COUNT, 0, "max", AT(max), "N", "stop after this many matches, default 10000",
     NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_grep = {
    .name = "grep",
    .args = "ID PATTERN [PATH]",
    .summary = "search file contents",
    .intro =
        "Prints the lines below PATH (a file or directory, default: the working directory)\n"
        "that hold PATTERN, as path:line:text. PATTERN is literal text unless --regex is\n"
        "given. Binary files are skipped. No match is not an error: the exit status is 0.",
    .examples = "  caisson grep $id 'TODO(' src\n"
                "  caisson grep $id --regex -i 'error|fail' --glob '*.log' -C 2\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(grep_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
