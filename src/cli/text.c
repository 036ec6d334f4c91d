/* text.c: prints untrusted text, sizes and times for people.
 *
 * Names and lines come from inside sandboxes: on a terminal an escape sequence in a file name
 * could move the cursor, retitle the window or fake output. On a terminal they are therefore
 * printed in a visible form (base/visible.h). A pipe or file gets the bytes unchanged, because
 * scripts need the real name. Messages on stderr are always escaped. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/visible.h"
#include "cli/cli.h"

static void escape(const char *text, size_t len, csn_visible_kind kind)
{
    const unsigned char *s = (const unsigned char *)text;
    char form[CSN_VISIBLE_SIZE];

    for (size_t i = 0, n; i < len; i += n) {
        n = csn_visible_next(s + i, len - i, kind, form);
        if (form[0])
            fputs(form, stdout);
        else
            fwrite(s + i, 1, n, stdout);
    }
}

bool csn_cli_on_terminal(void)
{
    static int answer = -1; /* cached: isatty is a system call */

    if (answer < 0)
        answer = isatty(STDOUT_FILENO);
    return answer;
}

void csn_cli_put_name(const char *name)
{
    if (csn_cli_on_terminal())
        escape(name, strlen(name), CSN_VISIBLE_NAME);
    else
        fputs(name, stdout);
}

void csn_cli_put_text(const char *text, size_t len)
{
    if (csn_cli_on_terminal())
        escape(text, len, CSN_VISIBLE_TEXT);
    else
        fwrite(text, 1, len, stdout);
}

void csn_cli_escape(csn_buf *to, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    char form[CSN_VISIBLE_SIZE];

    for (size_t i = 0, n; i < len; i += n) {
        n = csn_visible_next(s + i, len - i, CSN_VISIBLE_NAME, form);
        if (form[0])
            csn_buf_puts(to, form);
        else
            csn_buf_append(to, s + i, n);
    }
}

void csn_cli_put_lines(const char *text, size_t len)
{
    escape(text, len, CSN_VISIBLE_LINES);
}

void csn_cli_put_json(const char *text, size_t len)
{
    if (csn_cli_on_terminal())
        escape(text, len, CSN_VISIBLE_JSON);
    else
        fwrite(text, 1, len, stdout);
}

int csn_cli_show_chunk(void *ctx, const void *data, size_t len)
{
    csn_cli_shown *s = ctx;
    const char *text = data;

    for (size_t i = 0; i < len;) {
        char joined[8];
        if (s->tail_len > 0) { /* complete what the last chunk began, byte by byte */
            memcpy(joined, s->tail, s->tail_len);
            joined[s->tail_len] = text[i++];
            size_t have = s->tail_len + 1;
            s->tail_len = csn_visible_tail(joined, have);
            csn_cli_put_lines(joined, have - s->tail_len);
            memmove(s->tail, joined + have - s->tail_len, s->tail_len);
            continue;
        }
        s->tail_len = csn_visible_tail(text + i, len - i);
        csn_cli_put_lines(text + i, len - i - s->tail_len);
        memcpy(s->tail, text + len - s->tail_len, s->tail_len);
        i = len;
    }
    s->error = ferror(stdout) ? errno : 0;
    return s->error != 0;
}

void csn_cli_show_end(csn_cli_shown *s)
{
    csn_cli_put_lines(s->tail, s->tail_len);
    s->tail_len = 0;
}

const char *csn_cli_human_size(uint64_t bytes, char buf[CSN_HUMAN_SIZE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes / 1024;
    size_t u = 0;

    if (bytes < 1024) {
        snprintf(buf, CSN_HUMAN_SIZE, "%" PRIu64 " bytes", bytes);
        return buf;
    }
    for (; v >= 1024 && u < 5; u++)
        v /= 1024;
    snprintf(buf, CSN_HUMAN_SIZE, v < 10 && v != (double)(int)v ? "%.1f %s" : "%.0f %s", v,
             units[u]);
    return buf;
}

const char *csn_cli_human_ms(uint64_t ms, char buf[CSN_HUMAN_SIZE])
{
    if (ms == CSN_NO_LIMIT)
        snprintf(buf, CSN_HUMAN_SIZE, "no limit");
    else if (ms % 3600000 == 0 && ms > 0)
        snprintf(buf, CSN_HUMAN_SIZE, "%" PRIu64 "h", ms / 3600000);
    else if (ms % 60000 == 0 && ms > 0)
        snprintf(buf, CSN_HUMAN_SIZE, "%" PRIu64 "m", ms / 60000);
    else if (ms % 1000 == 0)
        snprintf(buf, CSN_HUMAN_SIZE, "%" PRIu64 "s", ms / 1000);
    else
        snprintf(buf, CSN_HUMAN_SIZE, "%" PRIu64 "ms", ms);
    return buf;
}

const char *csn_cli_human_time(int64_t ms, char buf[CSN_HUMAN_SIZE])
{
    char iso[CSN_ISO_SIZE];

    if (ms == 0) {
        snprintf(buf, CSN_HUMAN_SIZE, "-");
        return buf;
    }
    csn_iso8601(ms * 1000000, iso);
    snprintf(buf, CSN_HUMAN_SIZE, "%.16s", iso);
    char *t = strchr(buf, 'T');
    if (t)
        *t = ' ';
    return buf;
}
