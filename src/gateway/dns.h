/* dns.h: the questions of programs inside a jail, and the few answers that there are.
 *
 * The stub never asks anybody: it answers an address of its own making, or that there is
 * nothing. So there is no parser of answers here. The bytes of a query are the attacker's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define CSN_DNS_TYPE_A    1u
#define CSN_DNS_TYPE_AAAA 28u

enum gw_dns_rcode {
    CSN_DNS_NOERROR = 0,
    CSN_DNS_FORMERR = 1,
    CSN_DNS_SERVFAIL = 2,
    CSN_DNS_NXDOMAIN = 3,
    CSN_DNS_NOTIMP = 4,
    CSN_DNS_REFUSED = 5,
    CSN_DNS_BADVERS = 16, /* only to a query with EDNS */
};

enum gw_dns_result {
    CSN_DNS_DROP,  /* no query at all, or one of an answer: to be left without an answer */
    CSN_DNS_ERROR, /* to be answered with the rcode that the query now holds */
    CSN_DNS_QUERY, /* one question of class IN */
};

typedef struct gw_dns_query {
    uint16_t id;
    uint8_t opcode;
    bool recursion_desired, checking_disabled;
    enum gw_dns_rcode rcode; /* of CSN_DNS_ERROR */
    /* The question as it was sent: its case is part of the answer (programs mix it to make
     * forged answers hard). Empty when it could not be read. */
    uint8_t question[CSN_DNS_NAME_MAX + 4];
    size_t question_len;
    uint16_t type, class;
    /* The name with dots, no dot at its end, as sent. Empty for the root, and for a name with a
     * dot or a NUL inside a label: as text it would be taken for another one. */
    char name[CSN_DNS_NAME_MAX];
    size_t name_len;
    bool edns, dnssec_ok;
    uint16_t udp_size; /* what the asker can take in one datagram: 512 without EDNS */
} gw_dns_query;

typedef struct gw_dns_answer {
    enum gw_dns_rcode rcode;
    /* One record. Without an address, or with one that is not of the asked type, NOERROR says
     * that there is none; that and NXDOMAIN carry an SOA, so that they are kept for a moment.
     */
    const uint8_t *address;
    size_t address_len; /* 4: for A, 16: for AAAA, 0: none */
    uint32_t ttl;       /* of the record, or of the absence */
    bool truncated;     /* say only: ask again by TCP */
} gw_dns_answer;

enum gw_dns_result gw_dns_parse(const void *data, size_t len, gw_dns_query *ret);

/* The largest answer by UDP. */
size_t gw_dns_udp_limit(const gw_dns_query *q);
/* Writes at most size bytes and returns how many. CSN_DNS_REPLY_MAX are always enough; an
 * answer that does not fit is cut and says so. 0: size is too small even for the question. */
size_t gw_dns_reply(const gw_dns_query *q, const gw_dns_answer *a, void *out, size_t size);

/* TCP: two bytes of length before each message. Returns 1 when there is a whole one, at data +
 * 2, *len_ret long; 0 when more bytes are needed; -1 when its length is no query's. */
int gw_dns_tcp_next(const void *data, size_t len, size_t *len_ret);
/* The two bytes to put before an answer. */
void gw_dns_tcp_length(uint8_t out[2], size_t len);
