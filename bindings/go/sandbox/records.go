package sandbox

/*
#include "shim.h"
*/
import "C"

import "iter"

// AuditRead returns the lines (JSON) of a sandbox's audit log, by id or name, also after the sandbox
// has ended. An error is the last value. Each loop reads the log again.
func AuditRead(id string) iter.Seq2[string, error] { return auditLines(id, 0) }

// AuditReadFile is AuditRead for the log at a path (WithAudit).
func AuditReadFile(path string) iter.Seq2[string, error] { return auditLines(path, 1) }

func auditLines(id string, isFile C.int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var failure error
		read := func(emit func(string) error) {
			h := &hooks{write: func(line []byte) error { return emit(string(line)) }}
			failure = h.use(func(handle C.uintptr_t) error {
				return guard(func(m *arena, e **C.csn_error) C.csn_status {
					return C.caisson_go_audit_read(m.str(id), isFile, handle, e)
				})
			})
		}
		for line := range produce(read, func() {}) {
			if !yield(line, nil) {
				return
			}
		}
		if failure != nil {
			yield("", failure)
		}
	}
}

// AuditVerify recomputes the hash chain of a sandbox's audit log, by id or name.
func AuditVerify(id string) (*AuditReport, error) {
	return auditReport(func(m *arena, r **C.csn_audit_report, e **C.csn_error) C.csn_status {
		return C.csn_audit_verify(m.str(id), r, e)
	})
}

// AuditVerifyFile is AuditVerify for the log at a path (WithAudit).
func AuditVerifyFile(path string) (*AuditReport, error) {
	return auditReport(func(m *arena, r **C.csn_audit_report, e **C.csn_error) C.csn_status {
		return C.csn_audit_verify_file(m.str(path), r, e)
	})
}

func auditReport(call func(m *arena, r **C.csn_audit_report, e **C.csn_error) C.csn_status) (
	*AuditReport, error) {
	var r *C.csn_audit_report
	err := guard(func(m *arena, e **C.csn_error) C.csn_status { return call(m, &r, e) })
	if err != nil {
		return nil, err
	}
	defer C.csn_audit_report_free(r)
	report := toAuditReport(r)
	return &report, nil
}

// AuditLogs lists the audit logs of this user at the default place.
func AuditLogs() ([]AuditLog, error) {
	var r *C.csn_audit_logs_result
	err := guard(func(_ *arena, e **C.csn_error) C.csn_status { return C.csn_audit_logs(&r, e) })
	if err != nil {
		return nil, err
	}
	defer C.csn_audit_logs_free(r)
	return toAuditLogs(r.items, r.count), nil
}

// AuditRemove removes the log of a sandbox that has ended; ErrConflict: it has not.
func AuditRemove(id string) error {
	return guard(func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_audit_remove(m.str(id), e)
	})
}

// Forget removes the record of a sandbox in the state "unknown", and nothing else. ErrConflict: it
// has another state.
func Forget(id string) error {
	return guard(func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_forget(m.str(id), e)
	})
}

// AsideList lists the protected files that were moved out of workspaces of this user.
func AsideList() ([]AsideEntry, error) {
	var r *C.csn_aside_list_result
	err := guard(func(_ *arena, e **C.csn_error) C.csn_status { return C.csn_aside_list(&r, e) })
	if err != nil {
		return nil, err
	}
	defer C.csn_aside_list_free(r)
	return toAsideEntrys(r.items, r.count), nil
}

// AsideRestore moves one back to where it was. replace: also over a file that is there by now.
// Programs of the host may run it from then on, so the caller must trust it.
func AsideRestore(id string, replace bool) error {
	var flags C.uint32_t
	if replace {
		flags = C.CSN_ASIDE_REPLACE
	}
	return guard(func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_aside_restore(m.str(id), flags, e)
	})
}

// AsideRemove deletes one.
func AsideRemove(id string) error {
	return guard(func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_aside_remove(m.str(id), e)
	})
}
