/* cmd_read.c: `read`: prints a window of lines of a file.
 *
 * Invariant: stdout gets the content and nothing else, byte for byte (CRLF and invalid UTF-8
 * included); a note on stderr says how to read the rest. On a terminal control and direction
 * characters are shown in a visible form, unless --raw; images are not written to one.
 * --json includes the hash of the file, for a later write --if-hash. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "cli/commands.h"
#include "wire/result_json.h"

typedef struct read_opts {
    uint64_t offset, limit;
    const char *encoding;
    bool numbers, nofollow, raw;
} read_opts;

static int print_base64(const csn_cli *c, const csn_read_result *r)
{
    csn_autofree char *text = malloc(csn_base64_size(r->content_len) + 1);

    if (!text)
        return csn_cli_fail_text(c, CSN_NOMEM, "out of memory");
    csn_base64_encode(r->content, r->content_len, text);
    puts(text);
    return 0;
}

static int print_content(const csn_cli *c, const csn_read_result *r, const read_opts *o)
{
    if (o->encoding && strcmp(o->encoding, "base64") == 0)
        return print_base64(c, r);
    if (r->is_image && isatty(STDOUT_FILENO)) {
        csn_cli_note(c, "%s, %" PRIu64 " bytes: not shown on a terminal", r->mime_type,
                     r->bytes);
        return 0;
    }
    if (!o->raw && csn_cli_on_terminal())
        csn_cli_put_lines(r->content, r->content_len);
    else
        fwrite(r->content, 1, r->content_len, stdout);
    if (o->limit == 0 && !r->is_image)
        csn_cli_note(c, "%s%" PRIu64 " lines, %" PRIu64 " bytes",
                     r->total_lines_exact ? "" : "more than ", r->total_lines, r->bytes);
    else if (r->truncated)
        csn_cli_note(c,
                     "truncated by %s: %" PRIu64 " of %s%" PRIu64
                     " lines shown, continue with --offset %" PRIu64,
                     r->truncated_by, r->output_lines, r->total_lines_exact ? "" : "more than ",
                     r->total_lines, o->offset + r->output_lines);
    return 0;
}

static int run(csn_cli *c, void *opts)
{
    const read_opts *o = opts;
    csn_read_result *r = NULL;
    csn_error *err = NULL;
    csn_read_opts ro = {.size = sizeof(ro), .offset = o->offset, .limit = o->limit};
    int status;

    ro.flags = (o->numbers ? CSN_FILE_NUMBERS : 0) | (o->nofollow ? CSN_FILE_NOFOLLOW : 0) |
               (c->json ? CSN_FILE_HASH : 0);
    if (csn_read(c->sb, c->arg[1], &ro, &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (c->json)
        status = CSN_CLI_JSON(c, csn_wire_read, r,
                              o->encoding && strcmp(o->encoding, "base64") == 0);
    else
        status = print_content(c, r, o);
    csn_read_result_free(r);
    return status;
}

#define AT(field) offsetof(read_opts, field)

static const csn_opt options[] = {
    {CSN_OPT_U64, 0, "offset", AT(offset), "N", "lines to skip, default 0", NULL},
    {CSN_OPT_U64, 0, "limit", AT(limit), "N", "lines to show, default 2000; 0: count them",
     NULL},
    {CSN_OPT_FLAG, 'n', "numbers", AT(numbers), NULL, "line numbers, from 1", NULL},
    {CSN_OPT_FLAG, 0, "nofollow", AT(nofollow), NULL, "refuse symlinks in the path", NULL},
    {CSN_OPT_FLAG, 0, "raw", AT(raw), NULL, "send control characters to a terminal", NULL},
    {CSN_OPT_STR, 0, "encoding", AT(encoding), "text|base64", "how the content is printed",
     "text|base64"},
    {CSN_OPT_END},
};

const csn_command csn_cmd_read = {
    .name = "read",
    .args = "ID PATH",
    .summary = "show lines of a file",
    .intro =
        "Prints a window of lines of a text file: at most 2000 lines and 256 KiB at a time,\n"
        "and says on stderr when there is more. Images and PDF come whole; with --json as\n"
        "base64 with their type. For the bytes of a file of any size use cat.",
    .examples = "  caisson read $id src/main.c --numbers\n"
                "  caisson read $id big.log --offset 4000 --limit 100\n"
                "  caisson read $id logo.png --json\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(read_opts),
    .defaults = &(const read_opts){.limit = CSN_LINES_DEFAULT},
    .flags = CSN_CMD_SANDBOX,
    .run = run,
};
