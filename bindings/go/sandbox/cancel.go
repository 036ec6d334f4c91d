package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"sync"
)

// unused has cancel handles that were never fired, for reuse: each one has a descriptor.
var unused = make(chan *C.csn_cancel, 64)

// canceller stops one call: when its context is done, or when the sandbox is closed.
type canceller struct {
	c       *Caisson
	handle  *C.csn_cancel
	stop    func() bool
	mu      sync.Mutex
	fired   bool
	retired bool
}

// newCanceller registers a cancel handle for a call of c; nil if nothing would fire it: the end of a
// sandbox that is not detached stops its calls by itself.
func newCanceller(ctx context.Context, c *Caisson) (*canceller, error) {
	if ctx.Done() == nil && !c.detached {
		return nil, nil
	}
	k := &canceller{c: c}
	select {
	case k.handle = <-unused:
	default:
		var cerr *C.csn_error
		if st := C.csn_cancel_new(&k.handle, &cerr); st < 0 {
			return nil, takeError(st, cerr)
		}
	}
	c.mu.Lock()
	c.cancels[k] = struct{}{}
	closed := c.gate.closing()
	c.mu.Unlock()
	if closed {
		k.fire()
	}
	if ctx.Done() != nil {
		k.stop = context.AfterFunc(ctx, k.fire)
	}
	return k, nil
}

func (k *canceller) fire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.retired {
		k.fired = true
		C.csn_cancel_fire(k.handle)
	}
}

func (k *canceller) forC() *C.csn_cancel {
	if k == nil {
		return nil
	}
	return k.handle
}

// retire ends the use of the handle. The call that had it has returned.
func (k *canceller) retire() {
	if k == nil {
		return
	}
	if k.stop != nil {
		k.stop()
	}
	k.c.mu.Lock()
	delete(k.c.cancels, k)
	k.c.mu.Unlock()
	k.mu.Lock()
	k.retired = true
	k.mu.Unlock()
	if !k.fired {
		select {
		case unused <- k.handle:
			return
		default:
		}
	}
	C.csn_cancel_free(k.handle)
}
