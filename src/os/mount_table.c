/* mount_table.c: reads /proc/self/mountinfo and finds where else a path is visible.
 *
 * A bind mount shows a directory a second time. The kernel tells for each mount the file system
 * and the directory of it that is mounted; two paths are the same file if both lead to the same
 * path of the same file system. The administrator controls the mounts, a user the names of
 * directories: the kernel escapes blanks and backslashes in them. */
#include "os/mount_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"

#define TEXT_MAX (64u << 20)

/* Replaces \040 and the like, in place. */
static void unescape(char *s)
{
    char *to = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* "36 35 98:0 /root /at ..." */
static bool parse_line(char *line, csn_mount_entry *ret)
{
    char *field[5], *rest = line;
    unsigned major, minor;

    for (int i = 0; i < 5; i++)
        if (!(field[i] = strsep(&rest, " ")))
            return false;
    char *end = NULL;
    major = (unsigned)strtoul(field[2], &end, 10);
    if (*end != ':')
        return false;
    minor = (unsigned)strtoul(end + 1, NULL, 10);
    unescape(field[3]);
    unescape(field[4]);
    *ret = (csn_mount_entry){
        .dev = (uint64_t)major << 32 | minor, .root = field[3], .at = field[4]};
    return field[3][0] == '/' && field[4][0] == '/'; /* no root of nsfs: net:[1] */
}

int csn_mount_table_parse(csn_mount_table *t, char *text)
{
    size_t lines = 1;

    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    *t = (csn_mount_table){.v = calloc(lines, sizeof(*t->v)), .text = text};
    if (!t->v)
        return -ENOMEM;
    for (char *line = strsep(&text, "\n"); line; line = strsep(&text, "\n"))
        if (*line && parse_line(line, &t->v[t->count]))
            t->count++;
    return 0;
}

int csn_mount_table_read(csn_mount_table *t)
{
    csn_autofd int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    csn_autobuf text;
    char part[4096];
    ssize_t n;

    csn_buf_init(&text, TEXT_MAX);
    *t = (csn_mount_table){0};
    if (fd < 0)
        return -errno;
    while ((n = read(fd, part, sizeof(part))) > 0)
        if (csn_buf_append(&text, part, (size_t)n) != 0)
            return -ENOMEM;
    if (n < 0)
        return -errno;
    char *all = csn_buf_take(&text);
    return all ? csn_mount_table_parse(t, all) : -ENOMEM;
}

void csn_mount_table_release(csn_mount_table *t)
{
    free(t->v);
    free(t->text);
    *t = (csn_mount_table){0};
}

static char *join(const char *dir, const char *rest)
{
    char *out = NULL;
    const char *head = strcmp(dir, "/") == 0 && *rest ? "" : dir;

    return asprintf(&out, "%s%s%s", head, *rest ? "/" : "", rest) < 0 ? NULL : out;
}

/* A part of what is at the path: `real` of file system `dev`, visible as `same`. */
typedef struct part {
    const csn_mount_entry *mount;
    const char *real, *same;
} part;

/* Reports where another mount shows the part, or something in it. */
static int report(const csn_mount_table *t, const part *p, csn_mount_alias_fn fn, void *ctx)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < t->count; i++) {
        const csn_mount_entry *m = &t->v[i];
        if (m == p->mount || m->dev != p->mount->dev)
            continue;
        const char *in = csn_path_below(p->real, m->root),
                   *of = csn_path_below(m->root, p->real);
        csn_autofree char *alias = in ? join(m->at, in) : of ? strdup(m->at) : NULL;
        csn_autofree char *same = in ? strdup(p->same) : of ? join(p->same, of) : NULL;
        if (!in && !of)
            continue;
        if (!alias || !same)
            return -ENOMEM;
        rc = strcmp(alias, same) == 0 ? 0 : fn(ctx, alias, same);
    }
    return rc;
}

int csn_mount_table_aliases(const csn_mount_table *t, const char *path, csn_mount_alias_fn fn,
                            void *ctx)
{
    const csn_mount_entry *holds = NULL;
    int rc = 0;

    /* The mount that the path is in: the innermost, and of several at one place the last. */
    for (size_t i = 0; i < t->count; i++)
        if (csn_path_below(path, t->v[i].at) &&
            (!holds || strlen(t->v[i].at) >= strlen(holds->at)))
            holds = &t->v[i];
    if (!holds)
        return 0;
    csn_autofree char *real = join(holds->root, csn_path_below(path, holds->at));
    if (!real)
        return -ENOMEM;
    rc = report(t, &(part){holds, real, path}, fn, ctx);
    /* What is mounted below it may be visible elsewhere too. */
    for (size_t i = 0; rc == 0 && i < t->count; i++) {
        const char *rest = csn_path_below(t->v[i].at, path);
        if (rest && *rest)
            rc = report(t, &(part){&t->v[i], t->v[i].root, t->v[i].at}, fn, ctx);
    }
    return rc;
}
