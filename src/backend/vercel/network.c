/* network.c: translates network rules to a Vercel network policy.
 *
 * Vercel can allow everything, nothing, or a list of names and networks, minus a list of
 * networks. It supports neither ports nor denied names: rules that need them are refused before
 * a sandbox is created. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/error.h"

#define ALL_ADDRESSES "0.0.0.0/0"

typedef enum { RULE_NAME, RULE_NETWORK, RULE_UNSUPPORTED } rule_kind;

/* host = name / "*." name / IPv4 ["/" bits] / "[" IPv6 ["/" bits] "]", without ports. */
static rule_kind classify(const char *rule)
{
    char address[INET_ADDRSTRLEN];
    unsigned char raw[sizeof(struct in_addr)];
    size_t n = strcspn(rule, "/");

    if (rule[0] == '[')
        return rule[strlen(rule) - 1] == ']' ? RULE_NETWORK : RULE_UNSUPPORTED;
    if (strchr(rule, ':'))
        return RULE_UNSUPPORTED;
    if (n < sizeof(address)) {
        memcpy(address, rule, n);
        address[n] = '\0';
        if (inet_pton(AF_INET, address, raw) == 1)
            return strstr(rule, "/tcp") ? RULE_UNSUPPORTED : RULE_NETWORK;
    }
    return rule[n] ? RULE_UNSUPPORTED : RULE_NAME;
}

csn_status csn_vercel_check_network(const csn_config *c, csn_error **err)
{
    for (size_t i = 0; c->net_allow && c->net_allow[i]; i++)
        if (classify(c->net_allow[i]) == RULE_UNSUPPORTED)
            return csn_fail(err, CSN_UNSUPPORTED,
                            "network.allow[%zu]: %s: backend 'vercel' does not support ports "
                            "in network rules",
                            i, c->net_allow[i]);
    for (size_t i = 0; c->net_deny && c->net_deny[i]; i++)
        if (classify(c->net_deny[i]) != RULE_NETWORK)
            return csn_fail(err, CSN_UNSUPPORTED,
                            "network.deny[%zu]: %s: backend 'vercel' supports only addresses "
                            "in deny rules, neither names nor ports",
                            i, c->net_deny[i]);
    return CSN_OK;
}

/* Writes the address with a prefix length and without brackets. */
static void json_network(csn_json *j, const char *rule)
{
    bool six = rule[0] == '[';
    csn_autofree char *text = NULL;
    int n = asprintf(&text, "%.*s%s", (int)strlen(rule) - (six ? 2 : 0), rule + (six ? 1 : 0),
                     strchr(rule, '/') ? ""
                     : six             ? "/128"
                                       : "/32");

    text = n < 0 ? NULL : text;
    csn_json_str(j, text ? text : "");
}

static void json_rules(csn_json *j, const char *key, const char *const *rules, rule_kind kind,
                       bool all)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (size_t i = 0; rules && rules[i]; i++) {
        if (classify(rules[i]) != kind)
            continue;
        if (kind == RULE_NETWORK)
            json_network(j, rules[i]);
        else
            csn_json_str(j, rules[i]);
    }
    if (all)
        csn_json_str(j, ALL_ADDRESSES);
    csn_json_array_end(j);
}

void csn_vercel_json_network(csn_json *j, const csn_config *c)
{
    bool none = c->network && strcmp(c->network, "none") == 0;
    bool open = !none && (!c->net_allow || (c->network && strcmp(c->network, "all") == 0));

    if (open && !c->net_deny)
        return;
    csn_json_key(j, "networkPolicy");
    csn_json_object(j);
    if (!open && !c->net_allow) {
        csn_json_kstr(j, "mode", "deny-all");
    } else {
        json_rules(j, "allow", c->net_allow, RULE_NAME, false);
        csn_json_key(j, "subnets");
        csn_json_object(j);
        json_rules(j, "allow", c->net_allow, RULE_NETWORK, open);
        json_rules(j, "deny", c->net_deny, RULE_NETWORK, false);
        csn_json_object_end(j);
    }
    csn_json_object_end(j);
}
