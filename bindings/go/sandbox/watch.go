package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"iter"
	"sync"
	"unsafe"
)

// Watch is a stream of file events.
type Watch struct {
	c      *Caisson
	handle *C.csn_watch
	gate   gate
	mu     sync.Mutex // one wait at a time: `event` is its result
	event  *C.csn_event
}

// Watch watches a directory; with FileRecursive also those below it.
func (c *Caisson) Watch(ctx context.Context, path string, flags ...FileFlag) (*Watch, error) {
	w := &Watch{c: c}
	err := c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status {
		st := C.csn_watch_open(c.handle, m.str(path), flagsOf(flags), &w.handle, e)
		if st >= 0 {
			w.event = (*C.csn_event)(C.malloc(C.sizeof_csn_event))
			c.adopt(w)
		}
		return st
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Next waits for an event. ErrGone: the sandbox has ended; ErrNotFound: the directory was removed.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	if !w.gate.enter() {
		return Event{}, fail(ErrGone, "the watch is closed")
	}
	defer w.gate.leave()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		err := w.c.do(ctx, func(_ *arena, e **C.csn_error) C.csn_status {
			return C.csn_watch_next(w.handle, cSpan(waitStep), w.event, e)
		})
		if err == nil {
			return toEvent(w.event), nil
		}
		if !errors.Is(err, ErrTimeout) {
			return Event{}, err
		}
		if ctx.Err() != nil {
			return Event{}, contextError(ctx)
		}
		if w.gate.closing() {
			return Event{}, fail(ErrGone, "the watch is closed")
		}
	}
}

// Events returns events until ctx is done or the watch ends; the last value has the reason.
func (w *Watch) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			event, err := w.Next(ctx)
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the watch.
func (w *Watch) Close() error {
	if w.c.gate.enter() { // else Close of the sandbox does it
		defer w.c.gate.leave()
		w.release()
	}
	return nil
}

func (w *Watch) release() {
	if !w.gate.shut() {
		return
	}
	w.c.disown(w)
	w.gate.drain()
	C.csn_watch_free(w.handle)
	C.free(unsafe.Pointer(w.event))
}
