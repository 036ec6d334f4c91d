/* api_file.c: csn_stat, csn_list, csn_delete, csn_mkdir, csn_rename and csn_watch_open.
 *
 * Each joins the path, calls the operation and builds the result. Messages and results contain
 * the caller's path; host paths stay inside the backend. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "core/entries.h"
#include "core/internal.h"
#include "core/result.h"

int csn_entries_add(csn_entries *e, const char *path, const csn_file_stat *st,
                    const char *target)
{
    if (e->count >= e->max) {
        e->truncated = true;
        return 1;
    }
    if (e->count == e->cap) {
        size_t cap = e->cap ? 2 * e->cap : 64;
        csn_file_info *more = realloc(e->items, cap * sizeof(*more));
        if (!more) {
            e->err = ENOMEM;
            return 1;
        }
        e->items = more;
        e->cap = cap;
    }
    csn_file_info *i = &e->items[e->count];
    *i = (csn_file_info){.path = csn_arena_strdup(e->arena, path),
                         .target = csn_arena_strdup(e->arena, target),
                         .file_size = st->file_size,
                         .modified_ns = st->modified_ns,
                         .mode = st->mode,
                         .nlink = st->nlink,
                         .is_dir = (st->mode & S_IFMT) == S_IFDIR,
                         .is_symlink = (st->mode & S_IFMT) == S_IFLNK};
    if (!i->path || (target && !i->target)) {
        e->err = ENOMEM;
        return 1;
    }
    e->count++;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const csn_file_info *)a)->path, ((const csn_file_info *)b)->path);
}

void csn_entries_sort(csn_entries *e)
{
    if (e->count > 1)
        qsort(e->items, e->count, sizeof(*e->items), by_path);
}

csn_status csn_entries_finish(csn_entries *e, csn_status st, csn_file_list *l, csn_error **err)
{
    if (st == CSN_OK && e->err == 0) {
        csn_entries_sort(e);
        csn_file_info *items = csn_arena_array(e->arena, e->count + 1, sizeof(*items));
        if (items) {
            if (e->count > 0)
                memcpy(items, e->items, e->count * sizeof(*items));
            l->items = items;
            l->count = e->count;
            l->truncated = e->truncated;
        } else {
            e->err = ENOMEM;
        }
    }
    free(e->items);
    if (st == CSN_OK && e->err != 0)
        st = csn_fail(err, CSN_NOMEM, "list of files");
    return st;
}

static csn_status stat_inner(csn_call *c, const char *path, uint32_t flags, csn_file_list *l,
                             csn_error **err)
{
    const char *joined = NULL;
    csn_autofree char *target = NULL;
    csn_file_stat fst;
    csn_entries e = {.arena = csn_result_arena(l), .max = 1};

    csn_status st = csn_call_path(c, path, &joined, err);
    if (st == CSN_OK)
        st = csn_fs_stat(&c->fs, joined, flags, &fst, &target, err);
    if (st == CSN_OK)
        (void)csn_entries_add(&e, path, &fst, target);
    return csn_entries_finish(&e, st, l, err);
}

static int list_add(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    return csn_entries_add(ctx, path, st, target);
}

static csn_status list_inner(csn_call *c, const char *path, uint32_t flags, csn_file_list *l,
                             csn_error **err)
{
    const char *joined = NULL;
    csn_entries e = {.arena = csn_result_arena(l), .max = CSN_LIST_MAX};

    csn_status st = csn_call_path(c, path, &joined, err);
    if (st == CSN_OK)
        st = csn_fs_list(&c->fs, joined, flags, list_add, &e, err);
    return csn_entries_finish(&e, st, l, err);
}

typedef csn_status (*list_fn)(csn_call *c, const char *path, uint32_t flags, csn_file_list *l,
                              csn_error **err);

static csn_status list_call(csn_sandbox *sb, const char *op, const char *path, uint32_t flags,
                            list_fn fn, csn_file_list **ret, csn_error **err)
{
    csn_call c;
    csn_status st = csn_flags_check(flags, CSN_FILE_NOFOLLOW, op, err);

    if (st == CSN_OK && !ret)
        st = csn_fail(err, CSN_INVALID, "%s: no place for the result given", op);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, op, path, err);
    if (st < 0)
        return csn_error_note(st, err, op, path);
    csn_file_list *l = csn_result_new(sizeof(*l));
    st = l ? fn(&c, path, flags, l, err) : csn_fail(err, CSN_NOMEM, "%s", op);
    return csn_call_return(&c, st, l, ret, err);
}

csn_status csn_stat(csn_sandbox *sb, const char *path, uint32_t flags, csn_file_list **ret,
                    csn_error **err)
{
    return list_call(sb, "stat", path, flags, stat_inner, ret, err);
}

csn_status csn_list(csn_sandbox *sb, const char *path, uint32_t flags, csn_file_list **ret,
                    csn_error **err)
{
    return list_call(sb, "list", path ? path : ".", flags, list_inner, ret, err);
}

void csn_file_list_free(csn_file_list *l)
{
    csn_result_free(l);
}

typedef csn_status (*path_fn)(const csn_fs *fs, const char *path, uint32_t flags,
                              csn_error **err);

static csn_status path_call(csn_sandbox *sb, const char *op, const char *path, uint32_t flags,
                            uint32_t known, path_fn fn, csn_error **err)
{
    csn_call c;
    const char *joined = NULL;
    csn_status st = csn_flags_check(flags, known, op, err);

    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, op, path, err);
    if (st < 0)
        return csn_error_note(st, err, op, path);
    st = csn_call_path(&c, path, &joined, err);
    if (st == CSN_OK)
        st = fn(&c.fs, joined, flags, err);
    return csn_call_end(&c, st, err);
}

csn_status csn_delete(csn_sandbox *sb, const char *path, uint32_t flags, csn_error **err)
{
    return path_call(sb, "delete", path, flags, CSN_FILE_RECURSIVE | CSN_FILE_NOFOLLOW,
                     csn_fs_remove, err);
}

csn_status csn_mkdir(csn_sandbox *sb, const char *path, uint32_t flags, csn_error **err)
{
    return path_call(sb, "mkdir", path, flags, CSN_FILE_NO_PARENTS | CSN_FILE_NOFOLLOW,
                     csn_fs_mkdir, err);
}

csn_status csn_rename(csn_sandbox *sb, const char *from, const char *to, uint32_t flags,
                      csn_error **err)
{
    csn_call c;
    const char *joined_from = NULL, *joined_to = NULL;
    csn_status st =
        csn_flags_check(flags, CSN_FILE_NO_PARENTS | CSN_FILE_NOFOLLOW, "rename", err);

    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "rename", from, err);
    if (st < 0)
        return csn_error_note(st, err, "rename", from);
    st = csn_call_path(&c, from, &joined_from, err);
    if (st == CSN_OK)
        st = csn_call_path(&c, to, &joined_to, err);
    if (st == CSN_OK)
        st = csn_fs_rename(&c.fs, joined_from, joined_to, flags, err);
    return csn_call_end(&c, st, err);
}

/* ---- watch --------------------------------------------------------------------------------
 */

struct csn_watch {
    csn_sandbox *sb;
    void *of_backend;
    char *asked; /* path of the directory as the caller gave it */
};

csn_status csn_watch_open(csn_sandbox *sb, const char *path, uint32_t flags, csn_watch **ret,
                          csn_error **err)
{
    csn_call c;
    const char *joined = NULL;
    csn_watch *w = NULL;
    csn_status st =
        csn_flags_check(flags, CSN_FILE_RECURSIVE | CSN_FILE_NOFOLLOW, "watch", err);

    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "watch", path, err);
    if (st < 0)
        return csn_error_note(st, err, "watch", path);
    if (!csn_fs_files(&c.fs)->watch)
        st = csn_fail(err, CSN_UNSUPPORTED, "backend '%s' cannot watch files", sb->ops->name);
    if (st == CSN_OK)
        st = csn_call_path(&c, path ? path : ".", &joined, err);
    if (st == CSN_OK &&
        (!(w = calloc(1, sizeof(*w))) || !(w->asked = strdup(path ? path : "."))))
        st = csn_fail(err, CSN_NOMEM, "watch");
    if (st == CSN_OK)
        st = sb->ops->files->watch(sb->state, joined, flags, &w->of_backend, err);
    st = csn_call_end(&c, st, err);
    if (st < 0) {
        if (w && w->of_backend)
            sb->ops->files->watch_free(w->of_backend);
        if (w)
            free(w->asked);
        free(w);
        return st;
    }
    w->sb = sb;
    *ret = w;
    return CSN_OK;
}

/* A backend that was stopped cannot tell destroy from close. */
static csn_status say_gone(csn_sandbox *sb, csn_status st, csn_error **err)
{
    pthread_mutex_lock(&sb->lock);
    bool gone = sb->gone;
    pthread_mutex_unlock(&sb->lock);
    if (!gone)
        return st;
    if (err)
        csn_error_free(CSN_STEAL(*err));
    return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", sb->id);
}

/* Counted as a call, so that close and destroy wait until it has returned. The log has a line
 * for the watch, not one for each event. */
csn_status csn_watch_next(csn_watch *w, uint64_t timeout_ms, csn_event *ret, csn_error **err)
{
    csn_call c;

    if (!w || !ret)
        return csn_fail(err, CSN_INVALID, "watch: no watch given");
    csn_status st = csn_call_begin(&c, w->sb, "watch", w->asked, err);
    if (st < 0)
        return st;
    c.quiet = true;
    st = w->sb->ops->files->watch_next(w->of_backend, timeout_ms, ret, err);
    if (st == CSN_CANCELLED)
        st = say_gone(w->sb, st, err);
    if (st == CSN_NOT_FOUND)
        st = csn_wrap(st, err, "'%s'", w->asked);
    return csn_call_end(&c, st, err);
}

void csn_watch_free(csn_watch *w)
{
    if (!w)
        return;
    w->sb->ops->files->watch_free(w->of_backend);
    free(w->asked);
    free(w);
}
