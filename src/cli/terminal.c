/* terminal.c: the raw mode of this terminal, and processes on terminals of remote sandboxes.
 *
 * In raw mode this terminal interprets nothing: ^C, ^Z and ^D reach the command, whose own
 * terminal interprets them. Invariant: the mode is restored on every way out (end of the
 * command, error, signal, exit()), while this program is stopped (SIGTSTP), and never by a
 * background job.
 *
 * The library connects a command in a sandbox of this machine to the terminal. For a process of
 * another backend, the main thread copies output to stdout; a second thread copies input and
 * window size changes. Signal handlers only write a byte to a pipe that the second thread
 * reads. The process is tied to its handle, so it ends with this program.
 *
 * The output is untrusted and is written to the terminal unchanged, as with ssh. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/exec_opts.h"

#define WRITE_MS         10000u /* input that the process does not take for this long is lost */
#define WAIT_MS          1000u
#define EOF_RETRY_MS     100 /* doubled after each retry, up to EOF_RETRY_MAX_MS */
#define EOF_RETRY_MAX_MS 5000

static struct termios before, raw;
static volatile sig_atomic_t is_raw, wants_raw;
static int wake[2] = {-1, -1}; /* bytes: 'W' size changed, 'S' a signal, 'E' the end */
static volatile sig_atomic_t stopped_by;

/* ---- raw mode ------------------------------------------------------------------------ */

bool csn_cli_in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool csn_cli_is_raw(void)
{
    return is_raw;
}

void csn_cli_raw_restore(void)
{
    if (is_raw && csn_cli_in_foreground())
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    is_raw = 0;
}

static void on_stop(int signo)
{
    int saved = errno;

    (void)signo;
    csn_cli_raw_restore();
    kill(getpid(), SIGSTOP);
    errno = saved;
}

/* Also after SIGSTOP, which cannot be caught: the shell has set its own mode since. */
static void on_continue(int signo)
{
    int saved = errno;

    (void)signo;
    if (wants_raw && csn_cli_in_foreground()) {
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        is_raw = 1;
    }
    errno = saved;
}

static void on_quit(int signo)
{
    csn_cli_raw_restore();
    raise(signo); /* its handler was reset */
}

/* Only interrupts the library, which then copies the size. */
static void on_resize(int signo)
{
    (void)signo;
}

static void handle(int signo, void (*handler)(int), int flags)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&sa.sa_mask);
    sigaction(signo, &sa, NULL);
}

static void make_raw(void)
{
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return; /* not a terminal */
    raw = before;
    cfmakeraw(&raw);
    atexit(csn_cli_raw_restore);
    is_raw = wants_raw = 1;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

void csn_cli_raw_begin(void)
{
    handle(SIGWINCH, on_resize, 0);
    handle(SIGTSTP, on_stop, SA_RESTART);
    handle(SIGCONT, on_continue, SA_RESTART);
    handle(SIGQUIT, on_quit, (int)SA_RESETHAND | SA_NODEFER);
    make_raw();
}

void csn_cli_raw_end(void)
{
    wants_raw = 0;
    if (is_raw && csn_cli_in_foreground())
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before); /* after what the command has written */
    is_raw = 0;
}

/* ---- remote processes: signals ------------------------------------------------------- */

static void on_signal(int signo)
{
    int saved = errno;

    if (signo != SIGWINCH)
        stopped_by = signo;
    /* If the pipe is full, the thread wakes up anyway. */
    ssize_t n = write(wake[1], signo == SIGWINCH ? "W" : "S", 1);
    (void)n;
    errno = saved;
}

static bool catch_signals(void)
{
    static const int all[] = {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        sigaction(all[i], &sa, NULL);
    return true;
}

void csn_cli_terminal_size(uint16_t *ret_rows, uint16_t *ret_cols)
{
    struct winsize ws;

    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) < 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0)
        ws = (struct winsize){0};
    *ret_rows = ws.ws_row ? ws.ws_row : 24;
    *ret_cols = ws.ws_col ? ws.ws_col : 80;
}

/* ---- the second thread: input -------------------------------------------------------- */

/* Returns false if the thread must end. */
static bool handle_wake(csn_process *p)
{
    char bytes[16];
    ssize_t n = read(wake[0], bytes, sizeof(bytes));
    uint16_t rows, cols;

    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == 'E')
            return false;
        if (bytes[i] == 'S') {
            csn_process_signal(p, SIGKILL, NULL);
            return false;
        }
    }
    csn_cli_terminal_size(&rows, &cols);
    csn_process_resize(p, rows, cols, NULL);
    return true;
}

/* A terminal signals the end of input with ^D. */
static void send_eof(csn_process *p)
{
    csn_process_write(p, "\004", 1, WRITE_MS, NULL);
}

/* Returns false if there will be no more input. */
static bool handle_input(csn_process *p)
{
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (n == 0) {
        send_eof(p);
        return false;
    }
    return csn_process_write(p, bytes, (size_t)n, WRITE_MS, NULL) == CSN_OK;
}

/* Copies input until the process ends. A ^D is consumed by its first reader, and lost if a
 * shell changes the terminal mode before it reads. The process must see the end of stdin, so ^D
 * is sent repeatedly. */
static void *carry_input(void *arg)
{
    struct pollfd fds[2] = {{.fd = wake[0], .events = POLLIN},
                            {.fd = STDIN_FILENO, .events = POLLIN}};
    int retry_ms = -1;

    for (;;) {
        int n = poll(fds, 2, retry_ms);
        if (n < 0 && errno != EINTR)
            return NULL;
        if (n <= 0) {
            if (n == 0)
                send_eof(arg);
            retry_ms = n == 0 && retry_ms < EOF_RETRY_MAX_MS ? retry_ms * 2 : retry_ms;
            continue;
        }
        if (fds[0].revents && !handle_wake(arg))
            return NULL;
        if (fds[1].revents && !handle_input(arg)) {
            fds[1].fd = -1;
            retry_ms = EOF_RETRY_MS;
        }
    }
}

/* ---- the main thread: output --------------------------------------------------------- */

static csn_status carry_output(csn_process *p, int *ret_error, csn_error **err)
{
    uint64_t offset = 0;

    for (;;) {
        csn_log_chunk *chunk = NULL;
        csn_status st = csn_process_logs(p, CSN_STDOUT, offset, WAIT_MS, &chunk, err);
        if (st < 0)
            return st;
        *ret_error = csn_cli_write(STDOUT_FILENO, chunk->data, chunk->len);
        offset = chunk->offset + chunk->len;
        bool end = chunk->end && chunk->len == 0;
        csn_log_chunk_free(chunk);
        if (end || *ret_error != 0)
            return CSN_OK;
    }
}

static int status_of(const csn_process_info *info, bool late)
{
    if (late && info->signal)
        return CSN_EXIT_TIMEOUT;
    return csn_cli_command_status(info->exit_code, info->signal);
}

/* Waits for the end of the process; returns the exit status. */
static int finish(csn_cli *c, csn_process *p, uint64_t deadline)
{
    csn_process_list *l = NULL;
    csn_error *err = NULL;

    csn_status st = csn_process_wait(p, 5000, &l, &err);
    csn_cli_raw_end(); /* messages need a terminal that is not raw */
    if (st < 0)
        return csn_cli_fail(c, err);
    bool late = deadline != 0 && csn_now_ns() >= deadline;
    int status = l->count > 0 ? status_of(&l->items[0], late) : CSN_EXIT_BROKEN;
    csn_cli_denials(c, l->denials, l->denial_count, status != 0);
    csn_process_list_free(l);
    return status;
}

int csn_cli_terminal(csn_cli *c, csn_process *p, uint64_t deadline)
{
    csn_error *err = NULL;
    pthread_t input;
    int out_error = 0, status;

    if (!catch_signals()) {
        csn_process_free(p);
        return csn_cli_fail_text(c, CSN_IO, "cannot make a pipe");
    }
    make_raw();
    bool threaded = pthread_create(&input, NULL, carry_input, p) == 0;
    csn_status st = carry_output(p, &out_error, &err);
    ssize_t n = write(wake[1], "E", 1);
    (void)n;
    if (threaded)
        pthread_join(input, NULL);
    /* A reader that leaves after the timeout does not change how the process ended. */
    if (st == CSN_OK && (out_error == 0 || csn_deadline_poll_ms(deadline) == 0))
        status = finish(c, p, deadline);
    else
        status = CSN_EXIT_BROKEN_PIPE;
    csn_process_free(p);
    csn_cli_raw_end();
    if (st < 0)
        status = csn_cli_fail(c, err);
    return stopped_by ? CSN_EXIT_SIGNAL + stopped_by : status;
}
