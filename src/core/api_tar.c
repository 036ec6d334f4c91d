/* api_tar.c: csn_export_tar, csn_import_tar and csn_write_tar: transfer files as a tar stream.
 *
 * The archive code is a module that is loaded at the first use (archive/tar.h). An imported
 * archive is untrusted: the module checks names, this file enforces limits, and the file
 * operations of the sandbox write every entry, so a link made by one entry cannot redirect the
 * next one to the outside. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/tar.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "core/api_transfer.h"
#include "core/api_write.h"
#include "core/export_guard.h"

#define WRITE_TAR_MAX (1024ull * 1024u * 1024u) /* content of csn_write_tar, held in memory */

/* ---- export ----------------------------------------------------------------------------- */

typedef struct packer {
    csn_transfer t;
    const csn_tar_api *api;
    csn_tar_writer *w;
    const csn_fs *fs;
    const char *root;
    csn_export_guard guard;
    csn_write_fn sink;
    void *sink_ctx;
    bool stopped;  /* the sink returned non-zero */
    uint64_t left; /* bytes left of the file being packed */
    csn_status st;
    csn_error **err;
} packer;

static int packed_bytes(void *ctx, int stream, const void *data, size_t len)
{
    packer *p = ctx;

    (void)stream;
    if (!p->stopped)
        p->stopped = p->sink(p->sink_ctx, data, len) != 0;
    return p->stopped ? CSN_SINK_STOP : CSN_SINK_MORE;
}

static int pack_data(void *ctx, int stream, const void *data, size_t len)
{
    packer *p = ctx;

    (void)stream;
    if (len > p->left)
        len = (size_t)p->left; /* the file grew after its header was written */
    p->left -= len;
    if (len > 0)
        p->st = p->api->writer_data(p->w, data, len, p->err);
    if (p->st == CSN_OK)
        p->st = csn_transfer_count(&p->t, len, p->err);
    return p->st < 0 || p->left == 0 ? CSN_SINK_STOP : CSN_SINK_MORE;
}

static csn_status pack_file(packer *p, const char *path, csn_tar_entry *e)
{
    static const char zeros[4096];
    csn_sink sink = {.write = pack_data, .ctx = p};
    csn_file_stat fst;

    csn_status st = p->api->writer_entry(p->w, e, p->err);
    p->left = e->file_size;
    if (st == CSN_OK && p->left > 0)
        st = csn_fs_read(p->fs, path, 0, 0, e->file_size, &sink, &fst, p->err);
    if (st == CSN_OK)
        st = p->st;
    while (st == CSN_OK && p->left > 0) { /* the file shrank: pad it */
        size_t n = p->left < sizeof(zeros) ? (size_t)p->left : sizeof(zeros);
        st = p->api->writer_data(p->w, zeros, n, p->err);
        p->left -= n;
    }
    return st;
}

static int pack_entry(void *ctx, const char *rel, const csn_file_stat *fst, const char *target)
{
    packer *p = ctx;
    uint32_t type = fst->mode & S_IFMT;
    csn_tar_entry e = {.path = rel,
                       .target = target,
                       .modified_ns = fst->modified_ns,
                       .mode = type | (fst->mode & 0777u)};

    if (!*rel || (type != S_IFDIR && type != S_IFREG && !(type == S_IFLNK && target)))
        return 0;
    csn_autofree char *path = csn_transfer_join(p->root, rel);
    p->t.entries++;
    p->st = path ? csn_transfer_count(&p->t, 0, p->err) : csn_fail(p->err, CSN_NOMEM, "tar");
    const char *rule =
        p->t.opts->on_protected ? csn_export_guard_rule(&p->guard, NULL, rel, fst) : NULL;
    if (rule)
        csn_transfer_protected(&p->t, rel, rule);
    if (p->st == CSN_OK && type == S_IFREG) {
        e.file_size = fst->file_size;
        p->st = csn_transfer_room(&p->t, rel, e.file_size, p->err);
        if (p->st == CSN_OK)
            p->st = pack_file(p, path, &e);
    } else if (p->st == CSN_OK) {
        p->st = p->api->writer_entry(p->w, &e, p->err);
    }
    return p->st < 0 || p->stopped;
}

static csn_status pack(packer *p, csn_error **err)
{
    csn_sink sink = {.write = packed_bytes, .ctx = p};

    csn_status st = csn_fs_check_dir(p->fs, p->root, 0, p->root, err);
    if (st == CSN_OK && p->t.opts->on_protected)
        st = csn_export_guard_begin(&p->guard, p->fs, p->root, NULL, err);
    if (st == CSN_OK)
        st = p->api->writer_new(&sink, &p->w, err);
    if (st < 0)
        return st;
    st = csn_fs_walk(p->fs, p->root, 0, pack_entry, p, err);
    if (st == CSN_OK)
        st = p->st;
    if (st == CSN_OK && !p->stopped)
        st = p->api->writer_finish(p->w, err);
    p->api->writer_free(p->w);
    if (p->stopped && st < 0) { /* stopped by the sink, which is not an error */
        if (err) {
            csn_error_free(*err);
            *err = NULL;
        }
        st = CSN_OK;
    }
    return st;
}

csn_status csn_export_tar(csn_sandbox *sb, const char *path, csn_write_fn sink, void *sink_ctx,
                          const csn_transfer_opts *opts, csn_error **err)
{
    csn_call c;
    csn_transfer_opts o;
    packer p = {.sink = sink, .sink_ctx = sink_ctx, .err = err};
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "transfer options", err);

    if (st == CSN_OK && !sink)
        st = csn_fail(err, CSN_INVALID, "export: no place for the bytes given");
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "export", path, err);
    if (st < 0)
        return csn_error_note(st, err, "export", path);
    p.fs = &c.fs;
    st = csn_tar_load(&p.api, err);
    if (st == CSN_OK)
        st = csn_transfer_begin(&p.t, &o, CSN_TRANSFER_PROTECTED, err);
    if (st == CSN_OK)
        st = csn_call_path(&c, path ? path : ".", &p.root, err);
    if (st == CSN_OK)
        st = pack(&p, err);
    csn_export_guard_end(&p.guard);
    c.event.bytes = p.t.bytes;
    return csn_call_end(&c, st, err);
}

/* ---- import ----------------------------------------------------------------------------- */

/* Symlinks are created last, so that no entry is written through a link of the archive. */
typedef struct deferred_link {
    char *path, *target;
} deferred_link;

typedef struct unpacker {
    csn_transfer t;
    csn_dirmodes modes;
    deferred_link *links;
    size_t link_count, link_cap;
    const csn_fs *fs;
    const char *root;
} unpacker;

static csn_status defer_link(unpacker *u, const char *path, const char *target, csn_error **err)
{
    if (u->link_count == u->link_cap) {
        size_t cap = u->link_cap ? 2 * u->link_cap : 32;
        deferred_link *more = realloc(u->links, cap * sizeof(*more));
        if (!more)
            return csn_fail(err, CSN_NOMEM, "import");
        u->links = more;
        u->link_cap = cap;
    }
    deferred_link *l = &u->links[u->link_count++];
    *l = (deferred_link){.path = strdup(path), .target = strdup(target)};
    return l->path && l->target ? CSN_OK : csn_fail(err, CSN_NOMEM, "import");
}

static csn_status make_links(unpacker *u, csn_status st, csn_error **err)
{
    for (size_t i = 0; i < u->link_count; i++) {
        if (st == CSN_OK)
            st = csn_fs_symlink(u->fs, u->links[i].target, u->links[i].path, err);
        free(u->links[i].path);
        free(u->links[i].target);
    }
    free(u->links);
    return st;
}

static csn_status unpack_entry(void *ctx, const csn_tar_entry *e, const csn_source *data,
                               csn_error **err)
{
    unpacker *u = ctx;
    csn_autofree char *path = csn_transfer_join(u->root, e->path);
    csn_written w = {0};

    if (!path)
        return csn_fail(err, CSN_NOMEM, "import");
    u->t.entries++;
    csn_status st = csn_transfer_count(&u->t, e->file_size, err);
    if (st < 0)
        return st;
    if ((e->mode & S_IFMT) == S_IFDIR) {
        st = csn_fs_mkdir(u->fs, path, 0, err);
        return st < 0 ? st : csn_dirmodes_add(&u->modes, path, e->mode, err);
    }
    if ((e->mode & S_IFMT) == S_IFLNK)
        return defer_link(u, path, e->target, err);
    csn_write_req req = {.path = path, .source = *data, .mode = e->mode & 0777u};
    st = csn_fs_write(u->fs, &req, 1, &w, err);
    free(w.resolved_path);
    return st;
}

csn_status csn_import_tar(csn_sandbox *sb, const char *path, csn_read_fn source,
                          void *source_ctx, const csn_transfer_opts *opts, csn_error **err)
{
    csn_call c;
    csn_transfer_opts o;
    const csn_tar_api *api = NULL;
    csn_source src = {.read = source, .ctx = source_ctx};
    unpacker u = {0};
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "transfer options", err);

    if (st == CSN_OK && !source)
        st = csn_fail(err, CSN_INVALID, "import: no archive given");
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "import", path, err);
    if (st < 0)
        return csn_error_note(st, err, "import", path);
    u.fs = &c.fs;
    st = csn_tar_load(&api, err);
    if (st == CSN_OK)
        st = csn_transfer_begin(&u.t, &o, 0, err);
    if (st == CSN_OK)
        st = csn_call_path(&c, path ? path : ".", &u.root, err);
    if (st == CSN_OK)
        st = csn_fs_mkdir(&c.fs, u.root, 0, err);
    if (st == CSN_OK)
        st = api->read(&src, u.t.max_entries, u.t.max_bytes, unpack_entry, &u, err);
    st = make_links(&u, st, err);
    st = csn_dirmodes_apply(&u.modes, &c.fs, st, err);
    c.event.bytes = u.t.bytes;
    return csn_call_end(&c, st, err);
}

/* ---- csn_write_tar: all files or none --------------------------------------------------- */

typedef struct staged {
    csn_file_content *files;
    csn_buf *contents;
    size_t count, cap;
    const char *root;
    uint64_t bytes;
} staged;

static csn_status stage_grow(staged *s, csn_error **err)
{
    if (s->count < s->cap)
        return CSN_OK;
    if (s->count >= CSN_WRITE_MANY_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "more than %u files", CSN_WRITE_MANY_MAX);
    size_t cap = s->cap ? 2 * s->cap : 64;
    csn_file_content *files = realloc(s->files, cap * sizeof(*files));
    if (files)
        s->files = files;
    csn_buf *contents = files ? realloc(s->contents, cap * sizeof(*contents)) : NULL;
    if (!contents)
        return csn_fail(err, CSN_NOMEM, "write files of a tar");
    s->contents = contents;
    s->cap = cap;
    return CSN_OK;
}

static csn_status stage_entry(void *ctx, const csn_tar_entry *e, const csn_source *data,
                              csn_error **err)
{
    staged *s = ctx;
    char chunk[16384];
    int64_t n;

    if ((e->mode & S_IFMT) == S_IFDIR)
        return CSN_OK; /* writing a file creates its parents */
    if ((e->mode & S_IFMT) != S_IFREG)
        return csn_fail(err, CSN_INVALID, "'%s' in the tar is not a regular file", e->path);
    csn_status st = stage_grow(s, err);
    if (st < 0)
        return st;
    csn_buf *b = &s->contents[s->count];
    csn_buf_init(b, WRITE_TAR_MAX);
    char *path = csn_transfer_join(s->root, e->path);
    s->files[s->count++] = (csn_file_content){.path = path, .mode = e->mode & 0777u};
    while (path && (n = data->read(data->ctx, chunk, sizeof(chunk))) != 0) {
        if (n < 0)
            return csn_fail(err, CSN_IO, "'%s' in the tar cannot be read", e->path);
        s->bytes += (uint64_t)n;
        if (s->bytes > WRITE_TAR_MAX)
            return csn_fail(err, CSN_TOO_LARGE, "the files of the tar are over %llu bytes",
                            (unsigned long long)WRITE_TAR_MAX);
        if (csn_buf_append(b, chunk, (size_t)n) != 0)
            return csn_fail(err, CSN_NOMEM, "write files of a tar");
    }
    return path ? CSN_OK : csn_fail(err, CSN_NOMEM, "write files of a tar");
}

static void staged_release(staged *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free((char *)s->files[i].path);
        csn_buf_release(&s->contents[i]);
    }
    free(s->files);
    free(s->contents);
}

static csn_status write_tar_inner(csn_call *c, const char *path, const csn_source *src,
                                  uint32_t flags, csn_error **err)
{
    const csn_tar_api *api = NULL;
    staged s = {0};

    csn_status st = csn_tar_load(&api, err);
    if (st == CSN_OK)
        st = csn_call_path(c, path ? path : ".", &s.root, err);
    if (st == CSN_OK)
        st = api->read(src, CSN_WRITE_MANY_MAX * 2, WRITE_TAR_MAX, stage_entry, &s, err);
    if (st == CSN_OK && s.count == 0)
        st = csn_fail(err, CSN_INVALID, "the tar has no files");
    for (size_t i = 0; i < s.count; i++) {
        s.files[i].data = s.contents[i].data ? s.contents[i].data : "";
        s.files[i].len = s.contents[i].len;
    }
    if (st == CSN_OK)
        st = csn_write_batch(c, s.files, s.count, flags, err);
    staged_release(&s);
    return st;
}

csn_status csn_write_tar(csn_sandbox *sb, const char *path, csn_read_fn source,
                         void *source_ctx, uint32_t flags, csn_error **err)
{
    csn_call c;
    csn_source src = {.read = source, .ctx = source_ctx};
    csn_status st = csn_flags_check(
        flags, CSN_FILE_CREATE | CSN_FILE_SYNC | CSN_FILE_NOFOLLOW | CSN_FILE_NO_PARENTS,
        "write_tar", err);

    if (st == CSN_OK && !source)
        st = csn_fail(err, CSN_INVALID, "write: no archive given");
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "write_many", path, err);
    if (st < 0)
        return csn_error_note(st, err, "write_many", path);
    return csn_call_end(&c, write_tar_inner(&c, path, &src, flags, err), err);
}
