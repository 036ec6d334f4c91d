/* project_edit.c: adds grants to a caisson.json.
 *
 * What is not changed is copied as it is written. The file is replaced in one step; the content
 * that is written is the content that is trusted. Invariant: nothing becomes trusted that the
 * user has not seen. */
#include "cli/project_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/options.h"
#include "base/strv.h"
#include "cli/cli.h"
#include "cli/policy_schema.h"
#include "cli/project.h"
#include "cli/trust.h"

/* ---- JSON ---------------------------------------------------------------------------- */

static void break_line(csn_buf *out, int depth)
{
    csn_buf_printf(out, "\n%*s", 2 * depth, "");
}

void csn_json_lines(csn_buf *out, const char *json, size_t len)
{
    bool in_string = false;
    int depth = 0, lists = 0; /* a list is printed on one line */

    for (size_t i = 0; i < len; i++) {
        char c = json[i];
        bool empty = i > 0 && json[i - 1] == '{';
        if (!in_string && c == '}' && lists == 0 && (depth--, !empty))
            break_line(out, depth);
        lists += !in_string && c == '[' ? 1 : !in_string && c == ']' ? -1 : 0;
        csn_buf_putc(out, c);
        if (in_string && c == '\\' && i + 1 < len)
            csn_buf_putc(out, json[++i]);
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ':' || (c == ',' && lists > 0)))
            csn_buf_putc(out, ' ');
        bool opens = !in_string && lists == 0 && c == '{';
        depth += opens;
        if ((opens && json[i + 1] != '}') || (!in_string && lists == 0 && c == ','))
            break_line(out, depth);
    }
    csn_buf_putc(out, '\n');
}

static void put_raw(csn_json *j, const csn_jval *v)
{
    csn_autofree char *text = csn_jval_dump(v);

    if (text)
        csn_json_raw(j, text, strlen(text));
    else
        j->err = j->err ? j->err : ENOMEM;
}

/* The items that are there, then the new ones that are not. */
static void put_list(csn_json *j, const csn_jval *old, const char *const *more)
{
    csn_json_array(j);
    if (csn_jval_is_string(old))
        put_raw(j, old);
    for (size_t i = 0; i < csn_jval_count(old); i++)
        put_raw(j, csn_jval_at(old, i));
    for (; *more; more++) {
        bool there = csn_jval_is_string(old) && strcmp(csn_jval_string(old), *more) == 0;
        for (size_t i = 0; i < csn_jval_count(old) && !there; i++) {
            const char *item = csn_jval_string(csn_jval_at(old, i));
            there = item && strcmp(item, *more) == 0;
        }
        if (!there)
            csn_json_str(j, *more);
    }
    csn_json_array_end(j);
}

static void put_value(csn_json *j, const csn_option *o, const csn_jval *old,
                      const csn_config *add)
{
    switch (o->type) {
    case CSN_TYPE_LIST:
    case CSN_TYPE_ENV:
        if (csn_jval_is_object(old))
            put_raw(j, old); /* {NAME: value}: the caller has refused it */
        else
            put_list(j, old, *csn_option_list(o, add));
        break;
    case CSN_TYPE_STRING:
        csn_json_str(j, *csn_option_string(o, add));
        break;
    case CSN_TYPE_FLAG:
        csn_json_bool(j, true);
        break;
    case CSN_TYPE_RULES:
        put_raw(j, old);
        break;
    case CSN_TYPE_CPUS:
        csn_json_double(j, (double)*csn_option_number(o, add) / 1000);
        break;
    case CSN_TYPE_SIZE:
    case CSN_TYPE_COUNT:
    case CSN_TYPE_DURATION:
        if (*csn_option_number(o, add) == CSN_NO_LIMIT)
            csn_json_str(j, "none");
        else
            csn_json_uint(j, *csn_option_number(o, add));
        break;
    }
}

static const csn_option *option_of(const char *group, const char *key, const csn_config *add)
{
    for (const csn_option *o = csn_options; o->name; o++) {
        const char *k = csn_option_key(o, group);
        if (k && strcmp(k, key) == 0 && csn_option_is_set(o, add))
            return o;
    }
    return NULL;
}

static bool group_is_set(const char *group, const csn_config *add)
{
    for (const csn_option *o = csn_options; o->name; o++)
        if (csn_option_key(o, group) && csn_option_is_set(o, add))
            return true;
    return false;
}

static void put_object(csn_json *j, const char *group, const csn_jval *old,
                       const csn_config *add);

/* `network` and `limits`; a network that is one word becomes an object. */
static void put_group(csn_json *j, const char *group, const csn_jval *old,
                      const csn_config *add)
{
    if (!csn_jval_is_string(old)) {
        put_object(j, group, old, add);
        return;
    }
    csn_json_object(j);
    csn_json_kstr(j, "mode", csn_jval_string(old));
    for (const csn_option *o = csn_options; o->name; o++)
        if (csn_option_key(o, group) && csn_option_is_set(o, add) &&
            strcmp(o->name, "network.mode") != 0) {
            csn_json_key(j, csn_option_key(o, group));
            put_value(j, o, NULL, add);
        }
    csn_json_object_end(j);
}

static void put_object(csn_json *j, const char *group, const csn_jval *old,
                       const csn_config *add)
{
    static const char *const groups[] = {"network", "limits"};
    const csn_jval *v;
    const char *key = NULL;

    csn_json_object(j);
    for (size_t i = 0; (v = csn_jval_member(old, i, &key)); i++) {
        const csn_option *o = option_of(group, key, add);
        bool inner = !group && (strcmp(key, "network") == 0 || strcmp(key, "limits") == 0) &&
                     group_is_set(key, add);
        csn_json_key(j, key);
        if (inner)
            put_group(j, key, v, add);
        else if (o)
            put_value(j, o, v, add);
        else
            put_raw(j, v);
    }
    for (const csn_option *o = csn_options; o->name; o++) {
        const char *k = csn_option_key(o, group);
        if (!k || !csn_option_is_set(o, add) || csn_jval_has(old, k))
            continue;
        csn_json_key(j, k);
        put_value(j, o, NULL, add);
    }
    for (size_t i = 0; !group && i < sizeof(groups) / sizeof(groups[0]); i++)
        if (group_is_set(groups[i], add) && !csn_jval_has(old, groups[i])) {
            csn_json_key(j, groups[i]);
            put_object(j, groups[i], NULL, add);
        }
    csn_json_object_end(j);
}

csn_status csn_project_edit(const char *text, size_t len, const char *what,
                            const csn_config *add, csn_buf *out, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_config *check = NULL;
    csn_autobuf empty, json;
    csn_json j;

    csn_buf_init(&empty, CSN_CONFIG_FILE_MAX);
    csn_buf_init(&json, CSN_CONFIG_FILE_MAX);
    csn_buf_puts(&empty, "{\"$schema\":\"");
    csn_policy_schema_uri(&empty);
    csn_buf_puts(&empty, "\"}");
    if (empty.err)
        return csn_fail(err, CSN_NOMEM, "%s", what);
    csn_status st =
        csn_json_parse(text ? text : empty.data, text ? len : empty.len, what, &root, err);
    if (st < 0)
        return st;
    if (add->env && csn_jval_is_object(csn_jval_get(root, "env")))
        return csn_fail(err, CSN_UNSUPPORTED, "%s: 'env' is an object: add the variable there",
                        what);
    csn_json_begin(&j, &json);
    put_object(&j, NULL, root, add);
    if (csn_json_end(&j) != 0)
        return csn_fail(err, CSN_NOMEM, "%s", what);
    st = csn_config_parse(json.data, json.len, what, &check, err);
    csn_config_free(check);
    if (st < 0)
        return st;
    csn_json_lines(out, json.data, json.len);
    return out->err ? csn_fail(err, CSN_NOMEM, "%s", what) : CSN_OK;
}

/* ---- the file ------------------------------------------------------------------------ */

/* A new file with its own name takes the place of `path`. */
static csn_status replace(const char *path, const csn_buf *text, csn_error **err)
{
    csn_autofree char *temp = NULL;

    if (asprintf(&temp, "%s.XXXXXX", path) < 0) {
        temp = NULL;
        return csn_fail(err, CSN_NOMEM, "out of memory");
    }
    csn_autofd int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return csn_fail_errno(err, errno, "cannot write '%s'", path);
    int e = csn_cli_write(fd, text->data, text->len);
    if (e == 0 && (fchmod(fd, 0644) < 0 || rename(temp, path) < 0))
        e = errno;
    if (e != 0)
        unlink(temp);
    return e ? csn_fail_errno(err, e, "cannot write '%s'", path) : CSN_OK;
}

/* The file as it is must be trusted, or grant nothing: else trusting it with the new grant
 * would trust what the user has not seen. */
static csn_status check_known(const csn_project *p, csn_error **err)
{
    const csn_config defaults = {.size = sizeof(defaults), .backend = "jail"};
    const csn_narrow_base base = {.config = &defaults, .own_workspace = true};
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const char *names[CSN_OPTION_COUNT + 1];
    csn_trust trust = CSN_TRUST_NONE;
    csn_config *c = NULL;

    csn_status st = csn_trust_check(p->path, p->hash, &trust, err);
    if (st < 0 || trust == CSN_TRUST_GIVEN)
        return st;
    st = csn_json_parse(p->text, p->len, p->path, &root, err);
    if (st == CSN_OK)
        st = csn_config_parse(p->text, p->len, p->path, &c, err);
    if (st < 0)
        return st;
    bool grants = csn_config_widening(c, &base, names) > 0 || csn_jval_has(root, "profiles");
    csn_config_free(c);
    if (!grants)
        return CSN_OK;
    st = csn_fail(err, CSN_DENIED, "%s has grants or profiles that you have not trusted",
                  p->path);
    return csn_error_advise(st, err, "caisson trust %s first", p->dir);
}

csn_status csn_project_add(const char *workspace, const csn_config *add, csn_error **err)
{
    csn_autofree char *host = workspace ? csn_workspace_host(workspace) : NULL;
    csn_autofree char *real = realpath(host ? host : ".", NULL);
    csn_autofree char *fresh = NULL;
    char hash[CSN_HASH_HEX];
    csn_project p = {0};
    csn_autobuf text;

    csn_buf_init(&text, CSN_CONFIG_FILE_MAX);
    if (!real)
        return csn_fail_errno(err, errno, "workspace");
    csn_status st = csn_project_find(real, &p, err);
    if (st == CSN_OK && p.path)
        st = check_known(&p, err);
    else if (st == CSN_OK && asprintf(&fresh, "%s/" CSN_PROJECT_FILE, real) < 0)
        st = csn_fail(err, CSN_NOMEM, "out of memory");
    const char *path = p.path ? p.path : fresh;
    if (st == CSN_OK)
        st = csn_project_edit(p.text, p.len, path, add, &text, err);
    if (st == CSN_OK)
        st = replace(path, &text, err);
    if (st == CSN_OK) {
        csn_hash_bytes(text.data, text.len, hash);
        st = csn_trust_add(path, hash, err);
    }
    csn_project_release(&p);
    return st;
}
