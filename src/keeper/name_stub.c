/* name_stub.c: the resolver of a jail without a network. No name exists there.
 *
 * Without it, a lookup would find no server, which resolvers report as a temporary failure, and
 * programs such as package managers would retry for minutes. The stub answers every query on
 * 127.0.0.1:53 with NXDOMAIN, at once, and tells the library which names were asked for.
 *
 * Commands send the queries: every byte is hostile. The parser (base/dns.h) allocates nothing.
 * Nothing here waits, an event handles a bounded number of queries, and each command reports a
 * bounded number of names, so that its EXIT always fits into the channel. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/dns.h"
#include "keeper/keeper.h"
#include "os/gateway_net.h"
#include "os/netns.h"

#define QUERIES_PER_EVENT 16
#define NEGATIVE_TTL      5u
/* Reading the kernel's counters takes as long as a very short command, so they are read only
 * after a command that failed, or that had time to do more than to start. */
#define SHORT_NS 2000000u

void kp_names_open(kp_keeper *k)
{
    int fd = csn_gateway_net_resolver();

    k->names.fd = fd < 0 ? -1 : fd; /* without it lookups fail as well, only less clearly */
}

int kp_names_watch(kp_keeper *k)
{
    return k->names.fd < 0 ? 0 : kp_watch_open(k, &k->names, KP_WATCH_NAMES, k->names.fd, NULL);
}

/* ---- names ---- */

/* Lower case; what no host name contains becomes '?'. Returns the hash of the text, FNV-1a. */
static uint32_t clean(char *name, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                     c == '.';
        name[i] = plain ? c : '?';
        h = (h ^ (uint8_t)name[i]) * 16777619u;
    }
    name[len] = '\0';
    return h;
}

static bool is_new(kp_job *job, uint32_t hash)
{
    for (uint32_t i = 0; i < job->refused_count; i++)
        if (job->refused[i] == hash)
            return false;
    if (job->refused_count == CSN_KEEPER_REFUSED_MAX)
        return false;
    job->refused[job->refused_count++] = hash;
    return true;
}

/* A datagram does not tell which command sent it, so all that run are told. */
static void tell(kp_keeper *k, const char *name, uint32_t hash)
{
    KP_EACH(&k->jobs, item, safe)
    {
        kp_job *job = (kp_job *)item;
        if (job->channel.fd >= 0 && is_new(job, hash))
            kp_reply(job->channel.fd, CSN_MSG_REFUSED, &(csn_refused_msg){.name = name});
    }
}

/* Refused reverse lookups are not reported: many programs make them routinely. */
static bool is_reverse(const char *name, size_t len)
{
    return len > 5 && memcmp(name + len - 5, ".arpa", 5) == 0;
}

/* Writes the reply to out and returns its length; 0: send no reply. */
static size_t reply(kp_keeper *k, const void *data, size_t len, uint8_t out[CSN_DNS_REPLY_MAX])
{
    csn_dns_answer a = {.rcode = CSN_DNS_NXDOMAIN, .ttl = NEGATIVE_TTL};
    csn_dns_query q;

    switch (csn_dns_parse(data, len, &q)) {
    case CSN_DNS_QUERY:
        if (q.name_len > 0 && q.name_len < sizeof(q.name)) {
            uint32_t hash = clean(q.name, q.name_len);
            if (!is_reverse(q.name, q.name_len))
                tell(k, q.name, hash);
        }
        break;
    case CSN_DNS_ERROR:
        a.rcode = q.rcode;
        break;
    case CSN_DNS_DROP:
    default:
        return 0;
    }
    return csn_dns_reply(&q, &a, out, CSN_DNS_REPLY_MAX);
}

void kp_names_serve(kp_keeper *k)
{
    uint8_t out[CSN_DNS_REPLY_MAX];

    for (int i = 0; i < QUERIES_PER_EVENT; i++) {
        struct sockaddr_storage from;
        socklen_t from_len = sizeof(from);
        ssize_t n = recvfrom(k->names.fd, k->packet, CSN_DNS_UDP_MAX + 1, MSG_DONTWAIT,
                             (struct sockaddr *)&from, &from_len);
        if (n < 0)
            return;
        size_t len = reply(k, k->packet, (size_t)n, out);
        if (len > 0)
            (void)!sendto(k->names.fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL,
                          (struct sockaddr *)&from, from_len);
    }
}

/* ---- addresses ---- */

void kp_unrouted_begin(const kp_keeper *k, kp_job *job)
{
    job->unrouted_before = k->unrouted;
}

bool kp_unrouted_since(kp_keeper *k, const kp_job *job)
{
    bool quick = job->status == 0 && !job->killed && job->cpu_ns < SHORT_NS;

    if (k->names.fd < 0 || quick)
        return false;
    uint64_t now = csn_netns_unrouted(k->proc);
    if (now > k->unrouted)
        k->unrouted = now;
    return k->unrouted > job->unrouted_before;
}
