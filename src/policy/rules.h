/* rules.h: the path rules of a policy, compiled once and asked often.
 *
 * Sources: the workspace and home (read, write, delete), `read` and `write` directories, `deny`
 * paths (everything), and the per-operation `rules`. The most specific rule wins (longest
 * literal prefix, then an exact path over a glob); deny wins a tie; nothing that matches is
 * outside.
 *
 * Only `deny` and `rules` may hold globs (one of *?[{). A glob that denies also covers all
 * below what it matches, and a path of exactly its letters; one that allows covers just what it
 * matches. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

typedef struct csn_rules csn_rules;

typedef struct csn_rule_hit {
    bool allowed;
    bool outside;       /* no rule speaks of it */
    const char *rule;   /* "deny /srv/x/secret"; borrows from the rules; NULL when outside */
    const char *source; /* "config.deny[0]"; likewise */
} csn_rule_hit;

/* All paths absolute and resolved (no symlink, no ..): the caller's work. base or home may be
 * NULL. The config's lists are given as resolved copies in the same order. */
typedef struct csn_rules_input {
    const char *base, *home;
    const char *const *read, *const *write, *const *deny;
    const csn_rule *rules;
    size_t rule_count;
} csn_rules_input;

csn_status csn_rules_new(const csn_rules_input *in, csn_rules **ret, csn_error **err);
void csn_rules_free(csn_rules *r);
/* Is there anything beyond plain whole directories? false: containment in a root is enough. */
bool csn_rules_has_carveouts(const csn_rules *r);
/* op may have several bits: all must be allowed, the first refusal is the answer. */
csn_rule_hit csn_rules_check(const csn_rules *r, uint32_t op, const char *path);
/* The smallest rule that would allow it: "--read /etc/ssl" style text, malloc'd. */
char *csn_rules_hint(uint32_t op, const char *path);
const char *csn_op_name(uint32_t op);      /* "read" ...; NULL when it is not exactly one */
uint32_t csn_op_of_name(const char *name); /* 0: none */
