/* tool_schema.c: turns the tool table into JSON Schema and checks arguments against it.
 *
 * Arguments come from a model, which may be steered by a file that it has read: a wrong
 * argument is refused, never guessed, and the error names it and the accepted values. Schemas
 * use no unions and no references, because several clients refuse them. */
#include "wire/tool_schema.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"

static const char *const type_names[] = {
    [CSN_TOOL_END] = "",
    [CSN_TOOL_STRING] = "string",
    [CSN_TOOL_INTEGER] = "integer",
    [CSN_TOOL_NUMBER] = "number",
    [CSN_TOOL_BOOLEAN] = "boolean",
    [CSN_TOOL_OBJECT] = "object",
    [CSN_TOOL_OBJECTS] = "array",
    [CSN_TOOL_STRINGS] = "array",
    [CSN_TOOL_MAP] = "object",
};

const csn_tool_schema *csn_wire_tool_find(const char *name)
{
    for (const csn_tool_schema *t = csn_wire_tools; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

/* ---- schemas --------------------------------------------------------------------------- */

void csn_wire_choices(csn_json *j, const char *choices)
{
    csn_json_key(j, "enum");
    csn_json_array(j);
    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        csn_json_strn(j, p, n);
        p += n + (p[n] == '|');
    }
    csn_json_array_end(j);
}

static void put_members(csn_json *j, const csn_tool_field *fields);

static void put_field(csn_json *j, const csn_tool_field *f)
{
    csn_json_object(j);
    csn_json_kstr(j, "type", type_names[f->kind]);
    if (f->text)
        csn_json_kstr(j, "description", f->text);
    if (f->choices)
        csn_wire_choices(j, f->choices);
    if (f->min != 0 || f->max != 0) {
        csn_json_kint(j, "minimum", f->min);
        csn_json_kint(j, "maximum", f->max);
    }
    if (f->kind == CSN_TOOL_OBJECT)
        put_members(j, f->fields);
    if (f->kind == CSN_TOOL_OBJECTS || f->kind == CSN_TOOL_STRINGS) {
        csn_json_key(j, "items");
        csn_json_object(j);
        csn_json_kstr(j, "type", f->kind == CSN_TOOL_STRINGS ? "string" : "object");
        if (f->kind == CSN_TOOL_OBJECTS)
            put_members(j, f->fields);
        csn_json_object_end(j);
    }
    if (f->kind == CSN_TOOL_MAP) {
        csn_json_key(j, "additionalProperties");
        csn_json_object(j);
        csn_json_kstr(j, "type", "string");
        csn_json_object_end(j);
    }
    csn_json_object_end(j);
}

static void put_members(csn_json *j, const csn_tool_field *fields)
{
    bool any = false;

    csn_json_key(j, "properties");
    csn_json_object(j);
    for (const csn_tool_field *f = fields; f->kind != CSN_TOOL_END; f++) {
        csn_json_key(j, f->name);
        put_field(j, f);
        any |= f->required;
    }
    csn_json_object_end(j);
    if (!any)
        return;
    csn_json_key(j, "required");
    csn_json_array(j);
    for (const csn_tool_field *f = fields; f->kind != CSN_TOOL_END; f++)
        if (f->required)
            csn_json_str(j, f->name);
    csn_json_array_end(j);
}

static void put_schema(csn_json *j, const char *key, const csn_tool_field *fields, bool closed)
{
    csn_json_key(j, key);
    csn_json_object(j);
    csn_json_kstr(j, "type", "object");
    put_members(j, fields);
    if (closed)
        csn_json_kbool(j, "additionalProperties", false);
    csn_json_object_end(j);
}

static void put_description(csn_json *j, const char *text, const char *facts)
{
    csn_autobuf all;

    csn_buf_init(&all, 16384);
    int e = csn_buf_puts(&all, text);
    if (e == 0 && facts && facts[0])
        e = csn_buf_printf(&all, "\n\n%s", facts);
    csn_json_kstr(j, "description", e == 0 ? all.data : text);
}

void csn_wire_tool(csn_json *j, const csn_tool_schema *t, const char *facts, uint32_t hints)
{
    csn_json_object(j);
    csn_json_kstr(j, "name", t->name);
    csn_json_kstr(j, "title", t->title);
    put_description(j, t->text, facts);
    put_schema(j, "inputSchema", t->input, true);
    if (t->output)
        put_schema(j, "outputSchema", t->output, false);
    csn_json_key(j, "annotations");
    csn_json_object(j);
    csn_json_kstr(j, "title", t->title);
    csn_json_kbool(j, "readOnlyHint", hints & CSN_TOOL_READ_ONLY);
    csn_json_kbool(j, "destructiveHint", hints & CSN_TOOL_DESTRUCTIVE);
    csn_json_kbool(j, "idempotentHint", hints & CSN_TOOL_IDEMPOTENT);
    csn_json_kbool(j, "openWorldHint", hints & CSN_TOOL_OPEN_WORLD);
    csn_json_object_end(j);
    csn_json_object_end(j);
}

/* ---- checks ---------------------------------------------------------------------------- */

static bool has_type(const csn_tool_field *f, const csn_jval *v)
{
    switch (f->kind) {
    case CSN_TOOL_STRING:
        return csn_jval_is_string(v);
    case CSN_TOOL_INTEGER:
        return csn_jval_is_integer(v);
    case CSN_TOOL_NUMBER:
        return csn_jval_is_number(v);
    case CSN_TOOL_BOOLEAN:
        return csn_jval_is_bool(v);
    case CSN_TOOL_OBJECT:
    case CSN_TOOL_MAP:
        return csn_jval_is_object(v);
    case CSN_TOOL_OBJECTS:
    case CSN_TOOL_STRINGS:
        return csn_jval_is_array(v);
    case CSN_TOOL_END:
    default:
        return false;
    }
}

static bool is_choice(const char *choices, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        if (n == len && memcmp(p, word, n) == 0)
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

static csn_status check_field(const csn_tool_schema *t, const csn_tool_field *f,
                              const csn_jval *args, csn_error **err)
{
    const csn_jval *v = csn_jval_get(args, f->name);
    int64_t n = 0;

    if (!v && f->required)
        return csn_fail(err, CSN_INVALID, "%s: '%s' is missing (%s)", t->name, f->name,
                        type_names[f->kind]);
    if (!v)
        return CSN_OK;
    if (!has_type(f, v))
        return csn_fail(err, CSN_INVALID, "%s: '%s' must be of type %s", t->name, f->name,
                        type_names[f->kind]);
    if (f->choices && !is_choice(f->choices, csn_jval_string(v)))
        return csn_fail(err, CSN_INVALID, "%s: '%s' must be one of %s", t->name, f->name,
                        f->choices);
    if (f->kind != CSN_TOOL_INTEGER || (f->min == 0 && f->max == 0))
        return CSN_OK;
    csn_status st = csn_jget_i64(args, f->name, &n, err);
    if (st == CSN_OK && (n < f->min || n > f->max))
        return csn_fail(err, CSN_INVALID, "%s: '%s' must be between %" PRId64 " and %" PRId64,
                        t->name, f->name, f->min, f->max);
    return st;
}

/* The hint lists the accepted names, so that the model can correct itself. */
static csn_status check_names(const csn_tool_schema *t, const csn_jval *args, csn_error **err)
{
    const char *known[32];
    char list[512];
    size_t n = 0, used = 0;

    list[0] = '\0';
    for (const csn_tool_field *f = t->input; f->kind != CSN_TOOL_END; f++) {
        known[n++] = f->name;
        int w = snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", f->name);
        used += w > 0 && used + (size_t)w < sizeof(list) ? (size_t)w : 0;
    }
    known[n] = NULL;
    csn_status st = csn_jval_only(args, known, t->name, err);
    if (st < 0)
        return csn_error_advise(st, err, n ? "%s takes: %s" : "%s takes no arguments%s",
                                t->name, list);
    return CSN_OK;
}

csn_status csn_wire_tool_check(const csn_tool_schema *t, const csn_jval *args, csn_error **err)
{
    csn_status st = args ? check_names(t, args, err) : CSN_OK;

    for (const csn_tool_field *f = t->input; st == CSN_OK && f->kind != CSN_TOOL_END; f++)
        st = check_field(t, f, args, err);
    return st;
}
