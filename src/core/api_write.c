/* api_write.c: csn_write, csn_write_from, csn_write_many, csn_edit.
 *
 * All use the write operation of the backend, which writes any number of files atomically, all
 * or none. An edit reads the file, replaces strings, and writes with the hash of the content it
 * read: a concurrent change is CSN_CONFLICT and is not overwritten. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "core/api_write.h"
#include "core/internal.h"
#include "core/result.h"
#include "text/edit.h"

#define WRITE_FLAGS                                                                            \
    (CSN_FILE_NOFOLLOW | CSN_FILE_CREATE | CSN_FILE_APPEND | CSN_FILE_SYNC |                   \
     CSN_FILE_NO_PARENTS)

static csn_status check_hash(const char *hash, csn_error **err)
{
    if (!hash || (strlen(hash) == CSN_HASH_HEX - 1 &&
                  strspn(hash, "0123456789abcdefABCDEF") == CSN_HASH_HEX - 1))
        return CSN_OK;
    return csn_fail(err, CSN_INVALID, "if_hash '%s' is not a SHA-256 in hex", hash);
}

static csn_status check_write(const csn_write_opts *o, csn_error **err)
{
    csn_status st = csn_flags_check(o->flags, WRITE_FLAGS, "write", err);

    if (st < 0)
        return st;
    if ((o->flags & CSN_FILE_CREATE) && (o->flags & CSN_FILE_APPEND))
        return csn_fail(err, CSN_INVALID, "write: either create-only or append");
    if (o->if_hash && (o->flags & (CSN_FILE_CREATE | CSN_FILE_APPEND)))
        return csn_fail(err, CSN_INVALID, "write: if_hash goes with overwriting only");
    if (o->mode & ~07777u)
        return csn_fail(err, CSN_INVALID, "write: mode 0%o has more than permission bits",
                        o->mode);
    return check_hash(o->if_hash, err);
}

static csn_status write_inner(csn_call *c, const char *path, csn_source source,
                              const csn_write_opts *o, csn_write_result *r, csn_error **err)
{
    csn_arena *a = csn_result_arena(r);
    csn_written w = {0};
    csn_write_req req = {
        .source = source, .flags = o->flags, .mode = o->mode, .if_hash = o->if_hash};

    csn_status st = csn_call_path(c, path, &req.path, err);
    if (st == CSN_OK)
        st = csn_fs_write(&c->fs, &req, 1, &w, err);
    if (st < 0)
        return st;
    r->path = csn_arena_strdup(a, path);
    r->resolved_path = csn_arena_strdup(a, w.resolved_path ? w.resolved_path : req.path);
    r->bytes = w.bytes;
    r->hash = w.hash[0] ? csn_arena_strdup(a, w.hash) : NULL;
    if (w.resolved_path && csn_fs_files(&c->fs)->note_write)
        r->note = csn_fs_files(&c->fs)->note_write(c->fs.state, w.resolved_path);
    free(w.resolved_path);
    c->event.bytes = w.bytes;
    c->event.hash = r->hash;
    return r->path && r->resolved_path ? CSN_OK : csn_fail(err, CSN_NOMEM, "write '%s'", path);
}

csn_status csn_write_from(csn_sandbox *sb, const char *path, csn_read_fn source,
                          void *source_ctx, const csn_write_opts *opts, csn_write_result **ret,
                          csn_error **err)
{
    csn_call c;
    csn_write_opts o;
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "write options", err);

    if (st == CSN_OK && !source)
        st = csn_fail(err, CSN_INVALID, "write: no content given");
    if (st == CSN_OK)
        st = check_write(&o, err);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "write", path, err);
    if (st < 0)
        return csn_error_note(st, err, "write", path);
    csn_write_result *r = csn_result_new(sizeof(*r));
    csn_source src = {.read = source, .ctx = source_ctx};
    st = r ? write_inner(&c, path, src, &o, r, err) : csn_fail(err, CSN_NOMEM, "write");
    return csn_call_return(&c, st, r, ret, err);
}

csn_status csn_write(csn_sandbox *sb, const char *path, const void *data, size_t len,
                     const csn_write_opts *opts, csn_write_result **ret, csn_error **err)
{
    csn_memory_source b = {.data = data, .left = len};

    if (!data && len > 0)
        return csn_error_note(csn_fail(err, CSN_INVALID, "write: no content given"), err,
                              "write", path);
    return csn_write_from(sb, path, csn_memory_read, &b, opts, ret, err);
}

void csn_write_result_free(csn_write_result *r)
{
    csn_result_free(r);
}

/* ---- many ---------------------------------------------------------------------------------
 */

typedef struct batch {
    csn_write_req *reqs;
    csn_memory_source *bytes;
    csn_written *written;
    char **paths;
    size_t count;
} batch;

static void batch_release(batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        if (b->paths)
            free(b->paths[i]);
        if (b->written)
            free(b->written[i].resolved_path);
    }
    free(b->reqs);
    free(b->bytes);
    free(b->written);
    free(b->paths);
}

static csn_status batch_fill(csn_call *c, batch *b, const csn_file_content *files, size_t count,
                             uint32_t flags, csn_error **err)
{
    b->reqs = calloc(count, sizeof(*b->reqs));
    b->bytes = calloc(count, sizeof(*b->bytes));
    b->written = calloc(count, sizeof(*b->written));
    b->paths = calloc(count, sizeof(*b->paths));
    b->count = count;
    if (!b->reqs || !b->bytes || !b->written || !b->paths)
        return csn_fail(err, CSN_NOMEM, "write %zu files", count);
    for (size_t i = 0; i < count; i++) {
        const csn_file_content *f = &files[i];
        csn_status st = f->data || f->len == 0
                            ? check_hash(f->if_hash, err)
                            : csn_fail(err, CSN_INVALID, "write: no content given");
        if (st == CSN_OK)
            st = csn_call_path(c, f->path, &b->reqs[i].path, err);
        if (st < 0)
            return csn_error_note(st, err, "write_many", f->path);
        /* csn_call has room for two joined paths only, so the batch takes ownership of each. */
        b->paths[i] = c->paths[--c->path_count];
        b->bytes[i] = (csn_memory_source){.data = f->data, .left = f->len};
        b->reqs[i].source = (csn_source){.read = csn_memory_read, .ctx = &b->bytes[i]};
        b->reqs[i].flags = flags;
        b->reqs[i].mode = f->mode;
        b->reqs[i].if_hash = f->if_hash;
        c->event.bytes += f->len;
    }
    return CSN_OK;
}

csn_status csn_write_batch(csn_call *c, const csn_file_content *files, size_t count,
                           uint32_t flags, csn_error **err)
{
    batch b = {0};
    csn_status st = batch_fill(c, &b, files, count, flags, err);

    if (st == CSN_OK)
        st = csn_fs_write(&c->fs, b.reqs, count, b.written, err);
    for (size_t i = 0; st < 0 && b.paths && i < count; i++)
        csn_error_rephrase(st, err, b.paths[i], files[i].path);
    batch_release(&b);
    return st;
}

csn_status csn_write_many(csn_sandbox *sb, const csn_file_content *files, size_t count,
                          uint32_t flags, csn_error **err)
{
    csn_call c;
    csn_status st = csn_flags_check(flags, WRITE_FLAGS & ~CSN_FILE_APPEND, "write_many", err);

    if (st == CSN_OK && (!files || count == 0))
        st = csn_fail(err, CSN_INVALID, "write_many: no files given");
    if (st == CSN_OK && count > CSN_WRITE_MANY_MAX)
        st = csn_fail(err, CSN_TOO_LARGE, "write_many: %zu files, at most %u", count,
                      CSN_WRITE_MANY_MAX);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "write_many", files[0].path, err);
    if (st < 0)
        return csn_error_note(st, err, "write_many", NULL);
    return csn_call_end(&c, csn_write_batch(&c, files, count, flags, err), err);
}

/* ---- edit ---------------------------------------------------------------------------------
 */

static csn_status edit_inner(csn_call *c, const char *path, const csn_edit_item *edits,
                             size_t count, uint32_t flags, csn_edit_result *r, csn_error **err)
{
    csn_arena *a = csn_result_arena(r);
    csn_autobuf before, after;
    char hash[CSN_HASH_HEX];
    csn_written w = {0};
    csn_write_req req = {.flags = flags | CSN_FILE_NO_PARENTS, .if_hash = hash};

    csn_buf_init(&before, CSN_EDIT_FILE_MAX);
    csn_buf_init(&after, (size_t)CSN_EDIT_FILE_MAX * 4);
    csn_status st = csn_call_path(c, path, &req.path, err);
    if (st == CSN_OK)
        st = csn_fs_slurp(&c->fs, req.path, flags & CSN_FILE_NOFOLLOW, CSN_EDIT_FILE_MAX,
                          &before, err);
    if (st == CSN_OK)
        st = csn_edit_apply(path, before.data ? before.data : "", before.len, edits, count,
                            &after, &r->occurrences, err);
    if (st < 0)
        return st;
    csn_hash_bytes(before.data ? before.data : "", before.len, hash);
    csn_memory_source content = {.data = after.data ? after.data : "", .left = after.len};
    req.source = (csn_source){.read = csn_memory_read, .ctx = &content};
    st = csn_fs_write(&c->fs, &req, 1, &w, err);
    if (st < 0)
        return st;
    r->path = csn_arena_strdup(a, path);
    r->resolved_path = csn_arena_strdup(a, w.resolved_path ? w.resolved_path : req.path);
    r->hash = csn_arena_strdup(a, w.hash);
    r->bytes = w.bytes;
    free(w.resolved_path);
    c->event.bytes = w.bytes;
    c->event.hash = r->hash;
    return r->path && r->hash ? CSN_OK : csn_fail(err, CSN_NOMEM, "edit '%s'", path);
}

csn_status csn_edit(csn_sandbox *sb, const char *path, const csn_edit_item *edits, size_t count,
                    uint32_t flags, csn_edit_result **ret, csn_error **err)
{
    csn_call c;
    csn_status st = csn_flags_check(flags, CSN_FILE_NOFOLLOW | CSN_FILE_SYNC, "edit", err);

    if (st == CSN_OK && (!edits || count == 0))
        st = csn_fail(err, CSN_INVALID, "edit: no edits given");
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "edit", path, err);
    if (st < 0)
        return csn_error_note(st, err, "edit", path);
    csn_edit_result *r = csn_result_new(sizeof(*r));
    st = r ? edit_inner(&c, path, edits, count, flags, r, err)
           : csn_fail(err, CSN_NOMEM, "edit");
    return csn_call_return(&c, st, r, ret, err);
}

void csn_edit_result_free(csn_edit_result *r)
{
    csn_result_free(r);
}
