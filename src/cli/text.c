/* text.c: prints untrusted text, sizes and times for people.
 *
 * Names and lines come from inside sandboxes: on a terminal an escape sequence in a file name
 * could move the cursor, retitle the window or fake output. On a terminal, control bytes and
 * invalid UTF-8 are therefore printed as \xNN. A pipe or file gets the bytes unchanged, because
 * scripts need the real name. Messages on stderr are always escaped. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/cli.h"

/* True for C0, DEL, and the C1 controls encoded as two bytes of UTF-8. */
static bool is_control(const unsigned char *s, size_t n)
{
    if (n == 1)
        return *s < 0x20 || *s == 0x7f;
    return n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

static void escape(FILE *to, const char *text, size_t len, bool keep_tabs)
{
    const unsigned char *s = (const unsigned char *)text;

    for (size_t i = 0; i < len;) {
        size_t n = csn_utf8_char(s + i, len - i);
        if (n > 0 && (!is_control(s + i, n) || (keep_tabs && s[i] == '\t'))) {
            fwrite(s + i, 1, n, to);
            i += n;
            continue;
        }
        size_t bad = n > 0 ? n : 1;
        for (size_t k = 0; k < bad; k++)
            fprintf(to, "\\x%02x", s[i + k]);
        i += bad;
    }
}

static bool on_terminal(void)
{
    static int answer = -1; /* cached: isatty is a system call */

    if (answer < 0)
        answer = isatty(STDOUT_FILENO);
    return answer;
}

void csn_cli_put_name(const char *name)
{
    if (on_terminal())
        escape(stdout, name, strlen(name), false);
    else
        fputs(name, stdout);
}

void csn_cli_put_text(const char *text, size_t len)
{
    if (on_terminal())
        escape(stdout, text, len, true);
    else
        fwrite(text, 1, len, stdout);
}

void csn_cli_escape(FILE *to, const char *text, size_t len)
{
    escape(to, text, len, false);
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
