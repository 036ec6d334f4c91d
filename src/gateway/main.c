/* main.c: a gateway from its first instruction to its last.
 *
 * caisson-gateway connects one sandbox to the hosts that its rules name. It runs outside of the
 * sandbox, as its user, and holds sockets that were made inside: it enters nothing. It is
 * started by the library with one descriptor, its control connection, and an empty environment.
 * Nothing is served before SETUP has come. When it ends, for whatever reason, all sockets
 * inside are closed with it: no gateway is no network. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/gateway.h"

static gw_gateway gate;

/* Our starter blocks all signals, and may have ignored some. splice() to a socket that is gone
 * raises SIGPIPE, whatever flags it is given. */
static void own_signals(void)
{
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)signal(i, i == SIGPIPE || i == SIGHUP || i == SIGINT ? SIG_IGN : SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int prepare(gw_gateway *g)
{
    int rc = gw_loop_init(&g->loop);

    gw_relay_init(&g->relay);
    g->keeper.fd = g->link.fd = -1;
    g->events = gw_events_new();
    g->names = gw_names_new();
    g->resolver = rc == 0 ? gw_resolver_new(&g->loop) : NULL;
    if (!g->events || !g->names || !g->resolver)
        return -1;
    return gw_control_init(g, CSN_GATEWAY_FD_CONTROL);
}

int main(void)
{
    own_signals();
    /* Without it the resolver would try the host's search domains, and a question for an
     * allowed name could be answered for another. */
    if (setenv("LOCALDOMAIN", "", 1) < 0 ||
        fcntl(CSN_GATEWAY_FD_CONTROL, F_SETFD, FD_CLOEXEC) < 0 || prepare(&gate) < 0)
        return 2;
    int rc = gw_loop_run(&gate.loop);
    _exit(rc < 0 ? 1 : 0); /* threads may still wait for a name server */
}
