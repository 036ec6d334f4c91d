package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"time"
)

// Caisson is a handle of one sandbox.
type Caisson struct {
	handle   *C.csn_sandbox
	id       string
	detached bool
	gate     gate
	layers   atomic.Pointer[[]Layer] // of the last command

	mu       sync.Mutex
	cancels  map[*canceller]struct{} // of the calls that are under way
	children map[child]struct{}      // processes and watches, which are freed before the sandbox
	denial   cgo.Handle              // of OnDenial, or 0
}

// child is a handle that belongs to a sandbox.
type child interface{ release() }

// Open opens a sandbox.
func Open(t Type, opts ...Option) (*Caisson, error) {
	text, err := configJSON(t, opts)
	if err != nil {
		return nil, err
	}
	var conf *C.csn_config
	var sb *C.csn_sandbox
	err = guard(func(m *arena, e **C.csn_error) C.csn_status {
		st := C.csn_config_parse(m.str(string(text)), C.size_t(len(text)), m.str("options"),
			&conf, e)
		if st < 0 {
			return st
		}
		return C.csn_open(conf, &sb, e)
	})
	defer C.csn_config_free(conf)
	if err != nil {
		return nil, err
	}
	return newCaisson(sb, conf.flags&C.CSN_OPEN_DETACHED != 0), nil
}

// Connect returns a handle of a detached sandbox by its id or name, from any process of the same
// user.
func Connect(id string) (*Caisson, error) {
	var sb *C.csn_sandbox
	err := guard(func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_connect(m.str(id), &sb, e)
	})
	if err != nil {
		return nil, err
	}
	return newCaisson(sb, true), nil
}

func newCaisson(sb *C.csn_sandbox, detached bool) *Caisson {
	return &Caisson{handle: sb, id: C.GoString(C.csn_id(sb)), detached: detached,
		cancels: map[*canceller]struct{}{}, children: map[child]struct{}{}}
}

// guard makes one call of the library with its arguments in an arena.
func guard(fn func(m *arena, e **C.csn_error) C.csn_status) (err error) {
	var m arena
	defer m.release()
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(nulError)
			if !ok {
				panic(r)
			}
			err = fail(ErrInvalid, "%q: a NUL byte cannot be passed on", bad.text)
		}
	}()
	var cerr *C.csn_error
	if st := fn(&m, &cerr); st < 0 {
		return takeError(st, cerr)
	}
	return nil
}

// do makes one call on the sandbox.
func (c *Caisson) do(ctx context.Context, fn func(m *arena, e **C.csn_error) C.csn_status) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	if !c.gate.enter() {
		return c.closedError()
	}
	defer c.gate.leave()
	return guard(fn)
}

func (c *Caisson) closedError() error {
	return fail(ErrGone, "sandbox %s is closed", c.id)
}

// doCancel makes one call that the end of ctx stops.
func (c *Caisson) doCancel(ctx context.Context,
	fn func(m *arena, k *C.csn_cancel, e **C.csn_error) C.csn_status) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	if !c.gate.enter() {
		return c.closedError()
	}
	defer c.gate.leave()
	k, err := newCanceller(ctx, c)
	if err != nil {
		return err
	}
	defer k.retire()
	err = guard(func(m *arena, e **C.csn_error) C.csn_status { return fn(m, k.forC(), e) })
	if err != nil && ctx.Err() != nil {
		return contextError(ctx)
	}
	return err
}

func (c *Caisson) adopt(p child) {
	c.mu.Lock()
	c.children[p] = struct{}{}
	c.mu.Unlock()
}

func (c *Caisson) disown(p child) {
	c.mu.Lock()
	delete(c.children, p)
	c.mu.Unlock()
}

// Close ends all calls, processes and watches of this handle and frees it. A sandbox that is not
// detached is destroyed. Closing twice is no error.
func (c *Caisson) Close() error {
	if !c.gate.shut() {
		return nil
	}
	var err error
	if c.detached {
		c.fireAll()
	} else { // ends the calls that wait
		err = guard(func(_ *arena, e **C.csn_error) C.csn_status {
			return C.csn_destroy(c.handle, e)
		})
	}
	for _, p := range c.orphans() {
		p.release()
	}
	c.gate.drain()
	C.csn_close(c.handle)
	c.handle = nil
	if c.denial != 0 {
		c.denial.Delete()
	}
	return err
}

func (c *Caisson) fireAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.cancels {
		k.fire()
	}
}

func (c *Caisson) orphans() []child {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []child
	for p := range c.children {
		list = append(list, p)
	}
	return list
}

// ID returns the id, which Connect takes.
func (c *Caisson) ID() string { return c.id }

// Destroy ends every process and removes the sandbox. Every later call is ErrGone. Destroying
// twice is no error.
func (c *Caisson) Destroy(ctx context.Context) error {
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_destroy(c.handle, e)
	})
}

// Reset destroys the sandbox; the next call opens a new one with the same id. Only for backends
// that open at the first call (capability lazy).
func (c *Caisson) Reset(ctx context.Context) error {
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_reset(c.handle, e)
	})
}

// OnDenial sets the function that Destroy and Close call for each denial that belongs to no result,
// such as a protected file that a background process left. It must not use the sandbox. nil: none.
func (c *Caisson) OnDenial(fn func(Denial)) error {
	return c.do(context.Background(), func(_ *arena, _ **C.csn_error) C.csn_status {
		c.mu.Lock()
		defer c.mu.Unlock()
		old := c.denial
		c.denial = 0
		if fn != nil {
			c.denial = cgo.NewHandle(&hooks{denial: fn})
		}
		C.caisson_go_on_denial(c.handle, C.uintptr_t(c.denial))
		if old != 0 {
			old.Delete()
		}
		return C.CSN_OK
	})
}

// Info describes the sandbox.
func (c *Caisson) Info(ctx context.Context) (*Info, error) {
	var r *C.csn_info_result
	err := c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_info(c.handle, &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_info_free(r)
	info := toInfo(r)
	return &info, nil
}

// SetWorkdir changes the directory that commands and relative paths start from.
func (c *Caisson) SetWorkdir(ctx context.Context, path string) error {
	return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_set_workdir(c.handle, m.str(path), e)
	})
}

// Cleanup removes everything in the workspace. A directory that existed before the sandbox is
// ErrDenied unless force is set.
func (c *Caisson) Cleanup(ctx context.Context, force bool) error {
	var flags C.uint32_t
	if force {
		flags = C.CSN_CLEANUP_FORCE
	}
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_cleanup_with(c.handle, flags, e)
	})
}

// Extend sets the end of the sandbox to this time from now.
func (c *Caisson) Extend(ctx context.Context, d time.Duration) error {
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_extend(c.handle, cSpan(d), e)
	})
}

// Pause suspends all processes and the lifetime of the sandbox until Resume or Connect.
func (c *Caisson) Pause(ctx context.Context) error {
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_pause(c.handle, e)
	})
}

// Resume ends a pause.
func (c *Caisson) Resume(ctx context.Context) error {
	return c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_resume(c.handle, e)
	})
}

// Network returns the network rules of the sandbox and its network events from number since on.
func (c *Caisson) Network(ctx context.Context, since int64) (*NetworkInfo, error) {
	var r *C.csn_net_result
	err := c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
		return C.csn_network(c.handle, C.uint64_t(since), &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_network_free(r)
	info := toNetworkInfo(r)
	return &info, nil
}

// SetNetwork replaces all network rules of the sandbox.
func (c *Caisson) SetNetwork(ctx context.Context, opts *NetworkOptions) error {
	return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_network_set(c.handle, opts.toC(m), e)
	})
}

// WouldAllow checks an operation on a path, command or host against the policy, without doing it.
func (c *Caisson) WouldAllow(ctx context.Context, op Op, target string) (*Verdict, error) {
	var r *C.csn_verdict
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_would_allow(c.handle, C.uint32_t(op), m.str(target), &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_verdict_free(r)
	v := toVerdict(r)
	return &v, nil
}

// Sandboxes lists the detached sandboxes of this user, oldest first.
func Sandboxes() ([]SandboxEntry, error) {
	var r *C.csn_sandbox_list
	err := guard(func(_ *arena, e **C.csn_error) C.csn_status { return C.csn_sandboxes(&r, e) })
	if err != nil {
		return nil, err
	}
	defer C.csn_sandbox_list_free(r)
	return toSandboxEntrys(r.items, r.count), nil
}

// DestroyID destroys a sandbox by id or name, without a handle. onDenial is as for OnDenial.
func DestroyID(id string, onDenial func(Denial)) error {
	destroy := func(handle C.uintptr_t) error {
		return guard(func(m *arena, e **C.csn_error) C.csn_status {
			return C.caisson_go_destroy_id(m.str(id), handle, e)
		})
	}
	if onDenial == nil {
		return destroy(0)
	}
	h := &hooks{denial: onDenial}
	return h.use(destroy)
}

// Doctor checks which parts of the backend jail work on this host, with a real sandbox on the
// workspace (empty: the current directory).
func Doctor(workspace string) (*DoctorResult, error) {
	var r *C.csn_doctor_result
	err := guard(func(m *arena, e **C.csn_error) C.csn_status {
		return C.csn_doctor(m.optional(workspace), &r, e)
	})
	if err != nil {
		return nil, err
	}
	defer C.csn_doctor_result_free(r)
	d := toDoctorResult(r)
	return &d, nil
}

// Version returns the version of the library.
func Version() string { return C.GoString(C.csn_version()) }

var logging struct {
	mu     sync.Mutex
	handle cgo.Handle
}

// SetLog sets the function that receives debug lines of the library, from any thread. Set it before
// any other call. nil: none.
func SetLog(fn func(line string)) {
	logging.mu.Lock()
	defer logging.mu.Unlock()
	var next cgo.Handle
	if fn != nil {
		next = cgo.NewHandle(&hooks{log: fn})
	}
	C.caisson_go_set_log(C.uintptr_t(next))
	// The old handle stays: another thread may be about to use it.
	logging.handle = next
}
