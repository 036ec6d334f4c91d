/* stdin.c: the caller's files are not handed in as a command's standard input.
 *
 * A descriptor is more than what can be read from it: its owner may chmod the file, set its
 * times and its attributes, and inside a user's jail the owner is that user. No wall sees that;
 * Landlock does not ask about it. So a file is read here and fed through a pipe, as bytes are.
 * Pipes and sockets have nothing behind them to change and go in as they are; so does a
 * terminal, which nobody can read here without being blocked by it. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"

static int64_t read_file(void *ctx, void *buf, size_t len)
{
    const int *fd = ctx;
    ssize_t n;

    do
        n = read(*fd, buf, len);
    while (n < 0 && errno == EINTR);
    return n;
}

/* The request as it may go in. `source` lives as long as it does. */
static csn_exec_req without_files(const csn_exec_req *req, csn_source *source)
{
    csn_exec_req own = *req;
    struct stat st;

    if (own.input_fd < 0 || (fstat(own.input_fd, &st) == 0 && !S_ISREG(st.st_mode) &&
                             !S_ISDIR(st.st_mode) && !S_ISBLK(st.st_mode)))
        return own;
    *source = (csn_source){read_file, (void *)(uintptr_t)&req->input_fd};
    own.input = source;
    own.input_fd = -1;
    return own;
}

csn_status csn_jail_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                         csn_exec_end *ret, csn_error **err)
{
    csn_source source;
    const csn_exec_req own = without_files(req, &source);

    if (!own.net_allow)
        return csn_kept_exec(state, &own, sink, ret, err);
    csn_jail_apart apart;
    csn_status st = csn_jail_apart_begin(state, own.net_allow, &apart, err);
    if (st < 0)
        return st;
    st = csn_kept_exec_apart(state, &own, apart.sockets, sink, ret, err);
    csn_jail_apart_end(&apart);
    return st;
}

csn_status csn_jail_start(void *state, const csn_exec_req *req, uint64_t output_max,
                          int64_t *ret_pid, void **ret_tie, csn_error **err)
{
    csn_source source;
    const csn_exec_req own = without_files(req, &source);

    return csn_kept_start(state, &own, output_max, ret_pid, ret_tie, err);
}
