/* dns.c: parses one DNS query and writes its reply.
 *
 * An attacker controls every byte. Invariants: the parser reads only [data, data+len),
 * allocates nothing and takes linear time. A name has one interpretation: compression pointers
 * in the question are refused, and a label that contains a dot is never converted to text.
 * Replies repeat the question bytes unchanged. */
#include "base/dns.h"

#include <string.h>

#define HEADER       12u
#define LABEL_MAX    63u
#define CLASS_IN     1u
#define TYPE_SOA     6u
#define TYPE_OPT     41u
#define QUESTION_PTR 0xc00cu /* compression pointer to the question */
#define SOA_LEN      22u     /* two root names, five numbers */

#define FLAG_ANSWER    0x8000u
#define FLAG_TRUNCATED 0x0200u
#define FLAG_RD        0x0100u
#define FLAG_RA        0x0080u
#define FLAG_CD        0x0010u
#define EDNS_DO        0x8000u

typedef struct cursor {
    const uint8_t *data;
    size_t len, at;
} cursor;

typedef struct writer {
    uint8_t *data;
    size_t len;
} writer;

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static bool take16(cursor *c, uint16_t *ret)
{
    if (c->len - c->at < 2)
        return false;
    *ret = get16(c->data + c->at);
    c->at += 2;
    return true;
}

static bool skip(cursor *c, size_t n)
{
    if (c->len - c->at < n)
        return false;
    c->at += n;
    return true;
}

static void add_label(csn_dns_query *q, const uint8_t *label, size_t n, bool *plain)
{
    if (memchr(label, '.', n) || memchr(label, '\0', n))
        *plain = false;
    if (q->name_len > 0)
        q->name[q->name_len++] = '.';
    memcpy(q->name + q->name_len, label, n);
    q->name_len += n;
}

static bool read_question_name(cursor *c, csn_dns_query *q)
{
    size_t start = c->at;
    bool plain = true;

    for (;;) {
        if (c->at >= c->len)
            return false;
        size_t n = c->data[c->at++];
        if (n == 0)
            break;
        /* n > LABEL_MAX: a pointer or a reserved form */
        if (n > LABEL_MAX || c->at - start + n >= CSN_DNS_NAME_MAX || c->len - c->at < n)
            return false;
        add_label(q, c->data + c->at, n, &plain);
        c->at += n;
    }
    if (!plain)
        q->name_len = 0;
    return true;
}

static bool read_question(cursor *c, csn_dns_query *q)
{
    size_t start = c->at;

    if (!read_question_name(c, q) || !take16(c, &q->type) || !take16(c, &q->class)) {
        q->name_len = 0;
        return false;
    }
    q->question_len = c->at - start;
    memcpy(q->question, c->data + start, q->question_len);
    return true;
}

/* Skips the owner name of an additional record; a pointer ends it. */
static bool skip_name(cursor *c, bool *is_root)
{
    size_t start = c->at;

    for (;;) {
        if (c->at >= c->len || c->at - start >= CSN_DNS_NAME_MAX)
            return false;
        uint8_t n = c->data[c->at++];
        *is_root = n == 0 && c->at - start == 1;
        if (n == 0)
            return true;
        if (n > LABEL_MAX)
            return (n & 0xc0u) == 0xc0u && skip(c, 1);
        if (!skip(c, n))
            return false;
    }
}

static bool options_are_whole(const uint8_t *data, size_t len)
{
    while (len > 0) {
        if (len < 4 || len - 4 < get16(data + 2))
            return false;
        size_t n = 4u + get16(data + 2);
        data += n;
        len -= n;
    }
    return true;
}

static bool read_additional(cursor *c, csn_dns_query *q)
{
    bool is_root;
    uint16_t type, class, ext, flags, len;

    if (!skip_name(c, &is_root) || !take16(c, &type) || !take16(c, &class) ||
        !take16(c, &ext) || !take16(c, &flags) || !take16(c, &len))
        return false;
    const uint8_t *data = c->data + c->at;
    if (!skip(c, len))
        return false;
    if (type != TYPE_OPT)
        return true;
    if (!is_root || q->edns || !options_are_whole(data, len))
        return false;
    q->edns = true;
    q->dnssec_ok = (flags & EDNS_DO) != 0;
    if (class > CSN_DNS_UDP_MIN)
        q->udp_size = class;
    if ((ext & 0xffu) != 0)
        q->rcode = CSN_DNS_BADVERS;
    return true;
}

static bool read_body(cursor *c, csn_dns_query *q)
{
    const uint8_t *counts = c->data + 4;
    uint16_t more = get16(counts + 6);

    if (get16(counts) != 1 || get16(counts + 2) != 0 || get16(counts + 4) != 0 ||
        more > CSN_DNS_ADDITIONAL_MAX || !read_question(c, q))
        return false;
    for (uint16_t i = 0; i < more; i++)
        if (!read_additional(c, q))
            return false;
    return c->at == c->len;
}

enum csn_dns_result csn_dns_parse(const void *data, size_t len, csn_dns_query *ret)
{
    cursor c = {.data = data, .len = len, .at = HEADER};

    memset(ret, 0, sizeof(*ret));
    ret->udp_size = CSN_DNS_UDP_MIN;
    if (len < HEADER || len > CSN_DNS_QUERY_MAX)
        return CSN_DNS_DROP;
    uint16_t flags = get16(c.data + 2);
    if ((flags & FLAG_ANSWER) != 0)
        return CSN_DNS_DROP; /* replying to replies could loop */
    ret->id = get16(c.data);
    ret->opcode = (uint8_t)(flags >> 11 & 0xfu);
    ret->recursion_desired = (flags & FLAG_RD) != 0;
    ret->checking_disabled = (flags & FLAG_CD) != 0;
    if (ret->opcode != 0)
        ret->rcode = CSN_DNS_NOTIMP; /* the body may have another format */
    else if (!read_body(&c, ret))
        ret->rcode = CSN_DNS_FORMERR;
    else if (ret->rcode == CSN_DNS_NOERROR && ret->class != CLASS_IN)
        ret->rcode = CSN_DNS_REFUSED;
    return ret->rcode == CSN_DNS_NOERROR ? CSN_DNS_QUERY : CSN_DNS_ERROR;
}

static void put16(writer *w, uint16_t v)
{
    w->data[w->len++] = (uint8_t)(v >> 8);
    w->data[w->len++] = (uint8_t)v;
}

static void put32(writer *w, uint32_t v)
{
    put16(w, (uint16_t)(v >> 16));
    put16(w, (uint16_t)v);
}

static void put_bytes(writer *w, const void *data, size_t n)
{
    memcpy(w->data + w->len, data, n);
    w->len += n;
}

static void put_header(writer *w, const csn_dns_query *q, const csn_dns_answer *a, bool record,
                       bool soa, bool truncated)
{
    unsigned flags = FLAG_ANSWER | FLAG_RA | (unsigned)q->opcode << 11 | (a->rcode & 0xfu);

    if (truncated)
        flags |= FLAG_TRUNCATED;
    if (q->recursion_desired)
        flags |= FLAG_RD;
    if (q->checking_disabled)
        flags |= FLAG_CD;
    put16(w, q->id);
    put16(w, (uint16_t)flags);
    put16(w, q->question_len > 0);
    put16(w, record);
    put16(w, soa);
    put16(w, q->edns);
}

static void put_record(writer *w, const csn_dns_answer *a)
{
    put16(w, QUESTION_PTR);
    put16(w, a->address_len == 4 ? CSN_DNS_TYPE_A : CSN_DNS_TYPE_AAAA);
    put16(w, CLASS_IN);
    put32(w, a->ttl);
    put16(w, (uint16_t)a->address_len);
    put_bytes(w, a->address, a->address_len);
}

/* SOA of the root zone. Clients cache a negative answer for the smaller of its TTL and its last
 * field. */
static void put_soa(writer *w, uint32_t ttl)
{
    put_bytes(w, "", 1);
    put16(w, TYPE_SOA);
    put16(w, CLASS_IN);
    put32(w, ttl);
    put16(w, SOA_LEN);
    put_bytes(w, "\0", 2); /* MNAME, RNAME: the root */
    put32(w, 1);
    for (int i = 0; i < 4; i++)
        put32(w, ttl);
}

static void put_opt(writer *w, const csn_dns_query *q, enum csn_dns_rcode rcode)
{
    put_bytes(w, "", 1);
    put16(w, TYPE_OPT);
    put16(w, CSN_DNS_UDP_MAX);
    put16(w, (uint16_t)((unsigned)rcode >> 4 << 8)); /* extended rcode, then version 0 */
    put16(w, q->dnssec_ok ? EDNS_DO : 0);
    put16(w, 0);
}

size_t csn_dns_udp_limit(const csn_dns_query *q)
{
    return q->udp_size < CSN_DNS_UDP_MAX ? q->udp_size : CSN_DNS_UDP_MAX;
}

size_t csn_dns_reply(const csn_dns_query *q, const csn_dns_answer *a, void *out, size_t size)
{
    writer w = {.data = out};
    bool record =
        a->rcode == CSN_DNS_NOERROR && ((q->type == CSN_DNS_TYPE_A && a->address_len == 4) ||
                                        (q->type == CSN_DNS_TYPE_AAAA && a->address_len == 16));
    bool soa = !record && (a->rcode == CSN_DNS_NOERROR || a->rcode == CSN_DNS_NXDOMAIN);
    size_t fixed = HEADER + q->question_len + (q->edns ? 11u : 0u);
    size_t more = record ? 12u + a->address_len : soa ? 11u + SOA_LEN : 0u;
    bool truncated = a->truncated || (record && fixed + more > size);

    if (fixed > size)
        return 0;
    if (a->truncated || fixed + more > size)
        record = soa = false;
    put_header(&w, q, a, record, soa, truncated);
    put_bytes(&w, q->question, q->question_len);
    if (record)
        put_record(&w, a);
    if (soa)
        put_soa(&w, a->ttl);
    if (q->edns)
        put_opt(&w, q, a->rcode);
    return w.len;
}

int csn_dns_tcp_message(const void *data, size_t len, size_t *len_ret)
{
    if (len < 2)
        return 0;
    size_t n = get16(data);
    if (n < HEADER || n > CSN_DNS_QUERY_MAX)
        return -1;
    *len_ret = n;
    return len - 2 >= n;
}

void csn_dns_tcp_length(uint8_t out[2], size_t len)
{
    out[0] = (uint8_t)(len >> 8);
    out[1] = (uint8_t)len;
}
