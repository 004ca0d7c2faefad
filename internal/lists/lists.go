// Package lists converts slices. The standard library has no such function.
package lists

// Map calls f for each element, and returns the results in the same order. The result for an empty list is nil.
func Map[E, T any](list []E, f func(E) T) (all []T) {
	for _, e := range list {
		all = append(all, f(e))
	}
	return all
}
