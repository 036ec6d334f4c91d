/* fs.c: one file operation, whoever can do it.
 *
 * A backend that has the operation does it; for one that has not, fallback.c derives it from
 * the backend's exec. The verbs call only these and never ask which it was. */
#include <errno.h>

#include "base/buf.h"
#include "core/exec_probe.h"
#include "core/internal.h"

/* Was that the answer, or does the backend leave this case to the derived form? */
static bool answered(const csn_fs *fs, csn_status st, csn_error **err)
{
    if (st != CSN_UNSUPPORTED || !(fs->ops->caps & CSN_CAP_DERIVE))
        return true;
    if (err) {
        csn_error_free(*err);
        *err = NULL;
    }
    return false;
}

csn_status csn_fs_stat(const csn_fs *fs, const char *path, uint32_t flags, csn_file_stat *ret,
                       char **ret_target, csn_error **err)
{
    csn_status st = fs->ops->stat ? fs->ops->stat(fs->state, path, flags, ret, ret_target, err)
                                  : CSN_UNSUPPORTED;
    if (fs->ops->stat && answered(fs, st, err))
        return st;
    return csn_derive_stat(fs, path, flags, ret, ret_target, err);
}

csn_status csn_fs_read(const csn_fs *fs, const char *path, uint32_t flags, uint64_t offset,
                       uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                       csn_error **err)
{
    csn_status st = fs->ops->read
                        ? fs->ops->read(fs->state, path, flags, offset, length, sink, ret, err)
                        : CSN_UNSUPPORTED;
    if (fs->ops->read && answered(fs, st, err))
        return st;
    return csn_derive_read(fs, path, flags, offset, length, sink, ret, err);
}

csn_status csn_fs_write(const csn_fs *fs, const csn_write_req *reqs, size_t count,
                        csn_written *rets, csn_error **err)
{
    csn_status st =
        fs->ops->write ? fs->ops->write(fs->state, reqs, count, rets, err) : CSN_UNSUPPORTED;
    if (fs->ops->write && answered(fs, st, err))
        return st;
    return csn_derive_write(fs, reqs, count, rets, err);
}

csn_status csn_fs_mkdir(const csn_fs *fs, const char *path, uint32_t flags, csn_error **err)
{
    csn_status st =
        fs->ops->mkdir ? fs->ops->mkdir(fs->state, path, flags, err) : CSN_UNSUPPORTED;
    if (fs->ops->mkdir && answered(fs, st, err))
        return st;
    return csn_derive_mkdir(fs, path, flags, err);
}

csn_status csn_fs_chmod(const csn_fs *fs, const char *path, uint32_t mode, csn_error **err)
{
    if (fs->ops->chmod)
        return fs->ops->chmod(fs->state, path, mode, err);
    return csn_probe_chmod(fs, path, mode, err);
}

csn_status csn_fs_symlink(const csn_fs *fs, const char *target, const char *path,
                          csn_error **err)
{
    csn_status st =
        fs->ops->symlink ? fs->ops->symlink(fs->state, target, path, err) : CSN_UNSUPPORTED;
    if (fs->ops->symlink && answered(fs, st, err))
        return st;
    return csn_derive_symlink(fs, target, path, err);
}

csn_status csn_fs_remove(const csn_fs *fs, const char *path, uint32_t flags, csn_error **err)
{
    csn_status st =
        fs->ops->remove ? fs->ops->remove(fs->state, path, flags, err) : CSN_UNSUPPORTED;
    if (fs->ops->remove && answered(fs, st, err))
        return st;
    return csn_derive_remove(fs, path, flags, err);
}

csn_status csn_fs_rename(const csn_fs *fs, const char *from, const char *to, uint32_t flags,
                         csn_error **err)
{
    csn_status st =
        fs->ops->rename ? fs->ops->rename(fs->state, from, to, flags, err) : CSN_UNSUPPORTED;
    if (fs->ops->rename && answered(fs, st, err))
        return st;
    return csn_derive_rename(fs, from, to, flags, err);
}

csn_status csn_fs_list(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err)
{
    csn_status st =
        fs->ops->list ? fs->ops->list(fs->state, path, flags, fn, ctx, err) : CSN_UNSUPPORTED;
    if (fs->ops->list && answered(fs, st, err))
        return st;
    return csn_derive_list(fs, path, flags, fn, ctx, err);
}

csn_status csn_fs_walk(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err)
{
    csn_status st =
        fs->ops->walk ? fs->ops->walk(fs->state, path, flags, fn, ctx, err) : CSN_UNSUPPORTED;
    if (fs->ops->walk && answered(fs, st, err))
        return st;
    return csn_derive_walk(fs, path, flags, fn, ctx, err);
}

typedef struct slurp {
    csn_buf *out;
    int err;
} slurp;

static int slurp_write(void *ctx, int stream, const void *data, size_t len)
{
    slurp *s = ctx;

    (void)stream;
    s->err = csn_buf_append(s->out, data, len);
    return s->err == 0 ? CSN_SINK_MORE : CSN_SINK_STOP;
}

csn_status csn_fs_slurp(const csn_fs *fs, const char *path, uint32_t flags, size_t max,
                        csn_buf *out, csn_error **err)
{
    slurp s = {.out = out};
    csn_sink sink = {.write = slurp_write, .ctx = &s};
    csn_file_stat st_ignored;

    csn_buf_init(out, max);
    csn_status st = csn_fs_read(fs, path, flags, 0, CSN_NO_LIMIT, &sink, &st_ignored, err);
    if (st < 0)
        return st;
    if (s.err == ENOMEM)
        return csn_fail(err, CSN_NOMEM, "read '%s'", path);
    if (s.err != 0)
        return csn_fail(err, CSN_TOO_LARGE, "'%s' has more than %zu bytes", path, max);
    return CSN_OK;
}
