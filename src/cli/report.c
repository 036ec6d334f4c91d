/* report.c: how the program answers: data on stdout, one line of failure on stderr.
 *
 * Every subcommand ends here. A failure is `caisson: OP: MESSAGE`, then `hint: ...` where there
 * is one; with --json the same as an object on stdout. Data and remarks never share a stream.
 *
 * What must hold: a message is one line whatever text from a sandbox it quotes (control bytes
 * are escaped); a write that failed is never reported as success; a reader of stdout that went
 * away ends the program quietly with 141, as SIGPIPE would have. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "wire/result_json.h"

/* Large enough for the biggest list the library returns, small enough to stop a runaway. */
#define ANSWER_MAX ((size_t)8 << 30)

/* ---- writing ------------------------------------------------------------------------------
 */

int csn_cli_write(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            /* somebody made our stdout non-blocking: wait as if it were not */
            struct pollfd pfd = {.fd = fd, .events = POLLOUT};
            poll(&pfd, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
        if (csn_cli_caught())
            return EINTR;
    }
    return 0;
}

bool csn_cli_reader_gone(void)
{
    struct pollfd pfd = {.fd = STDOUT_FILENO, .events = 0};

    return poll(&pfd, 1, 0) == 1 && (pfd.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static int write_failed(const csn_cli *c, int error)
{
    if (error == EPIPE)
        return CSN_EXIT_BROKEN_PIPE;
    if (csn_cli_caught())
        return csn_cli_exit_of(CSN_EXIT_FAILED);
    fprintf(stderr, "caisson: %s: cannot write to standard output: %s\n", c->cmd->name,
            strerrordesc_np(error));
    return c->cmd->flags & CSN_CMD_RUNS ? CSN_EXIT_BROKEN : CSN_EXIT_FAILED;
}

int csn_cli_flush(const csn_cli *c, int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return write_failed(c, errno);
    return status;
}

/* ---- JSON answers -------------------------------------------------------------------------
 */

csn_json *csn_answer_begin(csn_answer *a)
{
    csn_buf_init(&a->buf, ANSWER_MAX);
    csn_json_begin(&a->json, &a->buf);
    return &a->json;
}

int csn_answer_end(const csn_cli *c, csn_answer *a)
{
    int e = csn_json_end(&a->json);

    if (e == 0)
        e = csn_buf_putc(&a->buf, '\n');
    if (e != 0) {
        fprintf(stderr, "caisson: %s: cannot build the answer: %s\n", c->cmd->name,
                strerrordesc_np(e));
        csn_buf_release(&a->buf);
        return c->cmd->flags & CSN_CMD_RUNS ? CSN_EXIT_BROKEN : CSN_EXIT_FAILED;
    }
    fflush(stdout);
    e = csn_cli_write(STDOUT_FILENO, a->buf.data, a->buf.len);
    csn_buf_release(&a->buf);
    return e == 0 ? 0 : write_failed(c, e);
}

int csn_cli_done(const csn_cli *c)
{
    csn_answer a;

    if (!c->json)
        return 0;
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kbool(j, "ok", true);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

/* ---- failures -----------------------------------------------------------------------------
 */

static void print_failure(const char *op, const char *message, const char *hint)
{
    fputs("caisson: ", stderr);
    if (op) {
        csn_cli_escape(stderr, op, strlen(op));
        fputs(": ", stderr);
    }
    csn_cli_escape(stderr, message, strlen(message));
    fputc('\n', stderr);
    if (!hint)
        return;
    fputs("hint: ", stderr);
    csn_cli_escape(stderr, hint, strlen(hint));
    fputc('\n', stderr);
}

/* What a failed call means as an exit status. */
static int status_of(const csn_cli *c, csn_status code)
{
    if (csn_cli_caught())
        return csn_cli_exit_of(0);
    if (!(c->cmd->flags & CSN_CMD_RUNS))
        return CSN_EXIT_FAILED;
    if (code == CSN_TIMEOUT)
        return CSN_EXIT_TIMEOUT;
    if (code == CSN_DENIED || code == CSN_OUTSIDE)
        return CSN_EXIT_REFUSED;
    return CSN_EXIT_BROKEN;
}

int csn_cli_fail(const csn_cli *c, csn_error *err)
{
    const char *op = csn_error_op(err) ? csn_error_op(err) : c->cmd->name;
    int status = status_of(c, csn_error_code(err));

    if (c->json) {
        csn_answer a;
        csn_json *j = csn_answer_begin(&a);
        csn_json_object(j);
        csn_json_key(j, "error");
        csn_wire_error(j, err, c->cmd->name);
        csn_json_object_end(j);
        csn_answer_end(c, &a);
    }
    fflush(stdout);
    print_failure(op, csn_error_message(err), csn_error_hint(err));
    csn_error_free(err);
    return status;
}

static void fail_text(const csn_cli *c, csn_status code, const char *hint, const char *message)
{
    if (c->json) {
        csn_answer a;
        csn_json *j = csn_answer_begin(&a);
        csn_json_object(j);
        csn_json_key(j, "error");
        csn_wire_error_text(j, code, c->cmd->name, message, hint);
        csn_json_object_end(j);
        csn_answer_end(c, &a);
    }
    fflush(stdout);
    print_failure(c->cmd->name, message, hint);
}

int csn_cli_fail_text(const csn_cli *c, csn_status code, const char *fmt, ...)
{
    char message[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    fail_text(c, code, NULL, message);
    return status_of(c, code);
}

int csn_cli_usage(const csn_cli *c, const char *hint, const char *fmt, ...)
{
    char message[1024], help[96];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    snprintf(help, sizeof(help), "caisson help %s", c->cmd->name);
    fail_text(c, CSN_INVALID, hint && hint[0] ? hint : help, message);
    return CSN_EXIT_USAGE;
}

void csn_cli_note(const csn_cli *c, const char *fmt, ...)
{
    char message[16384]; /* a hint names paths; a part of one is another path */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    fflush(stdout);
    print_failure(c->cmd->name, message, NULL);
}
