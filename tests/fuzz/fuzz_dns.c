/* fuzz_dns.c: a question of a program inside, and the answers to it.
 *
 * Beside not crashing: an answer is of the question's number and marked as one; it keeps the
 * question as it was asked, case and all; it fits where it was to fit, or says that it was cut;
 * our own parser does not take it for a question. By TCP, a message is found at the same place
 * however many bytes of it have come. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void check_query(const csn_dns_query *q, enum csn_dns_result r)
{
    must(q->question_len <= sizeof(q->question) && q->name_len < sizeof(q->name));
    must(!memchr(q->name, '\0', q->name_len));
    must(r != CSN_DNS_QUERY || q->question_len >= 5);
    must(r != CSN_DNS_QUERY || q->class == 1);
    must(csn_dns_udp_limit(q) >= 512);
}

static void check_reply(const csn_dns_query *q, const csn_dns_answer *a, size_t room)
{
    uint8_t out[CSN_DNS_REPLY_MAX + 16];
    csn_dns_query again;

    memset(out, 0xa5, sizeof(out));
    size_t n = csn_dns_reply(q, a, out, room);
    must(n <= room && n <= CSN_DNS_REPLY_MAX);
    for (size_t i = room; i < sizeof(out); i++)
        must(out[i] == 0xa5);
    must(room < CSN_DNS_REPLY_MAX || n > 0);
    if (n == 0)
        return;
    must(n >= 12 && (out[0] << 8 | out[1]) == q->id && (out[2] & 0x80));
    if (q->question_len > 0)
        must(n >= 12 + q->question_len && memcmp(out + 12, q->question, q->question_len) == 0);
    must(csn_dns_parse(out, n, &again) == CSN_DNS_DROP);
}

static void check_tcp(const uint8_t *data, size_t size)
{
    size_t whole = 0, part = 0;
    int rc = csn_dns_tcp_message(data, size, &whole);

    must(rc >= -1 && rc <= 1 && (rc != 1 || 2 + whole <= size));
    for (size_t i = 0; i < size && i < 600; i++) {
        int early = csn_dns_tcp_message(data, i, &part);
        must(early == 0 || (early == rc && part == whole));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t address[16] = {198, 18, 0, 2};
    static const size_t lens[] = {0, 4, 16};
    csn_dns_query q = {0};

    check_tcp(data, size);
    enum csn_dns_result r = csn_dns_parse(data, size, &q);
    if (r == CSN_DNS_DROP)
        return 0;
    check_query(&q, r);
    for (size_t i = 0; i < 12; i++) {
        csn_dns_answer a = {.rcode = r == CSN_DNS_ERROR ? q.rcode
                                     : i % 2            ? CSN_DNS_NXDOMAIN
                                                        : CSN_DNS_NOERROR,
                            .address = address,
                            .address_len = lens[i % 3],
                            .ttl = 60,
                            .truncated = i >= 6};
        check_reply(&q, &a, CSN_DNS_REPLY_MAX);
        check_reply(&q, &a, size % (CSN_DNS_REPLY_MAX + 1));
    }
    return 0;
}
