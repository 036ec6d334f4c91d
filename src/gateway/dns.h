/* dns.h: parse DNS queries and write replies.
 *
 * The DNS stub forwards no queries (resolve.c uses getaddrinfo), so it needs no parser for
 * replies. An attacker controls every byte of a query. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define GW_DNS_TYPE_A    1u
#define GW_DNS_TYPE_AAAA 28u

enum gw_dns_rcode {
    GW_DNS_NOERROR = 0,
    GW_DNS_FORMERR = 1,
    GW_DNS_SERVFAIL = 2,
    GW_DNS_NXDOMAIN = 3,
    GW_DNS_NOTIMP = 4,
    GW_DNS_REFUSED = 5,
    GW_DNS_BADVERS = 16, /* only to a query with EDNS */
};

enum gw_dns_result {
    GW_DNS_DROP,  /* not a query: send no reply */
    GW_DNS_ERROR, /* reply with query.rcode */
    GW_DNS_QUERY, /* one question of class IN */
};

typedef struct gw_dns_query {
    uint16_t id;
    uint8_t opcode;
    bool recursion_desired, checking_disabled;
    enum gw_dns_rcode rcode; /* for GW_DNS_ERROR */
    /* The question bytes as received, returned unchanged because clients compare upper and
     * lower case with the reply. Empty if malformed. */
    uint8_t question[CSN_DNS_NAME_MAX + 4];
    size_t question_len;
    uint16_t type, class;
    /* The name as text, without a final dot. Empty for the root, and for a name with a dot or
     * NUL inside a label: as text it would read as a different name. */
    char name[CSN_DNS_NAME_MAX];
    size_t name_len;
    bool edns, dnssec_ok;
    uint16_t udp_size; /* largest reply the client accepts; 512 without EDNS */
} gw_dns_query;

typedef struct gw_dns_answer {
    enum gw_dns_rcode rcode;
    /* At most one record. NOERROR without an address of the queried type, and NXDOMAIN, carry
     * an SOA record so that the client caches the negative answer. */
    const uint8_t *address;
    size_t address_len; /* 4: A, 16: AAAA, 0: none */
    uint32_t ttl;       /* of the record, or of the negative answer */
    bool truncated;     /* set TC: the client retries over TCP */
} gw_dns_answer;

enum gw_dns_result gw_dns_parse(const void *data, size_t len, gw_dns_query *ret);

/* The largest reply over UDP. */
size_t gw_dns_udp_limit(const gw_dns_query *q);
/* Returns the length of the reply. CSN_DNS_REPLY_MAX bytes always suffice; a reply that does
 * not fit is truncated and has TC set. 0: the question alone does not fit. */
size_t gw_dns_reply(const gw_dns_query *q, const gw_dns_answer *a, void *out, size_t size);

/* TCP framing: a two-byte length before each message. 1: a complete message of *len_ret bytes
 * at data + 2, 0: incomplete, -1: invalid length. */
int gw_dns_tcp_message(const void *data, size_t len, size_t *len_ret);
void gw_dns_tcp_length(uint8_t out[2], size_t len);
