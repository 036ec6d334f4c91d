/* cmd_cat.c: `cat`: copies a file to stdout, byte for byte.
 *
 * On a terminal control and direction characters are shown in a visible form, unless --raw.
 * The content is streamed, so a file of any size needs little memory; only --json holds all of
 * it, up to a ceiling. The library refuses fifos and devices. If the reader of stdout closes
 * it, the exit status is 141. */
#include <stddef.h>

#include "cli/commands.h"

/* With --json the content is one string, so it must fit into memory. */
#define JSON_FILE_MAX ((size_t)1 << 30)

typedef struct cat_opts {
    bool nofollow, raw;
} cat_opts;

static int keep(void *ctx, const void *data, size_t len)
{
    csn_buf *b = ctx;

    return csn_buf_append(b, data, len) != 0;
}

static int cat_json(csn_cli *c, const csn_read_opts *ro)
{
    csn_error *err = NULL;
    csn_answer a;
    csn_autobuf content;

    csn_buf_init(&content, JSON_FILE_MAX);
    if (csn_read_bytes(c->sb, c->arg[1], ro, keep, &content, &err) < 0)
        return csn_cli_fail(c, err);
    if (content.len == JSON_FILE_MAX)
        return csn_cli_fail_text(c, CSN_TOO_LARGE, "the file is too large for --json");
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kstr(j, "path", c->arg[1]);
    csn_json_key(j, "content");
    csn_json_base64(j, content.data ? content.data : "", content.len);
    csn_json_kstr(j, "encoding", "base64");
    csn_json_kuint(j, "bytes", content.len);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

static int cat_visible(csn_cli *c, const csn_read_opts *ro)
{
    csn_cli_shown shown = {0};
    csn_error *err = NULL;

    if (csn_read_bytes(c->sb, c->arg[1], ro, csn_cli_show_chunk, &shown, &err) < 0)
        return csn_cli_fail(c, err);
    csn_cli_show_end(&shown);
    return shown.error ? csn_cli_write_failed(c, shown.error) : csn_cli_flush(c, 0);
}

static int run(csn_cli *c, void *opts)
{
    const cat_opts *o = opts;
    csn_read_opts ro = {.size = sizeof(ro), .flags = o->nofollow ? CSN_FILE_NOFOLLOW : 0};
    csn_error *err = NULL;
    int write_error = 0;

    if (c->json)
        return cat_json(c, &ro);
    if (!o->raw && csn_cli_on_terminal())
        return cat_visible(c, &ro);
    if (csn_read_bytes(c->sb, c->arg[1], &ro, csn_cli_write_stdout, &write_error, &err) < 0)
        return csn_cli_fail(c, err);
    return write_error ? csn_cli_write_failed(c, write_error) : 0;
}

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 0, "nofollow", offsetof(cat_opts, nofollow), NULL,
     "refuse symlinks in the path", NULL},
    {CSN_OPT_FLAG, 0, "raw", offsetof(cat_opts, raw), NULL,
     "send control characters to a terminal", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_cat = {
    .name = "cat",
    .args = "ID PATH",
    .summary = "the bytes of a file",
    .intro =
        "Copies a file to stdout, byte for byte, whatever its size. Only regular files can\n"
        "be read. With --json the content is base64. On a terminal control and direction\n"
        "characters are shown as \\xNN and <U+NNNN>, unless --raw is given.",
    .examples = "  caisson cat $id build/app > app\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(cat_opts),
    .flags = CSN_CMD_SANDBOX,
    .run = run,
};
