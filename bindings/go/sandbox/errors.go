package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func (c Code) Error() string {
	if text, known := codeTexts[c]; known {
		return text
	}
	return string(c)
}

// Error is why a call failed. errors.Is matches its Code (ErrNotFound), the error of the standard
// library with the same meaning (fs.ErrNotExist, context.Canceled), and Errno.
type Error struct {
	Code    Code
	Message string        // the library's
	Op      string        // or empty
	Path    string        // of a file, or empty
	Hint    string        // what would help, or empty
	Errno   syscall.Errno // 0 when no system call failed
	Denial  *Denial       // nil unless Code is ErrDenied or ErrOutside
	cause   error         // of a context
}

func (e *Error) Error() string { return e.Message }

// Is tells whether target has the meaning of the code.
func (e *Error) Is(target error) bool {
	if code, ok := target.(Code); ok {
		return code == e.Code
	}
	for _, same := range standard[e.Code] {
		if target == same {
			return true
		}
	}
	return false
}

// Unwrap returns the error of the system call and the cause of the context, if there are any.
func (e *Error) Unwrap() []error {
	var inner []error
	if e.Errno != 0 {
		inner = append(inner, e.Errno)
	}
	if e.cause != nil {
		inner = append(inner, e.cause)
	}
	return inner
}

var standard = map[Code][]error{
	ErrInvalid:     {fs.ErrInvalid},
	ErrDenied:      {fs.ErrPermission},
	ErrOutside:     {fs.ErrPermission},
	ErrNotFound:    {fs.ErrNotExist},
	ErrExists:      {fs.ErrExist},
	ErrGone:        {fs.ErrClosed},
	ErrTimeout:     {os.ErrDeadlineExceeded},
	ErrUnsupported: {errors.ErrUnsupported},
}

// takeError converts an error of the library and frees it.
func takeError(st C.csn_status, e *C.csn_error) *Error {
	defer C.csn_error_free(e)
	err := &Error{Code: codes[int(st)], Message: C.GoString(C.csn_error_message(e)),
		Op: C.GoString(C.csn_error_op(e)), Path: C.GoString(C.csn_error_path(e)),
		Hint: C.GoString(C.csn_error_hint(e)), Errno: syscall.Errno(C.csn_error_errno(e))}
	if d := C.csn_error_denial(e); d != nil {
		denial := toDenial(d)
		err.Denial = &denial
	}
	if err.Message == "" {
		err.Message = err.Code.Error()
	}
	return err
}

func fail(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// contextError is the error of a call that its context ended.
func contextError(ctx context.Context) error {
	code, cause := ErrCancelled, context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = ErrTimeout
	}
	err := fail(code, "%v", cause)
	err.cause = cause
	if !errors.Is(cause, ctx.Err()) {
		err.cause = errors.Join(ctx.Err(), cause)
	}
	return err
}
