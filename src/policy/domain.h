/* domain.h: the parser of domain names for rules, DNS queries, SNI, Host and proxies.
 *
 * Policy and resolver must agree on every spelling of a name. So there is one canonical form
 * (lower case, no trailing dot), and every check takes a csn_domain, which only this parser
 * creates. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define CSN_DOMAIN_MAX       253u
#define CSN_DOMAIN_LABEL_MAX 63u

typedef struct csn_domain {
    char text[CSN_DOMAIN_MAX + 1]; /* lower case, no trailing dot, NUL-terminated */
    size_t len;
} csn_domain;

/* A name in a DNS lookup, which may contain underscores (_srv records, buckets of object
 * stores). No rule can name such a host; only a wildcard covers it. */
bool csn_domain_parse_lookup(const char *text, size_t len, csn_domain *out, const char **why);
/* A name in a rule: letters, digits and inner hyphens, A-labels included. */
bool csn_domain_parse(const char *text, size_t len, csn_domain *out, const char **why);
/* On false, *why (may be NULL) completes "NAME is no domain name: ..."; static. The bytes may
 * be anything, also NUL; one trailing dot is removed. */

bool csn_domain_equal(const csn_domain *a, const csn_domain *b);
/* Is `name` below `parent`, at any depth? Not parent itself. */
bool csn_domain_below(const csn_domain *name, const csn_domain *parent);
