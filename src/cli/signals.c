/* signals.c: SIGINT, SIGTERM and SIGHUP cancel the running call.
 *
 * A command passes the cancel handle of its call. The first signal fires it; the library then
 * ends the whole process tree of the command, and the program exits with 128+n. The same signal
 * a second time has its default effect, so that a program that hangs can be stopped.
 *
 * The handler is async-signal-safe. It starts an interval timer, because a write may block just
 * after the flag was tested: each tick interrupts the write, which then tests the flag
 * again. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#include "base/strv.h"
#include "cli/cli.h"

static csn_cancel *volatile to_cancel;
static volatile sig_atomic_t caught;

static void on_tick(int signo)
{
    (void)signo; /* its only purpose is to interrupt a blocked write */
}

static void on_signal(int signo)
{
    static const struct itimerval ticks = {.it_interval = {.tv_usec = 100000},
                                           .it_value = {.tv_usec = 100000}};
    int saved = errno;

    if (caught == 0)
        caught = signo;
    csn_cli_raw_restore(); /* the same signal again ends this program at once */
    if (to_cancel)
        csn_cancel_fire(to_cancel);
    setitimer(ITIMER_REAL, &ticks, NULL);
    errno = saved;
}

void csn_cli_catch_signals(csn_cancel *cancel)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_tick};

    to_cancel = cancel;
    sigemptyset(&sa.sa_mask);
    sigaction(SIGALRM, &sa, NULL);
    sa.sa_handler = on_signal;
    sa.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        struct sigaction old;
        /* a signal that the parent ignored (nohup, background job) stays ignored */
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
            continue;
        sigaction(stops[i], &sa, NULL);
    }
}

int csn_cli_caught(void)
{
    return caught;
}

int csn_cli_exit_of(int status)
{
    return caught ? CSN_EXIT_SIGNAL + caught : status;
}

int csn_cli_command_status(int exit_code, const char *signal)
{
    if (exit_code >= 0)
        return exit_code & 0xff;
    int signo = signal ? csn_signal_number(signal) : 0;
    return signo > 0 ? CSN_EXIT_SIGNAL + signo : CSN_EXIT_BROKEN;
}
