/* policy.c: network rules in the provider's words.
 *
 * It knows: everything, nothing, or a list of names and networks that are allowed, less a list
 * of networks. It knows no ports and denies no names: rules that need those are refused when
 * the sandbox is opened, before anything is made. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/error.h"

#define EVERYWHERE "0.0.0.0/0"

typedef enum { RULE_NAME, RULE_NETWORK, RULE_MORE } rule_kind; /* MORE: than they can say */

/* host = name / "*." name / IPv4 ["/" bits] / "[" IPv6 ["/" bits] "]", without ports. */
static rule_kind kind_of(const char *rule)
{
    char address[INET_ADDRSTRLEN];
    unsigned char raw[sizeof(struct in_addr)];
    size_t n = strcspn(rule, "/");

    if (rule[0] == '[')
        return rule[strlen(rule) - 1] == ']' ? RULE_NETWORK : RULE_MORE;
    if (strchr(rule, ':'))
        return RULE_MORE;
    if (n < sizeof(address)) {
        memcpy(address, rule, n);
        address[n] = '\0';
        if (inet_pton(AF_INET, address, raw) == 1)
            return strstr(rule, "/tcp") ? RULE_MORE : RULE_NETWORK;
    }
    return rule[n] ? RULE_MORE : RULE_NAME;
}

csn_status csn_vercel_check_net(const csn_config *c, csn_error **err)
{
    for (size_t i = 0; c->net_allow && c->net_allow[i]; i++)
        if (kind_of(c->net_allow[i]) == RULE_MORE)
            return csn_fail(err, CSN_UNSUPPORTED,
                            "backend 'vercel' cannot honour '%s': its network rules have no "
                            "ports",
                            c->net_allow[i]);
    for (size_t i = 0; c->net_deny && c->net_deny[i]; i++)
        if (kind_of(c->net_deny[i]) != RULE_NETWORK)
            return csn_fail(err, CSN_UNSUPPORTED,
                            "backend 'vercel' cannot honour deny '%s': it denies networks, "
                            "neither names nor ports",
                            c->net_deny[i]);
    return CSN_OK;
}

/* As a network with its bits, without brackets. */
static void put_network(csn_json *j, const char *rule)
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

static void put_rules(csn_json *j, const char *key, const char *const *rules, rule_kind kind,
                      bool all)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (size_t i = 0; rules && rules[i]; i++) {
        if (kind_of(rules[i]) != kind)
            continue;
        if (kind == RULE_NETWORK)
            put_network(j, rules[i]);
        else
            csn_json_str(j, rules[i]);
    }
    if (all)
        csn_json_str(j, EVERYWHERE);
    csn_json_array_end(j);
}

void csn_vercel_put_policy(csn_json *j, const csn_config *c)
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
        put_rules(j, "allow", c->net_allow, RULE_NAME, false);
        csn_json_key(j, "subnets");
        csn_json_object(j);
        put_rules(j, "allow", c->net_allow, RULE_NETWORK, open);
        put_rules(j, "deny", c->net_deny, RULE_NETWORK, false);
        csn_json_object_end(j);
    }
    csn_json_object_end(j);
}
