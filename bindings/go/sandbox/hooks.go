package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"io"
	"runtime/cgo"
	"unsafe"
)

// hooks are the Go functions that C calls during one call. A panic in one of them must not unwind
// the library's frames: it ends the call like an error and continues in the caller.
type hooks struct {
	output    func(stream Stream, data []byte) error
	denial    func(Denial)
	write     func(data []byte) error
	read      func(buf []byte) (int, error)
	progress  func(entries, bytes int64)
	protected func(path, rule string)
	log       func(line string)

	err      error // of the hook that ended the call
	panicked any
}

// use gives fn a handle of the hooks and returns the error of a hook, or else that of fn.
func (h *hooks) use(fn func(handle C.uintptr_t) error) error {
	handle := cgo.NewHandle(h)
	defer handle.Delete()
	err := fn(C.uintptr_t(handle))
	if h.panicked != nil {
		panic(h.panicked)
	}
	if h.err != nil {
		return h.err
	}
	return err
}

// run calls a hook; false: the call must end.
func (h *hooks) run(fn func() error) bool {
	if h.err != nil || h.panicked != nil {
		return false
	}
	defer func() {
		if r := recover(); r != nil {
			h.panicked = r
		}
	}()
	h.err = fn()
	return h.err == nil
}

func hooksOf(handle C.uintptr_t) *hooks {
	return cgo.Handle(handle).Value().(*hooks)
}

// stopIf is 1, which stops a call, unless the hook went well.
func stopIf(ok bool) C.int {
	if ok {
		return 0
	}
	return 1
}

//export caissonGoOutput
func caissonGoOutput(handle C.uintptr_t, stream C.int, data unsafe.Pointer, n C.size_t) C.int {
	h := hooksOf(handle)
	ok := h.run(func() error { return h.output(Stream(stream), viewOf(data, n)) })
	return stopIf(ok && h.panicked == nil)
}

//export caissonGoDenial
func caissonGoDenial(handle C.uintptr_t, d *C.csn_denial) {
	h := hooksOf(handle)
	h.run(func() error { h.denial(toDenial(d)); return nil })
}

//export caissonGoProgress
func caissonGoProgress(handle C.uintptr_t, entries, bytes C.uint64_t) {
	h := hooksOf(handle)
	h.run(func() error { h.progress(int64(entries), int64(bytes)); return nil })
}

//export caissonGoProtected
func caissonGoProtected(handle C.uintptr_t, path, rule *C.char) {
	h := hooksOf(handle)
	h.run(func() error { h.protected(C.GoString(path), C.GoString(rule)); return nil })
}

//export caissonGoLog
func caissonGoLog(handle C.uintptr_t, line *C.char) {
	hooksOf(handle).log(C.GoString(line))
}

//export caissonGoWrite
func caissonGoWrite(handle C.uintptr_t, data unsafe.Pointer, n C.size_t) C.int {
	h := hooksOf(handle)
	ok := h.run(func() error { return h.write(viewOf(data, n)) })
	return stopIf(ok && h.panicked == nil)
}

//export caissonGoRead
func caissonGoRead(handle C.uintptr_t, buf unsafe.Pointer, n C.size_t) C.int64_t {
	h := hooksOf(handle)
	var got int
	ok := h.run(func() error {
		var err error
		got, err = readSome(h.read, viewOf(buf, n))
		return err
	})
	if !ok || h.panicked != nil {
		return -1
	}
	return C.int64_t(got)
}

// readSome reads at least one byte, or returns 0 at the end: that is what 0 means to the library.
func readSome(read func([]byte) (int, error), buf []byte) (int, error) {
	for range 100 {
		n, err := read(buf)
		if n > 0 {
			return n, nil // an error comes again
		}
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}
