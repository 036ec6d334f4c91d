/* cmd_logs.c: `logs`: prints the output of a background process, with -f until it ends.
 *
 * The process's stdout goes to stdout and its stderr to stderr. The two streams are read in
 * turn; if both are empty, the library waits on one of them.
 *
 * Invariants: bytes are unchanged and in order per stream; bytes that the library's bounded
 * buffer dropped are reported on stderr; following ends with the process or when the reader
 * closes stdout. --json prints one object per chunk; if a chunk ends inside a UTF-8 character,
 * the partial character is kept for the next chunk. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/pid.h"
#include "wire/result_json.h"

#define WAIT_MS 100u

typedef struct logs_opts {
    bool follow;
} logs_opts;

typedef struct stream {
    int id;
    uint64_t offset;
    bool end;
} stream;

static int print_chunk(const csn_cli *c, const stream *s, const csn_log_chunk *chunk,
                       size_t len)
{
    int fd = s->id == CSN_STDERR ? STDERR_FILENO : STDOUT_FILENO;

    if (c->json)
        return CSN_CLI_JSON(c, csn_wire_log_chunk, s->id, chunk, len);
    if (chunk->dropped > 0)
        csn_cli_note(c, "%" PRIu64 " bytes of older output were dropped", chunk->dropped);
    int e = csn_cli_write(fd, chunk->data, len);
    if (e == EPIPE)
        return CSN_EXIT_BROKEN_PIPE;
    if (e != 0)
        return csn_cli_fail_text(c, CSN_IO, "cannot write: %s", csn_errno_text(e));
    return 0;
}

/* Prints the available bytes of one stream; sets *ret_got if there were any. */
static int take(csn_cli *c, csn_process *p, stream *s, uint64_t wait_ms, bool *ret_got)
{
    csn_log_chunk *chunk = NULL;
    csn_error *err = NULL;
    int status = 0;

    if (csn_process_logs(p, s->id, s->offset, wait_ms, &chunk, &err) < 0)
        return csn_cli_fail(c, err);
    size_t len = chunk->len;
    if (c->json && !chunk->end)
        len -= csn_utf8_cut_tail(chunk->data, chunk->len);
    if (len > 0 || chunk->dropped > 0) {
        status = print_chunk(c, s, chunk, len);
        *ret_got = true;
    }
    s->offset = chunk->offset + len;
    s->end = chunk->end && s->offset >= chunk->total;
    csn_log_chunk_free(chunk);
    return status;
}

static int follow(csn_cli *c, csn_process *p, bool until_end)
{
    stream s[2] = {{.id = CSN_STDOUT}, {.id = CSN_STDERR}};
    uint64_t wait_ms = 0;

    for (;;) {
        bool got = false;
        for (int i = 0; i < 2; i++) {
            /* wait on the first stream that has not ended */
            uint64_t ms = i == 0 || s[0].end ? wait_ms : 0;
            int status = s[i].end ? 0 : take(c, p, &s[i], ms, &got);
            if (status)
                return status;
        }
        if (s[0].end && s[1].end)
            return 0;
        if (!got && !until_end)
            return 0;
        if (csn_cli_reader_gone())
            return CSN_EXIT_BROKEN_PIPE;
        wait_ms = got ? 0 : WAIT_MS;
    }
}

static int check(csn_cli *c, void *opts)
{
    (void)opts;
    return csn_cli_check_pid(c);
}

static int run(csn_cli *c, void *opts)
{
    const logs_opts *o = opts;
    csn_process *p = NULL;

    int status = csn_cli_open_process(c, &p);
    if (status)
        return status;
    status = follow(c, p, o->follow);
    csn_process_free(p);
    return status;
}

static const csn_opt options[] = {
    {CSN_OPT_FLAG, 'f', "follow", offsetof(logs_opts, follow), NULL,
     "continue until the process ends", NULL},
    {CSN_OPT_END},
};

const csn_command csn_cmd_logs = {
    .name = "logs",
    .args = "ID PID",
    .usage = "ID PID [-f]",
    .summary = "the output of a background process",
    .intro =
        "Prints what a background process wrote so far: its stdout to stdout, its stderr to\n"
        "stderr. With -f it continues until the process ends. Only the newest output is\n"
        "kept; a note on stderr says how many bytes were dropped. --json prints one object\n"
        "per line.",
    .examples = "  caisson logs $id $pid\n"
                "  caisson logs $id $pid -f\n",
    .groups = {{"Options", options, 0}},
    .opts_size = sizeof(logs_opts),
    .flags = CSN_CMD_SANDBOX,
    .check = check,
    .run = run,
};
