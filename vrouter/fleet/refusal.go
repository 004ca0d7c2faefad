package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"windtunnel/vrouter/model"
)

// Why a change is refused.
type Why int

// The reasons.
const (
	Invalid  Why = iota + 1 // it makes no valid state
	NotFound                // what it names is not there
	Exists                  // another has the name, the address, the place
	InUse                   // others depend on it
	Full                    // no address, no number is left
)

// Refusal is an error of who asks, in words for people. Nothing was changed.
type Refusal struct {
	Why Why
	Err error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(why Why, format string, args ...any) error {
	return &Refusal{why, fmt.Errorf(format, args...)}
}

// IsWhy tells whether an error is a refusal for a reason.
func IsWhy(err error, why Why) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Why == why
}

// missing says that an object is not there, and which was meant.
func missing[V any](kind, plural, name string, known map[string]V) error {
	if len(known) == 0 {
		return refuse(NotFound, "there is no %s %q, and no other; make one with `vrouter %s`, or with `vrouter apply`", kind, name, kind)
	}
	return refuse(NotFound, "there is no %s %q; %s", kind, name, model.Meant(plural, name, slices.Sorted(maps.Keys(known))))
}
