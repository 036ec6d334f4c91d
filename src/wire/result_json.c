/* result_json.c: writes results of the public API as JSON.
 *
 * The command line (--json) and the MCP server both use these functions, so a member has one
 * name and one meaning everywhere. To add a member, add a line to its function.
 *
 * Invariants: a member is always present (null when unknown) unless the header calls it
 * optional; no byte of a result is interpreted. An attacker controls file names, file contents,
 * command output and everything quoted in messages: the writer escapes them, and none is used
 * as a format or key. */
#include "wire/result_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

void csn_wire_path(csn_json *j, const char *key, const char *path)
{
    csn_json_kstr(j, key, path);
    if (!path || csn_utf8_valid(path, strlen(path)))
        return;
    char key64[64];
    snprintf(key64, sizeof(key64), "%s_base64", key);
    csn_json_key(j, key64);
    csn_json_base64(j, path, strlen(path));
}

static void put_time_ns(csn_json *j, const char *key, int64_t ns)
{
    char iso[CSN_ISO_SIZE];

    csn_iso8601(ns, iso);
    csn_json_kstr(j, key, iso);
}

/* Writes null for 0, which means never or unknown. */
static void put_time_ms(csn_json *j, const char *key, int64_t ms)
{
    if (ms == 0)
        csn_json_kstr(j, key, NULL);
    else
        put_time_ns(j, key, ms * 1000000);
}

static void put_double(csn_json *j, const char *key, double v)
{
    csn_json_key(j, key);
    csn_json_double(j, v);
}

/* Writes null for a value below `lowest`. */
static void put_int_from(csn_json *j, const char *key, int64_t v, int64_t lowest)
{
    csn_json_key(j, key);
    if (v < lowest)
        csn_json_null(j);
    else
        csn_json_int(j, v);
}

static void put_strings(csn_json *j, const char *key, const char *const *v)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (; v && *v; v++)
        csn_json_str(j, *v);
    csn_json_array_end(j);
}

static void put_denial_members(csn_json *j, const csn_denial *d)
{
    csn_json_kstr(j, "op", d->op);
    csn_wire_path(j, "target", d->target);
    csn_wire_path(j, "resolved", d->resolved);
    csn_json_kstr(j, "rule", d->rule);
    csn_json_kstr(j, "source", d->source);
    csn_json_kstr(j, "hint", d->hint);
}

void csn_wire_denial(csn_json *j, const csn_denial *d)
{
    csn_json_object(j);
    put_denial_members(j, d);
    csn_json_object_end(j);
}

static void put_denials(csn_json *j, const csn_denial *denials, size_t count)
{
    csn_json_key(j, "denials");
    csn_json_array(j);
    for (size_t i = 0; i < count; i++)
        csn_wire_denial(j, &denials[i]);
    csn_json_array_end(j);
}

static void put_layers(csn_json *j, const csn_layer *layers, size_t count)
{
    csn_json_key(j, "layers");
    csn_json_array(j);
    for (size_t i = 0; i < count; i++) {
        csn_json_object(j);
        csn_json_kstr(j, "name", layers[i].name);
        csn_json_kstr(j, "status", layers[i].status);
        csn_json_kstr(j, "detail", layers[i].detail);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

void csn_wire_rules(csn_json *j, const csn_rule_info *rules, size_t count)
{
    csn_json_key(j, "rules");
    csn_json_array(j);
    for (size_t i = 0; i < count; i++) {
        csn_json_object(j);
        csn_json_kstr(j, "rule", rules[i].rule);
        csn_json_kstr(j, "source", rules[i].source);
        csn_json_kstr(j, "enforced", rules[i].enforced);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

static void put_output(csn_json *j, const char *key, const csn_output *o)
{
    csn_json_key(j, key);
    csn_json_strn(j, o->data ? o->data : "", o->data ? o->len : 0);
}

static bool has_gap(const csn_output *o)
{
    return o->total > o->len && o->head > 0 && o->head < o->len;
}

/* Writes the byte offset of the removed middle, if head and tail were kept. */
static void put_gaps(csn_json *j, const csn_exec_result *r)
{
    if (!has_gap(&r->out) && !has_gap(&r->err) && !has_gap(&r->merged))
        return;
    csn_json_key(j, "gap_at");
    csn_json_object(j);
    if (has_gap(&r->out))
        csn_json_kuint(j, "stdout", r->out.head);
    if (has_gap(&r->err))
        csn_json_kuint(j, "stderr", r->err.head);
    if (has_gap(&r->merged))
        csn_json_kuint(j, "output", r->merged.head);
    csn_json_object_end(j);
}

static void put_totals(csn_json *j, uint64_t out, uint64_t err, const uint64_t *merged)
{
    csn_json_key(j, "total_bytes");
    csn_json_object(j);
    csn_json_kuint(j, "stdout", out);
    csn_json_kuint(j, "stderr", err);
    if (merged)
        csn_json_kuint(j, "output", *merged);
    csn_json_object_end(j);
}

void csn_wire_exec(csn_json *j, const csn_exec_result *r)
{
    csn_json_object(j);
    put_output(j, "stdout", &r->out);
    put_output(j, "stderr", &r->err);
    put_output(j, "output", &r->merged);
    put_int_from(j, "exit_code", r->exit_code, 0);
    csn_json_kstr(j, "signal", r->signal);
    put_double(j, "duration_ms", r->duration_ms);
    csn_json_kbool(j, "timed_out", r->timed_out != 0);
    csn_json_kbool(j, "interrupted", r->interrupted != 0);
    csn_json_kbool(j, "failed", r->failed != 0);
    csn_json_kbool(j, "truncated", r->truncated != 0);
    csn_json_kstr(j, "truncated_by", r->truncated_by);
    put_totals(j, r->out.total, r->err.total, &r->merged.total);
    put_gaps(j, r);
    csn_json_kstr(j, "killed_by", r->killed_by);
    csn_json_key(j, "usage");
    csn_json_object(j);
    put_double(j, "cpu_ms", r->cpu_ms);
    csn_json_kuint(j, "peak_memory", r->peak_memory);
    csn_json_object_end(j);
    put_denials(j, r->denials, r->denial_count);
    csn_json_kbool(j, "unchecked", r->unchecked != 0);
    put_layers(j, r->layers, r->layer_count);
    csn_json_kstr(j, "sandbox", r->sandbox);
    csn_json_object_end(j);
}

void csn_wire_exec_brief(csn_json *j, const csn_exec_result *r)
{
    put_output(j, "stdout", &r->out);
    put_output(j, "stderr", &r->err);
    if (r->exit_code >= 0)
        csn_json_kint(j, "exit_code", r->exit_code);
    if (r->signal)
        csn_json_kstr(j, "signal", r->signal);
    put_double(j, "duration_ms", r->duration_ms);
    csn_json_kbool(j, "timed_out", r->timed_out != 0);
    csn_json_kbool(j, "truncated", r->truncated != 0);
    if (r->truncated)
        put_totals(j, r->out.total, r->err.total, NULL);
    if (r->killed_by)
        csn_json_kstr(j, "killed_by", r->killed_by);
    if (r->denial_count > 0)
        put_denials(j, r->denials, r->denial_count);
    if (r->unchecked)
        csn_json_kbool(j, "unchecked", true);
}

void csn_wire_read(csn_json *j, const csn_read_result *r, bool base64)
{
    csn_json_object(j);
    csn_json_key(j, "content");
    if (base64 || r->is_image) {
        csn_json_base64(j, r->content, r->content_len);
        csn_json_kstr(j, "encoding", "base64");
    } else {
        csn_json_strn(j, r->content, r->content_len);
    }
    csn_json_kuint(j, "bytes", r->bytes);
    csn_json_kuint(j, "total_lines", r->total_lines);
    if (!r->total_lines_exact && !r->is_image)
        csn_json_kbool(j, "total_lines_exact", false);
    csn_json_kuint(j, "output_lines", r->output_lines);
    csn_json_kbool(j, "truncated", r->truncated != 0);
    csn_json_kstr(j, "truncated_by", r->truncated_by);
    csn_json_kstr(j, "mime_type", r->mime_type);
    csn_json_kstr(j, "hash", r->hash);
    csn_json_object_end(j);
}

void csn_wire_write(csn_json *j, const csn_write_result *r)
{
    csn_json_object(j);
    csn_wire_path(j, "path", r->path);
    csn_json_kuint(j, "bytes", r->bytes);
    csn_wire_path(j, "resolved_path", r->resolved_path);
    csn_json_kstr(j, "hash", r->hash);
    csn_json_kstr(j, "note", r->note);
    csn_json_object_end(j);
}

void csn_wire_edit(csn_json *j, const csn_edit_result *r)
{
    csn_json_object(j);
    csn_wire_path(j, "path", r->path);
    csn_json_kuint(j, "occurrences", r->occurrences);
    csn_json_kuint(j, "bytes", r->bytes);
    csn_wire_path(j, "resolved_path", r->resolved_path);
    csn_json_kstr(j, "hash", r->hash);
    csn_json_object_end(j);
}

void csn_wire_file(csn_json *j, const csn_file_info *f)
{
    char mode[16];

    snprintf(mode, sizeof(mode), "%04" PRIo32, f->mode & 07777);
    csn_json_object(j);
    csn_wire_path(j, "path", f->path);
    csn_json_kbool(j, "is_dir", f->is_dir != 0);
    csn_json_kuint(j, "size", f->file_size);
    put_time_ns(j, "modified_at", f->modified_ns);
    csn_json_kstr(j, "mode", mode);
    csn_json_kbool(j, "is_symlink", f->is_symlink != 0);
    if (f->target)
        csn_wire_path(j, "target", f->target);
    csn_json_object_end(j);
}

void csn_wire_files(csn_json *j, const csn_file_list *l)
{
    csn_json_array(j);
    for (size_t i = 0; i < l->count; i++)
        csn_wire_file(j, &l->items[i]);
    csn_json_array_end(j);
}

void csn_wire_grep(csn_json *j, const csn_grep_result *r)
{
    csn_json_array(j);
    for (size_t i = 0; i < r->count; i++) {
        const csn_grep_match *m = &r->items[i];
        csn_json_object(j);
        csn_wire_path(j, "path", m->path);
        csn_json_kuint(j, "line", m->line);
        csn_json_key(j, "text");
        csn_json_strn(j, m->text, m->text_len);
        if (m->is_context)
            csn_json_kbool(j, "is_context", true);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

void csn_wire_info(csn_json *j, const csn_info_result *r)
{
    csn_json_object(j);
    csn_json_kstr(j, "id", r->id);
    csn_json_kstr(j, "name", r->name);
    csn_json_kstr(j, "backend", r->backend);
    csn_json_kstr(j, "state", r->state);
    csn_json_kstr(j, "isolation", r->isolation);
    csn_json_kbool(j, "detached", r->detached != 0);
    csn_wire_path(j, "workspace", r->workspace);
    csn_wire_path(j, "workdir", r->workdir);
    csn_wire_path(j, "home", r->home);
    csn_json_kstr(j, "rg_path", r->rg_path);
    csn_json_key(j, "permissions");
    csn_json_object(j);
    csn_wire_path(j, "working_dir", r->workdir);
    put_strings(j, "write_dirs", r->write_dirs);
    put_strings(j, "read_dirs", r->read_dirs);
    csn_json_object_end(j);
    put_strings(j, "capabilities", r->capabilities);
    put_layers(j, r->layers, r->layer_count);
    csn_wire_rules(j, r->rules, r->rule_count);
    put_time_ms(j, "created_at", r->created_ms);
    put_time_ms(j, "expires_at", r->expires_ms);
    put_int_from(j, "keeper_pid", r->keeper_pid, 1);
    csn_json_object_end(j);
}

static void put_net_event(csn_json *j, const csn_net_event *e)
{
    csn_json_object(j);
    csn_json_kuint(j, "seq", e->seq);
    put_time_ms(j, "time", e->time_ms);
    csn_json_kstr(j, "kind", e->kind);
    csn_json_kstr(j, "verdict", e->verdict);
    csn_json_kstr(j, "protocol", e->protocol);
    csn_json_kstr(j, "host", e->host);
    csn_json_kstr(j, "address", e->address);
    csn_json_kuint(j, "port", e->port);
    csn_json_kstr(j, "rule", e->rule);
    csn_json_kstr(j, "hint", e->hint);
    csn_json_kstr(j, "why", e->why);
    csn_json_kuint(j, "up", e->up);
    csn_json_kuint(j, "down", e->down);
    csn_json_kuint(j, "duration_ms", e->duration_ms);
    csn_json_kuint(j, "count", e->count);
    csn_json_object_end(j);
}

void csn_wire_network(csn_json *j, const csn_net_result *r)
{
    csn_json_object(j);
    csn_json_kstr(j, "mode", r->mode);
    csn_json_kstr(j, "detail", r->detail);
    csn_json_kstr(j, "network", r->network);
    put_strings(j, "allow", r->net_allow);
    put_strings(j, "deny", r->net_deny);
    put_strings(j, "packages", r->packages);
    csn_json_kuint(j, "next", r->next);
    csn_json_kuint(j, "lost", r->lost);
    csn_json_key(j, "events");
    csn_json_array(j);
    for (uint32_t i = 0; i < r->event_count; i++)
        put_net_event(j, &r->events[i]);
    csn_json_array_end(j);
    csn_json_object_end(j);
}

void csn_wire_sandboxes(csn_json *j, const csn_sandbox_list *l)
{
    csn_json_array(j);
    for (size_t i = 0; i < l->count; i++) {
        const csn_sandbox_entry *e = &l->items[i];
        csn_json_object(j);
        csn_json_kstr(j, "id", e->id);
        csn_json_kstr(j, "name", e->name);
        csn_json_kstr(j, "backend", e->backend);
        csn_json_kstr(j, "state", e->state);
        csn_wire_path(j, "workspace", e->workspace);
        put_time_ms(j, "created_at", e->created_ms);
        csn_json_kstr(j, "forked_from", e->forked_from);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

void csn_wire_process(csn_json *j, const csn_process_info *p)
{
    csn_json_object(j);
    csn_json_kint(j, "pid", p->pid);
    csn_json_kstr(j, "command", p->command);
    csn_json_kstr(j, "state", p->state);
    put_int_from(j, "exit_code", p->exit_code, 0);
    csn_json_kstr(j, "signal", p->signal);
    put_totals(j, p->out_total, p->err_total, NULL);
    put_time_ms(j, "started_at", p->started_ms);
    csn_json_kbool(j, "pty", p->pty != 0);
    csn_json_object_end(j);
}

void csn_wire_processes(csn_json *j, const csn_process_list *l)
{
    csn_json_array(j);
    for (size_t i = 0; i < l->count; i++)
        csn_wire_process(j, &l->items[i]);
    csn_json_array_end(j);
}

void csn_wire_log_chunk(csn_json *j, int stream, const csn_log_chunk *c, size_t len)
{
    csn_json_object(j);
    csn_json_kstr(j, "stream", stream == CSN_STDERR ? "stderr" : "stdout");
    csn_json_key(j, "data");
    csn_json_strn(j, c->data, len);
    csn_json_kuint(j, "offset", c->offset);
    csn_json_kuint(j, "dropped", c->dropped);
    csn_json_object_end(j);
}

const char *csn_wire_event_name(uint32_t kind)
{
    switch (kind) {
    case CSN_EVENT_CREATE:
        return "create";
    case CSN_EVENT_MODIFY:
        return "modify";
    case CSN_EVENT_DELETE:
        return "delete";
    case CSN_EVENT_RENAME:
        return "rename";
    case CSN_EVENT_OVERFLOW:
        return "overflow";
    default:
        return "unknown";
    }
}

void csn_wire_event(csn_json *j, const csn_event *e)
{
    csn_json_object(j);
    csn_json_kstr(j, "event", csn_wire_event_name(e->kind));
    csn_wire_path(j, "path", e->path);
    csn_json_kbool(j, "is_dir", e->is_dir != 0);
    csn_json_object_end(j);
}

void csn_wire_verdict(csn_json *j, const csn_verdict *v)
{
    csn_json_object(j);
    csn_json_kbool(j, "allowed", v->allowed != 0);
    put_denial_members(j, &v->why);
    csn_json_kstr(j, "enforced", v->enforced);
    csn_json_object_end(j);
}

void csn_wire_audit_report(csn_json *j, const csn_audit_report *r)
{
    csn_json_object(j);
    csn_json_kbool(j, "ok", r->ok != 0);
    csn_json_kuint(j, "lines", r->lines);
    put_int_from(j, "bad_line", (int64_t)r->bad_line, 1);
    csn_json_kstr(j, "reason", r->reason);
    csn_json_kuint(j, "gaps", r->gaps);
    csn_json_object_end(j);
}

void csn_wire_doctor(csn_json *j, const csn_doctor_result *r)
{
    csn_json_object(j);
    csn_json_kbool(j, "ok", r->ok != 0);
    csn_json_kstr(j, "rung", r->rung);
    csn_json_kuint(j, "duration_ms", r->duration_ms);
    csn_json_key(j, "checks");
    csn_json_array(j);
    for (size_t i = 0; i < r->count; i++) {
        csn_json_object(j);
        csn_json_kstr(j, "name", r->items[i].name);
        csn_json_kstr(j, "status", r->items[i].status);
        csn_json_kstr(j, "detail", r->items[i].detail);
        csn_json_kstr(j, "fix", r->items[i].fix);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
    csn_json_object_end(j);
}

void csn_wire_error(csn_json *j, const csn_error *e, const char *op)
{
    const csn_denial *d = csn_error_denial(e);
    const char *own = csn_error_op(e);

    csn_json_object(j);
    csn_json_kstr(j, "code", csn_status_name(csn_error_code(e)));
    csn_json_kstr(j, "message", csn_error_message(e));
    csn_json_kstr(j, "op", own ? own : op);
    csn_wire_path(j, "path", csn_error_path(e));
    csn_json_kstr(j, "hint", csn_error_hint(e));
    if (d) {
        csn_json_key(j, "denial");
        csn_json_object(j);
        put_denial_members(j, d);
        csn_json_object_end(j);
    }
    csn_json_object_end(j);
}

void csn_wire_error_text(csn_json *j, csn_status code, const char *op, const char *message,
                         const char *hint)
{
    csn_json_object(j);
    csn_json_kstr(j, "code", csn_status_name(code));
    csn_json_kstr(j, "message", message);
    csn_json_kstr(j, "op", op);
    csn_json_kstr(j, "path", NULL);
    csn_json_kstr(j, "hint", hint);
    csn_json_object_end(j);
}
