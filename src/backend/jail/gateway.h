/* gateway.h: the program caisson-gateway of one sandbox: started, spoken to, found again. */
#pragma once
#include <stdbool.h>

#include "gateway/protocol.h"
#include "runtime/runtime.h"

typedef struct csn_gateway {
    int control; /* SEQPACKET to it, or -1: there is none, or it cannot be reached */
    int pidfd;   /* of one that was started here, or -1 */
} csn_gateway;

#define CSN_GATEWAY_NONE ((csn_gateway){.control = -1, .pidfd = -1})

/* Starts it. It waits for its set-up, so the jail can be built meanwhile. */
csn_status csn_gateway_start(csn_runtime *rt, csn_gateway *g, csn_error **err);
/* Everything it needs; `fds` in the order of s->flags stay the caller's. */
csn_status csn_gateway_setup(csn_runtime *rt, csn_gateway *g, const csn_gateway_setup_msg *s,
                             const int *fds, size_t nfds, csn_gateway_ready *ret,
                             csn_error **err);
/* A socket in the sandbox's runtime directory on which a detached one is found again. */
csn_status csn_gateway_listen(csn_runtime *rt, int *ret, csn_error **err);
/* Finds it there; control stays -1 when it is gone. */
void csn_gateway_find(const csn_runtime *rt, csn_gateway *g);
/* Does it still run, as far as can be told without asking it? */
bool csn_gateway_lives(const csn_gateway *g);

csn_status csn_gateway_update(const csn_gateway *g, const csn_gateway_rules *r,
                              csn_error **err);
/* A command's own network, which may reach no more than these rules and the sandbox's: flags,
 * rules and descriptors of `s`. Until *ret_lease is closed. */
csn_status csn_gateway_exec_rules(const csn_gateway *g, const csn_gateway_setup_msg *s,
                                  const int *fds, size_t nfds, int *ret_lease, csn_error **err);
/* Events from *seq on, oldest first, as far as it still has them; *seq is moved behind the
 * last. How many it had forgotten: *ret_lost. Non-zero from fn ends it early, without an error.
 */
typedef int (*csn_gateway_event_fn)(void *ctx, const csn_gateway_event *e);
csn_status csn_gateway_events(const csn_gateway *g, uint64_t *seq, csn_gateway_event_fn fn,
                              void *ctx, uint64_t *ret_lost, csn_error **err);

/* Hangs up; `wait`: on a sandbox that ends, until it is gone too. */
void csn_gateway_release(csn_gateway *g, bool wait);
