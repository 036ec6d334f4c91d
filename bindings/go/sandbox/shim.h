/* shim.h: the C side of package sandbox: callbacks of libcaisson that call Go functions.
 *
 * A callback context is a cgo.Handle, which is a number and no pointer. The functions here take
 * it as such and pass it on as the `void *` of the library. */
#ifndef CAISSON_GO_SHIM_H
#define CAISSON_GO_SHIM_H

#include <caisson/backend.h>
#include <caisson/caisson.h>
#include <stdlib.h>

void caisson_go_exec_hooks(csn_exec_opts *opts, uintptr_t handle, int output, int denial);
void caisson_go_transfer_hooks(csn_transfer_opts *opts, uintptr_t handle, int progress,
                               int guarded);
void caisson_go_set_log(uintptr_t handle);
void caisson_go_on_denial(csn_sandbox *sb, uintptr_t handle);
csn_status caisson_go_destroy_id(const char *id, uintptr_t handle, csn_error **err);
csn_status caisson_go_read_bytes(csn_sandbox *sb, const char *path, const csn_read_opts *opts,
                                 uintptr_t handle, csn_error **err);
csn_status caisson_go_write_from(csn_sandbox *sb, const char *path, uintptr_t handle,
                                 const csn_write_opts *opts, csn_write_result **ret,
                                 csn_error **err);
csn_status caisson_go_write_tar(csn_sandbox *sb, const char *path, uintptr_t handle,
                                uint32_t flags, csn_error **err);
csn_status caisson_go_export_tar(csn_sandbox *sb, const char *path, uintptr_t handle,
                                 const csn_transfer_opts *opts, csn_error **err);
csn_status caisson_go_import_tar(csn_sandbox *sb, const char *path, uintptr_t handle,
                                 const csn_transfer_opts *opts, csn_error **err);
csn_status caisson_go_audit_read(const char *id, int is_file, uintptr_t handle,
                                 csn_error **err);

/* Registers a backend whose exec is a Go function; `name` is kept. */
csn_status caisson_go_register(const char *name, uintptr_t handle, csn_error **err);
int caisson_go_sink_write(const csn_sink *sink, int stream, void *data, size_t len);
int64_t caisson_go_source_read(const csn_source *source, void *buf, size_t len);
csn_status caisson_go_error_set(csn_error **err, csn_status code, const char *text);
/* Waits until one of the descriptors (-1: none) is readable; returns its index. */
int caisson_go_await(int a, int b, int c);

#endif
