package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"windtunnel/internal/pause"
)

// File is a store of one host: a bbolt database. One process can open it at a
// time. A commit is on the disk when Commit returns.
type File struct {
	path    string
	db      *bbolt.DB
	damaged atomic.Bool // an operation met a damaged page, and bbolt may hold its locks

	mu       sync.Mutex // serialises commits
	revision int64
	history  []past // the latest commits, for new watches and for conflicts
	kept     int    // number of keys in history
	watches  map[*fileWatch]bool
	closed   chan struct{}
}

// past is a commit in memory.
type past struct {
	Changes
	unique map[string]bool // the keys under Unique that the commit put (true) or deleted
	size   int             // number of keys
}

// fileWatch is one watch with its pending changes.
type fileWatch struct {
	news  []Changes // guarded by File.mu
	woken chan struct{}
}

// MaxHistory is the number of keys of past commits that a file store keeps in memory. A
// commit with more keys is not kept, and commits from older copies are refused.
const MaxHistory = 4096

// initialMap is the size in bytes of the database's first memory mapping. The
// mapping reserves virtual addresses and uses no memory. A commit that outgrows
// the mapping must copy all pages that it has changed.
const initialMap = 256 << 20

// Buckets of the database. entries: key → revision (8 bytes, big endian) and
// value. meta: the revision of the store.
var (
	bucketEntries = []byte("entries")
	bucketMeta    = []byte("meta")
	keyRevision   = []byte("revision")
)

// OpenFile opens a store in a file. It creates a missing file and directory.
func OpenFile(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the store: %w", err)
	}
	f := &File{path: path, watches: map[*fileWatch]bool{}, closed: make(chan struct{})}
	err := checkPages(path)
	if err == nil {
		info, _ := os.Stat(path)
		err = f.guard(func() (err error) {
			f.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, InitialMmapSize: initialMap})
			return err
		})
		if isFull(err) && (info == nil || info.Size() == 0) {
			os.Remove(path) // bbolt may have written a part of the new file
		}
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open the store %s: another process has it open; stop that process first", path)
	case err != nil:
		return nil, unreadable(path, err)
	}
	err = f.guard(f.prepare)
	if err == nil {
		err = f.guard(func() error { return f.db.View(f.checkEntries) })
	}
	if err != nil {
		f.Close()
		return nil, unreadable(path, err)
	}
	return f, nil
}

// IsNew reports whether nothing was ever committed to the store.
func (f *File) IsNew() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision == 0
}

// guard makes a panic of bbolt, or an access to a part of the file that does not exist, an error.
func (f *File) guard(do func() error) (err error) {
	if f.damaged.Load() {
		return errors.New("the file is damaged")
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			f.damaged.Store(true)
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	return do()
}

// checkEntries reads all pages of the entries.
func (f *File) checkEntries(tx *bbolt.Tx) error {
	var last []byte
	return tx.Bucket(bucketEntries).ForEach(func(key, kept []byte) error {
		if len(kept) < 8 || last != nil && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("the file is damaged: key %q has no revision, or is not in its place", key)
		}
		last = key
		return nil
	})
}

// unreadable wraps an error of a file that cannot be opened or read.
func unreadable(path string, why error) error {
	if isFull(why) {
		return fmt.Errorf("open the store %s: the disk is full; free some space: %w", path, why)
	}
	if open := (*fs.PathError)(nil); errors.As(why, &open) && open.Op == "open" { // the file may be undamaged
		return fmt.Errorf("open the store: %w; make the file and its directory writable for root, then start the agent again", why)
	}
	return fmt.Errorf("read the store %s: %w; restore a backup, or move the file away, start the agent with --new-store and apply the state again", path, why)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// prepare creates missing buckets. If there is nothing to do, it does not write.
func (f *File) prepare() error {
	ready := false
	err := f.db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if ready = meta != nil && tx.Bucket(bucketEntries) != nil; ready {
			f.revision = revisionIn(meta.Get(keyRevision))
		}
		return nil
	})
	if err != nil || ready {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		_, err1 := tx.CreateBucketIfNotExists(bucketEntries)
		_, err2 := tx.CreateBucketIfNotExists(bucketMeta)
		return errors.Join(err1, err2)
	})
}

// revisionIn returns the revision at the start of a stored value; 0 if there is
// none.
func revisionIn(kept []byte) int64 {
	if len(kept) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(kept))
}

// MaxKeys is the maximum number of keys in a commit.
func (f *File) MaxKeys() int { return 1 << 24 }

// Read has only the newest revision.
func (f *File) Read(_ context.Context, at int64, spans ...Span) (i Image, err error) {
	if spans == nil {
		spans = []Span{All}
	}
	err = f.guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			if i.Revision = revisionIn(tx.Bucket(bucketMeta).Get(keyRevision)); at != 0 && at != i.Revision {
				return ErrCompacted
			}
			cursor := tx.Bucket(bucketEntries).Cursor()
			for _, s := range spans {
				for key, kept := cursor.Seek([]byte(s.From)); key != nil && s.Has(string(key)); key, kept = cursor.Next() {
					if len(kept) < 8 {
						return fmt.Errorf("key %q has no revision", key)
					}
					i.Entries = append(i.Entries, Entry{string(key), bytes.Clone(kept[8:]), revisionIn(kept), revisionIn(kept)}) // bbolt's memory is valid only inside the transaction
				}
			}
			return nil
		})
	})
	if err != nil && !errors.Is(err, ErrCompacted) {
		err = unreadable(f.path, err)
	}
	return i, err
}

// Commit runs one transaction of the database.
func (f *File) Commit(_ context.Context, c Commit) (int64, error) {
	if err := c.check(f.MaxKeys()); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := newPast(c, f.revision+1)
	err := f.guard(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			entries := tx.Bucket(bucketEntries)
			if keys := f.conflicts(entries, c); len(keys) > 0 {
				return &ConflictError{Keys: keys}
			}
			ch.Deleted = slices.DeleteFunc(ch.Deleted, func(key string) bool { return entries.Get([]byte(key)) == nil })
			return errors.Join(write(entries, ch.Changes), tx.Bucket(bucketMeta).Put(keyRevision, binary.BigEndian.AppendUint64(nil, uint64(ch.Revision))))
		})
	})
	var conflict *ConflictError
	switch {
	case errors.As(err, &conflict):
		return 0, err
	case err != nil:
		return 0, notWritten(f.path, err)
	}
	f.publish(ch)
	return ch.Revision, nil
}

// newPast returns a commit with sorted keys. Its list Deleted also has missing keys. If the
// commit is too large for the history, unique is empty.
func newPast(c Commit, revision int64) past {
	p := past{Changes: Changes{Revision: revision}, unique: map[string]bool{}, size: len(c.Put) + len(c.Delete)}
	note := func(key string, put bool) (is bool) {
		if is = strings.HasPrefix(key, Unique); is && p.size <= MaxHistory {
			p.unique[key] = put
		}
		return is
	}
	for key, value := range c.Put {
		if !note(key, true) {
			p.Put = append(p.Put, Entry{key, value, revision, revision})
		}
	}
	slices.SortFunc(p.Put, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) }) // bbolt is faster with sorted keys
	for _, key := range c.Delete {
		if !note(key, false) {
			p.Deleted = append(p.Deleted, key)
		}
	}
	return p
}

// conflicts returns the keys that do not meet the conditions of a commit. The
// caller holds mu.
func (f *File) conflicts(entries *bbolt.Bucket, c Commit) (keys []string) {
	news, all := f.since(c.Base)
	for key, revision := range c.Exact {
		if strings.HasPrefix(key, Unique) {
			taken := !all
			for _, p := range news {
				if put, is := p.unique[key]; is {
					taken = put
				}
			}
			if taken {
				keys = append(keys, key)
			}
		} else if revisionIn(entries.Get([]byte(key))) != revision {
			keys = append(keys, key)
		}
	}
	for prefix, newest := range c.Ranges {
		keys = append(keys, f.newer(entries, prefix, newest)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// newer returns the keys under a prefix that were written after a revision. It
// uses the history if the history has all commits since then. Otherwise it
// scans all keys. Keys under Unique are only in the history; without it newer
// returns the prefix.
func (f *File) newer(entries *bbolt.Bucket, prefix string, than int64) (keys []string) {
	if news, all := f.since(than); all {
		for _, ch := range news {
			for _, e := range ch.Put {
				if strings.HasPrefix(e.Key, prefix) && revisionIn(entries.Get([]byte(e.Key))) > than {
					keys = append(keys, e.Key)
				}
			}
			for key, put := range ch.unique {
				if put && strings.HasPrefix(key, prefix) {
					keys = append(keys, key)
				}
			}
		}
		return keys
	}
	if strings.HasPrefix(prefix, Unique) {
		return []string{prefix}
	}
	cursor := entries.Cursor()
	for key, kept := cursor.Seek([]byte(prefix)); key != nil && bytes.HasPrefix(key, []byte(prefix)); key, kept = cursor.Next() {
		if revisionIn(kept) > than {
			keys = append(keys, string(key))
		}
	}
	return keys
}

func write(entries *bbolt.Bucket, ch Changes) error {
	for _, e := range ch.Put {
		kept := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(e.Value)), uint64(e.Revision))
		if err := entries.Put([]byte(e.Key), append(kept, e.Value...)); err != nil {
			return err
		}
	}
	for _, key := range ch.Deleted {
		if err := entries.Delete([]byte(key)); err != nil {
			return err
		}
	}
	return nil
}

// notWritten wraps an error of a commit that could not be written.
func notWritten(path string, err error) error {
	if isFull(err) {
		return fmt.Errorf("write the desired state to %s: the disk is full and nothing was changed; free some space and retry: %w", path, err)
	}
	return fmt.Errorf("write the desired state to %s: %w; nothing was changed", path, err)
}

// publish passes a commit to the watches. The caller holds mu.
func (f *File) publish(ch past) {
	f.revision = ch.Revision
	f.history = append(f.history, ch)
	f.kept += ch.size
	for f.kept > MaxHistory {
		f.kept -= f.history[0].size
		f.history = slices.Delete(f.history, 0, 1)
	}
	for w := range f.watches {
		w.news = append(w.news, ch.Changes)
		pause.Wake(w.woken)
	}
}

// since returns the commits after a revision, and false if the history does not
// have all of them. The caller holds mu.
func (f *File) since(revision int64) ([]past, bool) {
	if revision >= f.revision {
		return nil, true
	}
	if len(f.history) == 0 || f.history[0].Revision > revision+1 {
		return nil, false
	}
	return f.history[revision+1-f.history[0].Revision:], true
}

// Watch reports the commits of this process. No other process can have the file
// open.
func (f *File) Watch(ctx context.Context, s Span, after int64, changed func(Changes), alive func()) error {
	w, err := f.watch(after)
	if err != nil {
		return err
	}
	defer func() {
		f.mu.Lock()
		delete(f.watches, w)
		f.mu.Unlock()
	}()
	for {
		f.mu.Lock()
		news := w.news
		w.news = nil
		f.mu.Unlock()
		if alive != nil {
			alive()
		}
		for _, ch := range news {
			if ch = ch.in(s); s == All || len(ch.Put)+len(ch.Deleted) > 0 {
				changed(ch)
			}
		}
		select {
		case <-w.woken:
		case <-time.After(time.Second): // wake up to call alive
		case <-f.closed:
			return fmt.Errorf("watch the store %s: it was closed: %w", f.path, ErrUnavailable)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// in returns the changes of a span.
func (ch Changes) in(s Span) Changes {
	if s == All {
		return ch
	}
	part := Changes{Revision: ch.Revision}
	for _, e := range ch.Put {
		if s.Has(e.Key) {
			part.Put = append(part.Put, e)
		}
	}
	for _, key := range ch.Deleted {
		if s.Has(key) {
			part.Deleted = append(part.Deleted, key)
		}
	}
	return part
}

// watch registers a watch whose first changes are those after a revision.
func (f *File) watch(after int64) (*fileWatch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news, all := f.since(after)
	if !all {
		return nil, ErrCompacted
	}
	w := &fileWatch{woken: make(chan struct{}, 1)}
	for _, p := range news {
		w.news = append(w.news, p.Changes)
	}
	f.watches[w] = true
	return w, nil
}

// Hold returns an error, because a file has one client. A held key would only tell other clients that this one is alive.
func (f *File) Hold(_ context.Context, key string, _ []byte, _ int64, _ time.Duration) (<-chan struct{}, error) {
	return nil, fmt.Errorf("hold %s in the store %s: %w", key, f.path, errors.ErrUnsupported)
}

// Close ends all watches and closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.closed:
		return nil
	default:
		close(f.closed)
		if f.db == nil || f.damaged.Load() {
			return nil
		}
		return f.db.Close()
	}
}
