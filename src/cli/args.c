/* args.c: parses the options of every subcommand.
 *
 * It accepts --opt value, --opt=value, -o value, -ovalue and bundles of letters, anywhere
 * before "--", mixed with arguments. Options cannot be abbreviated: an abbreviation would break
 * when a later version adds an option. Unknown options and values that do not parse are errors;
 * their messages quote the command line with control bytes escaped. This file neither prints
 * nor exits. */
#include "cli/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/strv.h"
#include "caisson/caisson.h"

#define WORD_MAX 64 /* longest name of an option that a message shows */

void csn_args_quote(const char *text, char *ret, size_t size)
{
    size_t n = 0;

    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (n + 8 > size) {
            n += (size_t)snprintf(ret + n, size - n, "...");
            break;
        }
        if (*p < 0x20 || *p == 0x7f)
            n += (size_t)snprintf(ret + n, size - n, "\\x%02x", *p);
        else
            ret[n++] = (char)*p;
    }
    ret[n] = '\0';
}

/* ---- messages ------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static bool wrong(csn_usage *why, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why->message, sizeof(why->message), fmt, ap);
    va_end(ap);
    return false;
}

static bool unknown_long(const csn_args *a, const char *name, csn_usage *why)
{
    const char *words[128] = {"json", "help"};
    size_t n = 2;
    char quoted[128];

    for (size_t g = 0; g < CSN_ARGS_GROUPS && a->groups[g].opts; g++)
        for (const csn_opt *o = a->groups[g].opts; o->kind != CSN_OPT_END && n < 127; o++)
            if (o->name)
                words[n++] = o->name;
    const char *near_name = csn_nearest(name, words);
    if (near_name)
        snprintf(why->hint, sizeof(why->hint), "did you mean --%s?", near_name);
    csn_args_quote(name, quoted, sizeof(quoted));
    return wrong(why, "unknown option '--%s'", quoted);
}

static bool unknown_brief(const csn_args *a, char letter, csn_usage *why)
{
    if (a->rest_ok)
        snprintf(why->hint, sizeof(why->hint), "the command to run goes after --");
    else
        snprintf(why->hint, sizeof(why->hint), "text that starts with a dash goes after --");
    if (letter > 0x20 && letter < 0x7f)
        return wrong(why, "unknown option '-%c'", letter);
    return wrong(why, "unknown option '-\\x%02x'", (unsigned char)letter);
}

/* ---- values -------------------------------------------------------------------------- */

static bool choice_ok(const char *choices, const char *value)
{
    size_t len = strlen(value);

    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        if (n == len && memcmp(p, value, n) == 0)
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

/* Accepts at most three decimals: the value is stored in thousandths. */
static bool parse_cpus(const char *s, uint64_t *ret)
{
    const char *dot = strchr(s, '.');

    return (!dot || strlen(dot + 1) <= 3) && csn_parse_milli(s, ret) && *ret > 0;
}

static bool parse_none(const char *s, uint64_t *ret)
{
    if (strcmp(s, "none") != 0)
        return false;
    *ret = CSN_NO_LIMIT;
    return true;
}

static bool parse_duration(const char *s, uint64_t *ret)
{
    if (parse_none(s, ret))
        return true;
    if (!csn_parse_duration_ms(s, ret))
        return false;
    if (*ret == 0)
        *ret = CSN_NO_LIMIT;
    return true;
}

static bool parse_number(csn_opt_kind kind, const char *value, uint64_t *ret)
{
    switch (kind) {
    case CSN_OPT_U64:
        return csn_parse_u64(value, ret);
    case CSN_OPT_COUNT:
        return csn_parse_u64(value, ret) && *ret > 0;
    case CSN_OPT_LIMIT:
        return parse_none(value, ret) || (csn_parse_u64(value, ret) && *ret > 0);
    case CSN_OPT_SIZE:
        return parse_none(value, ret) || (csn_parse_size(value, ret) && *ret > 0);
    case CSN_OPT_DURATION:
        return parse_duration(value, ret);
    case CSN_OPT_CPUS:
        return parse_cpus(value, ret);
    case CSN_OPT_END:
    case CSN_OPT_FLAG:
    case CSN_OPT_STR:
    case CSN_OPT_LIST:
        break;
    }
    return false;
}

static const char *kind_text(csn_opt_kind kind)
{
    switch (kind) {
    case CSN_OPT_U64:
        return "a whole number";
    case CSN_OPT_COUNT:
        return "a whole number above 0";
    case CSN_OPT_LIMIT:
        return "a whole number above 0, or none";
    case CSN_OPT_SIZE:
        return "a size above 0, such as 512K, 64M or 2G, or none";
    case CSN_OPT_DURATION:
        return "a duration, such as 500ms, 30s, 10m or 1h, or none";
    case CSN_OPT_CPUS:
        return "a number of processors, such as 0.5 or 2";
    case CSN_OPT_END:
    case CSN_OPT_FLAG:
    case CSN_OPT_STR:
    case CSN_OPT_LIST:
        break;
    }
    return "something else";
}

/* The option as the user types it. */
static const char *shown(const csn_opt *o, char buf[80])
{
    if (o->name)
        snprintf(buf, 80, "--%s", o->name);
    else
        snprintf(buf, 80, "-%c", o->brief);
    return buf;
}

static bool set_value(csn_args *a, const csn_opt *o, char *base, const char *value,
                      csn_usage *why)
{
    char opt[80], quoted[128], meant[CSN_NEAREST_MAX];
    void *field = base + o->at;
    uint64_t number;

    a->typed[a->ntyped++] = (csn_typed){o, value};
    if (o->kind == CSN_OPT_LIST) {
        if (csn_strv_push((char ***)field, value) != 0)
            return wrong(why, "out of memory");
        return true;
    }
    csn_args_quote(value, quoted, sizeof(quoted));
    if (o->kind == CSN_OPT_STR) {
        if (o->choices && !choice_ok(o->choices, value)) {
            if (csn_nearest_in(value, o->choices, meant))
                snprintf(why->hint, sizeof(why->hint), "did you mean %s?", meant);
            return wrong(why, "%s takes %s, not '%s'", shown(o, opt), o->choices, quoted);
        }
        *(const char **)field = value;
        return true;
    }
    if (!parse_number(o->kind, value, &number))
        return wrong(why, "%s takes %s, not '%s'", shown(o, opt), kind_text(o->kind), quoted);
    *(uint64_t *)field = number;
    return true;
}

/* ---- argv ---------------------------------------------------------------------------- */

typedef struct walk {
    csn_args *a;
    int argc, i;
    char **argv;
    csn_usage *why;
} walk;

/* Finds an option by its long name (`len` bytes) or, if name is NULL, by its letter. */
static const csn_opt *find(const csn_args *a, const char *name, size_t len, char letter,
                           char **ret_base)
{
    for (size_t g = 0; g < CSN_ARGS_GROUPS && a->groups[g].opts; g++) {
        for (const csn_opt *o = a->groups[g].opts; o->kind != CSN_OPT_END; o++) {
            bool hit = name ? o->name && strncmp(o->name, name, len) == 0 && !o->name[len]
                            : o->brief == letter;
            if (hit) {
                *ret_base = (char *)a->into + a->groups[g].at;
                return o;
            }
        }
    }
    return NULL;
}

/* Takes the next word of argv as the value of `o`. */
static bool take_next(walk *w, const csn_opt *o, char *base)
{
    char opt[80];

    if (w->i + 1 >= w->argc)
        return wrong(w->why, "%s needs a value: %s", shown(o, opt), o->metavar);
    return set_value(w->a, o, base, w->argv[++w->i], w->why);
}

static bool take_long(walk *w, const char *word)
{
    size_t len = strcspn(word, "=");
    const char *value = word[len] == '=' ? word + len + 1 : NULL;
    char *base = NULL, name[WORD_MAX + 1];

    snprintf(name, sizeof(name), "%.*s", (int)(len > WORD_MAX ? WORD_MAX : len), word);
    if (!value && strcmp(word, "json") == 0) {
        w->a->json = true;
        return true;
    }
    if (!value && strcmp(word, "help") == 0) {
        w->a->help = true;
        return true;
    }
    const csn_opt *o = find(w->a, word, len, '\0', &base);
    if (!o && (strcmp(name, "json") == 0 || strcmp(name, "help") == 0))
        return wrong(w->why, "--%s takes no value", name);
    if (!o)
        return unknown_long(w->a, name, w->why);
    if (o->kind != CSN_OPT_FLAG)
        return value ? set_value(w->a, o, base, value, w->why) : take_next(w, o, base);
    if (value)
        return wrong(w->why, "--%s takes no value", o->name);
    *(bool *)(void *)(base + o->at) = true;
    return true;
}

static bool take_brief(walk *w, const char *letters)
{
    for (; *letters; letters++) {
        char *base = NULL;
        if (*letters == 'h') {
            w->a->help = true;
            continue;
        }
        const csn_opt *o = find(w->a, NULL, 0, *letters, &base);
        if (!o)
            return unknown_brief(w->a, *letters, w->why);
        if (o->kind != CSN_OPT_FLAG)
            return letters[1] ? set_value(w->a, o, base, letters + 1, w->why)
                              : take_next(w, o, base);
        *(bool *)(void *)(base + o->at) = true;
    }
    return true;
}

bool csn_args_parse(csn_args *a, int argc, char **argv, csn_usage *why)
{
    walk w = {.a = a, .argc = argc, .argv = argv, .why = why};

    why->message[0] = why->hint[0] = '\0';
    a->pos = calloc((size_t)argc + 1, sizeof(*a->pos));
    a->typed = calloc((size_t)argc + 1, sizeof(*a->typed));
    if (!a->pos || !a->typed)
        return wrong(why, "out of memory");
    for (; w.i < argc; w.i++) {
        const char *word = argv[w.i];
        if (strcmp(word, "--") == 0)
            break;
        bool ok = true;
        if (word[0] == '-' && word[1] == '-')
            ok = take_long(&w, word + 2);
        else if (word[0] == '-' && word[1])
            ok = take_brief(&w, word + 1);
        else
            a->pos[a->npos++] = word;
        if (!ok)
            return false;
    }
    if (w.i < argc && a->rest_ok) {
        a->rest = (const char *const *)(argv + w.i + 1);
        return true;
    }
    while (++w.i < argc)
        a->pos[a->npos++] = argv[w.i];
    return true;
}

const char *csn_args_typed(const csn_args *a, const char *name, size_t nth)
{
    const char *last = NULL;

    for (size_t i = 0; i < a->ntyped; i++) {
        const csn_opt *o = a->typed[i].opt;
        if (!o->name || strcmp(o->name, name) != 0)
            continue;
        last = a->typed[i].value;
        if (o->kind == CSN_OPT_LIST && nth-- == 0)
            return last;
    }
    return last;
}

void csn_args_release(csn_args *a)
{
    for (size_t g = 0; g < CSN_ARGS_GROUPS && a->groups && a->groups[g].opts; g++) {
        for (const csn_opt *o = a->groups[g].opts; o->kind != CSN_OPT_END; o++) {
            char ***list = (char ***)(void *)((char *)a->into + a->groups[g].at + o->at);
            if (o->kind != CSN_OPT_LIST)
                continue;
            csn_strv_free(*list);
            *list = NULL; /* an alias of the same field must not free it again */
        }
    }
    free(a->pos);
    free(a->typed);
    a->pos = NULL;
    a->typed = NULL;
}
