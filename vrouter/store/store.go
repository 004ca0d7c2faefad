// Package store keeps a fleet's desired state as keys and values with
// revisions: in a file for one host, in etcd for many, the two alike to whoever
// uses them. It knows nothing of what the values mean; package fleet does.
package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Store is where the keys are. Every commit has a revision, larger than all
// before it; every entry the revision of the commit that wrote it. A Store may be
// used by several goroutines.
type Store interface {
	// Read returns every entry, as of one revision.
	Read(ctx context.Context) (Image, error)
	// Watch calls what it is given with every commit after a revision, in order
	// and none left out, until ctx ends or the store does not answer any more,
	// which it returns. ErrCompacted: what came after that revision is forgotten;
	// Read anew. alive is called, also while nothing is committed, whenever the
	// store proved that it is there.
	Watch(ctx context.Context, after int64, changed func(Changes), alive func()) error
	// Commit writes everything or nothing. *ConflictError: what was read is not
	// as it was. An error that is ErrUnavailable may come after the commit was
	// made.
	Commit(ctx context.Context, c Commit) (revision int64, err error)
	// Hold keeps a key with a value until ctx ends, this process dies or cannot
	// reach the store, and for ttl longer. It returns once the key is written, in
	// place of the entry of a revision, 0 for none; a *ConflictError where it is
	// another's. lost is closed when the key is gone, because the store was out of
	// reach for longer than ttl; hold it again then.
	Hold(ctx context.Context, key string, value []byte, revision int64, ttl time.Duration) (lost <-chan struct{}, err error)
	// MaxKeys is how many keys a commit may write, and how many it may depend on.
	MaxKeys() int
	Close() error
}

// Entry is a key with its value.
type Entry struct {
	Key      string
	Value    []byte
	Revision int64 // of the commit that wrote it
}

// Image is all that there was at a revision.
type Image struct {
	Revision int64
	Entries  []Entry // sorted by key
}

// Changes are what one commit did, or several at once.
type Changes struct {
	Revision int64 // of the last commit
	Put      []Entry
	Deleted  []string
}

// Commit is a change that depends on what was read before. It is made if what
// was read is as it was.
type Commit struct {
	// Exact are keys that must have these revisions still; 0: be absent.
	Exact map[string]int64
	// Ranges are key prefixes under which nothing may be newer than a revision.
	// Deletions are not noticed: what must still exist stands in Exact.
	Ranges map[string]int64
	Put    map[string][]byte
	Delete []string
}

// MaxValue is the most bytes of a value.
const MaxValue = 1 << 20

// ErrCompacted is why a watch cannot go on from a revision.
var ErrCompacted = errors.New("the store forgot what changed since then")

// ErrUnavailable is what an error of a store that does not answer wraps.
var ErrUnavailable = errors.New("the store is out of reach")

// ConflictError is why a commit was not made: others changed what it was
// decided by. Read again, decide again, commit again.
type ConflictError struct {
	Keys []string // that differ, as far as the store says
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("somebody else changed %v meanwhile", e.Keys)
}

// check refuses what a store of so many keys a commit cannot do.
func (c Commit) check(most int) error {
	if n := len(c.Put) + len(c.Delete); n > most {
		return fmt.Errorf("a commit of %d keys; %d are allowed", n, most)
	}
	if n := len(c.Exact) + len(c.Ranges); n > most {
		return fmt.Errorf("a commit that depends on %d keys; %d are allowed", n, most)
	}
	for _, key := range c.Delete {
		if _, both := c.Put[key]; both {
			return fmt.Errorf("a commit that puts and deletes %s", key)
		}
	}
	for key, value := range c.Put {
		if len(value) > MaxValue {
			return fmt.Errorf("the value of %s has %d bytes; %d are allowed", key, len(value), MaxValue)
		}
	}
	return nil
}

func (c Commit) sortedPut() []string { return slices.Sorted(maps.Keys(c.Put)) }
