/* netrules.h: the network rules of a policy, compiled once and queried for each connection.
 *
 *   rule     = host [":" port *("," port)] ["/tcp"] ["/private"]       no port: every port
 *   host     = name / "*." name / IPv4 ["/" bits] / "[" IPv6 ["/" bits] "]"
 *
 * `*.ok.test` covers everything below ok.test, at any depth, and not ok.test itself. Deny rules
 * have the same form, and one that matches always wins. A name or address without a rule is
 * refused, unless the mode is `all`: then every name and every public address is allowed that
 * is not denied.
 *
 * Names and addresses are checked separately, and a connection must pass both: a rule for a
 * name does not open a refused range (netaddr.h) to which it resolves. Only an address rule
 * inside the range does: 10.0.0.0/8 opens private addresses, but neither 0.0.0.0/0 nor
 * 100.0.0.0/8 opens carrier-grade NAT, and 169.254.0.0/16 does not open the metadata service.
 * The one exception is a rule for a name that ends in /private: the name may resolve to an
 * address of the range "private", and to no other refused range. The hosts of a package
 * manager's configuration have it (core/packages.c).
 *
 * localhost:PORT is accepted and opens nothing here: the configuration makes it a host port
 * (core/config_net.c).
 *
 * The library and the gateway compile the same texts. Immutable after csn_netrules_new. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "caisson/caisson.h"
#include "policy/domain.h"
#include "policy/netaddr.h"

#define CSN_NETRULES_MAX      65536u /* allow and deny together */
#define CSN_NETRULE_PORTS_MAX 64u
#define CSN_NETRULE_TEXT      272u /* "[*.]name:port" and a NUL */

/* ---- one rule ---- */

typedef enum csn_netrule_kind {
    CSN_NETRULE_NAME,  /* exactly `name` */
    CSN_NETRULE_BELOW, /* everything below `name` */
    CSN_NETRULE_NET,   /* an address or a network */
} csn_netrule_kind;

typedef struct csn_netrule {
    csn_netrule_kind kind;
    csn_domain name;
    csn_netcidr net;
    bool to_private;   /* the name may resolve to a private address */
    size_t port_count; /* 0: every port */
    uint16_t ports[CSN_NETRULE_PORTS_MAX];
} csn_netrule;

/* *why (may be NULL) completes "RULE is no network rule: ..."; static. */
bool csn_netrule_parse(const char *text, csn_netrule *ret, const char **why);
/* Is it exactly localhost, 127.0.0.1 or [::1]? */
bool csn_netrule_is_loopback(const csn_netrule *rule);

/* ---- a set of rules ---- */

typedef struct csn_netrules csn_netrules;

/* mode: NULL or "none" (rules only), or "all"; lists may be NULL. CSN_INVALID names the first
 * bad rule and the reason ("network.allow[2]: ..."). */
csn_status csn_netrules_new(const char *mode, const char *const *allow, const char *const *deny,
                            csn_netrules **ret, csn_error **err);
void csn_netrules_free(csn_netrules *r);
/* True: the rules allow nothing, so no gateway is needed. */
bool csn_netrules_is_closed(const csn_netrules *r);

typedef struct csn_netverdict {
    bool allowed;
    /* "allow *.ok.test:443", "deny x.test", "network all", "network none"; NULL: no rule
     * matched. Borrowed from the rules. */
    const char *rule;
    const char *range; /* the refused range of the address ("private" ...), static, or NULL */
    char hint[CSN_NETRULE_TEXT]; /* the smallest rule that would allow it; "": none */
    char why[128];               /* the reason of a refusal; "" if allowed */
} csn_netverdict;

/* May a connection to this name and port be opened? csn_netrules_dial checks its address. */
void csn_netrules_name(const csn_netrules *r, const csn_domain *name, uint16_t port,
                       csn_netverdict *ret);
/* For DNS: is any port of this name allowed? */
void csn_netrules_lookup(const csn_netrules *r, const csn_domain *name, csn_netverdict *ret);
/* A connection to an address without a lookup: needs an address rule or mode all. */
void csn_netrules_address(const csn_netrules *r, const csn_netaddr *a, uint16_t port,
                          csn_netverdict *ret);
/* May this address of the allowed name be dialled? Checks the address; the name (NULL: none)
 * counts only for /private. `own`: a refused range that only the caller knows ("this host" for
 * one of its interfaces), or NULL. */
void csn_netrules_dial(const csn_netrules *r, const csn_domain *name, const csn_netaddr *a,
                       uint16_t port, const char *own, csn_netverdict *ret);

/* Is each rule of `list`, an option of one call named `what` in messages, within the policy?
 * CSN_DENIED names the first that is not, CSN_INVALID the first that is no rule. A rule without
 * ports means the ports of the policy. The sets are not merged: a connection of the call must
 * be allowed by both. */
csn_status csn_netrules_subset(const csn_netrules *policy, const char *what,
                               const char *const *list, csn_error **err);
