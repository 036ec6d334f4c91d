/* shim.c: passes callbacks of libcaisson to Go, and Go's handles to libcaisson. */
#include "shim.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "_cgo_export.h"

static int on_output(void *ctx, int stream, const void *data, size_t len)
{
    return caissonGoOutput((uintptr_t)ctx, stream, (void *)data, len);
}

static void on_denial(void *ctx, const csn_denial *d)
{
    caissonGoDenial((uintptr_t)ctx, (csn_denial *)d);
}

static void on_progress(void *ctx, uint64_t entries, uint64_t bytes)
{
    caissonGoProgress((uintptr_t)ctx, entries, bytes);
}

static void on_protected(void *ctx, const char *path, const char *rule)
{
    caissonGoProtected((uintptr_t)ctx, (char *)path, (char *)rule);
}

static void on_log(void *ctx, const char *line)
{
    caissonGoLog((uintptr_t)ctx, (char *)line);
}

static int on_line(void *ctx, const char *line, size_t len)
{
    return caissonGoWrite((uintptr_t)ctx, (void *)line, len);
}

static int on_write(void *ctx, const void *data, size_t len)
{
    return caissonGoWrite((uintptr_t)ctx, (void *)data, len);
}

static int64_t on_read(void *ctx, void *buf, size_t len)
{
    return caissonGoRead((uintptr_t)ctx, buf, len);
}

static csn_status on_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                          csn_exec_end *ret, csn_error **err)
{
    return caissonGoExec((uintptr_t)state, (csn_exec_req *)req, (csn_sink *)sink, ret, err);
}

void caisson_go_exec_hooks(csn_exec_opts *opts, uintptr_t handle, int output, int denial)
{
    if (output) {
        opts->on_output = on_output;
        opts->on_output_ctx = (void *)handle;
    }
    if (denial) {
        opts->on_denial = on_denial;
        opts->on_denial_ctx = (void *)handle;
    }
}

void caisson_go_transfer_hooks(csn_transfer_opts *opts, uintptr_t handle, int progress,
                               int guarded)
{
    if (progress) {
        opts->on_progress = on_progress;
        opts->on_progress_ctx = (void *)handle;
    }
    if (guarded) {
        opts->on_protected = on_protected;
        opts->on_protected_ctx = (void *)handle;
    }
}

void caisson_go_set_log(uintptr_t handle)
{
    csn_set_log(handle ? on_log : NULL, (void *)handle);
}

void caisson_go_on_denial(csn_sandbox *sb, uintptr_t handle)
{
    csn_on_denial(sb, handle ? on_denial : NULL, (void *)handle);
}

csn_status caisson_go_destroy_id(const char *id, uintptr_t handle, csn_error **err)
{
    return csn_destroy_id_report(id, handle ? on_denial : NULL, (void *)handle, err);
}

csn_status caisson_go_read_bytes(csn_sandbox *sb, const char *path, const csn_read_opts *opts,
                                 uintptr_t handle, csn_error **err)
{
    return csn_read_bytes(sb, path, opts, on_write, (void *)handle, err);
}

csn_status caisson_go_write_from(csn_sandbox *sb, const char *path, uintptr_t handle,
                                 const csn_write_opts *opts, csn_write_result **ret,
                                 csn_error **err)
{
    return csn_write_from(sb, path, on_read, (void *)handle, opts, ret, err);
}

csn_status caisson_go_write_tar(csn_sandbox *sb, const char *path, uintptr_t handle,
                                uint32_t flags, csn_error **err)
{
    return csn_write_tar(sb, path, on_read, (void *)handle, flags, err);
}

csn_status caisson_go_export_tar(csn_sandbox *sb, const char *path, uintptr_t handle,
                                 const csn_transfer_opts *opts, csn_error **err)
{
    return csn_export_tar(sb, path, on_write, (void *)handle, opts, err);
}

csn_status caisson_go_import_tar(csn_sandbox *sb, const char *path, uintptr_t handle,
                                 const csn_transfer_opts *opts, csn_error **err)
{
    return csn_import_tar(sb, path, on_read, (void *)handle, opts, err);
}

csn_status caisson_go_audit_read(const char *id, int is_file, uintptr_t handle, csn_error **err)
{
    return is_file ? csn_audit_read_file(id, on_line, (void *)handle, err)
                   : csn_audit_read(id, on_line, (void *)handle, err);
}

csn_status caisson_go_register(const char *name, uintptr_t handle, csn_error **err)
{
    const csn_backend_ops ops = {
        .size = sizeof(ops), .name = name, .isolation = "custom", .exec = on_exec};

    return csn_register_backend(&ops, (void *)handle, err);
}

int caisson_go_sink_write(const csn_sink *sink, int stream, void *data, size_t len)
{
    return sink->write(sink->ctx, stream, data, len);
}

int64_t caisson_go_source_read(const csn_source *source, void *buf, size_t len)
{
    return source->read(source->ctx, buf, len);
}

csn_status caisson_go_error_set(csn_error **err, csn_status code, const char *text)
{
    return csn_error_set(err, code, "%s", text);
}

int caisson_go_await(int a, int b, int c)
{
    struct pollfd fds[] = {{a, POLLIN, 0}, {b, POLLIN, 0}, {c, POLLIN, 0}};

    while (poll(fds, 3, -1) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < 3; i++)
        if (fds[i].revents)
            return i;
    return -1;
}
