package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// Stream is the number of an output stream.
type Stream int

// The streams of a command.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Exec runs bash -c command, or sh -c command if the sandbox has no bash.
func (c *Caisson) Exec(ctx context.Context, command string) (*ExecResult, error) {
	return c.Sh(ctx, command, nil)
}

// Sh is Exec with options. If ctx ends the command, both results are set.
func (c *Caisson) Sh(ctx context.Context, command string, opts *ExecOptions) (*ExecResult, error) {
	return c.exec(ctx, opts, func(m *arena, o *C.csn_exec_opts, r **C.csn_exec_result,
		e **C.csn_error) C.csn_status {
		return C.csn_sh(c.handle, m.str(command), o, r, e)
	})
}

// Run runs a program with its arguments, unchanged and without a shell. If ctx ends the command,
// both results are set.
func (c *Caisson) Run(ctx context.Context, argv []string, opts *ExecOptions) (*ExecResult, error) {
	return c.exec(ctx, opts, func(m *arena, o *C.csn_exec_opts, r **C.csn_exec_result,
		e **C.csn_error) C.csn_status {
		return C.csn_exec(c.handle, m.strings(argv), o, r, e)
	})
}

type execCall func(m *arena, o *C.csn_exec_opts, r **C.csn_exec_result, e **C.csn_error) C.csn_status

func (c *Caisson) exec(ctx context.Context, opts *ExecOptions, call execCall) (*ExecResult, error) {
	input, err := opts.openInput()
	if err != nil {
		return nil, err
	}
	defer input.close()
	var r *C.csn_exec_result
	run := func(handle C.uintptr_t) error {
		return c.doCancel(ctx, func(m *arena, k *C.csn_cancel, e **C.csn_error) C.csn_status {
			o := opts.toC(m)
			opts.keep(o)
			input.put(m, o)
			o.cancel = k
			if handle != 0 {
				C.caisson_go_exec_hooks(o, handle, cBool(opts.hasOutput()), cBool(opts.OnDenial != nil))
			}
			return call(m, o, &r, e)
		})
	}
	if opts.hasOutput() || (opts != nil && opts.OnDenial != nil) {
		h := &hooks{output: opts.pass, denial: opts.onDenial}
		err = h.use(run)
	} else {
		err = run(0)
	}
	defer C.csn_exec_result_free(r)
	if r == nil {
		return nil, err
	}
	return c.finish(ctx, r, err, input)
}

// finish converts a result and adds the error of a context or of the input.
func (c *Caisson) finish(ctx context.Context, r *C.csn_exec_result, err error,
	in *input) (*ExecResult, error) {
	res := toExecResult(r)
	res.Layers = c.layersOf(r.layers, r.layer_count)
	merged := viewOf(unsafe.Pointer(r.merged.data), r.merged.len)
	if string(merged) == res.Stdout { // no second copy
		res.Output = res.Stdout
	} else {
		res.Output = string(merged)
	}
	if err == nil && res.Interrupted && !res.TimedOut && ctx.Err() != nil {
		err = contextError(ctx)
	}
	if err == nil {
		err = in.failure()
	}
	return &res, err
}

// layersOf converts the layers of a result. They are the same after most commands: the strings of
// the last conversion are used again.
func (c *Caisson) layersOf(items *C.csn_layer, count C.size_t) []Layer {
	last := c.layers.Load()
	if last == nil || !sameLayers(unsafe.Slice(items, int(count)), *last) {
		list := toLayers(items, count)
		c.layers.Store(&list)
		last = &list
	}
	return slices.Clone(*last)
}

func sameLayers(items []C.csn_layer, list []Layer) bool {
	if len(items) != len(list) {
		return false
	}
	for i := range items {
		if !sameText(items[i].name, list[i].Name) || !sameText(items[i].status, list[i].Status) ||
			!sameText(items[i].detail, list[i].Detail) {
			return false
		}
	}
	return true
}

func cBool(on bool) C.int {
	if on {
		return 1
	}
	return 0
}

func (o *ExecOptions) hasOutput() bool {
	return o != nil && (o.OnOutput != nil || o.Stdout != nil || o.Stderr != nil)
}

func (o *ExecOptions) onDenial(d Denial) { o.OnDenial(d) }

// pass gives one piece of output to those that want it. Writers must not keep it.
func (o *ExecOptions) pass(stream Stream, data []byte) error {
	w := o.Stdout
	if stream == Stderr {
		w = o.Stderr
	}
	if w != nil {
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if o.OnOutput != nil {
		return o.OnOutput(stream, bytes.Clone(data))
	}
	return nil
}

// keep sets the flag of Keep. The library refuses both flags together, which stand for another word.
func (o *ExecOptions) keep(r *C.csn_exec_opts) {
	switch {
	case o == nil || o.Keep == "":
	case o.Keep == "tail":
		r.flags |= C.CSN_EXEC_KEEP_TAIL
	case o.Keep == "both":
		r.flags |= C.CSN_EXEC_KEEP_BOTH
	}
}

// input is the standard input of one command: bytes, or a descriptor that a goroutine may feed.
type input struct {
	data   []byte
	file   *os.File
	own    bool
	failed chan error
}

// openInput prepares the standard input. nil options have none.
func (o *ExecOptions) openInput() (*input, error) {
	if o != nil && o.Keep != "" && o.Keep != "tail" && o.Keep != "both" {
		return nil, fail(ErrInvalid, "Keep is %q, not \"tail\" or \"both\"", o.Keep)
	}
	if o == nil || o.Stdin == nil {
		return nil, nil
	}
	switch r := o.Stdin.(type) {
	case *os.File:
		return &input{file: r}, nil
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		data, err := io.ReadAll(r)
		return &input{data: data}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in := &input{file: r, own: true, failed: make(chan error, 1)}
	go in.feed(o.Stdin, w)
	return in, nil
}

// feed copies until the end of the reader, or until the command has ended.
func (in *input) feed(r io.Reader, w *os.File) {
	_, err := io.Copy(w, r)
	w.Close()
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		in.failed <- err
	}
}

func (in *input) put(m *arena, o *C.csn_exec_opts) {
	if in == nil {
		return
	}
	if in.file != nil {
		o.flags |= C.CSN_EXEC_STDIN_FD
		o.stdin_fd = C.int32_t(in.file.Fd())
		return
	}
	o.stdin_data = m.pin(in.data)
	o.stdin_len = C.size_t(len(in.data))
}

func (in *input) close() {
	if in != nil && in.own {
		in.file.Close()
	}
}

// failure is the error of the reader, if it came before the end of the command.
func (in *input) failure() error {
	if in == nil || in.failed == nil {
		return nil
	}
	select {
	case err := <-in.failed:
		return err
	default:
		return nil
	}
}

// Chunk is a piece of output.
type Chunk struct {
	Stream Stream
	Data   []byte
}

// Streaming is a command whose output is read while it runs.
type Streaming struct {
	run    func(ctx context.Context, out func(Stream, []byte) error) (*ExecResult, error)
	ctx    context.Context
	begun  bool
	result *ExecResult
	err    error
}

// Stream runs a shell command when Chunks or Result is called.
func (c *Caisson) Stream(ctx context.Context, command string, opts *ExecOptions) *Streaming {
	return &Streaming{ctx: ctx, run: func(ctx context.Context,
		out func(Stream, []byte) error) (*ExecResult, error) {
		var o ExecOptions
		if opts != nil {
			o = *opts
		}
		o.OnOutput = out
		return c.Sh(ctx, command, &o)
	}}
}

// Chunks runs the command and returns its output in order as it arrives. The command waits until a
// chunk has been taken. A break ends the command.
func (s *Streaming) Chunks() iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		if s.begun {
			return
		}
		s.begun = true
		ctx, cancel := context.WithCancel(s.ctx)
		run := func(emit func(Chunk) error) {
			s.result, s.err = s.run(ctx, func(stream Stream, data []byte) error {
				return emit(Chunk{stream, data})
			})
		}
		for chunk := range produce(run, cancel) {
			if !yield(chunk) {
				return
			}
		}
	}
}

// Result returns the end of the command. It runs the command if Chunks has not.
func (s *Streaming) Result() (*ExecResult, error) {
	if !s.begun {
		for range s.Chunks() {
		}
	}
	return s.result, s.err
}
