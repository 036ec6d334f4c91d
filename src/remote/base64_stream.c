/* base64_stream.c: carries binary output and the exact exit status over a text-only transport.
 *
 * A text-only transport replaces bytes that are not UTF-8 and reports exit code 137 and SIGKILL
 * as the same number. Inside the sandbox each stream therefore passes through a loop that
 * encodes every read as lines of base64, and awk waits for the command, because awk, unlike a
 * shell, distinguishes exit codes from signals. Both streams end with a trailer: the byte 036,
 * the exec id and the status. The trailer marks the end of the command even while one of its
 * children holds the pipes open.
 *
 * Lines come from the sandbox and are not trusted: their length is limited, and lines that are
 * not base64 are delivered unchanged. A command that forges a trailer falsifies only its own
 * result. */
#include "remote/base64_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/strv.h"

#define CHUNK        "65536"
#define LINE_BYTES   4096u /* base64(1) wraps at 76 */
#define PASS_BYTES   (64u * 1024u)
#define TRAILER_MAX  128u
#define TRAILER_BYTE '\036' /* rare in output, so few bytes are held back */
#define SIGNALLED    256

/* dd reads once and does not wait for a full block. awk's system() takes a command line, so the
 * arguments are passed in variables. Descriptors: 6 and 7 are the command's stdout, 8 and 9 the
 * provider's streams. The loops do not have the exec id in their environment, so killing the
 * command does not kill them. */
const char csn_base64_stream_script[] =
    "CSN_M=$1 CSN_P=$2; shift 2\n"
    "CSN_N=0; for csn_a; do CSN_N=$((CSN_N + 1)); eval \"CSN_$CSN_N=\\$csn_a\"\n"
    "  export \"CSN_$CSN_N\"; done\n"
    "CSN_R='csn_m=$CSN_M csn_p=$CSN_P csn_i=0 csn_a=\n"
    "  while [ \"$csn_i\" -lt \"$CSN_N\" ]; do csn_i=$((csn_i + 1))\n"
    "    csn_a=\"$csn_a \\\"\\$CSN_$csn_i\\\"\"; done\n"
    "  eval \"set -- $csn_a\"\n"
    "  while [ \"$csn_i\" -gt 0 ]; do unset \"CSN_$csn_i\"; csn_i=$((csn_i - 1)); done\n"
    "  unset CSN_M CSN_N CSN_P CSN_R; eval \"$csn_p\"'\n"
    "export CSN_M CSN_N CSN_P CSN_R\n"
    "csn_e() { while csn_b=$(dd bs=" CHUNK " count=1 2>/dev/null | base64)\n"
    "  [ -n \"$csn_b\" ]; do printf '%s\\n' \"$csn_b\"; done; }\n"
    "csn_r() { csn_s=$(awk 'BEGIN { s = system(\"exec >&6 6>&-; eval \\\"$CSN_R\\\"\")\n"
    "    if (s != int(s)) s = 256 + (s * 256) % 128; print s }')\n"
    "  csn_s=\"\\036$CSN_M $csn_s\\n\"; printf \"$csn_s\"; printf \"$csn_s\" >&2; }\n"
    "exec 8>&1 9>&2\n"
    "{ csn_r 2>&1 >&7 6>&7 7>&- 8>&- 9>&- | csn_e >&9 7>&- 8>&- 9>&-; } 7>&1 |\n"
    "  csn_e >&8 8>&- 9>&-\n";

const char csn_base64_stream_probe[] =
    "awk 'BEGIN { s = system(\"kill -9 $$\"); if (s != int(s)) s = 256 + (s * 256) % 128\n"
    "  print s }'\n";

void csn_base64_stream_init(csn_base64_stream *s, const char *exec_id,
                            int (*on_output)(void *, int, const void *, size_t), void *ctx)
{
    *s = (csn_base64_stream){.exec_id = exec_id, .on_output = on_output, .ctx = ctx};
    for (size_t i = 0; i < 2; i++) {
        csn_buf_init(&s->streams[i].line, LINE_BYTES);
        csn_buf_init(&s->streams[i].decoded, PASS_BYTES + 2 * LINE_BYTES);
    }
}

void csn_base64_stream_release(csn_base64_stream *s)
{
    for (size_t i = 0; i < 2; i++) {
        csn_buf_release(&s->streams[i].line);
        csn_buf_release(&s->streams[i].decoded);
    }
}

/* ---- the trailer ------------------------------------------------------------------------ */

/* Returns the offset of the trailer, or of bytes that may be its beginning; len: there is
 * none. */
static size_t find_trailer(const csn_base64_stream *s, const char *data, size_t len,
                           int *ret_status, bool *ret_complete)
{
    char want[48];
    size_t n = (size_t)snprintf(want, sizeof(want), "%c%s ", TRAILER_BYTE, s->exec_id);

    *ret_complete = false;
    for (size_t at = 0; at < len; at++) {
        const char *p = memchr(data + at, TRAILER_BYTE, len - at);
        if (!p)
            return len;
        at = (size_t)(p - data);
        size_t left = len - at;
        if (memcmp(p, want, left < n ? left : n) != 0)
            continue;
        const char *nl = left > n ? memchr(p, '\n', left) : NULL;
        if (!nl && left >= TRAILER_MAX)
            continue;
        *ret_complete = nl != NULL;
        long status = nl && p[n] >= '0' && p[n] <= '9' ? strtol(p + n, NULL, 10) : -1;
        *ret_status = status >= 0 && status < 4 * SIGNALLED ? (int)status : SIGNALLED;
        return at;
    }
    return len;
}

/* Delivers decoded bytes, except the trailer and bytes that may be its beginning. */
static int pass_decoded(csn_base64_stream *s, int stream)
{
    csn_buf *decoded = &s->streams[stream - 1].decoded;
    bool complete = false;
    int status = 0;

    if (decoded->len == 0)
        return 0;
    size_t n = find_trailer(s, decoded->data, decoded->len, &status, &complete);
    int stop = n > 0 ? s->on_output(s->ctx, stream, decoded->data, n) : 0;
    if (complete) {
        s->streams[stream - 1].ended = true;
        s->status = status;
        n = decoded->len; /* discard bytes after the trailer */
    }
    memmove(decoded->data, decoded->data + n, decoded->len - n);
    decoded->len -= n;
    return stop;
}

/* ---- lines ------------------------------------------------------------------------------ */

/* The loop writes base64 only. Any other line, such as an error of the provider, is delivered
 * unchanged. */
static int decode_line(csn_base64_stream *s, int stream)
{
    csn_buf *line = &s->streams[stream - 1].line, *decoded = &s->streams[stream - 1].decoded;
    size_t before = decoded->len;
    long n = -1;

    if (line->len == 0)
        return 0;
    if (csn_buf_reserve(decoded, line->len + 3) != 0)
        return CSN_REMOTE_STOP;
    if (line->len % 4 == 0)
        n = csn_base64_decode(line->data, line->len, decoded->data + before);
    if (n >= 0) {
        decoded->len = before + (size_t)n;
    } else {
        memcpy(decoded->data + before, line->data, line->len);
        decoded->len = before + line->len;
        decoded->data[decoded->len++] = '\n';
    }
    line->len = 0;
    return decoded->len >= PASS_BYTES ? pass_decoded(s, stream) : 0;
}

int csn_base64_stream_feed(csn_base64_stream *s, int stream, const void *data, size_t len)
{
    csn_buf *line = &s->streams[stream - 1].line;
    const bool *ended = &s->streams[stream - 1].ended;
    const char *p = data;
    int stop = 0;

    while (len > 0 && stop == 0 && !*ended) {
        const char *nl = memchr(p, '\n', len);
        size_t n = nl ? (size_t)(nl - p) : len;
        size_t room = line->max - 1 - line->len;
        bool fits = n <= room;
        n = fits ? n : room;
        if (csn_buf_append(line, p, n) != 0)
            return CSN_REMOTE_STOP;
        if (nl || !fits)
            stop = decode_line(s, stream);
        n += fits && nl ? 1 : 0;
        p += n;
        len -= n;
    }
    if (stop == 0 && !*ended)
        stop = pass_decoded(s, stream);
    if (stop != 0)
        return stop;
    return s->streams[0].ended && s->streams[1].ended ? CSN_REMOTE_DONE : 0;
}

static void set_exit(int status, csn_remote_exit *x)
{
    x->started = x->ended = true;
    x->exit_code = status < SIGNALLED ? status : -1;
    x->signal = 0;
    if (status >= SIGNALLED && csn_signal_name(status % SIGNALLED))
        x->signal = status % SIGNALLED; /* 512 + signal: core dumped */
}

/* Without a trailer, only the provider's exit number of the wrapper is available. 128 + n is
 * reported as signal n. 0 is not reported as success: the processes that write the trailer were
 * killed, so the exit status is unknown. */
void csn_base64_stream_finish(csn_base64_stream *s, csn_remote_exit *x)
{
    bool first = s->streams[0].ended, second = s->streams[1].ended;

    for (int stream = CSN_STDOUT; stream <= CSN_STDERR && !(first && second); stream++) {
        csn_buf *decoded = &s->streams[stream - 1].decoded;
        (void)decode_line(s, stream);
        (void)pass_decoded(s, stream);
        if (decoded->len > 0)
            (void)s->on_output(s->ctx, stream, decoded->data, decoded->len);
    }
    if ((first && second) || ((first || second) && x->ended))
        set_exit(s->status, x);
    else if (x->ended && x->exit_code > 128 && csn_signal_name(x->exit_code - 128))
        x->signal = x->exit_code - 128;
    else if (x->exit_code == 0)
        x->ended = false;
}
