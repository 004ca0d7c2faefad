package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// openFile opens a new store, and closes it after the test.
func openFile(t *testing.T) *File {
	t.Helper()
	s := must.Get(OpenFile(filepath.Join(t.TempDir(), "deep", "store.db")))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAFileIsUsedByOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := OpenFile(path)
	must.Succeed(t, err)
	defer s.Close()
	_, err = OpenFile(path)
	must.Fail(t, err, "another process has it open")
}

func TestAFileThatIsNotAStoreIsUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	text := bytes.Repeat([]byte("no store. "), 2000)
	must.Succeed(t, os.WriteFile(path, text, 0o600))
	_, err := OpenFile(path)
	must.Fail(t, err, "not a bbolt database; restore a backup")
	if now, _ := os.ReadFile(path); !bytes.Equal(now, text) {
		t.Error("it was changed")
	}
}

// A watch from a revision before the history must read again.
func TestAWatchFromACompactedRevisionOfAFileIsAnError(t *testing.T) {
	s := openFile(t)
	s.db.NoSync = true
	for range MaxHistory + 10 {
		commit(t, s, Commit{Put: put("a", "b")})
	}
	if err := s.Watch(context.Background(), All, 1, func(Changes) {}, func() {}); !errors.Is(err, ErrCompacted) {
		t.Errorf("error %v, want %v", err, ErrCompacted)
	}
}

// A commit larger than the history reaches the watches and does not stay in
// memory.
func TestALargeCommitIsSentAndNotKept(t *testing.T) {
	s := openFile(t)
	ctx, end := context.WithTimeout(context.Background(), 10*time.Second)
	defer end()
	watches := make(chan error, 1)
	told, ready := 0, make(chan struct{})
	var once sync.Once
	go func() {
		watches <- s.Watch(ctx, All, 0, func(ch Changes) {
			if told += len(ch.Put); told == MaxHistory+2 {
				end()
			}
		}, func() { once.Do(func() { close(ready) }) })
	}()
	<-ready
	large := Commit{Put: map[string][]byte{}}
	for i := range MaxHistory + 1 {
		large.Put[fmt.Sprint("k", i)] = []byte("v")
	}
	commit(t, s, large)
	commit(t, s, Commit{Put: put("a", "b")})
	if err := <-watches; !errors.Is(err, context.Canceled) || told != MaxHistory+2 {
		t.Errorf("%d entries were told of, and then %v", told, err)
	}
	if len(s.history) != 1 || s.kept != 1 {
		t.Errorf("%d commits with %d entries are remembered, want the last alone", len(s.history), s.kept)
	}
}

// The history and a scan find the same newer keys.
func TestMemoryAndDatabaseAgreeOnWhatIsNewer(t *testing.T) {
	s := openFile(t)
	s.db.NoSync = true
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		c := Commit{Put: map[string][]byte{}}
		for range 1 + r.IntN(3) {
			key := fmt.Sprintf("%c/%d", 'a'+rune(r.IntN(3)), r.IntN(10))
			if r.IntN(3) == 0 && c.Put[key] == nil {
				c.Delete = append(c.Delete, key)
			} else if !slices.Contains(c.Delete, key) {
				c.Put[key] = []byte("v")
			}
		}
		commit(t, s, c)
		prefix, than := []string{"a/", "b/", "c/"}[r.IntN(3)], max(0, s.revision-int64(r.IntN(20)))
		err := s.db.View(func(tx *bbolt.Tx) error {
			entries := tx.Bucket(bucketEntries)
			byMemory := s.newer(entries, prefix, than)
			remembered := s.history
			s.history = nil
			byLooking := s.newer(entries, prefix, than)
			s.history = remembered
			slices.Sort(byMemory)
			if !slices.Equal(slices.Compact(byMemory), byLooking) {
				t.Errorf("under %s after %d: %v by memory, %v by looking", prefix, than, byMemory, byLooking)
			}
			return nil
		})
		must.Succeed(t, err)
	}
}

// A file store knows only the latest unique keys. It refuses a commit from a copy that is
// older than these.
func TestACommitOfAnOldCopyIsRefused(t *testing.T) {
	s := openFile(t)
	old := commit(t, s, Commit{Put: put("a", "0")})
	large := Commit{Put: map[string][]byte{}}
	for i := range MaxHistory {
		large.Put[fmt.Sprint(Unique, i)] = []byte("v")
	}
	large.Put["a"] = []byte("1")
	now := commit(t, s, large)
	var conflict *ConflictError
	for _, c := range []Commit{{Base: old, Exact: map[string]int64{Unique + "x": 0}}, {Base: old, Ranges: map[string]int64{Unique: old}}} {
		if _, err := s.Commit(context.Background(), c); !errors.As(err, &conflict) {
			t.Errorf("a commit of an old copy: %v, want a conflict", err)
		}
		c.Base = now
		if c.Ranges != nil {
			c.Ranges[Unique] = now
		}
		commit(t, s, c)
	}
}

// stored returns the path of a closed store with a number of keys.
func stored(t *testing.T, keys int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s := must.Get(OpenFile(path))(t)
	if !s.IsNew() {
		t.Error("a new store is not new")
	}
	all := map[string][]byte{}
	for i := range keys {
		all[fmt.Sprintf("key-%06d", i)] = bytes.Repeat([]byte{'v'}, 200)
	}
	commit(t, s, Commit{Put: all})
	must.Succeed(t, s.Close())
	return path
}

// bbolt does not report these kinds of damage. It would use an older state, panic, or cause SIGBUS.
func TestADamagedFileIsAnErrorAndNotANewStore(t *testing.T) {
	const keys = 2000
	whole := stored(t, keys)
	data := must.Get(os.ReadFile(whole))(t)
	page := os.Getpagesize()
	used := len(bytes.TrimRight(data, "\x00")) // bbolt makes the file larger in advance
	data = data[:(used+page-1)/page*page]
	open := func(text []byte) (*File, error) {
		path := filepath.Join(t.TempDir(), "store.db")
		must.Succeed(t, os.WriteFile(path, text, 0o600))
		return OpenFile(path)
	}
	refused := func(what string, text []byte) {
		t.Helper()
		s, err := open(text)
		if err == nil {
			s.Close()
			t.Errorf("%s: the store opens", what)
		} else if !strings.Contains(err.Error(), "restore a backup") {
			t.Errorf("%s: error %v, want one that advises to restore a backup", what, err)
		}
	}
	random := rand.New(rand.NewPCG(4, 35))
	for first := range 2 {
		broken := bytes.Clone(data)
		for i := range page {
			broken[first*page+i] = byte(random.Uint32())
		}
		refused(fmt.Sprintf("page %d is damaged", first), broken)
	}
	for _, size := range []int{1, page, 2 * page, len(data) / 2, len(data) - page} {
		refused(fmt.Sprintf("the file ends after %d bytes", size), data[:size])
	}
	for range 200 {
		broken, at := bytes.Clone(data), 2+random.IntN(len(data)/page-2)
		for i := range page {
			broken[at*page+i] = byte(random.Uint32())
		}
		s, err := open(broken)
		if err != nil {
			continue
		}
		// The page is not in use, or has old data.
		if i, err := s.Read(context.Background(), 0); err != nil || len(i.Entries) != keys {
			t.Errorf("with page %d damaged, %d entries were read (%v)", at, len(i.Entries), err)
		}
		s.Close()
	}
	s, err := open(data)
	if err != nil || s.IsNew() {
		t.Fatalf("the whole file: %v", err)
	}
	s.Close()
}

// A file that is cut off while the store is open.
func TestAFileThatIsCutOffInUseIsAnError(t *testing.T) {
	path := stored(t, 2000)
	s := must.Get(OpenFile(path))(t)
	must.Succeed(t, os.Truncate(path, int64(2*os.Getpagesize())))
	for range 2 {
		_, err := s.Read(context.Background(), 0)
		must.Fail(t, err, "damaged")
		_, err = s.Commit(context.Background(), Commit{Put: put("a", "b")})
		must.Fail(t, err, "damaged")
	}
	must.Succeed(t, s.Close())
}

// On a full disk the creation of a store fails. A later attempt with free space must succeed.
func TestAFullDiskLeavesNoDamagedFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	for pages := range 6 {
		dir := t.TempDir()
		size := (1 + pages) * os.Getpagesize()
		must.Succeed(t, unix.Mount("full", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)))
		defer unix.Unmount(dir, unix.MNT_DETACH)
		path := filepath.Join(dir, "store.db")
		if s, err := OpenFile(path); err == nil {
			s.Close()
		} else if !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("%d pages: %v", pages, err)
		}
		must.Succeed(t, unix.Mount("full", dir, "tmpfs", unix.MS_REMOUNT, "size=100M"))
		s, err := OpenFile(path)
		if err != nil {
			t.Errorf("after %d pages: %v", pages, err)
			continue
		}
		if !s.IsNew() {
			t.Error("a new store is not new")
		}
		s.Close()
	}
}

// etcd would use the older state of a damaged database, or end the process.
func TestADamagedEmbeddedStoreIsAnError(t *testing.T) {
	dir := t.TempDir()
	if !IsNewEmbedded(dir) {
		t.Error("a directory without data is not new")
	}
	s := must.Get(OpenEmbedded(EmbeddedOptions{Dir: dir}))(t)
	commit(t, s, Commit{Put: put("a", "b")})
	if err := s.Close(); err != nil || IsNewEmbedded(dir) {
		t.Fatalf("the store is closed with %v, and new: %v", err, IsNewEmbedded(dir))
	}
	path := filepath.Join(dir, "etcd", embeddedFile)
	whole := must.Get(os.ReadFile(path))(t)
	page := os.Getpagesize()
	broken := bytes.Clone(whole)
	clear(broken[page : 2*page])
	for why, text := range map[string][]byte{"page 1 of the file is damaged": broken, "cut off": whole[:2*page]} {
		must.Succeed(t, os.WriteFile(path, text, 0o600))
		if s, err := OpenEmbedded(EmbeddedOptions{Dir: dir}); err == nil {
			s.Close()
			t.Errorf("the store opens, want %q", why)
		} else if !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
	must.Succeed(t, os.WriteFile(path, whole, 0o600))
	logs, err := filepath.Glob(filepath.Join(dir, "etcd", "member/wal/*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, what := range []string{"emptied", "deleted"} {
		for _, log := range logs {
			must.Succeed(t, os.WriteFile(log, nil, 0o600))
			if what == "deleted" {
				os.Remove(log)
			}
		}
		if s, err := OpenEmbedded(EmbeddedOptions{Dir: dir}); err == nil {
			s.Close()
			t.Errorf("the store opens with its log %s", what)
		} else if !strings.Contains(err.Error(), "the log is missing or empty; restore a backup") {
			t.Errorf("the log is %s: %v", what, err)
		}
	}
}

// Only the error for a damaged file may advise to restore a backup or to start with a new store.
func TestAFileThatCannotBeOpenedIsNotCalledDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	must.Succeed(t, os.Symlink(path, path)) // for root too, open(2) fails
	_, err := OpenFile(path)
	must.Fail(t, err, "open the store: open "+path, "make the file and its directory writable")
	if strings.Contains(err.Error(), "--new-store") {
		t.Errorf("the error has the remedy for damage: %v", err)
	}
}
