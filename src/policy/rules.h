/* rules.h: the path rules of a policy.
 *
 * Sources: the workspace and home (read, write, delete), `read` and `write` directories, `deny`
 * paths (everything, or some operations), and `rules`. The most specific rule wins (longest
 * literal prefix, then an exact path over a glob); deny wins a tie; a path without match is
 * outside. Only `deny` and `rules` may be globs (one of *?[{). A deny glob also covers
 * everything below what it matches and a path with exactly its letters; an allow glob covers
 * only what it matches. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

typedef struct csn_rules csn_rules;

typedef struct csn_rule_hit {
    bool allowed;
    bool outside;       /* no rule matches */
    const char *rule;   /* "deny /srv/x/secret"; borrowed from the rules; NULL if outside */
    const char *source; /* "config.deny[0]"; borrowed; NULL if outside */
} csn_rule_hit;

/* One denied path, with where it comes from: "config.deny", 0. index -1: not a list. */
typedef struct csn_denied {
    const char *path;
    uint32_t ops;
    const char *word; /* "deny", "deny write": the first words of the rule's text */
    const char *list;
    long index;
} csn_denied;

/* All paths must be absolute and resolved. base or home may be NULL. The lists of the config
 * are passed as resolved copies in the same order. */
typedef struct csn_rules_input {
    const char *base, *home;
    const char *const *read, *const *write, *const *deny;
    const csn_rule *rules;
    size_t rule_count;
    const csn_denied *denied;
    size_t denied_count;
} csn_rules_input;

csn_status csn_rules_new(const csn_rules_input *in, csn_rules **ret, csn_error **err);
void csn_rules_free(csn_rules *r);
/* True: some rule is not a plain whole directory. If false, containment in a root is enough. */
bool csn_rules_has_carveouts(const csn_rules *r);
/* op may have several bits: all must be allowed; returns the first refusal. */
csn_rule_hit csn_rules_check(const csn_rules *r, uint32_t op, const char *path);
/* The smallest rule that would allow it: "--read /etc/ssl" style text, malloc'd. NULL also for
 * files of /proc, which cannot be granted. */
char *csn_rules_hint(uint32_t op, const char *path);
/* "deny read,write" */
void csn_rule_word(const csn_rule *rule, char *out, size_t size);
const char *csn_op_name(uint32_t op);      /* "read" ...; NULL: not exactly one */
uint32_t csn_op_of_name(const char *name); /* 0: none */
