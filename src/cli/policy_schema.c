/* policy_schema.c: writes the JSON Schema of a policy, which editors use for completion.
 *
 * It comes from the rows of base/options.h, as the parser does, so it has every key. Invariant:
 * a document that the parser accepts is valid; the parser checks more than a schema can say. */
#include "cli/policy_schema.h"

#include <string.h>

#include "base/options.h"
#include "wire/tool_schema.h"

static void put_type(csn_json *j, const char *type)
{
    csn_json_object(j);
    csn_json_kstr(j, "type", type);
    csn_json_object_end(j);
}

static void put_strings(csn_json *j)
{
    csn_json_object(j);
    csn_json_kstr(j, "type", "array");
    csn_json_key(j, "items");
    put_type(j, "string");
    csn_json_object_end(j);
}

static void put_any(csn_json *j, const char *first, const char *second)
{
    csn_json_key(j, "anyOf");
    csn_json_array(j);
    put_type(j, first);
    if (second)
        put_type(j, second);
    else
        put_strings(j);
}

static void put_env(csn_json *j)
{
    put_any(j, "string", NULL);
    csn_json_object(j);
    csn_json_kstr(j, "type", "object");
    csn_json_key(j, "additionalProperties");
    put_type(j, "string");
    csn_json_object_end(j);
    csn_json_array_end(j);
}

static void put_choice_member(csn_json *j, const char *key, const char *choices)
{
    csn_json_key(j, key);
    csn_json_object(j);
    csn_wire_choices(j, choices);
    csn_json_object_end(j);
}

static void put_rules(csn_json *j)
{
    static const char ops[] = "read|write|delete|exec|net";

    csn_json_kstr(j, "type", "array");
    csn_json_key(j, "items");
    csn_json_object(j);
    csn_json_kstr(j, "type", "object");
    csn_json_kbool(j, "additionalProperties", false);
    csn_json_key(j, "required");
    csn_json_array(j);
    csn_json_str(j, "op");
    csn_json_str(j, "effect");
    csn_json_str(j, "path");
    csn_json_array_end(j);
    csn_json_key(j, "properties");
    csn_json_object(j);
    csn_json_key(j, "op");
    csn_json_object(j);
    csn_json_key(j, "anyOf");
    csn_json_array(j);
    csn_json_object(j);
    csn_wire_choices(j, ops);
    csn_json_object_end(j);
    csn_json_object(j);
    csn_json_kstr(j, "type", "array");
    put_choice_member(j, "items", ops);
    csn_json_object_end(j);
    csn_json_array_end(j);
    csn_json_object_end(j);
    put_choice_member(j, "effect", "allow|deny");
    csn_json_key(j, "path");
    put_type(j, "string");
    put_choice_member(j, "scope", "all|files");
    csn_json_object_end(j);
    csn_json_object_end(j);
}

static void put_option(csn_json *j, const char *key, const csn_option *o)
{
    csn_json_key(j, key);
    csn_json_object(j);
    if (o->help)
        csn_json_kstr(j, "description", o->help);
    switch (o->type) {
    case CSN_TYPE_STRING:
        if (o->choices)
            csn_wire_choices(j, o->choices);
        else
            csn_json_kstr(j, "type", "string");
        break;
    case CSN_TYPE_LIST:
        put_any(j, "string", NULL);
        csn_json_array_end(j);
        break;
    case CSN_TYPE_ENV:
        put_env(j);
        break;
    case CSN_TYPE_RULES:
        put_rules(j);
        break;
    case CSN_TYPE_FLAG:
        csn_json_kstr(j, "type", "boolean");
        break;
    case CSN_TYPE_SIZE:
    case CSN_TYPE_COUNT:
    case CSN_TYPE_DURATION:
        put_any(j, "integer", "string");
        csn_json_array_end(j);
        break;
    case CSN_TYPE_CPUS:
        put_any(j, "number", "string");
        csn_json_array_end(j);
        break;
    }
    csn_json_object_end(j);
}

/* The options of one JSON object (NULL: the top level), in an object that is left open. */
static void begin_group(csn_json *j, const char *group)
{
    csn_json_object(j);
    csn_json_kstr(j, "type", "object");
    csn_json_kbool(j, "additionalProperties", false);
    csn_json_key(j, "properties");
    csn_json_object(j);
    for (const csn_option *o = csn_options; o->name; o++) {
        const char *key = csn_option_key(o, group);
        if (key)
            put_option(j, key, o);
        if (key && strcmp(o->name, "commands") == 0)
            put_option(j, "allow_commands", o);
    }
}

static void put_group(csn_json *j, const char *group)
{
    begin_group(j, group);
    csn_json_object_end(j);
    csn_json_object_end(j);
}

/* A policy; the whole file also has the keys of a document. */
static void put_policy(csn_json *j, bool document)
{
    begin_group(j, NULL);
    csn_json_key(j, "limits");
    put_group(j, "limits");
    csn_json_key(j, "network");
    csn_json_object(j);
    csn_json_key(j, "anyOf");
    csn_json_array(j);
    csn_json_object(j);
    csn_wire_choices(j, "none|all");
    csn_json_object_end(j);
    put_group(j, "network");
    csn_json_array_end(j);
    csn_json_object_end(j);
    if (document) {
        csn_json_key(j, "$schema");
        put_type(j, "string");
        csn_json_key(j, "profiles");
        csn_json_object(j);
        csn_json_kstr(j, "description", "named policies for --profile NAME");
        csn_json_kstr(j, "type", "object");
        csn_json_key(j, "additionalProperties");
        put_policy(j, false);
        csn_json_object_end(j);
    }
    csn_json_object_end(j);
    if (document) {
        csn_json_kstr(j, "$schema", "http://json-schema.org/draft-07/schema#");
        csn_json_kstr(j, "title", "caisson-policy(5)");
    }
    csn_json_object_end(j);
}

void csn_policy_schema(csn_json *j)
{
    put_policy(j, true);
}
