// Package parallel calls a function for all elements of a list at the same time.
package parallel

import (
	"errors"
	"sync"
)

// Each calls f for every element, with its index, all at the same time. It waits for
// all calls and joins their errors in the order of the list.
func Each[T any](list []T, f func(i int, x T) error) error {
	errs := make([]error, len(list))
	var running sync.WaitGroup
	for i, x := range list {
		running.Go(func() { errs[i] = f(i, x) })
	}
	running.Wait()
	return errors.Join(errs...)
}
