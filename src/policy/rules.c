/* rules.c: decide whether an operation on a path is allowed.
 *
 * Paths are absolute and resolved (no symlink, no `..`), so comparing text is safe. An agent
 * controls the paths, not the rules. Invariants: a path that no rule matches is outside; a deny
 * beats an allow of the same weight; a rule for a directory covers whole components (/base does
 * not cover /base-evil). A deny glob also covers everything below what it matches (deny
 * .../.git covers .git/config), an allow glob exactly what it matches. Immutable after
 * csn_rules_new, so threads need no lock. */
#include "policy/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/limits.h"
#include "base/path.h"

#define PATH_OPS (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE)
#define OP_COUNT 5u

typedef struct compiled {
    uint32_t ops;
    bool allow;
    char *path;          /* literal rules: the directory or file, no trailing slash */
    csn_glob_set *glob;  /* glob rules: over the path without its leading slash */
    size_t weight;       /* length of the literal prefix */
    char *text, *source; /* for csn_rule_hit */
} compiled;

struct csn_rules {
    compiled *items;
    size_t count, cap;
    bool carveouts;
};

static const char *const op_names[OP_COUNT] = {"read", "write", "delete", "exec", "net"};

const char *csn_op_name(uint32_t op)
{
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (op == 1u << i)
            return op_names[i];
    return NULL;
}

uint32_t csn_op_of_name(const char *name)
{
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (strcmp(name, op_names[i]) == 0)
            return 1u << i;
    return 0;
}

void csn_rules_free(csn_rules *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->items[i].path);
        csn_glob_free(r->items[i].glob);
        free(r->items[i].text);
        free(r->items[i].source);
    }
    free(r->items);
    free(r);
}
CSN_DEFINE_CLEANUP(csn_rules, csn_rules_free)

/* One rule before it is compiled. */
typedef struct draft {
    uint32_t ops;
    bool allow, may_glob;
    const char *word; /* "deny", "read" ...: the first word of the rule's text */
    const char *path;
    const char *list; /* "config.deny" */
    long index;       /* in that list; -1: not a list */
} draft;

/* Appends a slot with its texts; csn_rules_free frees it. */
static compiled *slot_new(csn_rules *r, const draft *d)
{
    if (r->count == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 16;
        compiled *grown = reallocarray(r->items, cap, sizeof(*grown));
        if (!grown)
            return NULL;
        r->items = grown;
        r->cap = cap;
    }
    compiled *c = &r->items[r->count];
    *c = (compiled){.ops = d->ops, .allow = d->allow};
    if (asprintf(&c->text, "%s %s", d->word, d->path) < 0)
        return NULL;
    int rc = d->index < 0 ? asprintf(&c->source, "%s", d->list)
                          : asprintf(&c->source, "%s[%ld]", d->list, d->index);
    if (rc < 0) {
        free(c->text);
        return NULL;
    }
    r->count++;
    return c;
}

/* Without trailing slashes, which would change the weight. */
static csn_status add_literal(csn_rules *r, const draft *d, csn_error **err)
{
    compiled *c = slot_new(r, d);
    size_t len = strlen(d->path);

    while (len > 1 && d->path[len - 1] == '/')
        len--;
    if (!c || !(c->path = strndup(d->path, len)))
        return csn_fail(err, CSN_NOMEM, "rules");
    c->weight = len;
    return CSN_OK;
}

/* base/glob works on relative paths, so both sides lose their leading slash. The weight is the
 * length of the literal prefix. */
static csn_status add_glob(csn_rules *r, const draft *d, csn_error **err)
{
    compiled *c = slot_new(r, d);
    const char *pattern = d->path;

    if (!c)
        return csn_fail(err, CSN_NOMEM, "rules");
    c->weight = strcspn(pattern, "*?[{\\");
    while (*pattern == '/')
        pattern++;
    csn_status st = csn_glob_compile(pattern, &c->glob, err);
    return st < 0 ? csn_wrap(st, err, "%s", c->source) : CSN_OK;
}

static csn_status add(csn_rules *r, const draft *d, csn_error **err)
{
    if (!d->path || d->path[0] != '/') {
        csn_autofree char *shown = d->path ? csn_path_printable(d->path) : NULL;
        return csn_fail(err, CSN_INVALID, "%s: path %s is not absolute", d->list,
                        shown ? shown : "");
    }
    bool magic = d->may_glob && csn_glob_has_magic(d->path);
    /* A file may be named a[1]: a denial covers both readings. */
    if (!magic || !d->allow) {
        csn_status st = add_literal(r, d, err);
        if (st < 0)
            return st;
    }
    return magic ? add_glob(r, d, err) : CSN_OK;
}

static csn_status add_list(csn_rules *r, const char *const *paths, draft d, csn_error **err)
{
    for (long i = 0; paths && paths[i]; i++) {
        d.path = paths[i];
        d.index = i;
        csn_status st = add(r, &d, err);
        if (st < 0)
            return st;
        r->carveouts = r->carveouts || !d.allow;
    }
    return CSN_OK;
}

void csn_rule_word(const csn_rule *rule, char *out, size_t size)
{
    int n = snprintf(out, size, "%s", rule->allow ? "allow" : "deny");
    char sep = ' ';

    for (unsigned i = 0; i < OP_COUNT; i++) {
        if ((rule->ops & (1u << i)) == 0 || n < 0 || (size_t)n >= size)
            continue;
        n += snprintf(out + n, size - (size_t)n, "%c%s", sep, op_names[i]);
        sep = ',';
    }
}

/* exec and net rules are for commands and hosts: core/command_policy, policy/netrules */
static csn_status add_rules(csn_rules *r, const csn_rule *rules, size_t count, csn_error **err)
{
    char word[64];

    for (size_t i = 0; i < count; i++) {
        uint32_t ops = rules[i].ops & PATH_OPS;
        if (ops == 0)
            continue;
        csn_rule_word(&rules[i], word, sizeof(word));
        draft d = {.ops = ops,
                   .allow = rules[i].allow != 0,
                   .may_glob = true,
                   .word = word,
                   .path = rules[i].path,
                   .list = "config.rules",
                   .index = (long)i};
        csn_status st = add(r, &d, err);
        if (st < 0)
            return st;
        r->carveouts = true;
    }
    return CSN_OK;
}

static csn_status add_denied(csn_rules *r, const csn_denied *denied, size_t count,
                             csn_error **err)
{
    for (size_t i = 0; i < count; i++) {
        const draft d = {.ops = denied[i].ops & PATH_OPS,
                         .may_glob = true,
                         .word = denied[i].word,
                         .path = denied[i].path,
                         .list = denied[i].list,
                         .index = denied[i].index};
        csn_status st = add(r, &d, err);
        if (st < 0)
            return st;
        r->carveouts = true;
    }
    return CSN_OK;
}

/* The order decides only which of two equal rules a refusal names. */
csn_status csn_rules_new(const csn_rules_input *in, csn_rules **ret, csn_error **err)
{
    CSN_CLEANUP(csn_rules_freep) csn_rules *r = calloc(1, sizeof(*r));
    const draft base = {PATH_OPS, true, false, "workspace", in->base, "config.workspace", -1};
    const draft home = {PATH_OPS, true, false, "home", in->home, "config.home", -1};
    const draft read = {CSN_OP_READ, true, false, "read", NULL, "config.read", 0};
    const draft write = {PATH_OPS, true, false, "write", NULL, "config.write", 0};
    const draft deny = {PATH_OPS, false, true, "deny", NULL, "config.deny", 0};
    csn_status st = r ? CSN_OK : csn_fail(err, CSN_NOMEM, "rules");

    if (st == CSN_OK && in->base)
        st = add(r, &base, err);
    if (st == CSN_OK && in->home)
        st = add(r, &home, err);
    if (st == CSN_OK)
        st = add_list(r, in->read, read, err);
    if (st == CSN_OK)
        st = add_list(r, in->write, write, err);
    if (st == CSN_OK)
        st = add_list(r, in->deny, deny, err);
    if (st == CSN_OK)
        st = add_denied(r, in->denied, in->denied_count, err);
    if (st == CSN_OK)
        st = add_rules(r, in->rules, in->rule_count, err);
    if (st < 0)
        return st;
    *ret = CSN_STEAL(r);
    return CSN_OK;
}

bool csn_rules_has_carveouts(const csn_rules *r)
{
    return r->carveouts;
}

/* Does the glob match the path or, for denials, one of its parents? */
static bool glob_covers(const compiled *c, const char *path)
{
    char above[CSN_PATH_MAX];

    while (*path == '/')
        path++;
    if (csn_glob_match(c->glob, path))
        return true;
    size_t len = strlen(path);
    if (c->allow)
        return false;
    if (len >= sizeof(above))
        return true; /* longer than any valid path: refuse */
    memcpy(above, path, len + 1);
    for (size_t i = len; i-- > 0;) {
        if (above[i] != '/')
            continue;
        above[i] = '\0';
        if (csn_glob_match(c->glob, above))
            return true;
    }
    return false;
}

static bool covers(const compiled *c, const char *path)
{
    return c->glob ? glob_covers(c, path) : csn_path_below(path, c->path) != NULL;
}

/* Does a outrank b? */
static bool outranks(const compiled *a, const compiled *b)
{
    if (a->weight != b->weight)
        return a->weight > b->weight;
    if ((a->glob == NULL) != (b->glob == NULL))
        return a->glob == NULL;
    return !a->allow && b->allow;
}

/* The rank is compared before the text, which is cheaper. */
static csn_rule_hit check_one(const csn_rules *r, uint32_t op, const char *path)
{
    const compiled *best = NULL;

    for (size_t i = 0; i < r->count; i++) {
        const compiled *c = &r->items[i];
        if ((c->ops & op) != 0 && (!best || outranks(c, best)) && covers(c, path))
            best = c;
    }
    if (!best)
        return (csn_rule_hit){.outside = true};
    return (csn_rule_hit){.allowed = best->allow, .rule = best->text, .source = best->source};
}

csn_rule_hit csn_rules_check(const csn_rules *r, uint32_t op, const char *path)
{
    csn_rule_hit hit = {.outside = true};

    /* With several operations all must be allowed; returns the first refusal. */
    for (unsigned i = 0; i < OP_COUNT; i++) {
        if ((op & (1u << i)) == 0)
            continue;
        hit = check_one(r, 1u << i, path);
        if (!hit.allowed)
            break;
    }
    return hit;
}

/* Puts the text in single quotes; a quote in it becomes '\''. */
static char *quoted(const char *s)
{
    char *out = malloc(4 * strlen(s) + 3), *to = out;

    if (!out)
        return NULL;
    *to++ = '\'';
    for (; *s; s++) {
        if (*s == '\'')
            to = mempcpy(to, "'\\''", 4);
        else
            *to++ = *s;
    }
    *to++ = '\'';
    *to = '\0';
    return out;
}

/* The name as one shell word, since people paste hints. A name with control bytes is escaped
 * instead. */
static char *shell_word(const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+,=-";

    if (s[0] != '\0' && s[strspn(s, plain)] == '\0')
        return strdup(s);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if (*p < ' ' || *p == 0x7f)
            return csn_path_printable(s);
    return quoted(s);
}

char *csn_rules_hint(uint32_t op, const char *path)
{
    csn_autofree char *word = shell_word(path);
    const char *option = "--read";
    char *out = NULL;

    if (!word || ((op & PATH_OPS) != 0 && csn_path_below(path, "/proc")))
        return NULL;
    if ((op & (CSN_OP_WRITE | CSN_OP_DELETE)) != 0)
        option = "--write";
    else if ((op & CSN_OP_EXEC) != 0)
        option = "--allow-command";
    else if ((op & CSN_OP_NET) != 0)
        option = "--allow";
    return asprintf(&out, "%s %s", option, word) < 0 ? NULL : out;
}
