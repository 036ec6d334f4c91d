/* fuzz_domain.c: the input is a domain name; also read as an address, a network and a port.
 *
 * Beside not crashing: what is accepted is in its one form (parsing it again changes nothing),
 * no reader of addresses takes it for one, and what a rule may name can be looked up too. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/domain.h"
#include "policy/netaddr.h"
#include "policy/netport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void check_name(const char *text, size_t len)
{
    csn_domain rule, lookup, again;
    struct in_addr loose;
    const char *why = NULL;
    bool named = csn_domain_parse(text, len, &rule, &why);

    must(named == (why == NULL));
    bool found = csn_domain_parse_lookup(text, len, &lookup, NULL);
    must(!named || (found && csn_domain_equal(&rule, &lookup)));
    if (!found)
        return;
    must(lookup.len == strlen(lookup.text) && lookup.len <= CSN_DOMAIN_MAX);
    must(csn_domain_parse_lookup(lookup.text, lookup.len, &again, NULL));
    must(csn_domain_equal(&again, &lookup));
    must(!csn_domain_below(&lookup, &lookup));
    must(inet_aton(lookup.text, &loose) == 0);
}

static void check_address(const char *text, size_t len)
{
    char shown[CSN_NETADDR_TEXT];
    csn_netaddr a, again, inner;
    csn_netcidr net;

    if (csn_netcidr_parse(text, len, &net, NULL))
        must(csn_netcidr_has(&net, &net.base) && csn_netcidr_covers(&net, &net));
    if (!csn_netaddr_parse(text, len, &a))
        return;
    (void)csn_netaddr_text(&a, shown);
    must(csn_netaddr_parse(shown, strlen(shown), &again) && csn_netaddr_equal(&a, &again));
    if (csn_netaddr_embedded(&a, &inner))
        must(!csn_netaddr_refused(&inner) || csn_netaddr_refused(&a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autofree char *text = malloc(size + 1), *line = NULL;
    csn_netport ports;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    line = strdup(text);
    text = realloc(text, size > 0 ? size : 1); /* no room behind it for a reader too far */
    check_name(text, size);
    check_address(text, size);
    if (line && csn_netport_parse(line, true, &ports, NULL))
        must(ports.inside != 0);
    return 0;
}
