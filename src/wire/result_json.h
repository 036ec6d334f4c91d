/* result_json.h: writes results of the public API as JSON, in one shape for every program.
 *
 * Each function writes one value; errors stick in the writer (json_write.h). Members have the
 * names of the public structs, times are ISO 8601 in UTC, unknown values are null. Bytes that
 * are not UTF-8 become U+FFFD; a path with such bytes gets a second member NAME_base64. */
#pragma once
#include <stdbool.h>

#include "base/json_write.h"
#include "caisson/caisson.h"

/* A member with the path and, if it is not UTF-8, a second one with its exact bytes. */
void csn_wire_path(csn_json *j, const char *key, const char *path);
void csn_wire_exec(csn_json *j, const csn_exec_result *r);
/* Writes members into an object that the caller has opened, for agents: fewer than
 * csn_wire_exec, and without unknown values. */
void csn_wire_exec_brief(csn_json *j, const csn_exec_result *r);
/* Images are always base64. */
void csn_wire_read(csn_json *j, const csn_read_result *r, bool base64);
void csn_wire_write(csn_json *j, const csn_write_result *r);
void csn_wire_edit(csn_json *j, const csn_edit_result *r);
void csn_wire_file(csn_json *j, const csn_file_info *f);
void csn_wire_files(csn_json *j, const csn_file_list *l);
void csn_wire_grep(csn_json *j, const csn_grep_result *r);
void csn_wire_info(csn_json *j, const csn_info_result *r);
/* The member "rules" of an open object. */
void csn_wire_rules(csn_json *j, const csn_rule_info *rules, size_t count);
void csn_wire_network(csn_json *j, const csn_net_result *r);
void csn_wire_sandboxes(csn_json *j, const csn_sandbox_list *l);
void csn_wire_process(csn_json *j, const csn_process_info *p);
void csn_wire_processes(csn_json *j, const csn_process_list *l);
/* Writes the first `len` bytes of the chunk; `stream` is CSN_STDOUT or CSN_STDERR. */
void csn_wire_log_chunk(csn_json *j, int stream, const csn_log_chunk *c, size_t len);
void csn_wire_event(csn_json *j, const csn_event *e);
void csn_wire_verdict(csn_json *j, const csn_verdict *v);
void csn_wire_audit_report(csn_json *j, const csn_audit_report *r);
void csn_wire_doctor(csn_json *j, const csn_doctor_result *r);

/* {"op","target","resolved","rule","source","hint"}: an element of "denials". */
void csn_wire_denial(csn_json *j, const csn_denial *d);
/* {"code","message","op","path","hint","denial"?}. `op` is used if the error names none. */
void csn_wire_error(csn_json *j, const csn_error *e, const char *op);
/* As csn_wire_error, from code and texts. */
void csn_wire_error_text(csn_json *j, csn_status code, const char *op, const char *message,
                         const char *hint);

const char *csn_wire_event_name(uint32_t kind); /* "create" ... */
