/* rule_info.c: says what enforces each rule of a config.
 *
 * Everything follows from the config and the backend, so it is the same for the handle that
 * opened a sandbox and for one that connected to it. A jail refuses at open what it cannot
 * enforce (backend/jail/cover.c): a rule that this file describes is in force. */
#include "core/rule_info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/rules.h"

#define PATH_OPS (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE)
#define FILES    "file calls only"

static const char *mount_text(uint32_t ops, bool later)
{
    if (ops & CSN_OP_READ)
        return later ? "mount (covered; looked for before each command)" : "mount (covered)";
    if (ops & CSN_OP_WRITE)
        return later ? "mount (read-only; looked for before each command)"
                     : "mount (read-only)";
    return later ? "mount (cannot be removed; looked for before each command)"
                 : "mount (cannot be removed)";
}

static const char *denied_by(const csn_backend_ops *ops, uint32_t denied, const char *path,
                             bool later)
{
    if (!(ops->caps & CSN_CAP_BINDS))
        return FILES;
    return mount_text(denied, later || csn_glob_has_magic(path));
}

static const char *rule_by(const csn_backend_ops *ops, const csn_rule *r)
{
    if (r->ops & CSN_OP_EXEC)
        return "a check of each command line";
    if (r->ops & CSN_OP_NET)
        return "network";
    if (r->allow)
        return "nothing: it is an exception to denials";
    return r->ops & CSN_RULE_FILES ? FILES : denied_by(ops, r->ops, r->path, false);
}

static int put(csn_arena *a, csn_rule_info *to, const char *word, const char *path,
               const char *list, size_t i, const char *enforced)
{
    *to = (csn_rule_info){.rule = csn_arena_printf(a, "%s %s", word, path),
                          .source = csn_arena_printf(a, "config.%s[%zu]", list, i),
                          .enforced = enforced};
    return to->rule && to->source ? 0 : ENOMEM;
}

static int copy(csn_arena *a, csn_rule_info *to, const csn_rule_info *from)
{
    *to = (csn_rule_info){.rule = csn_arena_strdup(a, from->rule),
                          .source = csn_arena_strdup(a, from->source),
                          .enforced = csn_arena_strdup(a, from->enforced)};
    return to->rule && to->source && to->enforced ? 0 : ENOMEM;
}

int csn_rule_info_list(csn_arena *a, const csn_backend_ops *ops, const csn_config *c,
                       const csn_info_result *from, csn_info_result *r)
{
    size_t denied = csn_strv_len(c->deny), missing = csn_strv_len(c->deny_missing_ok), n = 0;
    csn_rule_info *all = csn_arena_array(
        a, denied + missing + c->rule_count + from->rule_count + 1, sizeof(*all));
    int e = all ? 0 : ENOMEM;
    char word[64];

    for (size_t i = 0; e == 0 && i < denied; i++)
        e = put(a, &all[n++], "deny", c->deny[i], "deny", i,
                denied_by(ops, PATH_OPS, c->deny[i], false));
    for (size_t i = 0; e == 0 && i < missing; i++)
        e = put(a, &all[n++], "deny", c->deny_missing_ok[i], "deny_missing_ok", i,
                denied_by(ops, PATH_OPS, c->deny_missing_ok[i], true));
    for (size_t i = 0; e == 0 && i < c->rule_count; i++) {
        csn_rule_word(&c->rules[i], word, sizeof(word));
        e = put(a, &all[n++], word, c->rules[i].path, "rules", i, rule_by(ops, &c->rules[i]));
    }
    for (size_t i = 0; e == 0 && i < from->rule_count; i++)
        e = copy(a, &all[n++], &from->rules[i]);
    r->rules = all;
    r->rule_count = n;
    return e;
}

/* The index in "config.LIST[index]", or -1 for another list. */
static long index_in(const char *source, const char *list)
{
    static const char config[] = "config.";
    size_t len = strlen(list);

    if (strncmp(source, config, strlen(config)) != 0)
        return -1;
    source += strlen(config);
    return strncmp(source, list, len) == 0 && source[len] == '['
               ? strtol(source + len + 1, NULL, 10)
               : -1;
}

const char *csn_rule_info_enforced(const csn_backend_ops *ops, const csn_config *c,
                                   const char *source)
{
    long deny = source ? index_in(source, "deny") : -1,
         missing = source ? index_in(source, "deny_missing_ok") : -1,
         rule = source ? index_in(source, "rules") : -1;

    if (source && csn_str_starts(source, "keys of the home"))
        return mount_text(CSN_OP_READ, false);
    if (deny >= 0 && (size_t)deny < csn_strv_len(c->deny))
        return denied_by(ops, PATH_OPS, c->deny[deny], false);
    if (missing >= 0 && (size_t)missing < csn_strv_len(c->deny_missing_ok))
        return denied_by(ops, PATH_OPS, c->deny_missing_ok[missing], true);
    return rule >= 0 && (size_t)rule < c->rule_count ? rule_by(ops, &c->rules[rule]) : NULL;
}

csn_status csn_rule_info_check(const csn_backend_ops *ops, const csn_config *c, csn_error **err)
{
    char word[64];

    for (size_t i = 0; !(ops->caps & CSN_CAP_BINDS) && i < c->rule_count; i++) {
        const csn_rule *r = &c->rules[i];
        if (r->allow || !(r->ops & PATH_OPS) || (r->ops & CSN_RULE_FILES))
            continue;
        csn_autofree char *shown = csn_path_printable(r->path);
        csn_rule_word(r, word, sizeof(word));
        csn_status st = csn_fail(err, CSN_UNSUPPORTED,
                                 "rules[%zu]: %s %s: backend '%s' does not confine commands", i,
                                 word, shown ? shown : "", ops->name);
        return csn_error_advise(
            st, err,
            "use the backend jail, or add \"scope\": \"files\" to bind file calls only");
    }
    return CSN_OK;
}
