package sandbox

/*
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"time"
)

// The library has no cancel handle for calls that only wait. They are made in steps, so that a
// context and Close end them.
const (
	// waitStep is for calls that the library does not record.
	waitStep = 100 * time.Millisecond
	// recordedStep is for calls that write a line to the audit log each time.
	recordedStep = 2 * time.Second
)

type waitCall func(m *arena, ms C.uint64_t, e **C.csn_error) C.csn_status

// doWait waits in short steps on this goroutine: no result of a step is lost.
func (c *Caisson) doWait(ctx context.Context, timeout time.Duration, fn waitCall) error {
	return inSteps(ctx, timeout, waitStep, func(step time.Duration) error {
		return c.do(ctx, func(m *arena, e **C.csn_error) C.csn_status { return fn(m, cSpan(step), e) })
	})
}

// doRecordedWait waits in long steps, each on a goroutine that is left behind when ctx is done. If
// neither a context nor a detached sandbox can end it early, it is one call.
func (c *Caisson) doRecordedWait(ctx context.Context, timeout time.Duration, fn waitCall) error {
	wait := func(step time.Duration) error {
		return c.do(context.WithoutCancel(ctx), func(m *arena, e **C.csn_error) C.csn_status {
			return fn(m, cSpan(step), e)
		})
	}
	if ctx.Done() == nil && !c.detached {
		return wait(timeout)
	}
	return inSteps(ctx, timeout, recordedStep, func(step time.Duration) error {
		if ctx.Err() != nil {
			return contextError(ctx)
		}
		ended := make(chan error, 1)
		go func() { ended <- wait(step) }()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return contextError(ctx)
		}
	})
}

// inSteps repeats a wait until it is something else than ErrTimeout, the time has passed or ctx is
// done.
func inSteps(ctx context.Context, timeout, step time.Duration, wait func(time.Duration) error) error {
	end := time.Now().Add(timeout)
	for {
		left := time.Until(end)
		if timeout == NoLimit {
			left = NoLimit
		}
		err := wait(min(left, step))
		if !errors.Is(err, ErrTimeout) || left <= step {
			return err
		}
		if ctx.Err() != nil {
			return contextError(ctx)
		}
	}
}
