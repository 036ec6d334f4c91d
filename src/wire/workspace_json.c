/* workspace_json.c: writes snapshots, changes and commits of a workspace as JSON.
 *
 * Paths and contents come from inside sandboxes: the writer escapes them. */
#include "wire/workspace_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "wire/result_json.h"

const char *csn_wire_change_name(csn_change_kind kind)
{
    static const char *const names[] = {[CSN_CHANGE_ADDED] = "added",
                                        [CSN_CHANGE_DELETED] = "deleted",
                                        [CSN_CHANGE_MODIFIED] = "modified",
                                        [CSN_CHANGE_META] = "metadata",
                                        [CSN_CHANGE_TYPE] = "type"};

    return (size_t)kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind]
                                                                          : "unknown";
}

const char *csn_wire_outcome_name(csn_commit_outcome outcome)
{
    static const char *const names[] = {
        [CSN_OUTCOME_NONE] = NULL,           [CSN_OUTCOME_APPLIED] = "applied",
        [CSN_OUTCOME_MERGED] = "merged",     [CSN_OUTCOME_SAME] = "same",
        [CSN_OUTCOME_CONFLICT] = "conflict", [CSN_OUTCOME_KEPT] = "kept",
        [CSN_OUTCOME_HELD] = "held"};

    return (size_t)outcome < sizeof(names) / sizeof(names[0]) ? names[outcome] : NULL;
}

/* Writes a text, or its bytes as base64 under NAME_base64. NULL: null. */
static void put_bytes(csn_json *j, const char *key, const char *text, size_t len)
{
    char key64[64];

    if (!text || csn_utf8_valid(text, len)) {
        csn_json_key(j, key);
        if (text)
            csn_json_strn(j, text, len);
        else
            csn_json_null(j);
        return;
    }
    snprintf(key64, sizeof(key64), "%s_base64", key);
    csn_json_key(j, key64);
    csn_json_base64(j, text, len);
}

void csn_wire_snapshot(csn_json *j, const csn_snapshot_result *r)
{
    csn_json_object(j);
    csn_json_kstr(j, "snapshot", r->snapshot);
    csn_json_kstr(j, "name", r->name);
    csn_json_kstr(j, "how", r->how);
    csn_json_object_end(j);
}

void csn_wire_snapshots(csn_json *j, const csn_snapshot_list *l)
{
    char when[CSN_ISO_SIZE];

    csn_json_array(j);
    for (size_t i = 0; i < l->count; i++) {
        const csn_snapshot_entry *e = &l->items[i];
        csn_iso8601(e->created_ms * 1000000, when);
        csn_json_object(j);
        csn_json_kstr(j, "name", e->name);
        csn_json_kstr(j, "snapshot", e->snapshot);
        csn_json_kstr(j, "created_at", when);
        csn_json_kstr(j, "how", e->how);
        csn_json_kbool(j, "automatic", e->automatic != 0);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

/* As git writes modes: "100644". */
static void put_mode(csn_json *j, const char *key, uint32_t mode)
{
    char text[16];

    snprintf(text, sizeof(text), "%06" PRIo32, mode);
    csn_json_kstr(j, key, mode ? text : NULL);
}

static void put_change(csn_json *j, const csn_change *c)
{
    csn_json_object(j);
    csn_wire_path(j, "path", c->path);
    csn_json_kstr(j, "kind", csn_wire_change_name(c->kind));
    put_mode(j, "mode_before", c->mode_before);
    put_mode(j, "mode_after", c->mode_after);
    csn_json_kuint(j, "size_before", c->size_before);
    csn_json_kuint(j, "size_after", c->size_after);
    csn_json_kbool(j, "binary", c->binary != 0);
    csn_json_kbool(j, "host_changed", c->host_changed != 0);
    csn_json_kuint(j, "lines_added", c->lines_added);
    csn_json_kuint(j, "lines_removed", c->lines_removed);
    csn_json_kstr(j, "hash_before", c->hash_before);
    csn_json_kstr(j, "hash_after", c->hash_after);
    csn_json_kstr(j, "held", c->held);
    if (c->outcome != CSN_OUTCOME_NONE) {
        csn_json_kstr(j, "outcome", csn_wire_outcome_name(c->outcome));
        csn_json_kstr(j, "why", c->why);
    }
    csn_json_object_end(j);
}

static void put_changes(csn_json *j, const csn_change *changes, size_t count)
{
    csn_json_key(j, "changes");
    csn_json_array(j);
    for (size_t i = 0; i < count; i++)
        put_change(j, &changes[i]);
    csn_json_array_end(j);
}

void csn_wire_diff(csn_json *j, const csn_diff_result *r)
{
    uint64_t added = 0, removed = 0;

    for (size_t i = 0; i < r->count; i++) {
        added += r->changes[i].lines_added;
        removed += r->changes[i].lines_removed;
    }
    csn_json_object(j);
    put_changes(j, r->changes, r->count);
    csn_json_kuint(j, "files", r->count);
    csn_json_kuint(j, "lines_added", added);
    csn_json_kuint(j, "lines_removed", removed);
    if (r->patch)
        put_bytes(j, "patch", r->patch, r->patch_len);
    csn_json_object_end(j);
}

static void put_conflict(csn_json *j, const csn_conflict *c)
{
    csn_json_object(j);
    csn_wire_path(j, "path", c->path);
    csn_json_kstr(j, "why", c->why);
    put_bytes(j, "base", c->base, c->base_len);
    put_bytes(j, "host", c->host, c->host_len);
    put_bytes(j, "sandbox", c->sandbox, c->sandbox_len);
    put_bytes(j, "merged", c->merged, c->merged_len);
    csn_json_object_end(j);
}

void csn_wire_commit(csn_json *j, const csn_commit_result *r)
{
    csn_json_object(j);
    csn_json_kbool(j, "written", r->written != 0);
    csn_json_kuint(j, "applied", r->applied);
    csn_json_kuint(j, "merged", r->merged);
    csn_json_kuint(j, "held", r->held);
    put_changes(j, r->changes, r->count);
    csn_json_key(j, "conflicts");
    csn_json_array(j);
    for (size_t i = 0; i < r->conflict_count; i++)
        put_conflict(j, &r->conflicts[i]);
    csn_json_array_end(j);
    csn_json_object_end(j);
}
