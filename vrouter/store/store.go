// Package store keeps a fleet's desired state as keys and values with
// revisions: in a file for one host, in etcd for many hosts. Both have the same
// interface. Package fleet interprets the values.
package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Store holds keys and values. Every commit has a revision, larger than all
// earlier ones. Every entry has the revision of the commit that wrote it. Several
// goroutines can use a Store at the same time.
type Store interface {
	// Read returns the entries of spans of keys as of a revision; 0: the newest. Without
	// spans it returns all entries except the keys under Unique. It returns ErrCompacted if
	// the store no longer has the revision.
	Read(ctx context.Context, at int64, spans ...Span) (Image, error)
	// Watch calls changed with the changes of a span by every commit after a revision, in
	// order. Changes without keys mean that no key of the span changed up to their revision.
	// Watch returns an error when ctx ends or when the store no longer answers. It returns
	// ErrCompacted if the store no longer has the commits after that revision, and a
	// *WentBackError if the store has an older revision than before; call Read
	// again. Watch calls alive whenever the store has
	// answered, also without a commit. If alive is nil, Watch may not notice that the store
	// no longer answers: then call another Watch with alive at the same time.
	Watch(ctx context.Context, s Span, after int64, changed func(Changes), alive func()) error
	// Commit writes everything or nothing. It returns a *ConflictError if a key
	// that the commit depends on has changed. If it returns ErrUnavailable, the
	// store may still have made the commit.
	Commit(ctx context.Context, c Commit) (revision int64, err error)
	// Hold writes a key, returns, and keeps the key in the store. The key
	// expires ttl after ctx ends, this process dies or the store becomes
	// unreachable. Before the write the key must have the given revision; 0: it
	// must be absent. Otherwise Hold returns a *ConflictError. The channel lost
	// closes when another commit has deleted or changed the key, when the key
	// has expired because the store was unreachable for longer than ttl, when the store
	// went back to an older revision, or when the watch of the key ends. A file store holds no keys.
	Hold(ctx context.Context, key string, value []byte, revision int64, ttl time.Duration) (lost <-chan struct{}, err error)
	// MaxKeys is the maximum number of keys that a commit can write. It is also
	// the maximum number that a commit can depend on.
	MaxKeys() int
	Close() error
}

// Unique is the prefix of keys that exist only so that commits conflict. All other
// keys must sort before it. A file store does not write these keys to the disk, and neither
// reads nor watches them; see Commit.Base.
const Unique = "unique/"

// Span has the keys from From up to, but not including, To.
type Span struct{ From, To string }

// All has all keys except those under Unique.
var All = Span{"", Unique}

// Under returns the span of the keys with a prefix, which must not be empty.
func Under(prefix string) Span {
	last := len(prefix) - 1
	return Span{prefix, prefix[:last] + string(prefix[last]+1)}
}

// Has reports whether a span has a key.
func (s Span) Has(key string) bool { return s.From <= key && key < s.To }

// Entry is a key with its value.
type Entry struct {
	Key      string
	Value    []byte
	Revision int64 // of the commit that wrote it
	Created  int64 // of the commit that created the key; in a file store it is equal to Revision
}

// Image is the content of a store at a revision.
type Image struct {
	Revision int64
	Entries  []Entry // in no order
}

// Changes are the changes of one commit, or of several together.
type Changes struct {
	Revision int64 // of the last commit
	Put      []Entry
	Deleted  []string
}

// IsEmpty reports whether no key has changed.
func (c Changes) IsEmpty() bool { return len(c.Put) == 0 && len(c.Deleted) == 0 }

// Commit is a change that depends on keys that were read before. It fails if one
// of them has changed.
type Commit struct {
	// Base is the revision of the copy from which the commit was computed. For a key
	// under Unique, a file store knows only the latest commits. It refuses the commit if
	// it does not have all commits since Base.
	Base int64
	// Exact maps keys to the revisions that they must still have; 0: the key
	// must be absent.
	Exact map[string]int64
	// Ranges are key prefixes under which no key may be newer than a revision. They
	// do not detect deletions: put keys that must still exist into Exact.
	Ranges map[string]int64
	Put    map[string][]byte
	Delete []string
}

// maxValue is the maximum size of a value in bytes.
const maxValue = 1 << 20

// ErrCompacted says that a watch cannot continue from a revision.
var ErrCompacted = errors.New("the store no longer has the changes since that revision")

// WentBackError says that the store has an older revision than before, for example because it
// was restored from a backup. It wraps ErrCompacted: read the store again.
type WentBackError struct {
	From, To int64 // revisions
}

func (e *WentBackError) Error() string {
	return fmt.Sprintf("the store went back from revision %d to %d: it was restored from a backup, or replaced by another store", e.From, e.To)
}

func (*WentBackError) Unwrap() error { return ErrCompacted }

// ErrUnavailable is wrapped by the errors of a store that does not answer.
var ErrUnavailable = errors.New("the store is unreachable")

// ErrDenied means that the store refused a request, because the client's user has no
// role that allows it.
var ErrDenied = errors.New("permission denied")

// ConflictError says that keys which a commit depends on have changed. Read them
// again and retry.
type ConflictError struct {
	Keys []string // the changed keys, as far as the store reports them
	// Revisions has the current revisions of the exact keys among Keys; 0: the key is absent.
	// A file store does not report revisions.
	Revisions map[string]int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("another client has changed %v; retry", e.Keys)
}

// check refuses a commit that is too large or contradicts itself.
func (c Commit) check(maxKeys int) error {
	if n := len(c.Put) + len(c.Delete); n > maxKeys {
		return fmt.Errorf("commit %d keys: at most %d are allowed", n, maxKeys)
	}
	if n := len(c.Exact) + len(c.Ranges); n > maxKeys {
		return fmt.Errorf("commit: it depends on %d keys, at most %d are allowed", n, maxKeys)
	}
	for _, key := range c.Delete {
		if _, both := c.Put[key]; both {
			return fmt.Errorf("commit: it both puts and deletes %s", key)
		}
	}
	for key, value := range c.Put {
		if len(value) > maxValue {
			return fmt.Errorf("commit: the value of %s has %d bytes, at most %d are allowed", key, len(value), maxValue)
		}
	}
	return nil
}

func (c Commit) sortedPut() []string { return slices.Sorted(maps.Keys(c.Put)) }
