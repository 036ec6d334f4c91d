/* protected_gitconfig.c: separates the user's lines of a git config from those of a command.
 *
 * git replaces its config on every write. If the host does so while a sandbox runs, the mount
 * on the old file disappears and commands can write the new one; it must then be checked,
 * without the aliases and programs that the user's config had at the start. The new text is
 * hostile. Invariant: a line is left out only if the old config has the same line under the
 * same heading, and if its meaning depends only on its own text. */
#include <string.h>

#include "backend/jail/protected.h"
#include "base/buf.h"

#define TEXT_MAX (1u << 20)

typedef struct span {
    const char *at;
    size_t len;
} span;

static span next_line(const char **at, const char *end)
{
    const char *from = *at, *eol = memchr(from, '\n', (size_t)(end - from));

    *at = eol ? eol + 1 : end;
    return (span){from, (size_t)((eol ? eol : end) - from)};
}

static bool same(span a, span b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static bool is_heading(span line)
{
    size_t blank = 0;

    while (blank < line.len && (line.at[blank] == ' ' || line.at[blank] == '\t'))
        blank++;
    return blank < line.len && line.at[blank] == '[';
}

/* With continuation lines, the meaning of a line depends on the one before. */
static bool lines_stand_alone(const char *text, size_t len)
{
    return !memmem(text, len, "\\\n", 2) && !memmem(text, len, "\\\r", 2) &&
           !memchr(text, '\0', len);
}

static bool base_has(const char *base, span heading, span line)
{
    const char *end = base + strlen(base);
    span now = {"", 0};

    while (base < end) {
        span one = next_line(&base, end);
        if (is_heading(one))
            now = one;
        else if (same(now, heading) && same(one, line))
            return true;
    }
    return false;
}

char *csn_protected_gitconfig_strip(const csn_protected_tree *t, const char *text, size_t len,
                                    size_t *ret_len)
{
    const char *end = text + len;
    span heading = {"", 0};
    csn_autobuf out;

    csn_buf_init(&out, TEXT_MAX);
    if (!t->config || !lines_stand_alone(text, len) ||
        !lines_stand_alone(t->config, strlen(t->config)))
        return NULL;
    while (text < end) {
        span line = next_line(&text, end);
        if (is_heading(line))
            heading = line;
        else if (base_has(t->config, heading, line))
            continue;
        if (csn_buf_append(&out, line.at, line.len) != 0 || csn_buf_putc(&out, '\n') != 0)
            return NULL;
    }
    *ret_len = out.len;
    return csn_buf_take(&out);
}
