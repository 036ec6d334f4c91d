/* signals.c: a signal to the program stops what it is doing, in order.
 *
 * run, exec and the long transfers call csn_cli_catch_signals with the cancel handle of their
 * call. The first SIGINT, SIGTERM or SIGHUP fires it; the library then ends the command's whole
 * tree, the program cleans up and exits 128+n. A second signal has its default effect, so a
 * program that hangs can still be stopped from the keyboard.
 *
 * What must hold: the handler only does what is async-signal-safe. It also starts an interval
 * timer: a write to a reader that does not read may block just after the flag was tested, and
 * each tick interrupts it again, so the flag is always seen. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#include "cli/cli.h"

static csn_cancel *volatile to_cancel;
static volatile sig_atomic_t caught;

static void on_tick(int signo)
{
    (void)signo; /* interrupting a blocked write is all it is for */
}

static void on_signal(int signo)
{
    static const struct itimerval ticks = {.it_interval = {.tv_usec = 100000},
                                           .it_value = {.tv_usec = 100000}};
    int saved = errno;

    if (caught == 0)
        caught = signo;
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
        /* nohup and background jobs of a shell ignore some: that choice stays. */
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
