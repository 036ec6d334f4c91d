/* stop.c: turns termination signals into a readable descriptor.
 *
 * The handler only writes to an eventfd; the polling thread does the rest. */
#include "mcp/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int stop_fd = -1;

void csn_mcp_stop(void)
{
    static const uint64_t one = 1;
    int saved = errno;

    if (stop_fd >= 0 && write(stop_fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: the descriptor is already readable */
    }
    errno = saved;
}

static void on_signal(int signo)
{
    (void)signo;
    csn_mcp_stop();
}

int csn_mcp_stop_fd(void)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, old;

    if (stop_fd >= 0)
        return stop_fd;
    stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop_fd < 0)
        return -errno;
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(stops[i], &sa, NULL);
    return stop_fd;
}
