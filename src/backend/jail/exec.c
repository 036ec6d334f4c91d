/* exec.c: runs commands in a jail: prepares stdin and the command's own network, scans
 * protected files afterwards, and reports refused connections.
 *
 * A file of the caller is not passed as stdin, because a descriptor permits more than reading:
 * its owner may change mode, times and attributes of the file, and inside an ordinary user's
 * jail the owner is that user. Neither Landlock nor any other layer restricts that. The file is
 * read here and fed through a pipe. So is a terminal (stdin_feed.c): a process that holds it
 * could read what is typed after the command has ended, and change its settings. Pipes and
 * sockets are passed as they are. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/stdin_feed.h"
#include "base/cleanup.h"
#include "base/error.h"

static int64_t read_file(void *ctx, void *buf, size_t len)
{
    const int *fd = ctx;
    ssize_t n;

    do
        n = read(*fd, buf, len);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Replaces a file as stdin by a source that reads it. The result borrows `source`. */
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

/* Feeds a terminal through a pipe while the command runs. */
static csn_status feed_terminal(csn_exec_req *req, csn_feed *feed, int *ret_reader,
                                csn_error **err)
{
    if (req->input_fd < 0 || !isatty(req->input_fd))
        return CSN_OK;
    csn_status st = csn_feed_begin(feed, req->input_fd, ret_reader, err);
    if (st == CSN_OK)
        req->input_fd = *ret_reader;
    return st;
}

csn_status csn_jail_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                         csn_exec_end *ret, csn_error **err)
{
    csn_runtime *rt = state;
    csn_exec_network net = CSN_EXEC_NETWORK_NONE;
    csn_source source;
    csn_exec_req own = without_files(req, &source);
    csn_feed feed;
    csn_autofd int reader = -1;
    struct timespec began;
    csn_status st = csn_protected_check_trees(rt, err);

    if (st == CSN_OK)
        st = feed_terminal(&own, &feed, &reader, err);
    if (st == CSN_OK && req->net_allow)
        st = csn_exec_network_begin(rt, req->net_allow, &net, err);
    if (st == CSN_OK) {
        const csn_jail_net_since since = csn_jail_net_begin(rt);
        const csn_jail_limit_hits before = csn_jail_limits_hits(rt);
        csn_protected_command_begin(rt, &began);
        st = csn_runtime_exec_with(rt, &own, net.sockets, sink, ret, err);
        if (st == CSN_OK)
            csn_jail_limits_explain(rt, &before, ret);
        csn_protected_command_end(rt, &began, req->denials);
        csn_jail_net_report(rt, since, req->denials);
    }
    csn_exec_network_end(&net);
    if (reader >= 0)
        csn_feed_end(&feed);
    return st;
}

/* Refuses a terminal as stdin, because no thread feeds it after this call returns. */
csn_status csn_jail_start(void *state, const csn_exec_req *req, uint64_t output_max,
                          int64_t *ret_pid, void **ret_tie, csn_error **err)
{
    csn_source source;
    const csn_exec_req own = without_files(req, &source);
    csn_status st = csn_protected_check_trees(state, err);

    if (st < 0)
        return st;
    csn_protected_note_change(state);
    if (own.input_fd >= 0 && isatty(own.input_fd)) {
        st = csn_fail(err, CSN_UNSUPPORTED,
                      "our terminal as the input of a process in the background");
        return csn_error_advise(st, err, "-t gives it a terminal of its own");
    }
    return csn_runtime_start(state, &own, output_max, ret_pid, ret_tie, err);
}
