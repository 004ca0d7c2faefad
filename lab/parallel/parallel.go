// Package parallel does the same with every element of a list at once.
package parallel

import (
	"errors"
	"sync"
)

// Each calls f for every element, all at once, and returns when all calls have
// returned. It joins their errors in the list's order.
func Each[T any](list []T, f func(i int, x T) error) error {
	errs := make([]error, len(list))
	var running sync.WaitGroup
	for i, x := range list {
		running.Go(func() { errs[i] = f(i, x) })
	}
	running.Wait()
	return errors.Join(errs...)
}
