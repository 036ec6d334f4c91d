/* network.c: a network with rules. The sandbox may reach one host and port; for any other name
 * its resolver has no answer, and no packet leaves this machine. The refusal comes back as
 * data, with the rule that would allow it.
 *
 *   cc -std=c11 -Wall network.c $(pkg-config --cflags --libs caisson) -o network && ./network
 */
#include <caisson/caisson.h>
#include <stdio.h>
#include <string.h>

static void print_refusals(csn_sandbox *sb, csn_error **err)
{
    csn_net_result *net = NULL;

    if (csn_network(sb, 0, &net, err) != CSN_OK)
        return;
    for (uint32_t i = 0; i < net->event_count; i++)
        if (strcmp(net->events[i].verdict, "deny") == 0)
            printf("refused: %s; to allow it: %s\n", net->events[i].host, net->events[i].hint);
    csn_network_free(net);
}

int main(void)
{
    const char *const allow[] = {"example.com:443", NULL};
    const char *const argv[] = {"getent", "hosts", "example.org", NULL};
    csn_sandbox *sb = NULL;
    csn_exec_result *res = NULL;
    csn_error *err = NULL;
    int ok = csn_open(CSN_OPTS(csn_config, .net_allow = allow), &sb, &err) == CSN_OK &&
             csn_exec(sb, argv, NULL, &res, &err) == CSN_OK;

    if (ok) {
        printf("getent: exit %d\n", res->exit_code);
        print_refusals(sb, &err);
    }
    if (err)
        fprintf(stderr, "%s\n", csn_error_message(err));
    csn_exec_result_free(res);
    csn_close(sb);
    ok = ok && !err;
    csn_error_free(err);
    return ok ? 0 : 1;
}
