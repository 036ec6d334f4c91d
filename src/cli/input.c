/* input.c: reads files named on the command line, and connects stdin and stdout to the
 * library's read and write callbacks.
 *
 * The caller limits the size of a file, so that a device or an endless pipe cannot fill memory.
 * After a caught signal (signals.c) reading fails, and the library undoes the write. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/cli.h"

csn_status csn_cli_slurp(const char *path, size_t max, char **ret, size_t *ret_len,
                         csn_error **err)
{
    csn_autofd int opened = -1;
    csn_autobuf buf;
    int fd = STDIN_FILENO;
    char chunk[16384];

    csn_buf_init(&buf, max);
    if (strcmp(path, "-") != 0) {
        opened = open(path, O_RDONLY | O_CLOEXEC);
        if (opened < 0)
            return csn_fail_errno(err, errno, "cannot open '%s'", path);
        fd = opened;
    }
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR && !csn_cli_caught())
            continue;
        if (n < 0)
            return csn_fail_errno(err, errno, "cannot read '%s'", path);
        int e = csn_buf_append(&buf, chunk, (size_t)n);
        if (e == ENOSPC)
            return csn_fail(err, CSN_TOO_LARGE, "'%s' has more than %zu bytes", path, max);
        if (e != 0)
            return csn_fail_errno(err, e, "cannot read '%s'", path);
    }
    *ret_len = buf.len;
    *ret = csn_buf_take(&buf);
    if (!*ret)
        return csn_fail(err, CSN_NOMEM, "cannot read '%s'", path);
    return CSN_OK;
}

int64_t csn_cli_read_stdin(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf, len);
        if (n >= 0)
            return n;
        if (errno != EINTR || csn_cli_caught())
            return -1;
    }
}

int csn_cli_write_stdout(void *ctx, const void *data, size_t len)
{
    int *error = ctx;

    *error = csn_cli_write(STDOUT_FILENO, data, len);
    return *error != 0;
}
