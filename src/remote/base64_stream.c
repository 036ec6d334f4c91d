/* base64_stream.c: the output of commands where a provider carries nothing but text.
 *
 * Such a provider turns a byte that is not UTF-8 into something else, and says of an end no
 * more than a number: an exit with 137 and a kill look the same. So inside the sandbox each
 * stream goes through a loop that spells what there is, whenever there is something, in lines
 * of base64; awk, which unlike a shell tells the two ends apart, waits for the command; and the
 * last line of both streams is the mark and how it ended. A child that the command left behind
 * may hold the pipes for ever: the end is known all the same.
 *
 * Lines come from the sandbox and are not trusted: bounded, and passed on as they are where
 * they are not base64. Whoever forges an end inside fools only those who ask about himself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/strv.h"
#include "remote/remote.h"

#define CHUNK     "65536"
#define LINE_MAX_ 4096u /* of base64 that is wrapped, and to spare */
#define PASS_MAX  (64u * 1024u)
#define HELD_MAX  128u
#define END_BYTE  '\036' /* before the mark: hardly anything ends with it, waiting to go on */
#define SIGNALLED 256

/* dd reads once, so it does not wait until there is more. The arguments reach the command by
 * variables: awk's system() has no others. Descriptors: 6 and 7 the command's stdout, 8 and 9
 * the provider's. Nothing here has the mark in its environment, so that what ends the command
 * leaves it alone. */
const char csn_remote_coder[] =
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

const char csn_remote_coder_test[] =
    "awk 'BEGIN { s = system(\"kill -9 $$\"); if (s != int(s)) s = 256 + (s * 256) % 128\n"
    "  print s }'\n";

void csn_remote_coded_init(csn_remote_coded *c, const char *mark,
                           int (*on_output)(void *, int, const void *, size_t), void *ctx)
{
    *c = (csn_remote_coded){.mark = mark, .on_output = on_output, .ctx = ctx};
    for (size_t i = 0; i < 2; i++) {
        csn_buf_init(&c->of[i].line, LINE_MAX_);
        csn_buf_init(&c->of[i].held, PASS_MAX + 2 * LINE_MAX_);
    }
}

void csn_remote_coded_release(csn_remote_coded *c)
{
    for (size_t i = 0; i < 2; i++) {
        csn_buf_release(&c->of[i].line);
        csn_buf_release(&c->of[i].held);
    }
}

/* ---- the end in the output -------------------------------------------------------------- */

/* Where the last line begins, or may begin; len: nowhere. *ret_whole: all of it is there. */
static size_t find_end(const csn_remote_coded *c, const char *data, size_t len, int *ret_status,
                       bool *ret_whole)
{
    char want[48];
    size_t n = (size_t)snprintf(want, sizeof(want), "%c%s ", END_BYTE, c->mark);

    *ret_whole = false;
    for (size_t at = 0; at < len; at++) {
        const char *p = memchr(data + at, END_BYTE, len - at);
        if (!p)
            return len;
        at = (size_t)(p - data);
        size_t left = len - at;
        if (memcmp(p, want, left < n ? left : n) != 0)
            continue;
        const char *nl = left > n ? memchr(p, '\n', left) : NULL;
        if (!nl && left >= HELD_MAX)
            continue;
        *ret_whole = nl != NULL;
        long said = nl && p[n] >= '0' && p[n] <= '9' ? strtol(p + n, NULL, 10) : -1;
        *ret_status = said >= 0 && said < 4 * SIGNALLED ? (int)said : SIGNALLED;
        return at;
    }
    return len;
}

/* Passes decoded bytes on, but for what is or may be the last line. */
static int pass(csn_remote_coded *c, int stream)
{
    csn_buf *held = &c->of[stream - 1].held;
    bool whole = false;
    int status = 0;

    if (held->len == 0)
        return 0;
    size_t n = find_end(c, held->data, held->len, &status, &whole);
    int stop = n > 0 ? c->on_output(c->ctx, stream, held->data, n) : 0;
    if (whole) {
        c->of[stream - 1].over = true;
        c->status = status;
        n = held->len; /* what comes after is not the command's */
    }
    memmove(held->data, held->data + n, held->len - n);
    held->len -= n;
    return stop;
}

/* ---- lines ------------------------------------------------------------------------------ */

/* Decodes a line, for pass. What is no base64 was not written by the loop: an error of the
 * provider, say. */
static int whole_line(csn_remote_coded *c, int stream)
{
    csn_buf *line = &c->of[stream - 1].line, *held = &c->of[stream - 1].held;
    size_t before = held->len;
    long n = -1;

    if (line->len == 0 || csn_buf_reserve(held, line->len + 3) != 0)
        return line->len == 0 ? 0 : CSN_REMOTE_ENOUGH;
    if (line->len % 4 == 0)
        n = csn_base64_decode(line->data, line->len, held->data + before);
    if (n >= 0) {
        held->len = before + (size_t)n;
    } else {
        memcpy(held->data + before, line->data, line->len);
        held->len = before + line->len;
        held->data[held->len++] = '\n';
    }
    line->len = 0;
    return held->len >= PASS_MAX ? pass(c, stream) : 0;
}

int csn_remote_coded_take(csn_remote_coded *c, int stream, const void *data, size_t len)
{
    csn_buf *line = &c->of[stream - 1].line;
    const char *p = data;
    int stop = 0;

    while (len > 0 && stop == 0 && !c->of[stream - 1].over) {
        const char *nl = memchr(p, '\n', len);
        size_t n = nl ? (size_t)(nl - p) : len;
        size_t room = line->max - 1 - line->len;
        bool fits = n <= room;
        n = fits ? n : room;
        if (csn_buf_append(line, p, n) != 0)
            return CSN_REMOTE_ENOUGH;
        if (nl || !fits)
            stop = whole_line(c, stream);
        n += fits && nl ? 1 : 0;
        p += n;
        len -= n;
    }
    if (stop == 0 && !c->of[stream - 1].over)
        stop = pass(c, stream);
    if (stop != 0)
        return stop;
    return c->of[0].over && c->of[1].over ? CSN_REMOTE_DONE : 0;
}

/* What the last line says. */
static void told(int status, csn_remote_exit *x)
{
    x->started = x->ended = true;
    x->exit_code = status < SIGNALLED ? status : -1;
    x->signal = 0;
    if (status >= SIGNALLED && csn_signal_name(status % SIGNALLED))
        x->signal = status % SIGNALLED; /* twice 256: it left a core */
}

/* Without a last line an end is what the provider says of the wrapper. Shells call a signal 128
 * and more. That all is well is then not known: somebody ended those who would say so. */
void csn_remote_coded_end(csn_remote_coded *c, csn_remote_exit *x)
{
    bool both = c->of[0].over && c->of[1].over, one = c->of[0].over || c->of[1].over;

    for (int stream = CSN_STDOUT; stream <= CSN_STDERR && !both; stream++) {
        csn_buf *held = &c->of[stream - 1].held;
        (void)whole_line(c, stream);
        (void)pass(c, stream);
        if (held->len > 0)
            (void)c->on_output(c->ctx, stream, held->data, held->len);
    }
    if (both || (one && x->ended))
        told(c->status, x);
    else if (x->ended && x->exit_code > 128 && csn_signal_name(x->exit_code - 128))
        x->signal = x->exit_code - 128;
    else if (x->exit_code == 0)
        x->ended = false;
}
