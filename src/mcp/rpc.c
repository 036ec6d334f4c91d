/* rpc.c: parses and writes the JSON-RPC 2.0 messages of MCP.
 *
 * The client controls every byte that csn_rpc_parse gets. One pass over the text bounds depth
 * and number of values before the JSON reader sees it, because a parsed value takes twenty
 * times the memory of its text. The same pass locates the id, so that a refused message (lone
 * surrogate, NUL, duplicate key) is still answered under its id and the sender does not wait
 * for ever.
 *
 * Invariants: a message is a request, a notification or a response, or is refused with the code
 * of the JSON-RPC standard; the reply contains nothing of the text but the id, if that is a
 * string or an integer. */
#include "mcp/rpc.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- first pass --------------------------------------------------------------------- */

typedef struct scan {
    size_t depth, values;
    bool key_next;      /* at depth 1: the next string is a key */
    bool after_id;      /* the last key was "id" */
    const char *id;     /* value of "id" as text, or NULL */
    const char *id_end; /* end of that value; NULL: not reached */
} scan;

/* Returns the byte after the closing quote, or `end`. */
static const char *skip_string(const char *s, const char *end)
{
    for (s++; s < end && *s != '"'; s++)
        if (*s == '\\')
            s++;
    return s < end ? s + 1 : end;
}

static void note_string(scan *r, const char *from, const char *to)
{
    if (r->depth != 1)
        return;
    if (r->key_next)
        r->after_id = to - from == 4 && memcmp(from, "\"id\"", 4) == 0;
    else if (r->after_id && !r->id)
        r->id = from;
}

static bool note_mark(scan *r, char c, const char *at)
{
    if (c == '{' || c == '[') {
        r->values++;
        r->depth++;
        r->key_next = r->depth == 1;
    } else if (c == '}' || c == ']') {
        if (r->depth == 1 && r->id && !r->id_end)
            r->id_end = at;
        r->depth -= r->depth > 0;
    } else if (c == ',') {
        r->values++;
        if (r->depth == 1) {
            if (r->id && !r->id_end)
                r->id_end = at;
            r->key_next = true;
            r->after_id = false;
        }
    } else if (c == ':' && r->depth == 1) {
        r->key_next = false;
    }
    return r->depth <= CSN_RPC_DEPTH_MAX && r->values <= CSN_RPC_VALUES_MAX;
}

/* Returns false if the text is too deep or has too many values. */
static bool scan_text(const char *s, const char *end, scan *r)
{
    while (s < end) {
        if (*s == '"') {
            const char *to = skip_string(s, end);
            note_string(r, s, to);
            s = to;
            continue;
        }
        if (strchr("{}[],:", *s) && *s) {
            if (!note_mark(r, *s, s))
                return false;
        } else if (r->depth == 1 && r->after_id && !r->key_next && !r->id &&
                   (*s == '-' || (*s >= '0' && *s <= '9'))) {
            r->id = s;
        }
        s++;
    }
    return true;
}

/* ---- id ----------------------------------------------------------------------------- */

static bool copy_id(const csn_jval *v, char ret[CSN_RPC_ID_MAX])
{
    if (!csn_jval_is_string(v) && !csn_jval_is_integer(v))
        return false;
    csn_autofree char *text = csn_jval_dump(v);
    size_t len = text ? strlen(text) : CSN_RPC_ID_MAX;
    if (len >= CSN_RPC_ID_MAX)
        return false;
    memcpy(ret, text, len + 1);
    return true;
}

/* Extracts the id of a text that is refused as a whole; "" if there is none. */
static void recover_id(const scan *r, char ret[CSN_RPC_ID_MAX])
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;

    ret[0] = '\0';
    if (!r->id || !r->id_end || r->id_end - r->id >= (ptrdiff_t)CSN_RPC_ID_MAX)
        return;
    if (csn_json_parse(r->id, (size_t)(r->id_end - r->id), "id", &v, NULL) == CSN_OK)
        (void)copy_id(v, ret);
}

/* ---- messages --------------------------------------------------------------------------- */

static bool refuse(csn_rpc_fault *why, int code, const char *id, const char *message)
{
    why->code = code;
    snprintf(why->id, sizeof(why->id), "%s", id);
    snprintf(why->message, sizeof(why->message), "%s", message);
    return false;
}

static bool classify(csn_rpc_msg *m, csn_rpc_fault *why)
{
    const char *version = csn_jval_string(csn_jval_get(m->root, "jsonrpc"));
    const csn_jval *params = csn_jval_get(m->root, "params");

    if (csn_jval_has(m->root, "id") && !copy_id(csn_jval_get(m->root, "id"), m->id))
        return refuse(why, CSN_RPC_INVALID, "", "\"id\" must be a short string or an integer");
    if (!version || strcmp(version, "2.0") != 0)
        return refuse(why, CSN_RPC_INVALID, m->id, "\"jsonrpc\" must be \"2.0\"");
    if (!csn_jval_has(m->root, "method") &&
        (csn_jval_has(m->root, "result") || csn_jval_has(m->root, "error"))) {
        m->kind = CSN_RPC_RESPONSE;
        return true;
    }
    m->method = csn_jval_string(csn_jval_get(m->root, "method"));
    if (!m->method)
        return refuse(why, CSN_RPC_INVALID, m->id, "\"method\" must be a string");
    m->kind = m->id[0] ? CSN_RPC_REQUEST : CSN_RPC_NOTIFICATION;
    if (params && !csn_jval_is_object(params))
        return refuse(why, CSN_RPC_PARAMS, m->id, "\"params\" must be an object");
    m->params = params;
    return true;
}

bool csn_rpc_parse(const char *text, size_t len, csn_rpc_msg *ret, csn_rpc_fault *why)
{
    scan r = {0};
    char id[CSN_RPC_ID_MAX];
    csn_error *err = NULL;

    *ret = (csn_rpc_msg){0};
    if (len > CSN_RPC_BYTES_MAX)
        return refuse(why, CSN_RPC_INVALID, "", "the message is too large");
    if (!scan_text(text, text + len, &r)) {
        recover_id(&r, id);
        return refuse(why, CSN_RPC_INVALID, id,
                      "the message is nested too deeply or has too many values");
    }
    if (csn_json_parse(text, len, "message", &ret->root, &err) < 0) {
        recover_id(&r, id);
        (void)refuse(why, CSN_RPC_PARSE, id, csn_error_message(err));
        csn_error_free(err);
        return false;
    }
    bool ok = csn_jval_is_object(ret->root)
                  ? classify(ret, why)
                  : refuse(why, CSN_RPC_INVALID, "",
                           csn_jval_is_array(ret->root)
                               ? "batches are not supported: send one message at a time"
                               : "a message must be an object");
    if (!ok)
        csn_rpc_release(ret);
    return ok;
}

void csn_rpc_release(csn_rpc_msg *m)
{
    csn_jval_free(m->root);
    *m = (csn_rpc_msg){0};
}

/* ---- replies ---------------------------------------------------------------------------- */

static void put_head(csn_json *j, csn_buf *out, const char *id)
{
    csn_json_begin(j, out);
    csn_json_object(j);
    csn_json_kstr(j, "jsonrpc", "2.0");
    csn_json_key(j, "id");
    if (id[0])
        csn_json_raw(j, id, strlen(id));
    else
        csn_json_null(j);
}

void csn_rpc_result_begin(csn_json *j, csn_buf *out, const char *id)
{
    put_head(j, out, id);
    csn_json_key(j, "result");
}

int csn_rpc_result_end(csn_json *j)
{
    csn_json_object_end(j);
    return csn_json_end(j);
}

int csn_rpc_error(csn_buf *out, const char *id, int code, const char *message, const char *data)
{
    csn_json j;

    put_head(&j, out, id);
    csn_json_key(&j, "error");
    csn_json_object(&j);
    csn_json_kint(&j, "code", code);
    csn_json_kstr(&j, "message", message);
    if (data) {
        csn_json_key(&j, "data");
        csn_json_raw(&j, data, strlen(data));
    }
    csn_json_object_end(&j);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}
