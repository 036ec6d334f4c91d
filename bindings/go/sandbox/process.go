package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"io"
	"iter"
	"syscall"
	"time"
	"unsafe"
)

// Process is a background process of a sandbox.
type Process struct {
	c      *Caisson
	handle *C.csn_process
	pid    int64
	gate   gate
}

// ProcessEnd describes a process that has ended.
type ProcessEnd struct {
	ProcessInfo
	// Denials name protected files that the process left and that were moved to the quarantine.
	Denials []Denial `json:"denials"`
}

// Start starts a program and returns at once. Timeout 0 means none.
func (c *Caisson) Start(ctx context.Context, argv []string, opts *ExecOptions) (*Process, error) {
	return c.start(ctx, opts, func(m *arena, o *C.csn_exec_opts, r **C.csn_process,
		e **C.csn_error) C.csn_status {
		return C.csn_start(c.handle, m.strings(argv), o, r, e)
	})
}

// StartSh starts a shell command and returns at once. Timeout 0 means none.
func (c *Caisson) StartSh(ctx context.Context, command string, opts *ExecOptions) (*Process, error) {
	return c.start(ctx, opts, func(m *arena, o *C.csn_exec_opts, r **C.csn_process,
		e **C.csn_error) C.csn_status {
		return C.csn_start_sh(c.handle, m.str(command), o, r, e)
	})
}

func (c *Caisson) start(ctx context.Context, opts *ExecOptions, call func(m *arena,
	o *C.csn_exec_opts, r **C.csn_process, e **C.csn_error) C.csn_status) (*Process, error) {
	if opts.hasOutput() || (opts != nil && opts.OnDenial != nil) {
		return nil, fail(ErrInvalid, "start: OnOutput, Stdout, Stderr and OnDenial are for commands "+
			"that are waited for; use Follow")
	}
	in, err := opts.openInput()
	if err != nil {
		return nil, err
	}
	defer in.close()
	if in != nil && in.own {
		return nil, fail(ErrInvalid, "start: Stdin must be in memory or a file; use StdinPipe and Write")
	}
	return c.process(ctx, func(m *arena, r **C.csn_process, e **C.csn_error) C.csn_status {
		o := opts.toC(m)
		opts.keep(o)
		in.put(m, o)
		return call(m, o, r, e)
	})
}

// OpenProcess returns a handle of an existing process.
func (c *Caisson) OpenProcess(ctx context.Context, pid int64) (*Process, error) {
	return c.process(ctx, func(_ *arena, r **C.csn_process, e **C.csn_error) C.csn_status {
		return C.csn_process_open(c.handle, C.int64_t(pid), r, e)
	})
}

func (c *Caisson) process(ctx context.Context,
	call func(m *arena, r **C.csn_process, e **C.csn_error) C.csn_status) (*Process, error) {
	p := &Process{c: c}
	var handle *C.csn_process
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		st := call(m, &handle, e)
		if st >= 0 {
			p.handle = handle
			p.pid = int64(C.csn_process_pid(p.handle))
			c.adopt(p) // while the call counts, so that Close finds it
		}
		return st
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Processes lists the background processes of the sandbox.
func (c *Caisson) Processes(ctx context.Context) ([]ProcessInfo, error) {
	var r *C.csn_process_list
	err := c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_processes(c.handle, &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_process_list_free(r)
	return toProcessInfos(r.items, r.count), nil
}

// WaitPort waits until a process listens on this port of the sandbox's loopback.
func (c *Caisson) WaitPort(ctx context.Context, port uint16, timeout time.Duration) error {
	return c.doRecordedWait(ctx, timeout, func(_ *arena, ms C.uint64_t, e **C.csn_error) C.csn_status {
		return C.csn_wait_port(c.handle, C.uint16_t(port), ms, e)
	})
}

// WaitLog waits until the log of a background process contains text.
func (c *Caisson) WaitLog(ctx context.Context, text string, timeout time.Duration) error {
	return c.doRecordedWait(ctx, timeout, func(m *arena, ms C.uint64_t, e **C.csn_error) C.csn_status {
		return C.csn_wait_log(c.handle, m.str(text), ms, e)
	})
}

// PID returns the number of the process in the sandbox.
func (p *Process) PID() int64 { return p.pid }

// Close frees the handle. The process goes on, unless it was started with Tied.
func (p *Process) Close() error {
	if p.c.gate.enter() { // else Close of the sandbox does it
		defer p.c.gate.leave()
		p.release()
	}
	return nil
}

func (p *Process) release() {
	if !p.gate.shut() {
		return
	}
	p.c.disown(p)
	p.gate.drain()
	C.csn_process_free(p.handle)
}

// enter begins a call on the process.
func (p *Process) enter() error {
	if !p.gate.enter() {
		return fail(ErrGone, "the handle of process %d is closed", p.pid)
	}
	return nil
}

func (p *Process) do(ctx context.Context, fn func(m *arena, e **C.csn_error) C.csn_status) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.gate.leave()
	return p.c.do(ctx, fn)
}

// Wait waits until the process has ended; ErrTimeout: it still runs.
func (p *Process) Wait(ctx context.Context, timeout time.Duration) (*ProcessEnd, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	var r *C.csn_process_list
	err := p.c.doWait(ctx, timeout, func(_ *arena, ms C.uint64_t, e **C.csn_error) C.csn_status {
		return C.csn_process_wait(p.handle, ms, &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_process_list_free(r)
	return &ProcessEnd{toProcessInfos(r.items, r.count)[0], toDenials(r.denials, r.denial_count)}, nil
}

// Logs returns output from byte offset on. If there is none yet, it waits for it.
func (p *Process) Logs(ctx context.Context, stream Stream, offset int64,
	wait time.Duration) (*LogChunk, error) {
	end := time.Now().Add(wait)
	for {
		left := time.Until(end)
		if wait == NoLimit {
			left = NoLimit
		}
		chunk, err := p.logs(ctx, stream, offset, max(0, min(left, waitStep)))
		if err != nil || chunk.Data != "" || chunk.End || left <= waitStep {
			return chunk, err
		}
	}
}

func (p *Process) logs(ctx context.Context, stream Stream, offset int64,
	wait time.Duration) (*LogChunk, error) {
	var r *C.csn_log_chunk
	err := p.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_process_logs(p.handle, C.int(stream), C.uint64_t(offset), cSpan(wait), &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_log_chunk_free(r)
	chunk := toLogChunk(r)
	return &chunk, nil
}

// Follow returns the output of a stream from its start until its end, as it arrives.
func (p *Process) Follow(ctx context.Context, stream Stream) iter.Seq2[*LogChunk, error] {
	return func(yield func(*LogChunk, error) bool) {
		for at, ended := int64(0), false; !ended; {
			chunk, err := p.Logs(ctx, stream, at, NoLimit)
			if err != nil {
				yield(nil, err)
				return
			}
			at, ended = chunk.Offset+int64(len(chunk.Data)), chunk.End
			if chunk.Data != "" && !yield(chunk, nil) {
				return
			}
		}
	}
}

// Reader returns the output of a stream from its start until its end, as it arrives.
func (p *Process) Reader(ctx context.Context, stream Stream) io.Reader {
	return &logReader{ctx: ctx, p: p, stream: stream}
}

type logReader struct {
	ctx    context.Context
	p      *Process
	stream Stream
	at     int64
	rest   string
	ended  bool
}

func (r *logReader) Read(buf []byte) (int, error) {
	for r.rest == "" && !r.ended {
		chunk, err := r.p.Logs(r.ctx, r.stream, r.at, NoLimit)
		if err != nil {
			return 0, err
		}
		r.at, r.rest, r.ended = chunk.Offset+int64(len(chunk.Data)), chunk.Data, chunk.End
	}
	if r.rest == "" && len(buf) > 0 {
		return 0, io.EOF
	}
	n := copy(buf, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Signal sends a signal to the process group; SIGKILL and SIGTERM go to the whole process tree.
func (p *Process) Signal(ctx context.Context, signal syscall.Signal) error {
	return p.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_process_signal(p.handle, C.int(signal), e)
	})
}

// writeTimeout bounds Write, which a process that does not read would block.
const writeTimeout = 30 * time.Second

// Write writes to the standard input of a process that was started with StdinPipe. It waits up to
// 30 seconds for the process to read.
func (p *Process) Write(data []byte) (int, error) {
	err := p.WriteTimeout(context.Background(), data, writeTimeout)
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// WriteTimeout is Write with a context, which is checked before the call, and a time.
func (p *Process) WriteTimeout(ctx context.Context, data []byte, timeout time.Duration) error {
	if len(data) == 0 {
		return nil
	}
	return p.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_process_write(p.handle, unsafe.Pointer(unsafe.SliceData(data)),
			C.size_t(len(data)), cSpan(timeout), e)
	})
}

// CloseStdin closes the standard input of the process.
func (p *Process) CloseStdin(ctx context.Context) error {
	return p.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_process_close_stdin(p.handle, e)
	})
}

// Resize changes the size of the terminal of a process that was started with PTY.
func (p *Process) Resize(ctx context.Context, rows, cols uint16) error {
	return p.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_process_resize(p.handle, C.uint16_t(rows), C.uint16_t(cols), e)
	})
}
