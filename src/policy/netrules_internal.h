/* netrules_internal.h: shared by the files of netrules: the rules of one side (allow or deny),
 * by what they name.
 *
 * All rules for one name, wildcard or network form one entry of a hash table. A name of n
 * labels matches at most n entries, an address one per prefix length, so the cost of a query
 * does not depend on the number of rules. */
#pragma once
#include "base/arena.h"
#include "policy/netrules.h"

typedef struct csn_netport_rule {
    uint16_t port;
    const char *text; /* of the rule that named it */
} csn_netport_rule;

typedef struct csn_netentry {
    csn_netrule_kind kind;
    uint8_t len;
    const char *key; /* a name, or family, bits and bytes of a network */
    uint32_t hash;
    const char *every;       /* the rule for every port, or NULL */
    csn_netport_rule *ports; /* sorted after csn_netside_seal; at most one for a port */
    size_t port_count, port_cap;
    csn_netcidr net; /* NET only */
} csn_netentry;

typedef struct csn_netside {
    csn_netentry *entries;
    size_t count, cap;
    uint32_t *slots; /* 1 + index of the entry; 0: free. A power of two, never full */
    size_t slot_count;
    bool has4[33], has6[129]; /* prefix lengths in use */
} csn_netside;

/* The matching entries of one side, the most specific last. */
#define CSN_NETHITS_MAX 132u
typedef struct csn_nethits {
    const csn_netentry *at[CSN_NETHITS_MAX];
    size_t count;
} csn_nethits;

/* `text` and the arena outlive the side. 0 or ENOMEM. */
int csn_netside_add(csn_netside *s, csn_arena *a, const csn_netrule *rule, const char *text);
void csn_netside_seal(csn_netside *s); /* after the last add, before the first query */
void csn_netside_release(csn_netside *s);

/* kind NAME: entries that cover the name; BELOW: that cover everything below it. */
void csn_netside_names(const csn_netside *s, csn_netrule_kind kind, const csn_domain *name,
                       csn_nethits *ret);
/* The networks that contain `net`. */
void csn_netside_nets(const csn_netside *s, const csn_netcidr *net, csn_nethits *ret);
/* The text of the rule of this entry that covers the port; NULL: none. */
const char *csn_netentry_port(const csn_netentry *e, uint16_t port);
/* The same for all hits, the most specific first. */
const char *csn_nethits_port(const csn_nethits *h, uint16_t port);
const char *csn_nethits_every(const csn_nethits *h);
