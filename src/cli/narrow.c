/* narrow.c: decides which values of a configuration grant something.
 *
 * A project's caisson.json comes with the repository, so its author is not the user. Before the
 * user trusts it, it may only take away. The rows of base/options.h say for each option which
 * values do so. Invariant: a value counts as narrowing only if it is known to be; an option
 * without a direction, and every value that cannot be compared, widens. */
#include "cli/narrow.h"

#include <string.h>
#include <sys/sysinfo.h>

#include "base/strv.h"

/* What holds when no value is set. */
static uint64_t usual(const csn_option *o)
{
    struct sysinfo s;

    if (o->usual != CSN_USUAL_MEMORY)
        return o->usual;
    return sysinfo(&s) == 0 ? (uint64_t)s.totalram * s.mem_unit / 4 * 3 : 0;
}

static bool is_smaller(const csn_option *o, const csn_config *c, const csn_config *base)
{
    uint64_t now = csn_option_is_set(o, base) ? *csn_option_number(o, base) : usual(o);

    return *csn_option_number(o, c) <= now; /* CSN_NO_LIMIT is the largest number */
}

static bool all_deny(const csn_config *c)
{
    for (size_t i = 0; i < c->rule_count; i++)
        if (c->rules[i].allow)
            return false;
    return true;
}

static bool is_subset(const char *const *list, const char *const *of)
{
    for (; of && *list; list++)
        if (!csn_strv_has(of, *list))
            return false;
    return true;
}

static bool is_same(const char *value, const char *other)
{
    return other && strcmp(value, other) == 0;
}

/* "." is the workspace anyway; with :ro it is less. */
static bool is_project(const char *workspace, const csn_narrow_base *base)
{
    if (!base->own_workspace)
        return false;
    return strcmp(workspace, ".:ro") == 0 ||
           (strcmp(workspace, ".") == 0 && !base->config->workspace);
}

bool csn_option_narrows(const csn_option *o, const csn_config *c, const csn_narrow_base *base)
{
    switch (o->direction) {
    case CSN_DIRECTION_NARROWS:
        return true;
    case CSN_DIRECTION_SMALLER:
        return is_smaller(o, c, base->config);
    case CSN_DIRECTION_SUBSET:
        return is_subset(*csn_option_list(o, c), base->commands);
    case CSN_DIRECTION_DENIALS:
        return all_deny(c);
    case CSN_DIRECTION_NONE:
        return strcmp(*csn_option_string(o, c), "none") == 0;
    case CSN_DIRECTION_SAME:
        return is_same(*csn_option_string(o, c), *csn_option_string(o, base->config));
    case CSN_DIRECTION_PROJECT:
        return is_project(*csn_option_string(o, c), base);
    case CSN_DIRECTION_WIDENS:
    case CSN_DIRECTION_UNDECIDED:
        break;
    }
    bool list = o->type == CSN_TYPE_LIST || o->type == CSN_TYPE_ENV;
    return list && !(*csn_option_list(o, c))[0];
}

size_t csn_config_widening(const csn_config *c, const csn_narrow_base *base,
                           const char *ret_names[CSN_OPTION_COUNT + 1])
{
    size_t n = 0;

    for (const csn_option *o = csn_options; o->name; o++)
        if (csn_option_is_set(o, c) && !csn_option_narrows(o, c, base))
            ret_names[n++] = o->name;
    ret_names[n] = NULL;
    return n;
}
