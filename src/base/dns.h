/* dns.h: parse DNS queries and write replies.
 *
 * For the DNS stubs of the gateway and of the keeper. They forward no query, so no parser for
 * replies is needed. An attacker controls every byte of a query. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define CSN_DNS_TYPE_A    1u
#define CSN_DNS_TYPE_AAAA 28u

enum csn_dns_rcode {
    CSN_DNS_NOERROR = 0,
    CSN_DNS_FORMERR = 1,
    CSN_DNS_SERVFAIL = 2,
    CSN_DNS_NXDOMAIN = 3,
    CSN_DNS_NOTIMP = 4,
    CSN_DNS_REFUSED = 5,
    CSN_DNS_BADVERS = 16, /* only to a query with EDNS */
};

enum csn_dns_result {
    CSN_DNS_DROP,  /* not a query: send no reply */
    CSN_DNS_ERROR, /* reply with query.rcode */
    CSN_DNS_QUERY, /* one question of class IN */
};

typedef struct csn_dns_query {
    uint16_t id;
    uint8_t opcode;
    bool recursion_desired, checking_disabled;
    enum csn_dns_rcode rcode; /* for CSN_DNS_ERROR */
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
} csn_dns_query;

typedef struct csn_dns_answer {
    enum csn_dns_rcode rcode;
    /* At most one record. NOERROR without an address of the queried type, and NXDOMAIN, carry
     * an SOA record so that the client caches the negative answer. */
    const uint8_t *address;
    size_t address_len; /* 4: A, 16: AAAA, 0: none */
    uint32_t ttl;       /* of the record, or of the negative answer */
    bool truncated;     /* set TC: the client retries over TCP */
} csn_dns_answer;

enum csn_dns_result csn_dns_parse(const void *data, size_t len, csn_dns_query *ret);

/* The largest reply over UDP. */
size_t csn_dns_udp_limit(const csn_dns_query *q);
/* Returns the length of the reply. CSN_DNS_REPLY_MAX bytes always suffice; a reply that does
 * not fit is truncated and has TC set. 0: the question alone does not fit. */
size_t csn_dns_reply(const csn_dns_query *q, const csn_dns_answer *a, void *out, size_t size);

/* TCP framing: a two-byte length before each message. 1: a complete message of *len_ret bytes
 * at data + 2, 0: incomplete, -1: invalid length. */
int csn_dns_tcp_message(const void *data, size_t len, size_t *len_ret);
void csn_dns_tcp_length(uint8_t out[2], size_t len);
