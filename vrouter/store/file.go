package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// File is a store of one host: a bbolt database, which one process has open at a
// time. A commit is on the disk when Commit returns.
type File struct {
	path string
	db   *bbolt.DB

	mu       sync.Mutex // of commits, one after another
	revision int64
	history  []Changes // the latest, for who begins to watch or commits a little late
	kept     int       // entries in history
	watches  map[*fileWatch]bool
	closed   chan struct{}
}

// fileWatch is what one who watches was not told yet.
type fileWatch struct {
	news  []Changes // with File.mu
	woken chan struct{}
}

func (w *fileWatch) wake() {
	select {
	case w.woken <- struct{}{}:
	default: // it is awake already
	}
}

// mostHistory is how many entries of past commits are remembered.
const mostHistory = 4096

// firstMapped is how much of the database's file is mapped at once, which costs
// addresses and no memory: a commit that outgrows it copies all that it has
// touched.
const firstMapped = 256 << 20

// Buckets of the database: keys → revision (8 bytes, big endian) and value; the
// keys that are held, which end with the process; and the store's own revision.
var (
	bucketEntries = []byte("entries")
	bucketHeld    = []byte("held")
	bucketMeta    = []byte("meta")
	keyRevision   = []byte("revision")
)

// OpenFile opens a store in a file, or makes it, with its directory.
func OpenFile(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the store: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, InitialMmapSize: firstMapped})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open the store %s: another process has it open", path)
	case err != nil:
		return nil, unreadable(path, err)
	}
	f := &File{path: path, db: db, watches: map[*fileWatch]bool{}, closed: make(chan struct{})}
	if err := f.ready(); err != nil {
		db.Close()
		return nil, unreadable(path, err)
	}
	return f, nil
}

// unreadable says what to do about a file that is no store.
func unreadable(path string, why error) error {
	if isFull(why) {
		return fmt.Errorf("open the store %s: no space is left; make room: %w", path, why)
	}
	return fmt.Errorf("the store %s cannot be read: %w; put a copy of it back, or move it away and apply the state anew", path, why)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// ready makes the buckets, and drops what a process held that is gone. A store
// that is as it should be is not written to.
func (f *File) ready() error {
	ready := false
	err := f.db.View(func(tx *bbolt.Tx) error {
		held := tx.Bucket(bucketHeld)
		if held == nil || tx.Bucket(bucketEntries) == nil || tx.Bucket(bucketMeta) == nil {
			return nil
		}
		key, _ := held.Cursor().First()
		ready = key == nil
		f.revision = revisionIn(tx.Bucket(bucketMeta).Get(keyRevision))
		return nil
	})
	if err != nil || ready {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketEntries, bucketHeld, bucketMeta} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		f.revision = revisionIn(tx.Bucket(bucketMeta).Get(keyRevision))
		held := tx.Bucket(bucketHeld)
		var keys [][]byte
		if err := held.ForEach(func(key, _ []byte) error { keys = append(keys, bytes.Clone(key)); return nil }); err != nil {
			return err
		}
		for _, key := range keys {
			if err := errors.Join(tx.Bucket(bucketEntries).Delete(key), held.Delete(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

// revisionIn is the revision at the beginning of what is kept; 0 of nothing.
func revisionIn(kept []byte) int64 {
	if len(kept) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(kept))
}

// MaxKeys is what a commit may have.
func (f *File) MaxKeys() int { return 1 << 24 }

// Read returns every entry.
func (f *File) Read(context.Context) (i Image, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		i.Revision = revisionIn(tx.Bucket(bucketMeta).Get(keyRevision))
		return tx.Bucket(bucketEntries).ForEach(func(key, kept []byte) error {
			if len(kept) < 8 {
				return fmt.Errorf("key %q has no revision", key)
			}
			i.Entries = append(i.Entries, Entry{string(key), bytes.Clone(kept[8:]), revisionIn(kept)}) // bbolt's own memory is gone after this
			return nil
		})
	})
	if err != nil {
		return Image{}, unreadable(f.path, err)
	}
	return i, nil
}

// Commit is one transaction of the database.
func (f *File) Commit(_ context.Context, c Commit) (int64, error) { return f.commit(c, nil) }

func (f *File) commit(c Commit, also func(*bbolt.Tx) error) (int64, error) {
	if err := c.check(f.MaxKeys()); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := Changes{Revision: f.revision + 1}
	for _, key := range c.sortedPut() {
		ch.Put = append(ch.Put, Entry{key, c.Put[key], ch.Revision})
	}
	err := f.db.Update(func(tx *bbolt.Tx) error {
		entries := tx.Bucket(bucketEntries)
		if keys := f.conflicts(entries, c); len(keys) > 0 {
			return &ConflictError{keys}
		}
		ch.Deleted = slices.DeleteFunc(slices.Clone(c.Delete), func(key string) bool { return entries.Get([]byte(key)) == nil })
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		return errors.Join(write(entries, ch), tx.Bucket(bucketMeta).Put(keyRevision, binary.BigEndian.AppendUint64(nil, uint64(ch.Revision))))
	})
	var conflict *ConflictError
	switch {
	case errors.As(err, &conflict):
		return 0, err
	case err != nil:
		return 0, notKept(f.path, err)
	}
	f.publish(ch)
	return ch.Revision, nil
}

// conflicts are the keys that are not as a commit needs them. It is called with
// mu held.
func (f *File) conflicts(entries *bbolt.Bucket, c Commit) (keys []string) {
	for key, revision := range c.Exact {
		if revisionIn(entries.Get([]byte(key))) != revision {
			keys = append(keys, key)
		}
	}
	for prefix, newest := range c.Ranges {
		keys = append(keys, f.newer(entries, prefix, newest)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// newer are the keys under a prefix that were written after a revision, by what
// is remembered, else by looking at all of them.
func (f *File) newer(entries *bbolt.Bucket, prefix string, than int64) (keys []string) {
	if news, all := f.since(than); all {
		for _, ch := range news {
			for _, e := range ch.Put {
				if strings.HasPrefix(e.Key, prefix) && revisionIn(entries.Get([]byte(e.Key))) > than {
					keys = append(keys, e.Key)
				}
			}
		}
		return keys
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

// notKept says what became of a change that could not be written.
func notKept(path string, err error) error {
	if isFull(err) {
		return fmt.Errorf("keep the desired state in %s: no space is left; nothing was changed. Make room, then ask again: %w", path, err)
	}
	return fmt.Errorf("keep the desired state in %s: %w; nothing was changed", path, err)
}

// publish makes a commit known. It is called with mu held.
func (f *File) publish(ch Changes) {
	f.revision = ch.Revision
	f.history = append(f.history, ch)
	f.kept += len(ch.Put) + len(ch.Deleted)
	for f.kept > mostHistory {
		f.kept -= len(f.history[0].Put) + len(f.history[0].Deleted)
		f.history = slices.Delete(f.history, 0, 1)
	}
	for w := range f.watches {
		w.news = append(w.news, ch)
		w.wake()
	}
}

// since are the commits after a revision; false when some are forgotten. It is
// called with mu held.
func (f *File) since(revision int64) ([]Changes, bool) {
	if revision >= f.revision {
		return nil, true
	}
	if len(f.history) == 0 || f.history[0].Revision > revision+1 {
		return nil, false
	}
	return f.history[revision+1-f.history[0].Revision:], true
}

// Watch follows the commits of this process: no other has the file open.
func (f *File) Watch(ctx context.Context, after int64, changed func(Changes), alive func()) error {
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
		alive()
		for _, ch := range news {
			changed(ch)
		}
		select {
		case <-w.woken:
		case <-time.After(time.Second): // to say that it is alive
		case <-f.closed:
			return fmt.Errorf("the store %s was closed: %w", f.path, ErrUnavailable)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch begins to watch with what came after a revision.
func (f *File) watch(after int64) (*fileWatch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news, all := f.since(after)
	if !all {
		return nil, ErrCompacted
	}
	w := &fileWatch{news: slices.Clone(news), woken: make(chan struct{}, 1)}
	f.watches[w] = true
	return w, nil
}

// Hold notes that the key is held, and writes it: the next process that opens the
// file drops it.
func (f *File) Hold(_ context.Context, key string, value []byte, revision int64, _ time.Duration) (<-chan struct{}, error) {
	_, err := f.commit(Commit{Exact: map[string]int64{key: revision}, Put: map[string][]byte{key: value}}, func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketHeld).Put([]byte(key), nil)
	})
	return nil, err
}

// Close ends all watches and gives the file free.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.closed:
		return nil
	default:
		close(f.closed)
		return f.db.Close()
	}
}
