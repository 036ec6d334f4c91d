/* path_filter.c: paths that a caller typed, against those of a walk. */
#include "layers/path_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

/* ret: as long as path. */
static csn_status normalise(const char *path, char *ret, csn_error **err)
{
    size_t used = 0;

    if (path[0] == '\0')
        return csn_fail(err, CSN_INVALID, "a path is empty; `.` is the whole workspace");
    csn_autofree char *shown = csn_path_printable(path);
    if (path[0] == '/')
        return csn_fail(err, CSN_INVALID,
                        "%s is absolute: paths of changes are relative to the workspace",
                        shown ? shown : path);
    for (const char *p = path; *p;) {
        size_t len = strcspn(p, "/");
        if (len == 2 && memcmp(p, "..", 2) == 0)
            return csn_fail(err, CSN_INVALID,
                            "%s has a component `..`: write the path without it",
                            shown ? shown : path);
        if (len > 0 && !(len == 1 && p[0] == '.')) {
            if (used > 0)
                ret[used++] = '/';
            memcpy(ret + used, p, len);
            used += len;
        }
        p += len;
        p += strspn(p, "/");
    }
    ret[used] = '\0';
    return CSN_OK;
}

csn_status csn_path_filter_make(const char *const *paths, csn_path_filter *ret, csn_error **err)
{
    csn_path_filter f = {.typed = paths};
    size_t n = 0;

    while (paths && paths[n])
        n++;
    f.all = n == 0;
    f.v = calloc(n + 1, sizeof(*f.v));
    if (!f.v)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    for (; f.count < n; f.count++) {
        char *path = strdup(paths[f.count]);
        csn_status st = path ? normalise(paths[f.count], path, err)
                             : csn_fail(err, CSN_NOMEM, "out of memory");
        if (st != CSN_OK) {
            free(path);
            csn_path_filter_release(&f);
            return st;
        }
        f.all = f.all || path[0] == '\0';
        f.v[f.count] = path;
    }
    *ret = f;
    return CSN_OK;
}

void csn_path_filter_release(csn_path_filter *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->v[i]);
    free(f->v);
    *f = (csn_path_filter){0};
}

/* What follows `dir` in path, or NULL if path is not below it or the same. */
static const char *after_dir(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    if (len == 0)
        return path;
    if (strncmp(path, dir, len) != 0 || (path[len] != '\0' && path[len] != '/'))
        return NULL;
    return path[len] ? path + len + 1 : path + len;
}

bool csn_path_filter_has(const csn_path_filter *f, const char *path)
{
    for (size_t i = 0; i < f->count && !f->all; i++)
        if (after_dir(path, f->v[i]))
            return true;
    return f->all;
}

bool csn_path_filter_leads(const csn_path_filter *f, const char *dir, const char *name)
{
    for (size_t i = 0; i < f->count && !f->all; i++) {
        const char *rest = after_dir(f->v[i], dir);
        /* Above or equal: it begins with the name. Below: dir is within it already. */
        if (rest && *rest && after_dir(rest, name))
            return true;
        if (after_dir(dir, f->v[i]))
            return true;
    }
    return f->all;
}

static int rank(unsigned char c)
{
    return c == '\0' ? 0 : c == '/' ? 1 : c + 1;
}

static int by_path(const void *key, const void *row)
{
    const char *a = key, *b = ((const csn_layer_change *)row)->path;

    while (*a && *a == *b) {
        a++;
        b++;
    }
    return rank((unsigned char)*a) - rank((unsigned char)*b);
}

csn_status csn_path_filter_check(const csn_path_filter *f, const csn_entry_tree *base,
                                 const csn_layer_changes *changes, csn_error **err)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->v[i][0] == '\0' ||
            (changes->count > 0 &&
             bsearch(f->v[i], changes->v, changes->count, sizeof(*changes->v), by_path)))
            continue;
        int fd = csn_entry_open_path(base, f->v[i], O_PATH);
        if (fd >= 0)
            close(fd);
        else if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -ENAMETOOLONG) {
            csn_autofree char *shown = csn_path_printable(f->typed[i]);
            return csn_fail(err, CSN_NOT_FOUND,
                            "%s exists neither in the workspace nor on the host",
                            shown ? shown : f->typed[i]);
        } else {
            return csn_fail_errno(err, -fd, "look up %s on the host", f->typed[i]);
        }
    }
    return CSN_OK;
}
