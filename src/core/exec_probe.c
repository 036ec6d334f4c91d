/* exec_probe.c: probes the sandbox of a backend that has only exec.
 *
 * Each probe is one sh script. The backend may be third-party code: output is bounded and
 * checked. */
#include "core/exec_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"

static int keep(void *ctx, int stream, const void *data, size_t len)
{
    if (stream != CSN_STDOUT || !data)
        return CSN_SINK_MORE;
    return csn_buf_append(ctx, data, len) == 0 ? CSN_SINK_MORE : CSN_SINK_STOP;
}

static csn_status run_script(const csn_fs *fs, const char *script, const char *arg1,
                             const char *arg2, csn_buf *out, int *ret_code, csn_error **err)
{
    const char *argv[] = {"sh", "-c", script, "sh", arg1, arg2, NULL};
    csn_exec_req req = {.size = sizeof(req),
                        .argv = argv,
                        .input_fd = -1,
                        .cancel_fds = {-1, -1},
                        .deadline_ns = csn_deadline_in(CSN_TIMEOUT_MS_DEFAULT)};
    csn_exec_end end = {.size = sizeof(end), .exit_code = -1};
    csn_sink sink = {.write = keep, .ctx = out};

    csn_status st = fs->ops->exec(fs->state, &req, &sink, &end, err);
    if (st < 0)
        return csn_wrap(st, err, "probe the backend");
    if (end.how == CSN_END_CANCEL)
        return csn_fail(err, CSN_CANCELLED, "probe the backend: cancelled");
    if (end.how == CSN_END_TIMEOUT)
        return csn_fail(err, CSN_TIMEOUT, "probe the backend: deadline passed");
    if (end.how != CSN_END_EXITED)
        return csn_fail(err, CSN_UNAVAILABLE, "probe the backend: cannot run sh");
    *ret_code = end.exit_code;
    return CSN_OK;
}

csn_status csn_probe_dirs(const csn_fs *fs, char **ret_workdir, char **ret_home,
                          csn_error **err)
{
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 2 * (size_t)CSN_PATH_MAX);
    csn_status st =
        run_script(fs, "pwd -P && printf '\\000%s' \"$HOME\"", NULL, NULL, &out, &code, err);
    if (st < 0)
        return st;
    char *nul = out.len > 0 ? memchr(out.data, '\0', out.len) : NULL;
    if (code != 0 || !nul || out.data[0] != '/' || nul == out.data || nul[-1] != '\n')
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the backend's sh did not report its working directory");
    nul[-1] = '\0';
    char *workdir = strdup(out.data), *home = nul[1] == '/' ? strdup(nul + 1) : NULL;
    if (!workdir || (nul[1] == '/' && !home)) {
        free(workdir);
        free(home);
        return csn_fail(err, CSN_NOMEM, "directories of the backend");
    }
    *ret_workdir = workdir;
    *ret_home = home;
    return CSN_OK;
}

csn_status csn_probe_bash(const csn_fs *fs, bool *ret, csn_error **err)
{
    const csn_file_ops *files = fs->ops->files;
    csn_file_stat bash = {0};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, CSN_PATH_MAX);
    /* A look at the file costs a hundredth of a script. */
    if (files && files->stat &&
        files->stat(fs->state, "/bin/bash", 0, &bash, NULL, NULL) == CSN_OK &&
        (bash.mode & S_IFMT) == S_IFREG && (bash.mode & S_IXOTH)) {
        *ret = true;
        return CSN_OK;
    }
    csn_status st = run_script(fs, "command -v bash", NULL, NULL, &out, &code, err);
    if (st == CSN_OK)
        *ret = code == 0;
    return st;
}

csn_status csn_probe_chmod(const csn_fs *fs, const char *path, uint32_t mode, csn_error **err)
{
    csn_autobuf out;
    char octal[8];
    int code = -1;

    csn_buf_init(&out, CSN_PATH_MAX);
    snprintf(octal, sizeof(octal), "%o", mode & 0777);
    csn_status st =
        run_script(fs, "[ -d \"$2\" ] && chmod \"$1\" \"$2\"", octal, path, &out, &code, err);
    if (st == CSN_OK && code != 0)
        st = csn_fail(err, CSN_IO, "set the mode of '%s'", path);
    return st;
}
