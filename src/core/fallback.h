/* fallback.h: file operations derived from exec, for backends without their own.
 *
 * Each is a small POSIX sh script run by the backend: paths are separate arguments, content
 * goes through stdin and stdout, the exit code is the error. Names may contain any byte, and
 * content may have any size. Limitation: a script tests and then acts, so a process in the
 * sandbox that replaces files at the same time can redirect an operation. It gains nothing: the
 * script can reach only what exec can reach.
 *
 * Signatures are those of csn_file_ops. A relative path starts where the backend starts its
 * commands. Several threads may use one csn_fs. */
#pragma once
#include "base/buf.h"
#include "caisson/backend.h"

/* The file operations of one sandbox: native ones, and those that are derived from exec. */
typedef struct csn_fs {
    const csn_backend_ops *ops;
    void *state;
    const int32_t *cancel_fds; /* NULL, or two descriptors that stop derived operations */
} csn_fs;

/* The backend's file operations; a table of NULLs if it has none. */
const csn_file_ops *csn_fs_files(const csn_fs *fs);

csn_status csn_derive_stat(const csn_fs *fs, const char *path, uint32_t flags,
                           csn_file_stat *ret, char **ret_target, csn_error **err);
csn_status csn_derive_read(const csn_fs *fs, const char *path, uint32_t flags, uint64_t offset,
                           uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                           csn_error **err);
csn_status csn_derive_write(const csn_fs *fs, const csn_write_req *reqs, size_t count,
                            csn_written *rets, csn_error **err);
csn_status csn_derive_mkdir(const csn_fs *fs, const char *path, uint32_t flags,
                            csn_error **err);
csn_status csn_derive_symlink(const csn_fs *fs, const char *target, const char *path,
                              csn_error **err);
csn_status csn_derive_remove(const csn_fs *fs, const char *path, uint32_t flags,
                             csn_error **err);
csn_status csn_derive_rename(const csn_fs *fs, const char *from, const char *to, uint32_t flags,
                             csn_error **err);
csn_status csn_derive_list(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                           void *ctx, csn_error **err);
csn_status csn_derive_walk(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                           void *ctx, csn_error **err);
/* Removes everything in workdir; the directory itself stays. */
csn_status csn_derive_cleanup(const csn_fs *fs, const char *workdir, csn_error **err);
