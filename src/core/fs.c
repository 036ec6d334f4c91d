/* fs.c: file operations of a sandbox, done by the backend or derived from its exec.
 *
 * The public functions use only these. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "core/exec_probe.h"
#include "core/internal.h"

const csn_file_ops *csn_fs_files(const csn_fs *fs)
{
    static const csn_file_ops none = {.size = sizeof(none)};

    return fs->ops->files ? fs->ops->files : &none;
}

/* Calls the backend's `op`, or `derive`, which has the same parameters. */
#define NATIVE_OR(derive, op, ...)                                                             \
    (csn_fs_files(fs)->op ? csn_fs_files(fs)->op(fs->state, __VA_ARGS__)                       \
                          : derive(fs, __VA_ARGS__))

csn_status csn_fs_stat(const csn_fs *fs, const char *path, uint32_t flags, csn_file_stat *ret,
                       char **ret_target, csn_error **err)
{
    return NATIVE_OR(csn_derive_stat, stat, path, flags, ret, ret_target, err);
}

csn_status csn_fs_read(const csn_fs *fs, const char *path, uint32_t flags, uint64_t offset,
                       uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                       csn_error **err)
{
    return NATIVE_OR(csn_derive_read, read, path, flags, offset, length, sink, ret, err);
}

csn_status csn_fs_write(const csn_fs *fs, const csn_write_req *reqs, size_t count,
                        csn_written *rets, csn_error **err)
{
    return NATIVE_OR(csn_derive_write, write, reqs, count, rets, err);
}

csn_status csn_fs_mkdir(const csn_fs *fs, const char *path, uint32_t flags, csn_error **err)
{
    return NATIVE_OR(csn_derive_mkdir, mkdir, path, flags, err);
}

csn_status csn_fs_chmod(const csn_fs *fs, const char *path, uint32_t mode, csn_error **err)
{
    return NATIVE_OR(csn_probe_chmod, chmod, path, mode, err);
}

csn_status csn_fs_symlink(const csn_fs *fs, const char *target, const char *path,
                          csn_error **err)
{
    return NATIVE_OR(csn_derive_symlink, symlink, target, path, err);
}

csn_status csn_fs_remove(const csn_fs *fs, const char *path, uint32_t flags, csn_error **err)
{
    return NATIVE_OR(csn_derive_remove, remove, path, flags, err);
}

csn_status csn_fs_rename(const csn_fs *fs, const char *from, const char *to, uint32_t flags,
                         csn_error **err)
{
    return NATIVE_OR(csn_derive_rename, rename, from, to, flags, err);
}

csn_status csn_fs_list(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err)
{
    return NATIVE_OR(csn_derive_list, list, path, flags, fn, ctx, err);
}

csn_status csn_fs_walk(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err)
{
    return NATIVE_OR(csn_derive_walk, walk, path, flags, fn, ctx, err);
}

csn_status csn_fs_check_dir(const csn_fs *fs, const char *path, uint32_t flags,
                            const char *shown, csn_error **err)
{
    csn_file_stat fst;
    csn_status st = csn_fs_stat(fs, path, flags, &fst, NULL, err);

    return st < 0 || S_ISDIR(fst.mode)
               ? st
               : csn_fail(err, CSN_WRONG_TYPE, "'%s' is not a directory", shown);
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
