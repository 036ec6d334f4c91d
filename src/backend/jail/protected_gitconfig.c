/* protected_gitconfig.c: the user's own git config, changed by the user while a command runs.
 *
 * git replaces its config whenever it writes it. When the host does that, the mount that held
 * the old one goes with it, and from then on the sandbox could write the new one; so the new
 * one has to be judged, and the user's own aliases and programs in it would be found. What was
 * there at the start is the user's: the judge gets the rest. The new text is hostile. What must
 * hold: a line is left out only if the user's config has the very same line under the very same
 * heading, and if nothing but its own text says what it means. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/buf.h"
#include "base/error.h"
#include "os/atomic.h"

#define TEXT_MAX  (1u << 20)
#define NAME_SIZE 32u

static void base_name(const csn_protected *g, const csn_protected_tree *t, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "guard-config-%zu", (size_t)(t - g->trees));
}

csn_status csn_protected_gitconfig_save(csn_runtime *rt, csn_error **err)
{
    const csn_protected *g = rt->jail->protected;
    char name[NAME_SIZE];

    for (size_t i = 0; i < g->tree_count; i++) {
        const char *text = g->trees[i].config;
        if (!text)
            continue;
        base_name(g, &g->trees[i], name);
        csn_autofd int fd =
            openat(rt->run_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        int rc = fd < 0 ? -errno : csn_write_full(fd, text, strlen(text), NULL);
        if (rc < 0)
            return csn_runtime_run_failed(rt, -rc, "note of what is protected", err);
    }
    return CSN_OK;
}

static void base_read(csn_runtime *rt, csn_protected_tree *t)
{
    csn_protected *g = rt->jail->protected;
    char name[NAME_SIZE];

    base_name(g, t, name);
    csn_autofd int fd =
        rt->run_fd < 0 ? -1 : openat(rt->run_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    csn_autofree char *text = fd < 0 ? NULL : malloc(TEXT_MAX);
    ssize_t n = text ? read(fd, text, TEXT_MAX) : -1;
    if (n > 0)
        t->config = csn_arena_memdup(g->arena, text, (size_t)n);
}

/* ---- lines ---- */

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

/* With lines that go on, a line is not what it looks like. */
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

char *csn_protected_gitconfig_strip(csn_runtime *rt, csn_protected_tree *t, const char *text,
                                    size_t len, size_t *ret_len)
{
    const char *end = text + len;
    span heading = {"", 0};
    csn_autobuf out;

    csn_buf_init(&out, TEXT_MAX);
    if (!t->config)
        base_read(rt, t);
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
