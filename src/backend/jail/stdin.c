/* stdin.c: the caller's files are not handed in as a command's standard input.
 *
 * A descriptor is more than what can be read from it: its owner may chmod the file, set its
 * times and its attributes, and inside a user's jail the owner is that user. No wall sees that;
 * Landlock does not ask about it. So a file is read here and fed through a pipe, as bytes are.
 * And so is a terminal (stdin_feed.c): who has it could go on reading what is typed when the
 * command is long over, and change how it behaves. Pipes and sockets have nothing behind them
 * to change and go in as they are. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/stdin_feed.h"
#include "base/cleanup.h"

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

static csn_status run(void *state, const csn_exec_req *req, const csn_sink *sink,
                      csn_exec_end *ret, csn_error **err)
{
    csn_exec_network apart;

    if (!req->net_allow)
        return csn_runtime_exec(state, req, sink, ret, err);
    csn_status st = csn_exec_network_begin(state, req->net_allow, &apart, err);
    if (st < 0)
        return st;
    st = csn_runtime_exec_network(state, req, apart.sockets, sink, ret, err);
    csn_exec_network_end(&apart);
    return st;
}

csn_status csn_jail_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                         csn_exec_end *ret, csn_error **err)
{
    csn_source source;
    csn_exec_req own = without_files(req, &source);
    csn_feed feed;
    csn_autofd int reader = -1;

    if (own.input_fd < 0 || !isatty(own.input_fd))
        return run(state, &own, sink, ret, err);
    csn_status st = csn_feed_begin(&feed, own.input_fd, &reader, err);
    if (st < 0)
        return st;
    own.input_fd = reader;
    st = run(state, &own, sink, ret, err);
    csn_feed_end(&feed);
    return st;
}

/* Nobody would be there to carry what is typed. */
csn_status csn_jail_start(void *state, const csn_exec_req *req, uint64_t output_max,
                          int64_t *ret_pid, void **ret_tie, csn_error **err)
{
    csn_source source;
    const csn_exec_req own = without_files(req, &source);

    if (own.input_fd >= 0 && isatty(own.input_fd)) {
        csn_status st = csn_fail(err, CSN_UNSUPPORTED,
                                 "our terminal as the input of a process in the background");
        return csn_error_advise(st, err, "-t gives it a terminal of its own");
    }
    return csn_runtime_start(state, &own, output_max, ret_pid, ret_tie, err);
}
