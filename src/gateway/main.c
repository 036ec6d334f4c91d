/* main.c: start-up of caisson-gateway, which connects one sandbox to the hosts its rules allow.
 *
 * The gateway runs outside the sandbox, as the sandbox's user, and never enters it; it holds
 * sockets that were created inside. The library starts it with one descriptor, the control
 * connection, and an empty environment. It serves no connection before SETUP. When it exits,
 * its sockets close and the sandbox has no network. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "gateway/gateway.h"

static gw_gateway gateway;

/* The library starts the gateway with all signals blocked and some perhaps ignored. SIGPIPE
 * stays ignored: splice() to a closed socket raises it and has no flag to prevent that. */
static void reset_signals(void)
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
    reset_signals();
    /* An empty LOCALDOMAIN disables search domains, which would resolve an allowed name as a
     * different one. */
    if (setenv("LOCALDOMAIN", "", 1) < 0 ||
        fcntl(CSN_GATEWAY_FD_CONTROL, F_SETFD, FD_CLOEXEC) < 0 || prepare(&gateway) < 0)
        return 2;
    int rc = gw_loop_run(&gateway.loop);
    _exit(rc < 0 ? 1 : 0); /* resolver threads may still be blocked */
}
