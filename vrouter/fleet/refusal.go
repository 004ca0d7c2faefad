package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"windtunnel/internal/phrase"
)

// Why is the reason of a refusal.
type Why int

// The reasons.
const (
	Invalid  Why = iota + 1 // the state would be invalid
	NotFound                // an object that the request names does not exist
	Exists                  // another object has the name or the address
	InUse                   // other objects depend on the object
	Full                    // no address or number is free
)

// Refusal is an error of the request, with a text for users. Nothing was changed.
type Refusal struct {
	Why Why
	Err error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(why Why, format string, args ...any) error {
	return &Refusal{why, fmt.Errorf(format, args...)}
}

// IsWhy reports whether an error is a refusal with this reason.
func IsWhy(err error, why Why) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Why == why
}

// missing says that an object does not exist, and suggests similar names.
func missing[V any](kind, plural, name string, known map[string]V) error {
	if len(known) == 0 {
		verb := "create"
		if kind == "node" || kind == "port" {
			verb = "add"
		}
		return refuse(NotFound, "there is no %s %q; the fleet has no %s; %s one with `vrouter %s %s` or `vrouter apply`", kind, name, plural, verb, kind, verb)
	}
	return refuse(NotFound, "there is no %s %q; %s", kind, name, phrase.Meant(plural, name, slices.Sorted(maps.Keys(known))))
}
