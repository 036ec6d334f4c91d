/* changes_view.c: prints the changes of a copy-on-write workspace for people.
 *
 * Paths come from inside the sandbox: on a terminal they are printed in visible form. */
#include "cli/changes_view.h"

#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"

#define WIDTH_MAX 48 /* of the column of paths */

char csn_view_letter(csn_change_kind kind)
{
    switch (kind) {
    case CSN_CHANGE_ADDED:
        return 'A';
    case CSN_CHANGE_DELETED:
        return 'D';
    case CSN_CHANGE_META:
        return 'm';
    case CSN_CHANGE_TYPE:
        return 'T';
    case CSN_CHANGE_MODIFIED:
        break;
    }
    return 'M';
}

static size_t path_width(const csn_change *changes, size_t count)
{
    size_t width = 0;

    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(changes[i].path);
        if (len > width && len <= WIDTH_MAX)
            width = len;
    }
    return width;
}

static void put_size(csn_buf *to, const csn_change *c)
{
    char size[CSN_HUMAN_SIZE];

    if (c->binary)
        csn_buf_printf(to, "  binary, %s", csn_cli_human_size(c->size_after, size));
    if (c->lines_added)
        csn_buf_printf(to, "  +%" PRIu64, c->lines_added);
    if (c->lines_removed)
        csn_buf_printf(to, "%s-%" PRIu64, c->lines_added ? " " : "  ", c->lines_removed);
}

static void put_line(csn_buf *to, const csn_change *c, size_t width, bool escape)
{
    size_t before = to->len;

    csn_buf_printf(to, " %c ", csn_view_letter(c->kind));
    if (escape)
        csn_cli_escape(to, c->path, strlen(c->path));
    else
        csn_buf_puts(to, c->path);
    if ((c->mode_after ? c->mode_after : c->mode_before) >> 12 == 4)
        csn_buf_putc(to, '/');
    while (!to->err && to->len - before < width + 4)
        csn_buf_putc(to, ' ');
    put_size(to, c);
    if (c->host_changed)
        csn_buf_puts(to, "  (the host changed it too)");
    if (c->held)
        csn_buf_printf(to, "  held back: %s", c->held);
    while (to->len > 0 && to->data[to->len - 1] == ' ')
        to->data[--to->len] = '\0';
    csn_buf_putc(to, '\n');
}

size_t csn_view_held(const csn_change *changes, size_t count)
{
    size_t held = 0;

    for (size_t i = 0; i < count; i++)
        held += changes[i].held != NULL;
    return held;
}

void csn_view_totals(csn_buf *to, const csn_change *changes, size_t count)
{
    uint64_t added = 0, removed = 0;

    for (size_t i = 0; i < count; i++) {
        added += changes[i].lines_added;
        removed += changes[i].lines_removed;
    }
    csn_buf_printf(to, "%zu %s, +%" PRIu64 " -%" PRIu64, count, count == 1 ? "file" : "files",
                   added, removed);
}

void csn_view_stat(csn_buf *to, const csn_change *changes, size_t count, bool escape)
{
    size_t width = path_width(changes, count);

    for (size_t i = 0; i < count; i++)
        put_line(to, &changes[i], width, escape);
    csn_view_totals(to, changes, count);
    csn_buf_putc(to, '\n');
}
