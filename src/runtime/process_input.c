/* process_input.c: stdin of a background process, read before the process starts.
 *
 * No thread moves bytes after the call returns, and a descriptor of the caller is never passed
 * on (os/input.c). So the whole input is copied to a memfd first. A terminal is refused: what
 * is typed has no end. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/input.h"
#include "runtime/link.h"

#define CHUNK 65536u

static csn_status count(uint64_t *total, uint64_t n, csn_error **err)
{
    *total += n;
    if (*total <= CSN_START_INPUT_MAX)
        return CSN_OK;
    csn_status st = csn_fail(err, CSN_TOO_LARGE, "stdin of the process is over %u bytes",
                             CSN_START_INPUT_MAX);
    return csn_error_advise(st, err, "write it to a file in the sandbox first");
}

static csn_status copy_source(const csn_source *input, int to, csn_error **err)
{
    csn_status st = CSN_OK;
    uint64_t total = 0;
    char buf[16384];

    while (st == CSN_OK) {
        int64_t n = input->read(input->ctx, buf, sizeof(buf));
        if (n == 0)
            break;
        if (n < 0 || n > (int64_t)sizeof(buf))
            return csn_fail(err, CSN_IO, "the source of stdin failed");
        st = count(&total, (uint64_t)n, err);
        if (st == CSN_OK && write(to, buf, (size_t)n) != n)
            st = csn_fail_errno(err, errno, "stdin of the process");
    }
    return st;
}

/* Waits for input, the deadline of the process, or a cancellation. */
static csn_status await(const csn_input *in, const csn_exec_req *req, csn_error **err)
{
    struct pollfd p[] = {{.fd = in->fd, .events = POLLIN},
                         {.fd = req->cancel_fds[0], .events = POLLIN},
                         {.fd = req->cancel_fds[1], .events = POLLIN}};
    int n;

    do
        n = poll(p, 3, csn_deadline_poll_ms(req->deadline_ns));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return csn_fail_errno(err, errno, "standard input");
    if (n == 0)
        return csn_fail(err, CSN_TIMEOUT, "standard input did not end before the deadline");
    if (p[1].revents != 0 || p[2].revents != 0)
        return csn_fail(err, CSN_CANCELLED, "cancelled while standard input was read");
    return CSN_OK;
}

static csn_status copy_input(csn_input *in, const csn_exec_req *req, int to, csn_error **err)
{
    uint64_t total = 0;
    char buf[CHUNK];

    for (;;) {
        csn_status st = await(in, req, err);
        if (st < 0)
            return st;
        ssize_t n = csn_input_splices(in) ? csn_input_splice(in, to, sizeof(buf))
                                          : csn_input_read(in, buf, sizeof(buf));
        if (n == -EAGAIN)
            continue;
        if (n < 0)
            return csn_fail_errno(err, (int)-n, "standard input");
        if (n == 0)
            return CSN_OK;
        st = count(&total, (uint64_t)n, err);
        if (st < 0)
            return st;
        if (!csn_input_splices(in) && write(to, buf, (size_t)n) != n)
            return csn_fail_errno(err, errno, "stdin of the process");
    }
}

static csn_status copy_fd(const csn_exec_req *req, int to, csn_error **err)
{
    csn_input in;

    if (isatty(req->input_fd)) {
        csn_status st = csn_fail(err, CSN_UNSUPPORTED,
                                 "our terminal as the input of a process in the background");
        return csn_error_advise(st, err, "-t gives it a terminal of its own");
    }
    int rc = csn_input_open(&in, req->input_fd);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "standard input");
    csn_status st = copy_input(&in, req, to, err);
    csn_input_close(&in);
    return st;
}

csn_status csn_runtime_process_input(const csn_exec_req *req, int *ret, csn_error **err)
{
    csn_autofd int fd = memfd_create("caisson-stdin", MFD_CLOEXEC);

    if (fd < 0)
        return csn_fail_errno(err, errno, "stdin of the process");
    csn_status st =
        req->input_fd >= 0 ? copy_fd(req, fd, err) : copy_source(req->input, fd, err);
    if (st < 0)
        return st;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return csn_fail_errno(err, errno, "stdin of the process");
    *ret = csn_steal_fd(&fd);
    return CSN_OK;
}
