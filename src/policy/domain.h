/* domain.h: the one parser of domain names, for rules, DNS questions, SNI, Host and proxies.
 *
 * Two spellings of a name must never be two names to the policy, nor one spelling two names to
 * the policy and the resolver. So there is one form after parsing (lower case, no trailing dot)
 * and every path that judges a name takes a csn_domain, which only this parser makes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define CSN_DOMAIN_MAX       253u
#define CSN_DOMAIN_LABEL_MAX 63u

typedef struct csn_domain {
    char text[CSN_DOMAIN_MAX + 1]; /* lower case, no trailing dot, NUL-terminated */
    size_t len;
} csn_domain;

/* A name somebody looks up. Names with an underscore exist in DNS (_srv records, buckets of
 * object stores), so a question for one is judged like any other; but no host may be called so,
 * hence in a rule it is a slip of the pen, and such a name is reached by a wildcard only. */
bool csn_domain_parse_lookup(const char *text, size_t len, csn_domain *out, const char **why);
/* A name in a rule: letters, digits and inner hyphens (A-labels included) and nothing else. */
bool csn_domain_parse(const char *text, size_t len, csn_domain *out, const char **why);
/* On false, *why (may be NULL) continues the sentence "NAME is no domain name: ..."; static.
 * The bytes may hold anything, NUL too; at most one trailing dot is taken off. */

bool csn_domain_equal(const csn_domain *a, const csn_domain *b);
/* Is `name` below `parent`, at any depth? Not parent itself. */
bool csn_domain_below(const csn_domain *name, const csn_domain *parent);
