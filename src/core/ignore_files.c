/* ignore_files.c: reads the .gitignore files of a sandbox with its file operations.
 *
 * A search that starts in a sub-directory of a repository obeys the rules above it, as git
 * does; they are read by path, so the sandbox's rules hold for them. A file that cannot be read
 * counts as absent. A start that is named with `..` inherits nothing: its parents are not those
 * of the text. */
#include "core/ignore_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"

#define ABOVE_MAX 64u

/* Adds the file `name` in `at` (the start or a directory above it) as one of `dir`. */
static int add_file(const csn_fs *fs, const char *at, const char *name, const char *dir,
                    bool above, csn_ignore *ig)
{
    csn_autofree char *path = NULL;
    csn_autobuf text = {0};

    if (asprintf(&path, "%s/%s", at, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    if (csn_fs_slurp(fs, path, CSN_FILE_NOFOLLOW, CSN_IGNORE_FILE_MAX, &text, NULL) < 0)
        return 0;
    return text.len ? csn_ignore_add(ig, dir, above, text.data, text.len) : 0;
}

static bool is_repository(const csn_fs *fs, const char *at)
{
    csn_autofree char *path = NULL;
    csn_file_stat st;

    if (asprintf(&path, "%s/.git", at) < 0) {
        path = NULL;
        return false;
    }
    return csn_fs_stat(fs, path, CSN_FILE_NOFOLLOW, &st, NULL, NULL) == CSN_OK;
}

/* Without slashes and dots at the end. */
static void strip(char *path)
{
    size_t n = strlen(path);

    while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
        path[--n] = '\0';
}

static bool has_dots(const char *path)
{
    size_t n = strlen(path);

    return strstr(path, "/../") || strncmp(path, "../", 3) == 0 ||
           (n >= 3 && strcmp(path + n - 3, "/..") == 0);
}

/* The length of the nearest directory above `start` with .git, or 0. */
static size_t find_top(const csn_fs *fs, const char *start)
{
    csn_autofree char *at = strdup(start);

    if (!at || has_dots(start) || is_repository(fs, start))
        return 0;
    for (unsigned i = 0; i < ABOVE_MAX; i++) {
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            return 0;
        *slash = '\0';
        if (is_repository(fs, at))
            return strlen(at);
    }
    return 0;
}

/* Adds the files from the top down to the directory above the start. */
static int add_above(const csn_fs *fs, const char *start, size_t top, csn_ignore *ig)
{
    csn_autofree char *at = strdup(start);
    int rc = at ? 0 : -ENOMEM;

    for (size_t len = top; rc == 0 && start[len];) {
        csn_autofree char *dir = strndup(start + top + (len > top), len - top);
        if (!dir)
            return -ENOMEM;
        if (len > top)
            memcpy(dir + (len - top - 1), "/", 2);
        memcpy(at, start, len);
        at[len] = '\0';
        if (len == top)
            rc = add_file(fs, at, ".git/info/exclude", "", true, ig);
        if (rc == 0)
            rc = add_file(fs, at, CSN_IGNORE_FILE, dir, true, ig);
        len += 1 + strcspn(start + len + 1, "/");
    }
    return rc;
}

csn_status csn_ignore_files_above(const csn_fs *fs, const char *joined, csn_ignore **ret,
                                  csn_error **err)
{
    csn_autofree char *start = strdup(joined), *prefix = NULL;
    CSN_CLEANUP(csn_ignore_freep) csn_ignore *ig = NULL;

    if (!start)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    strip(start);
    size_t top = find_top(fs, start);
    if (asprintf(&prefix, "%s%s", top ? start + top + 1 : "", top ? "/" : "") < 0)
        prefix = NULL;
    ig = prefix ? csn_ignore_new(prefix) : NULL;
    if (!ig || (top && add_above(fs, start, top, ig) < 0))
        return csn_fail(err, CSN_NOMEM, "out of memory");
    *ret = CSN_STEAL(ig);
    return CSN_OK;
}

/* ---- below the start ---- */

int csn_ignore_files_note(csn_ignore_files *f, const char *path, const csn_file_stat *st)
{
    if (!S_ISREG(st->mode) || strcmp(csn_path_base(path), CSN_IGNORE_FILE) != 0)
        return 0;
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 16;
        char **more = reallocarray(f->paths, room, sizeof(*more));
        if (!more)
            return ENOMEM;
        f->paths = more;
        f->room = room;
    }
    f->paths[f->count] = strdup(path);
    return f->paths[f->count] ? (f->count++, 0) : ENOMEM;
}

/* A directory has a shorter path than those in it. */
static int by_length(const void *a, const void *b)
{
    size_t x = strlen(*(char *const *)a), y = strlen(*(char *const *)b);

    return x < y ? -1 : x > y;
}

csn_status csn_ignore_files_load(csn_ignore_files *f, const csn_fs *fs, const char *joined,
                                 csn_ignore *ig, csn_error **err)
{
    int rc = add_file(fs, joined, ".git/info/exclude", "", false, ig);

    if (f->count > 1)
        qsort(f->paths, f->count, sizeof(*f->paths), by_length);
    for (size_t i = 0; rc == 0 && i < f->count; i++) {
        csn_autofree char *dir = strdup(f->paths[i]);
        if (!dir)
            rc = -ENOMEM;
        else
            dir[strlen(dir) - strlen(CSN_IGNORE_FILE)] = '\0';
        if (rc == 0)
            rc = add_file(fs, joined, f->paths[i], dir, false, ig);
    }
    return rc < 0 ? csn_fail(err, CSN_NOMEM, "out of memory") : CSN_OK;
}

void csn_ignore_files_release(csn_ignore_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->paths[i]);
    free(f->paths);
}
