package sandbox

/*
#include "shim.h"
#include <time.h>
*/
import "C"

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/cgo"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Backend runs commands somewhere. The library derives every file call from Exec, with the tools of
// a POSIX shell.
type Backend interface {
	// Exec runs one command to its end. ctx ends at the command's timeout and when it is
	// cancelled: the whole process tree must end then. An error means that the backend itself
	// failed; a command that cannot be started is a BackendResult with Spawn set.
	Exec(ctx context.Context, req *BackendRequest) (BackendResult, error)
}

// BackendRequest is one command for a Backend.
type BackendRequest struct {
	Argv   []string // not empty; never join it
	Env    []string // NAME=value, added to the backend's own environment
	Cwd    string   // empty: the backend's own
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Merge  bool // standard error belongs to Stdout
}

// BackendResult is the end of a command of a Backend.
type BackendResult struct {
	ExitCode int            // -1: unknown or signalled
	Signal   syscall.Signal // 0: none
	Spawn    string         // why the command was not started, or empty
}

// RegisterBackend makes a backend available to New and Open by its name, for the life of the
// process. ErrExists: the name is taken.
func RegisterBackend(name Type, b Backend) error {
	handle := cgo.NewHandle(b)
	kept := C.CString(string(name))
	err := guard(func(m *arena, e **C.csn_error) C.csn_status {
		m.str(string(name)) // refuses a NUL byte
		return C.caisson_go_register(kept, C.uintptr_t(handle), e)
	})
	if err != nil {
		handle.Delete()
		C.free(unsafe.Pointer(kept))
	}
	return err
}

//export caissonGoExec
func caissonGoExec(handle C.uintptr_t, req *C.csn_exec_req, sink *C.csn_sink,
	ret *C.csn_exec_end, e **C.csn_error) C.csn_status {
	x := &execution{req: req, sink: sink, writes: make(chan piece), done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := x.watch(cancel)
	defer stop()
	ended := make(chan outcome, 1)
	go func() { ended <- x.run(ctx, cgo.Handle(handle).Value().(Backend)) }()
	for {
		select {
		case p := <-x.writes: // on this thread: the library is not called from others
			p.taken <- x.write(p, cancel)
		case end := <-ended:
			close(x.done)
			x.reads.Lock() // a read that is under way ends before the request does
			defer x.reads.Unlock()
			return x.finish(ctx, end, ret, e)
		}
	}
}

var (
	errTimeout  = errors.New("the command's time is over")
	errStopped  = errors.New("the command was cancelled")
	errFinished = errors.New("the command has ended")
)

// execution is one command of a Backend.
type execution struct {
	req    *C.csn_exec_req
	sink   *C.csn_sink
	writes chan piece
	done   chan struct{}
	reads  sync.Mutex // held during a read of the library's source
}

type piece struct {
	stream C.int
	data   []byte
	taken  chan error
}

type outcome struct {
	result BackendResult
	err    error
}

// watch cancels at the deadline and when a cancel descriptor becomes readable.
func (x *execution) watch(cancel context.CancelCauseFunc) (stop func()) {
	var timer *time.Timer
	if x.req.deadline_ns != 0 {
		left := time.Duration(uint64(x.req.deadline_ns) - monotonic())
		timer = time.AfterFunc(left, func() { cancel(errTimeout) })
	}
	r, w, err := os.Pipe()
	var waiting sync.WaitGroup
	if err == nil {
		fd := C.int(r.Fd())
		waiting.Go(func() {
			if C.caisson_go_await(C.int(x.req.cancel_fds[0]), C.int(x.req.cancel_fds[1]), fd) < 2 {
				cancel(errStopped)
			}
		})
	} else {
		cancel(err) // a command that cannot be cancelled must not run
	}
	return func() {
		if timer != nil {
			timer.Stop()
		}
		if err == nil {
			w.Close()
			waiting.Wait()
			r.Close()
		}
		cancel(nil)
	}
}

func monotonic() uint64 {
	var t C.struct_timespec
	C.clock_gettime(C.CLOCK_MONOTONIC, &t)
	return uint64(t.tv_sec)*1e9 + uint64(t.tv_nsec)
}

func (x *execution) run(ctx context.Context, b Backend) (end outcome) {
	defer func() {
		if r := recover(); r != nil {
			end.err = fail(ErrInternal, "the backend panicked: %v", r)
		}
	}()
	req := &BackendRequest{Argv: stringsOf(x.req.argv), Env: stringsOf(x.req.env),
		Cwd: C.GoString(x.req.cwd), Merge: x.req.flags&C.CSN_EXEC_MERGE != 0,
		Stdin: emptyReader{}, Stdout: sinkWriter{x, C.CSN_STDOUT}, Stderr: sinkWriter{x, C.CSN_STDERR}}
	if x.req.input_fd >= 0 {
		fd, err := syscall.Dup(int(x.req.input_fd))
		if err != nil {
			return outcome{err: err}
		}
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "stdin")
		defer file.Close()
		req.Stdin = file
	} else if x.req.input != nil {
		req.Stdin = sourceReader{x}
	}
	end.result, end.err = b.Exec(ctx, req)
	return end
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

// sourceReader reads the library's input until the command has ended.
type sourceReader struct{ x *execution }

func (r sourceReader) Read(buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	r.x.reads.Lock()
	defer r.x.reads.Unlock()
	select {
	case <-r.x.done:
		return 0, errFinished
	default:
	}
	n := C.caisson_go_source_read(r.x.req.input, unsafe.Pointer(unsafe.SliceData(buf)),
		C.size_t(len(buf)))
	if n < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if n == 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

// sinkWriter gives output to the thread that the library called.
type sinkWriter struct {
	x      *execution
	stream C.int
}

func (w sinkWriter) Write(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	p := piece{w.stream, data, make(chan error, 1)}
	select {
	case w.x.writes <- p:
	case <-w.x.done:
		return 0, errFinished
	}
	if err := <-p.taken; err != nil {
		return 0, err
	}
	return len(data), nil
}

func (x *execution) write(p piece, cancel context.CancelCauseFunc) error {
	n := C.caisson_go_sink_write(x.sink, p.stream, unsafe.Pointer(unsafe.SliceData(p.data)),
		C.size_t(len(p.data)))
	if n == C.CSN_SINK_STOP {
		cancel(errStopped)
		return errStopped
	}
	return nil
}

// finish fills in the result for the library.
func (x *execution) finish(ctx context.Context, end outcome, ret *C.csn_exec_end,
	e **C.csn_error) C.csn_status {
	cause := context.Cause(ctx)
	ret.exit_code, ret.signal = C.int32_t(end.result.ExitCode), C.int32_t(end.result.Signal)
	switch {
	case errors.Is(cause, errTimeout):
		ret.how = C.CSN_END_TIMEOUT
	case errors.Is(cause, errStopped):
		ret.how = C.CSN_END_CANCEL
	case cause != nil:
		return setError(e, cause)
	case end.err != nil:
		return setError(e, end.err)
	case end.result.Spawn != "":
		ret.how, ret.exit_code = C.CSN_END_SPAWN, 127
		room := unsafe.Slice((*byte)(unsafe.Pointer(&ret.message[0])), len(ret.message))
		room[copy(room[:len(room)-1], end.result.Spawn)] = 0
	}
	return C.CSN_OK
}

func setError(e **C.csn_error, err error) C.csn_status {
	st := C.csn_status(C.CSN_IO)
	var own *Error
	if errors.As(err, &own) {
		for n, code := range codes {
			if code == own.Code {
				st = C.csn_status(n)
			}
		}
	}
	text := C.CString(err.Error())
	defer C.free(unsafe.Pointer(text))
	return C.caisson_go_error_set(e, st, text)
}
