/* config_encode.c: writes a csn_config as the JSON that csn_config_parse reads back.
 *
 * core/state.c stores detached sandboxes with it. parse(encode(c)) equals c, field by field. A
 * string that is not UTF-8 has no JSON form and is refused (EILSEQ). Numbers above 2^53, which
 * some JSON readers round, become strings with their unit; CSN_NO_LIMIT is "none"; 0 is the
 * default and is left out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "base/options.h"
#include "base/utf8.h"
#include "core/config.h"
#include "policy/rules.h"

static void put_str(csn_json *j, const char *key, const char *s)
{
    if (!s)
        return;
    if (!csn_utf8_valid(s, strlen(s)) && j->err == 0)
        j->err = EILSEQ;
    csn_json_kstr(j, key, s);
}

/* An empty list is written, NULL is not. */
static void put_list(csn_json *j, const char *key, const char *const *list)
{
    if (!list)
        return;
    csn_json_key(j, key);
    csn_json_array(j);
    for (; *list; list++) {
        if (!csn_utf8_valid(*list, strlen(*list)) && j->err == 0)
            j->err = EILSEQ;
        csn_json_str(j, *list);
    }
    csn_json_array_end(j);
}

static void put_amount(csn_json *j, const char *key, uint64_t v, const char *unit)
{
    char text[32];

    if (v == 0)
        return;
    if (v == CSN_NO_LIMIT) {
        csn_json_kstr(j, key, "none");
    } else if (v <= (1ull << 53)) {
        csn_json_kuint(j, key, v);
    } else {
        snprintf(text, sizeof(text), "%" PRIu64 "%s", v, unit);
        csn_json_kstr(j, key, text);
    }
}

/* As text: thousandths have no exact double. */
static void put_cpus(csn_json *j, const char *key, uint64_t milli)
{
    char text[40];

    if (milli == 0)
        return;
    snprintf(text, sizeof(text), "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));
    csn_json_kstr(j, key, milli == CSN_NO_LIMIT ? "none" : text);
}

static void put_rules(csn_json *j, const char *key, const csn_config *c)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (size_t i = 0; i < c->rule_count; i++) {
        csn_json_object(j);
        csn_json_key(j, "op");
        csn_json_array(j);
        for (uint32_t op = CSN_OP_READ; op <= CSN_OP_NET; op <<= 1)
            if ((c->rules[i].ops & op) != 0)
                csn_json_str(j, csn_op_name(op));
        csn_json_array_end(j);
        csn_json_kstr(j, "effect", c->rules[i].allow ? "allow" : "deny");
        put_str(j, "path", c->rules[i].path);
        if (c->rules[i].ops & CSN_RULE_FILES)
            csn_json_kstr(j, "scope", "files");
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

static void put_option(csn_json *j, const char *key, const csn_option *o, const csn_config *c)
{
    switch (o->type) {
    case CSN_TYPE_STRING:
        put_str(j, key, *csn_option_string(o, c));
        break;
    case CSN_TYPE_LIST:
    case CSN_TYPE_ENV:
        put_list(j, key, *csn_option_list(o, c));
        break;
    case CSN_TYPE_RULES:
        put_rules(j, key, c);
        break;
    case CSN_TYPE_FLAG:
        csn_json_kbool(j, key, csn_option_is_set(o, c));
        break;
    case CSN_TYPE_SIZE:
    case CSN_TYPE_COUNT:
        put_amount(j, key, *csn_option_number(o, c), "");
        break;
    case CSN_TYPE_CPUS:
        put_cpus(j, key, *csn_option_number(o, c));
        break;
    case CSN_TYPE_DURATION:
        put_amount(j, key, *csn_option_number(o, c), "ms");
        break;
    }
}

static void put_options(csn_json *j, const char *group, const csn_config *c)
{
    for (const csn_option *o = csn_options; o->name; o++)
        if (csn_option_key(o, group))
            put_option(j, csn_option_key(o, group), o, c);
}

int csn_config_encode(const csn_config *c, csn_buf *out)
{
    static const char *const groups[] = {"limits", "network"};
    csn_json j;

    csn_json_begin(&j, out);
    csn_json_object(&j);
    put_options(&j, NULL, c);
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        csn_json_key(&j, groups[i]);
        csn_json_object(&j);
        put_options(&j, groups[i], c);
        csn_json_object_end(&j);
    }
    csn_json_object_end(&j);
    return csn_json_end(&j);
}
