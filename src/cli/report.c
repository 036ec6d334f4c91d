/* report.c: prints results on stdout and failures on stderr.
 *
 * A failure is `caisson: OP: MESSAGE` and, if there is one, a line `hint: ...`; --json also
 * prints it as an object on stdout.
 *
 * Invariants: a message is one line, whatever text of a sandbox it quotes (control bytes are
 * escaped); a message with its hint is one write, so that programs with the same stderr do not
 * mix their lines; a failed write is never reported as success; if the reader of stdout closes
 * it, the program exits with 141 and no message, as SIGPIPE would do. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/strv.h"
#include "cli/cli.h"
#include "wire/result_json.h"

/* Larger than any list, and than any message, that the library returns. */
#define ANSWER_MAX  ((size_t)8 << 30)
#define MESSAGE_MAX ((size_t)8 << 20)

/* ---- writing ------------------------------------------------------------------------- */

int csn_cli_write(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            /* stdout may be shared with a process that made it non-blocking */
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

int csn_cli_write_failed(const csn_cli *c, int error)
{
    if (error == EPIPE)
        return CSN_EXIT_BROKEN_PIPE;
    if (csn_cli_caught())
        return csn_cli_exit_of(CSN_EXIT_FAILED);
    csn_cli_note(c, "cannot write to standard output: %s", strerrordesc_np(error));
    return c->cmd->flags & CSN_CMD_RUNS ? CSN_EXIT_BROKEN : CSN_EXIT_FAILED;
}

int csn_cli_flush(const csn_cli *c, int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return csn_cli_write_failed(c, errno);
    return status;
}

/* ---- JSON answers -------------------------------------------------------------------- */

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
        csn_cli_note(c, "cannot build the answer: %s", strerrordesc_np(e));
        csn_buf_release(&a->buf);
        return c->cmd->flags & CSN_CMD_RUNS ? CSN_EXIT_BROKEN : CSN_EXIT_FAILED;
    }
    if (csn_cli_on_terminal()) {
        csn_cli_put_json(a->buf.data, a->buf.len);
        csn_buf_release(&a->buf);
        return csn_cli_flush(c, 0);
    }
    fflush(stdout);
    e = csn_cli_write(STDOUT_FILENO, a->buf.data, a->buf.len);
    csn_buf_release(&a->buf);
    return e == 0 ? 0 : csn_cli_write_failed(c, e);
}

int csn_cli_finish(const csn_cli *c, csn_status st, csn_error **err)
{
    csn_answer a;

    if (st < 0)
        return csn_cli_fail(c, *err);
    if (!c->json)
        return 0;
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kbool(j, "ok", true);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

int csn_cli_print_id(const csn_cli *c, csn_sandbox *sb, const char *name, bool rules)
{
    csn_info_result *r = NULL;
    csn_error *err = NULL;
    csn_answer a;

    if (rules && csn_info(sb, &r, &err) < 0)
        return csn_cli_fail(c, err);
    if (!c->json) {
        for (size_t i = 0; r && i < r->rule_count; i++)
            if (!csn_str_starts(r->rules[i].source, "keys of the home")) /* told already */
                csn_cli_note(c, "%s: %s", r->rules[i].rule, r->rules[i].enforced);
        csn_info_free(r);
        printf("%s\n", csn_id(sb));
        return csn_cli_flush(c, 0);
    }
    csn_json *j = csn_answer_begin(&a);
    csn_json_object(j);
    csn_json_kstr(j, "id", csn_id(sb));
    csn_json_kstr(j, "name", name);
    if (r)
        csn_wire_rules(j, r->rules, r->rule_count);
    csn_info_free(r);
    csn_json_object_end(j);
    return csn_answer_end(c, &a);
}

/* ---- failures ------------------------------------------------------------------------ */

void csn_cli_message(const char *op, const char *message, const char *hint)
{
    static const char no_memory[] = "caisson: out of memory\n";
    const char *eol = csn_cli_is_raw() ? "\r\n" : "\n";
    csn_autobuf text;

    csn_buf_init(&text, MESSAGE_MAX);
    csn_buf_puts(&text, "caisson: ");
    if (op) {
        csn_cli_escape(&text, op, strlen(op));
        csn_buf_puts(&text, ": ");
    }
    csn_cli_escape(&text, message, strlen(message));
    csn_buf_puts(&text, eol);
    if (hint) {
        csn_buf_puts(&text, "hint: ");
        csn_cli_escape(&text, hint, strlen(hint));
        csn_buf_puts(&text, eol);
    }
    if (text.err == 0)
        (void)csn_cli_write(STDERR_FILENO, text.data, text.len);
    else
        (void)csn_cli_write(STDERR_FILENO, no_memory, sizeof(no_memory) - 1);
}

/* The exit status for a failed call. */
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

static void put_error(csn_json *j, const csn_cli *c, const csn_error *err)
{
    csn_json_object(j);
    csn_json_key(j, "error");
    csn_wire_error(j, err, c->cmd->name);
    csn_json_object_end(j);
}

static void put_error_text(csn_json *j, const csn_cli *c, csn_status code, const char *message,
                           const char *hint)
{
    csn_json_object(j);
    csn_json_key(j, "error");
    csn_wire_error_text(j, code, c->cmd->name, message, hint);
    csn_json_object_end(j);
}

/* The library has no hint for an id or name of no sandbox: how to list them is ours to say. */
static const char *hint_of(const csn_error *err)
{
    const char *op = csn_error_op(err), *hint = csn_error_hint(err);

    if (!hint && op && strcmp(op, "connect") == 0 && csn_error_code(err) == CSN_NOT_FOUND)
        return "caisson list shows your sandboxes";
    return hint;
}

static int fail(const csn_cli *c, csn_error *err)
{
    bool refused_by_system = csn_error_errno(err) != 0 && !csn_error_denial(err);
    int status = status_of(c, csn_error_code(err));

    if (status == CSN_EXIT_REFUSED && refused_by_system) /* and not by a policy */
        status = CSN_EXIT_BROKEN;

    if (c->json)
        (void)CSN_CLI_JSON(c, put_error, c, err);
    fflush(stdout);
    csn_cli_message(c->cmd->name, csn_error_message(err), hint_of(err));
    csn_error_free(err);
    return status;
}

int csn_cli_fail_value(const csn_cli *c, csn_error *err)
{
    /* with an errno the system did not accept something, for example a file system */
    bool wrong = csn_error_code(err) == CSN_INVALID && csn_error_errno(err) == 0;

    csn_cli_name_flags(c, err);
    int status = fail(c, err);
    return wrong && !csn_cli_caught() ? CSN_EXIT_USAGE : status;
}

int csn_cli_fail(const csn_cli *c, csn_error *err)
{
    return csn_cli_name_flags(c, err) ? csn_cli_fail_value(c, err) : fail(c, err);
}

static void fail_text(const csn_cli *c, csn_status code, const char *hint, const char *message)
{
    if (c->json)
        (void)CSN_CLI_JSON(c, put_error_text, c, code, message, hint);
    fflush(stdout);
    csn_cli_message(c->cmd->name, message, hint);
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

int csn_cli_unknown_word(const csn_cli *c, const char *what, const char *word,
                         const char *words)
{
    char quoted[128], meant[CSN_NEAREST_MAX], hint[160];

    csn_args_quote(word, quoted, sizeof(quoted));
    if (csn_nearest_in(word, words, meant))
        snprintf(hint, sizeof(hint), "did you mean %s?", meant);
    else
        snprintf(hint, sizeof(hint), "one of: %s", words);
    return csn_cli_usage(c, hint, "'%s' is not %s", quoted, what);
}

void csn_cli_note(const csn_cli *c, const char *fmt, ...)
{
    char message[16384]; /* a truncated path in a hint would name another file */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    fflush(stdout);
    csn_cli_message(c->cmd->name, message, NULL);
}
