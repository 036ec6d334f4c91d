package sandbox

import (
	"errors"
	"iter"
)

// errEnough ends a producer whose consumer has left its loop.
var errEnough = errors.New("the loop over the output has ended")

// produce turns a function that emits values from callbacks of C into an iterator. The function runs
// on a goroutine of its own, so that the body of the loop may do anything, and waits until the value
// before has been taken. When the loop is left, stop is called; the loop ends when the function has.
func produce[T any](run func(emit func(T) error), stop func()) iter.Seq[T] {
	return func(yield func(T) bool) {
		values, left, done := make(chan T), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			run(func(v T) error {
				select {
				case values <- v:
					return nil
				case <-left:
					return errEnough
				}
			})
		}()
		defer func() { close(left); stop(); <-done }()
		for {
			select {
			case v := <-values:
				if !yield(v) {
					return
				}
			case <-done:
				return
			}
		}
	}
}
