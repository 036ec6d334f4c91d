/* audit_line.c: writes one operation as a JSON object for the audit log.
 *
 * Texts (paths, commands, names of variables) are untrusted: they are escaped, truncated and
 * stripped of secrets. No event makes a line longer than CSN_AUDIT_LINE_MAX. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_write.h"
#include "core/audit_chain.h"
#include "core/audit_net.h"
#include "core/redact.h"

#define TEXT_MAX    4096u  /* encoded bytes of one text */
#define LIST_MAX    4096u  /* of all arguments, and of all variable names, of one command */
#define CHANGES_MAX 12288u /* of all changed files of one command, and one more */
#define SMALL_MAX   512u   /* rule, hash and other words */

/* Writes a JSON string of at most `max` encoded bytes; a longer text is truncated. */
static void put_cut(csn_json *j, const char *s, size_t max)
{
    size_t len = strnlen(s, max);

    if (len * 6 + 2 <= max) { /* fits even if every byte is escaped */
        csn_json_strn(j, s, len);
        return;
    }
    for (;;) {
        csn_autobuf text;
        csn_json one;
        csn_buf_init(&text, max + 2);
        csn_json_begin(&one, &text);
        csn_json_strn(&one, s, len);
        int rc = csn_json_end(&one);
        if (rc == 0)
            csn_json_raw(j, text.data, text.len);
        else if (rc == ENOSPC && len > 0) {
            len = len * 3 / 4;
            continue;
        } else
            csn_json_null(j);
        return;
    }
}

/* Redacts before truncating: a truncated secret would not be recognised. */
static void put_redacted(csn_json *j, const char *key, const char *s)
{
    csn_autofree char *clean = s ? csn_redact_line(s) : NULL;

    csn_json_key(j, key);
    if (clean)
        put_cut(j, clean, TEXT_MAX);
    else
        csn_json_null(j);
}

/* Writes one item of a list. Items share a budget in order, so the first ones (the command) are
 * always present. Returns false when the budget is used up. */
static bool put_item(csn_json *j, const char *s, size_t least, size_t *room)
{
    size_t before = j->out->len;

    if (*room < least) {
        csn_json_str(j, "...");
        return false;
    }
    put_cut(j, s, *room);
    size_t used = j->out->len - before;
    *room = used < *room ? *room - used : 0;
    return true;
}

static void put_argv(csn_json *j, const char *const *argv)
{
    size_t room = LIST_MAX;
    bool more = true;

    csn_json_key(j, "argv");
    csn_json_array(j);
    for (int i = 0; argv[i] && more; i++) {
        csn_autofree char *clean = csn_redact_arg(argv, i);
        more = put_item(j, clean ? clean : "", 16, &room);
    }
    csn_json_array_end(j);
}

/* Writes names only: values may be secrets. An entry without = is a name. */
static void put_env(csn_json *j, const char *const *env)
{
    size_t room = LIST_MAX;
    bool more = true;

    csn_json_key(j, "env");
    csn_json_array(j);
    for (; *env && more; env++) {
        char name[SMALL_MAX];
        size_t len = strcspn(*env, "=");
        snprintf(name, sizeof(name), "%.*s", (int)(len < SMALL_MAX ? len : SMALL_MAX), *env);
        more = put_item(j, name, strlen(name) + 16, &room);
    }
    csn_json_array_end(j);
}

/* Protected files that were moved, by the paths that they had. */
static void put_aside(csn_json *j, const csn_audit_event *e)
{
    size_t room = LIST_MAX, count = 0;
    bool more = true;

    for (size_t i = 0; i < e->denial_count && more; i++) {
        const csn_denial *d = &e->denials[i];
        if (!d->resolved || !d->target || !d->source ||
            strcmp(d->source, "protected by default") != 0)
            continue;
        if (count++ == 0) {
            csn_json_key(j, "aside");
            csn_json_array(j);
        }
        more = put_item(j, d->target, 16, &room);
    }
    if (count > 0)
        csn_json_array_end(j);
}

/* Writes {"path","before","after"} for each file: the hashes; null if the file did not exist,
 * "" if its content is not known. */
static void put_changes(csn_json *j, const csn_audit_event *e)
{
    size_t shown = 0, begin;

    if (!e->changes && !e->changes_unknown)
        return;
    csn_json_key(j, "changes");
    csn_json_array(j);
    begin = j->out->len;
    for (; shown < e->change_count && j->out->len - begin < CHANGES_MAX; shown++) {
        const csn_audit_change *c = &e->changes[shown];
        csn_json_object(j);
        csn_json_key(j, "path");
        put_cut(j, c->path, TEXT_MAX);
        csn_json_kstr(j, "before", !c->existed ? NULL : c->before ? c->before : "");
        csn_json_kstr(j, "after", !c->exists ? NULL : c->after ? c->after : "");
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
    if (e->changes_unknown) {
        csn_json_key(j, "changes_total");
        csn_json_null(j);
    } else if (shown < e->change_total) {
        csn_json_kuint(j, "changes_total", e->change_total);
    }
}

static void put_word(csn_json *j, const char *key, const char *s)
{
    csn_json_key(j, key);
    if (s)
        put_cut(j, s, SMALL_MAX);
    else
        csn_json_null(j);
}

/* Writes the fields in their documented order; prev is last, and csn_audit_line_seal adds the
 * hash. */
int csn_audit_line_compose(const char *id, const csn_audit_head *last, const csn_audit_event *e,
                           csn_buf *line)
{
    char when[CSN_ISO_SIZE];
    csn_json j;
    bool denied = e->status == CSN_DENIED || e->status == CSN_OUTSIDE;

    csn_iso8601(csn_wall_ms() * 1000000, when);
    csn_json_begin(&j, line);
    csn_json_object(&j);
    csn_json_kuint(&j, "seq", last->lines + 1);
    csn_json_kstr(&j, "time", when);
    csn_json_kstr(&j, "sandbox", id);
    put_word(&j, "op", e->op);
    put_redacted(&j, "target", e->target);
    csn_json_key(&j, "args");
    csn_json_object(&j);
    if (e->argv)
        put_argv(&j, e->argv);
    if (e->env)
        put_env(&j, e->env);
    if (e->net)
        csn_audit_put_net(&j, e->net);
    csn_json_object_end(&j);
    csn_json_kstr(&j, "verdict", denied ? "deny" : "allow");
    put_word(&j, "rule", e->rule);
    csn_json_kstr(&j, "result", csn_status_name(e->status));
    if (e->count)
        csn_json_kuint(&j, "count", e->count);
    if (e->has_exit_code)
        csn_json_kint(&j, "code", e->exit_code);
    if (e->killed_by)
        put_word(&j, "killed_by", e->killed_by);
    if (e->bytes)
        csn_json_kuint(&j, "bytes", e->bytes);
    if (e->hash)
        put_word(&j, "hash", e->hash);
    put_aside(&j, e);
    put_changes(&j, e);
    csn_json_key(&j, "duration_ms");
    csn_json_double(&j, (double)e->duration_ns / 1e6);
    csn_json_kstr(&j, "prev", last->hash);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}
