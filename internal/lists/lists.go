// Package lists makes a list from another one, as the standard library has no such function.
package lists

// Map returns the results of f for all elements, in order; nil for an empty list.
func Map[E, T any](list []E, f func(E) T) (all []T) {
	for _, e := range list {
		all = append(all, f(e))
	}
	return all
}
