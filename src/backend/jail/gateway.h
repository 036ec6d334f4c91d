/* gateway.h: starts and talks to the gateway process of one sandbox. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

#include "gateway/protocol.h"
#include "runtime/runtime.h"

typedef struct csn_gateway {
    int control; /* SEQPACKET socket; -1: not running or unreachable */
    int pidfd;   /* if this process started it, else -1 */
    bool busy;   /* it runs but accepted no connection */
    /* Channel of a request that it did not answer in time; -1: none. Until the answer arrives
     * there, further requests fail at once, so that a gateway that is stopped delays a call
     * only once. */
    _Atomic int unanswered;
} csn_gateway;

#define CSN_GATEWAY_NONE ((csn_gateway){.control = -1, .pidfd = -1, .unanswered = -1})

/* Starts the process, which waits for csn_gateway_setup while the jail is built. */
csn_status csn_gateway_start(csn_runtime *rt, csn_gateway *g, csn_error **err);
/* Sends rules, ports and sockets; `fds` are in the order of the bits in s->flags and remain the
 * caller's. */
csn_status csn_gateway_setup(csn_gateway *g, const csn_gateway_setup_msg *s, const int *fds,
                             size_t nfds, csn_gateway_ready *ret, csn_error **err);
/* Creates the socket in the directory of the sandbox through which later processes reach the
 * gateway of a detached sandbox. */
csn_status csn_gateway_listen(csn_runtime *rt, int *ret, csn_error **err);
/* Connects to that socket; control stays -1 if the gateway has ended, or if it does not accept:
 * then `busy` is set. */
void csn_gateway_find(const csn_runtime *rt, csn_gateway *g);
/* Checks the descriptors only; sends nothing. */
bool csn_gateway_is_alive(const csn_gateway *g);

/* Until when to wait for answers during a command with this deadline (0: none): the usual time,
 * but not longer than the deadline. After it only the grace period of csn_msg_await remains. */
uint64_t csn_gateway_patience(uint64_t deadline_ns);

csn_status csn_gateway_update(csn_gateway *g, const csn_gateway_rules *r, csn_error **err);
/* Serves the network of one command, until *ret_lease is closed. Connections must be allowed by
 * the rules in `s` and by those of the sandbox. until_ns: see csn_gateway_patience. */
csn_status csn_gateway_exec_rules(csn_gateway *g, const csn_gateway_setup_msg *s,
                                  const int *fds, size_t nfds, uint64_t until_ns,
                                  int *ret_lease, csn_error **err);
/* Passes events from *seq on to fn, oldest first, and advances *seq. *ret_lost: how many the
 * gateway had discarded. If fn returns non-zero, reading stops without an error. */
typedef int (*csn_gateway_event_fn)(void *ctx, const csn_gateway_event *e);
csn_status csn_gateway_events(csn_gateway *g, uint64_t until_ns, uint64_t *seq,
                              csn_gateway_event_fn fn, void *ctx, uint64_t *ret_lost,
                              csn_error **err);

/* Asks to be told denials when they happen. Waits for nothing. Returns the channel on which
 * they come, or -1. */
int csn_gateway_watch(csn_gateway *g);
/* Passes the next one to fn. False: there will be none. */
bool csn_gateway_take_denied(int channel, csn_gateway_event_fn fn, void *ctx);

/* Closes the control socket. */
void csn_gateway_release(csn_gateway *g);
/* After the end of its keeper: waits until the process has ended too, and kills it if it does
 * not end, because it is stopped. */
void csn_gateway_end(const csn_runtime *rt, csn_gateway *g);
