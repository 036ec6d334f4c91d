/* fallback.h: file operations for backends that have none, derived from their exec alone.
 *
 * Each is a small POSIX sh script run by the backend: paths are separate arguments, content
 * goes only through stdin and stdout, the exit code says what went wrong. They hold for any
 * byte in a name and any size of content. What they cannot give: a script looks and then acts,
 * so somebody in the sandbox who swaps files at the same moment can make an operation act on
 * what was swapped in. That is the sandbox's own matter: nothing here reaches beyond what exec
 * reaches.
 *
 * Signatures are those of csn_backend_ops. A relative path starts where the backend starts its
 * commands. One csn_fs may be used by many threads. */
#pragma once
#include "caisson/backend.h"

/* What backends offer and what is derived from exec meet here. */
typedef struct csn_fs {
    const csn_backend_ops *ops;
    void *state;
    const int32_t
        *cancel_fds; /* NULL, or two that stop derived operations, as in csn_exec_req */
} csn_fs;

/* The backend's file operations; a table of NULLs when it has none. */
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
