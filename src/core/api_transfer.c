/* api_transfer.c: csn_export and csn_import: copy a directory tree.
 *
 * Both sides are file operations below a root: the sandbox's, and the local backend's on the
 * host directory. One function therefore copies in either direction on any backend, and the
 * kernel confines the host side as it confines a sandbox. Symlinks are copied as symlinks,
 * set-id bits are dropped, special files are left out. */
#include "core/api_transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/path.h"
#include "core/cancel.h"
#include "core/export_guard.h"

/* Bytes per read. The target's atomic write collects the chunks in its temporary file. */
#define CHUNK (256u * 1024u)
#define CHUNK_FAR                                                                              \
    (4u * 1024u * 1024u) /* for backends where each read is a request over the network */

char *csn_transfer_join(const char *dir, const char *rel)
{
    char *full = NULL;

    if (!*rel)
        return strdup(dir);
    const char *slash = dir[0] && dir[strlen(dir) - 1] == '/' ? "" : "/";
    return asprintf(&full, "%s%s%s", dir, slash, rel) < 0 ? NULL : full;
}

csn_status csn_transfer_count(csn_transfer *t, uint64_t bytes, csn_error **err)
{
    if (csn_cancel_fired(t->opts->cancel))
        return csn_fail(err, CSN_CANCELLED, "transfer");
    t->bytes += bytes;
    if (t->entries > t->max_entries)
        return csn_fail(err, CSN_TOO_LARGE, "more than %llu entries",
                        (unsigned long long)t->max_entries);
    if (t->bytes > t->max_bytes)
        return csn_fail(err, CSN_TOO_LARGE, "more than %llu bytes",
                        (unsigned long long)t->max_bytes);
    if (t->opts->on_progress)
        t->opts->on_progress(t->opts->on_progress_ctx, t->entries, t->bytes);
    return CSN_OK;
}

csn_status csn_transfer_room(const csn_transfer *t, const char *path, uint64_t size,
                             csn_error **err)
{
    if (t->bytes <= t->max_bytes && size <= t->max_bytes - t->bytes)
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(path);
    return csn_fail(err, CSN_TOO_LARGE, "more than %llu bytes with %s, which has %llu",
                    (unsigned long long)t->max_bytes, shown ? shown : "a file",
                    (unsigned long long)size);
}

void csn_transfer_protected(const csn_transfer *t, const char *path, const char *rule)
{
    if (t->opts->on_protected)
        t->opts->on_protected(t->opts->on_protected_ctx, path, rule);
}

csn_status csn_transfer_begin(csn_transfer *t, const csn_transfer_opts *o, uint32_t flags,
                              csn_error **err)
{
    *t = (csn_transfer){.opts = o,
                        .max_entries = o->max_entries ? o->max_entries : CSN_TAR_ENTRIES_MAX,
                        .max_bytes = o->max_bytes ? o->max_bytes : CSN_TAR_BYTES_MAX};
    return csn_flags_check(o->flags, flags, "transfer", err);
}

csn_status csn_dirmodes_add(csn_dirmodes *d, const char *path, uint32_t mode, csn_error **err)
{
    if (d->count == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 32;
        struct csn_dirmode *more = realloc(d->items, cap * sizeof(*more));
        if (!more)
            return csn_fail(err, CSN_NOMEM, "transfer");
        d->items = more;
        d->cap = cap;
    }
    d->items[d->count] = (struct csn_dirmode){.path = strdup(path), .mode = mode & 0777u};
    return d->items[d->count++].path ? CSN_OK : csn_fail(err, CSN_NOMEM, "transfer");
}

csn_status csn_dirmodes_apply(csn_dirmodes *d, const csn_fs *fs, csn_status st, csn_error **err)
{
    for (size_t i = d->count; i > 0; i--) {
        if (st == CSN_OK)
            st = csn_fs_chmod(fs, d->items[i - 1].path, d->items[i - 1].mode, err);
        free(d->items[i - 1].path);
    }
    free(d->items);
    *d = (csn_dirmodes){0};
    return st;
}

/* ---- one file, pulled by the writer -------------------------------------------------------
 */

/* The target's write pulls bytes, the source's read pushes them. Reading one chunk per pull
 * connects the two without a thread and without holding the file in memory. */
typedef struct puller {
    csn_transfer *t;
    const csn_fs *from;
    const char *path;
    uint64_t offset;
    csn_buf buf;
    size_t used, chunk;
    bool at_end;
    csn_status st;
    csn_error *err;
} puller;

static int pull_push(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    return csn_buf_append(ctx, data, len) == 0 ? CSN_SINK_MORE : CSN_SINK_STOP;
}

static bool refill(puller *p)
{
    csn_sink sink = {.write = pull_push, .ctx = &p->buf};
    csn_file_stat fst;

    p->buf.len = p->used = 0;
    p->st = csn_fs_read(p->from, p->path, 0, p->offset, p->chunk, &sink, &fst, &p->err);
    if (p->st == CSN_OK)
        p->st = csn_transfer_count(p->t, p->buf.len, &p->err);
    p->offset += p->buf.len;
    p->at_end = p->buf.len < p->chunk;
    return p->st == CSN_OK;
}

static int64_t pull(void *ctx, void *out, size_t len)
{
    puller *p = ctx;

    if (p->used == p->buf.len && (p->at_end || !refill(p)))
        return p->st < 0 ? -1 : 0;
    size_t n = p->buf.len - p->used;
    if (n > len)
        n = len;
    if (n > 0)
        memcpy(out, p->buf.data + p->used, n);
    p->used += n;
    return (int64_t)n;
}

static csn_status copy_once(csn_transfer *t, const csn_fs *from, const char *from_path,
                            const csn_fs *to, const char *to_path, uint32_t mode,
                            csn_error **err)
{
    puller p = {.t = t,
                .from = from,
                .path = from_path,
                .chunk = csn_fs_files(from)->fetch ? CHUNK_FAR : CHUNK};
    csn_written w = {0};
    csn_write_req req = {.path = to_path, .source = {.read = pull, .ctx = &p}, .mode = mode};

    csn_buf_init(&p.buf, 2 * p.chunk);
    csn_status st = csn_fs_write(to, &req, 1, &w, err);
    free(w.resolved_path);
    csn_buf_release(&p.buf);
    if (p.st < 0 && st < 0 && err) { /* the write failed because the read failed: report that */
        csn_error_free(*err);
        *err = CSN_STEAL(p.err);
        st = p.st;
    }
    csn_error_free(p.err);
    return st;
}

/* Removes and replaces an existing read-only file (mode 0444, such as git objects). */
static csn_status copy_file(csn_transfer *t, const csn_fs *from, const char *from_path,
                            const csn_fs *to, const char *to_path, uint32_t mode,
                            csn_error **err)
{
    csn_error *why = NULL;
    csn_status st = copy_once(t, from, from_path, to, to_path, mode, &why);

    if (st == CSN_DENIED && csn_fs_remove(to, to_path, 0, NULL) == CSN_OK) {
        csn_error_free(why);
        return copy_once(t, from, from_path, to, to_path, mode, err);
    }
    if (st < 0 && err)
        *err = why;
    else
        csn_error_free(why);
    return st;
}

/* ---- a tree -------------------------------------------------------------------------------
 */

typedef struct tree_copy {
    csn_transfer t;
    csn_dirmodes modes;
    const csn_fs *from, *to;
    const char *from_root, *to_root;
    const csn_export_guard *guard; /* or NULL */
    csn_status st;
    csn_error **err;
} tree_copy;

/* True if the entry is protected and left out. */
static bool is_left_out(const tree_copy *tc, const char *rel, const csn_file_stat *fst)
{
    const char *rule = tc->guard ? csn_export_guard_rule(tc->guard, NULL, rel, fst) : NULL;

    if (rule)
        csn_transfer_protected(&tc->t, rel, rule);
    return rule && !(tc->t.opts->flags & CSN_TRANSFER_PROTECTED);
}

/* The sandbox may have changed the file after is_left_out. */
static csn_status check_written(const tree_copy *tc, const char *rel, const char *to,
                                const csn_file_stat *fst)
{
    if (!tc->guard || tc->t.opts->flags & CSN_TRANSFER_PROTECTED)
        return CSN_OK;
    const char *rule = csn_export_guard_rule(tc->guard, tc->to, rel, fst);
    if (!rule)
        return CSN_OK;
    csn_transfer_protected(&tc->t, rel, rule);
    return csn_fs_remove(tc->to, to, 0, tc->err);
}

static csn_status copy_link(tree_copy *tc, const char *path, const char *target)
{
    csn_error *why = NULL;
    csn_status st = csn_fs_symlink(tc->to, target, path, &why);

    if (st == CSN_EXISTS) { /* replace what exists */
        csn_error_free(why);
        st = csn_fs_remove(tc->to, path, CSN_FILE_RECURSIVE, tc->err);
        return st < 0 ? st : csn_fs_symlink(tc->to, target, path, tc->err);
    }
    if (tc->err)
        *tc->err = why;
    else
        csn_error_free(why);
    return st;
}

static int copy_entry(void *ctx, const char *rel, const csn_file_stat *fst, const char *target)
{
    tree_copy *tc = ctx;
    uint32_t type = fst->mode & S_IFMT;
    csn_autofree char *from = csn_transfer_join(tc->from_root, rel);
    csn_autofree char *to = csn_transfer_join(tc->to_root, rel);

    if (!*rel && type == S_IFDIR)
        return 0;
    tc->t.entries++;
    tc->st = from && to ? csn_transfer_count(&tc->t, 0, tc->err)
                        : csn_fail(tc->err, CSN_NOMEM, "transfer");
    if (tc->st < 0)
        return 1;
    if (is_left_out(tc, rel, fst))
        return 0;
    if (type == S_IFDIR) {
        tc->st = csn_fs_mkdir(tc->to, to, 0, tc->err);
        if (tc->st == CSN_OK)
            tc->st = csn_dirmodes_add(&tc->modes, to, fst->mode, tc->err);
    } else if (type == S_IFREG) {
        tc->st = csn_transfer_room(&tc->t, rel, fst->file_size, tc->err);
        if (tc->st == CSN_OK)
            tc->st = copy_file(&tc->t, tc->from, from, tc->to, to, fst->mode & 0777u, tc->err);
        if (tc->st == CSN_OK)
            tc->st = check_written(tc, rel, to, fst);
    } else if (type == S_IFLNK && target) {
        tc->st = copy_link(tc, to, target);
    }
    return tc->st < 0;
}

static csn_status copy_tree(const csn_transfer_opts *o, const csn_fs *from,
                            const char *from_root, const csn_fs *to, const char *to_root,
                            const csn_export_guard *guard, uint64_t *ret_bytes, csn_error **err)
{
    tree_copy tc = {.from = from,
                    .to = to,
                    .from_root = from_root,
                    .to_root = to_root,
                    .guard = guard,
                    .err = err};

    csn_status st = csn_transfer_begin(&tc.t, o, guard ? CSN_TRANSFER_PROTECTED : 0, err);
    if (st == CSN_OK)
        st = csn_fs_check_dir(from, from_root, 0, from_root, err);
    if (st == CSN_OK)
        st = csn_fs_walk(from, from_root, 0, copy_entry, &tc, err);
    *ret_bytes = tc.t.bytes;
    return csn_dirmodes_apply(&tc.modes, to, st < 0 ? st : tc.st, err);
}

static csn_status export_to(csn_call *c, const char *path, const char *host_dir,
                            const csn_transfer_opts *o, csn_error **err)
{
    csn_file_stat fst;
    csn_fs host = {0};
    csn_export_guard guard = {0};

    /* Checked first: a failed export must not leave an empty directory on the host. */
    csn_status st = csn_fs_stat(&c->fs, path, 0, &fst, NULL, err);
    if (st == CSN_OK)
        st = csn_registry_host_open(host_dir, true, &host, err);
    if (st == CSN_OK)
        st = csn_export_guard_begin(&guard, &c->fs, path, host_dir, err);
    if (st == CSN_OK)
        st = copy_tree(o, &c->fs, path, &host, "/", &guard, &c->event.bytes, err);
    csn_export_guard_end(&guard);
    csn_registry_host_close(&host);
    return st;
}

static csn_status import_from(csn_call *c, const char *path, const char *host_dir,
                              const csn_transfer_opts *o, csn_error **err)
{
    csn_fs host = {0};
    csn_status st = csn_registry_host_open(host_dir, false, &host, err);

    if (st == CSN_OK)
        st = csn_fs_mkdir(&c->fs, path, 0, err);
    if (st == CSN_OK)
        st = copy_tree(o, &host, "/", &c->fs, path, NULL, &c->event.bytes, err);
    csn_registry_host_close(&host);
    return st;
}

static csn_status transfer(csn_sandbox *sb, bool in, const char *path, const char *host_dir,
                           const csn_transfer_opts *opts, csn_error **err)
{
    const char *op = in ? "import" : "export", *joined = NULL;
    csn_call c;
    csn_transfer_opts o;
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "transfer options", err);

    if (st == CSN_OK && (!host_dir || !*host_dir))
        st = csn_fail(err, CSN_INVALID, "%s: no host directory given", op);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, op, path, err);
    if (st < 0)
        return csn_error_note(st, err, op, path);
    st = csn_call_path(&c, path ? path : ".", &joined, err);
    if (st == CSN_OK)
        st = (in ? import_from : export_to)(&c, joined, host_dir, &o, err);
    return csn_call_end(&c, st, err);
}

csn_status csn_export(csn_sandbox *sb, const char *path, const char *host_dir,
                      const csn_transfer_opts *opts, csn_error **err)
{
    return transfer(sb, false, path, host_dir, opts, err);
}

csn_status csn_import(csn_sandbox *sb, const char *host_dir, const char *path,
                      const csn_transfer_opts *opts, csn_error **err)
{
    return transfer(sb, true, path, host_dir, opts, err);
}
