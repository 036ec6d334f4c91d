/* stdio.c: serves MCP to one client on standard input and output.
 *
 * The client is the agent that started this process; a model wrote much of what it sends.
 * Standard output carries messages only. Invariant: after the input ends, running calls have
 * DRAIN_MS to finish, then they are cancelled and the sandbox ends. The server exits within
 * seconds, whatever a command does and whether the client reads or not. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.h"
#include "mcp/lines.h"
#include "mcp/mcp.h"
#include "mcp/server.h"
#include "mcp/stop.h"

#define CHUNK     65536
#define DRAIN_MS  1000u /* time for running calls after the input ended */
#define END_MS    3000u /* time for the sandbox to end */
#define LINGER_MS 1000u /* time for a client that closed the input to read */

static void out_send(void *ctx, const csn_buf *msg)
{
    if (!csn_line_out_send(ctx, msg->data, msg->len))
        csn_mcp_stop();
}

static void out_done(void *ctx, const csn_buf *msg, int code)
{
    (void)code;
    if (msg)
        out_send(ctx, msg);
}

static bool is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] != ' ' && text[i] != '\t')
            return false;
    return true;
}

static void handle_line(csn_mcp_session *s, const char *text, size_t len,
                        const csn_mcp_out *out)
{
    csn_rpc_msg m;
    csn_rpc_fault why;

    if (is_blank(text, len))
        return;
    if (csn_rpc_parse(text, len, &m, &why))
        csn_mcp_take(s, &m, out);
    else
        csn_mcp_refuse(&why, out);
}

static void handle_lines(csn_mcp_session *s, csn_line_in *in, const csn_mcp_out *out)
{
    static const csn_rpc_fault too_long = {.code = CSN_RPC_INVALID,
                                           .message = "the message is too large"};
    const char *text;
    size_t len;

    for (;;) {
        switch (csn_line_in_next(in, &text, &len)) {
        case CSN_LINE_NONE:
            return;
        case CSN_LINE_GIVEN:
            handle_line(s, text, len, out);
            break;
        case CSN_LINE_TOO_LONG:
            csn_mcp_refuse(&too_long, out);
            break;
        }
    }
}

/* Returns true if the input ended, false after csn_mcp_stop, a signal or an error. */
static bool read_messages(csn_mcp_session *s, int stop, const csn_mcp_out *out)
{
    static char chunk[CHUNK];
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = stop, .events = POLLIN}};
    csn_line_in in;
    bool ended = false;

    csn_line_in_init(&in, CSN_RPC_BYTES_MAX);
    for (;;) {
        int n = poll(fds, 2, -1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || fds[1].revents)
            break;
        ssize_t got = read(STDIN_FILENO, chunk, sizeof(chunk));
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        ended = got <= 0;
        if (ended || csn_line_in_feed(&in, chunk, (size_t)got) != 0)
            break;
        handle_lines(s, &in, out);
    }
    csn_line_in_release(&in);
    return ended;
}

csn_status csn_mcp_stdio(const csn_config *config, csn_error **err)
{
    csn_mcp_server *server = NULL;
    csn_mcp_sandbox *sandbox = NULL;
    csn_line_out lines;
    csn_mcp_out out = {.send = out_send, .done = out_done, .ctx = &lines};

    int stop = csn_mcp_stop_fd();
    if (stop < 0)
        return csn_fail_errno(err, -stop, "mcp");
    csn_status st = csn_mcp_server_new(config, &server, err);
    if (st == CSN_OK)
        sandbox = csn_mcp_sandbox_new(config);
    csn_mcp_session *s = sandbox ? csn_mcp_session_new(server, sandbox) : NULL;
    if (st == CSN_OK && !s)
        st = csn_fail(err, CSN_NOMEM, "mcp");
    if (st == CSN_OK) {
        csn_line_out_init(&lines, STDOUT_FILENO, STDIN_FILENO, LINGER_MS);
        if (read_messages(s, stop, &out))
            (void)csn_mcp_session_drain(s, DRAIN_MS);
        csn_mcp_session_cancel(s);
        csn_mcp_sandbox_destroy(sandbox);
        /* A call that did not end still uses the memory: leave it to process exit. */
        if (!csn_mcp_session_drain(s, END_MS))
            return CSN_OK;
    }
    csn_mcp_session_unref(s);
    csn_mcp_sandbox_unref(sandbox);
    csn_mcp_server_free(server);
    return st;
}
