/* cover.c: reads the denials of a policy, and makes the rules of file calls.
 *
 * The config is trusted. A handle that connects to a detached sandbox reads the same denials
 * from the same config; the paths that were covered are in the record. */
#include "backend/jail/cover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"

#define PATH_OPS (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE)

typedef csn_jail_shares shares;

/* ---- reading the config ---- */

static const char *expand(csn_arena *a, const char *base, const char *text)
{
    const char *home = getenv("HOME");

    if (text[0] == '~' && (text[1] == '/' || !text[1]) && home)
        return csn_arena_printf(a, "%s%s", home, text + 1);
    return text[0] == '/' ? text : csn_arena_printf(a, "%s/%s", base, text);
}

const char *csn_cover_path(const csn_runtime *rt, const char *text)
{
    const char *path = expand(rt->jail->arena, rt->base.path, text);

    return path ? csn_jail_clean_path(rt->jail->arena, path) : NULL;
}

static csn_status bad_path(const csn_cover *c, csn_error **err)
{
    return csn_fail(err, CSN_INVALID, "%s: the path must not contain '..'", c->label);
}

static csn_status push(csn_runtime *rt, csn_cover one, csn_error **err)
{
    csn_covers *all = rt->jail->covers;

    if (csn_glob_has_magic(one.path)) {
        csn_status st = csn_glob_compile(one.path + 1, &one.glob, err);
        if (st < 0)
            return csn_wrap(st, err, "%s", one.label);
    }
    all->v[all->count++] = one;
    return CSN_OK;
}

/* A relative pattern that starts with a double star holds in every share, any other path in the
 * workspace. */
static csn_status read_one(csn_runtime *rt, csn_cover one, const char *text, csn_error **err)
{
    const csn_jail *j = rt->jail;
    const shares *s = j->shares;
    csn_status st = CSN_OK;

    if (!one.label)
        return csn_fail(err, CSN_NOMEM, "deny");
    one.path = csn_cover_path(rt, text);
    if (!one.path)
        return bad_path(&one, err);
    if (strncmp(text, "**/", 3) != 0)
        return push(rt, one, err);
    one.anywhere = !strchr(text + 3, '/');
    for (size_t i = 0; st == CSN_OK && i < s->count; i++) {
        if (s->v[i].file)
            continue;
        const char *path = csn_arena_printf(j->arena, "%s/%s", s->v[i].inside, text);
        one.path = path ? csn_jail_clean_path(j->arena, path) : NULL;
        st = one.path ? push(rt, one, err) : bad_path(&one, err);
    }
    return st;
}

static csn_status read_list(csn_runtime *rt, const char *const *paths, const char *list,
                            bool missing_ok, csn_error **err)
{
    csn_arena *a = rt->jail->arena;
    csn_status st = CSN_OK;

    for (size_t i = 0; st == CSN_OK && paths && paths[i]; i++) {
        csn_autofree char *shown = csn_path_printable(paths[i]);
        const csn_cover one = {
            .label = csn_arena_printf(a, "%s %s", strchr(list, '.') + 1, shown ? shown : ""),
            .word = "deny",
            .list = list,
            .index = (long)i,
            .ops = PATH_OPS,
            .missing_ok = missing_ok};
        st = read_one(rt, one, paths[i], err);
    }
    return st;
}

static bool is_cover(const csn_rule *r)
{
    return !r->allow && (r->ops & PATH_OPS) && !(r->ops & CSN_RULE_FILES) && r->path;
}

static csn_status read_rules(csn_runtime *rt, csn_error **err)
{
    const csn_config *c = rt->config;
    csn_arena *a = rt->jail->arena;
    csn_status st = CSN_OK;
    char word[64];

    for (size_t i = 0; st == CSN_OK && i < c->rule_count; i++) {
        const csn_rule *r = &c->rules[i];
        if (!is_cover(r))
            continue;
        csn_autofree char *shown = csn_path_printable(r->path);
        csn_rule_word(r, word, sizeof(word));
        const csn_cover one = {
            .label = csn_arena_printf(a, "rules[%zu]: %s %s", i, word, shown ? shown : ""),
            .word = csn_arena_strdup(a, word),
            .list = "config.rules",
            .index = (long)i,
            .ops = r->ops & PATH_OPS};
        st = one.word ? read_one(rt, one, r->path, err) : csn_fail(err, CSN_NOMEM, "rules");
    }
    return st;
}

csn_status csn_cover_read(csn_runtime *rt, csn_error **err)
{
    const csn_config *c = rt->config;
    csn_jail *j = rt->jail;
    size_t given = csn_strv_len(c->deny) + csn_strv_len(c->deny_missing_ok) + c->rule_count;
    csn_covers *all = csn_arena_alloc(j->arena, sizeof(*all));

    if (!all ||
        !(all->v = csn_arena_array(j->arena, given * (j->shares->count + 1), sizeof(*all->v))))
        return csn_fail(err, CSN_NOMEM, "deny");
    pthread_mutex_init(&all->lock, NULL);
    j->covers = all;
    csn_status st = read_list(rt, c->deny, "config.deny", false, err);
    if (st == CSN_OK)
        st = read_list(rt, c->deny_missing_ok, "config.deny_missing_ok", true, err);
    return st < 0 ? st : read_rules(rt, err);
}

void csn_covers_release(const csn_jail *j)
{
    csn_covers *c = j->covers;

    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++)
        csn_glob_free(c->v[i].glob);
    for (size_t i = 0; c->caches && i < j->shares->count; i++)
        csn_find_cache_release(&c->caches[i].c);
    free(c->names);
    free(c->links);
    csn_mount_table_release(&c->mounts);
    pthread_mutex_destroy(&c->lock);
}

/* ---- the rules of file calls ---- */

size_t csn_cover_other_rules(const csn_runtime *rt, csn_rule *ret)
{
    const csn_config *c = rt->config;
    size_t n = 0;

    for (size_t i = 0; i < c->rule_count; i++) {
        csn_rule one = c->rules[i];
        /* A cover keeps its place, so that a rule is reported by its index. */
        if (is_cover(&one))
            one = (csn_rule){0};
        else if (one.ops & PATH_OPS)
            one.path = csn_cover_path(rt, one.path);
        ret[n++] = one;
    }
    return n;
}

/* The mounts enforce access; the rules repeat it for error messages. Private directories and
 * writable shares are writable, everything else is read-only. Commands cannot read the keeper's
 * /proc/1; file calls run as its owner and could, so a rule denies it. */
csn_status csn_cover_make_rules(csn_runtime *rt, csn_error **err)
{
    static const char *const read[] = {"/", NULL};
    const char *write[CSN_JAIL_SHARES_MAX + 4] = {"/tmp", "/var/tmp", "/dev/shm"};
    const shares *s = rt->jail->shares;
    const csn_covers *all = rt->jail->covers;
    size_t writes = 3, d = 0;
    csn_autofree csn_rule *rules =
        calloc(rt->config->rule_count + CSN_JAIL_SHARES_MAX, sizeof(*rules));
    csn_autofree csn_denied *denied = calloc(all->count + all->name_count + 1, sizeof(*denied));

    if (!rules || !denied)
        return csn_fail(err, CSN_NOMEM, "rules");
    size_t n = csn_cover_other_rules(rt, rules);
    for (size_t i = 0; i < s->count; i++) {
        if (s->v[i].writable)
            write[writes++] = s->v[i].inside;
        else /* it may be inside a writable share */
            rules[n++] =
                (csn_rule){.ops = CSN_OP_WRITE | CSN_OP_DELETE, .path = s->v[i].inside};
    }
    for (size_t i = 0; i < all->count + all->name_count; i++) {
        bool name = i >= all->count;
        const csn_cover *c = &all->v[name ? all->names[i - all->count].cover : i];
        if (!name && c->key)
            continue; /* only the names that exist */
        denied[d++] = (csn_denied){.path = name ? all->names[i - all->count].path : c->path,
                                   .ops = c->ops,
                                   .word = c->word,
                                   .list = c->list,
                                   .index = c->index};
    }
    denied[d++] = (csn_denied){
        .path = "/proc/1", .ops = PATH_OPS, .word = "deny", .list = "jail", .index = -1};
    const csn_rules_input in = {.base = s->v[0].writable ? rt->base.path : NULL,
                                .home = rt->home.path,
                                .read = read,
                                .write = write,
                                .rules = rules,
                                .rule_count = n,
                                .denied = denied,
                                .denied_count = d};
    csn_rules_free(rt->rules);
    rt->rules = NULL;
    return csn_rules_new(&in, &rt->rules, err);
}
