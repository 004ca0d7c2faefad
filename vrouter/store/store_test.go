package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/store/storetest"
)

// kinds are the stores that this host can open.
func kinds(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, openFile(t))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s := must.Get(OpenEmbedded(EmbeddedOptions{Dir: t.TempDir()}))(t)
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		test(t, connect(t, storetest.Start(t, 1, nil), "etcd+insecure", TLS{}))
	})
}

func commit(t *testing.T, s Store, c Commit) int64 {
	t.Helper()
	return must.Get(s.Commit(context.Background(), c))(t)
}

func put(pairs ...string) map[string][]byte {
	m := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = []byte(pairs[i+1])
	}
	return m
}

func keys(t *testing.T, s Store) (all []string) {
	t.Helper()
	i := must.Get(s.Read(context.Background(), 0))(t)
	return texts(i)
}

// texts returns the entries of an image as KEY=VALUE.
func texts(i Image) (all []string) {
	for _, e := range i.Entries {
		all = append(all, e.Key+"="+string(e.Value))
	}
	return all
}

func TestACommitIsMadeWholeOrNotAtAll(t *testing.T) {
	kinds(t, func(t *testing.T, s Store) {
		ctx := context.Background()
		first := commit(t, s, Commit{Exact: map[string]int64{"a/1": 0}, Put: put("a/1", "x", "b/1", "y")})
		second := commit(t, s, Commit{Exact: map[string]int64{"a/1": first}, Put: put("a/1", "z"), Delete: []string{"b/1", "never/there"}})
		if second <= first {
			t.Errorf("revisions %d and %d", first, second)
		}
		must.Equal(t, []string{"a/1=z"}, keys(t, s))
		for name, c := range map[string]Commit{
			"changed":        {Exact: map[string]int64{"a/1": first}, Put: put("c", "")},
			"there already":  {Exact: map[string]int64{"a/1": 0}, Put: put("c", "")},
			"not there":      {Exact: map[string]int64{"b/1": first}, Put: put("c", "")},
			"newer in range": {Ranges: map[string]int64{"a/": first}, Put: put("c", "")},
		} {
			var conflict *ConflictError
			if _, err := s.Commit(ctx, c); !errors.As(err, &conflict) || len(conflict.Keys) == 0 {
				t.Errorf("%s: error %v, want a conflict with its keys", name, err)
			}
		}
		commit(t, s, Commit{Ranges: map[string]int64{"a/": second, "nothing/": 0}, Put: put("c", "made")})
		must.Equal(t, []string{"a/1=z", "c=made"}, keys(t, s))
	})
}

func TestAWatchMissesNothing(t *testing.T) {
	kinds(t, func(t *testing.T, s Store) {
		before := commit(t, s, Commit{Put: put("a", "0")})
		ctx, cancel := context.WithCancel(context.Background())
		seen := make(chan Changes, 1000)
		alive := make(chan struct{}, 1000)
		ended := make(chan error, 1)
		go func() {
			ended <- s.Watch(ctx, All, before, func(c Changes) { seen <- c }, func() {
				select {
				case alive <- struct{}{}:
				default:
				}
			})
		}()
		var last int64
		for i := range 50 {
			last = commit(t, s, Commit{Put: put(fmt.Sprintf("k/%02d", i), "v", "a", fmt.Sprint(i)), Delete: []string{fmt.Sprintf("k/%02d", i-1)}})
		}
		got := map[string]string{"a": "0"}
		for revision := int64(0); revision < last; {
			select {
			case c := <-seen:
				if c.Revision <= revision {
					t.Fatalf("revision %d after %d", c.Revision, revision)
				}
				revision = c.Revision
				for _, key := range c.Deleted {
					delete(got, key)
				}
				for _, e := range c.Put {
					got[e.Key] = string(e.Value)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("revision %d never came, %d did", last, revision)
			}
		}
		if len(got) != 2 || got["a"] != "49" || got["k/49"] != "v" {
			t.Errorf("the watch has sent %v, want the last values of a and k/49", got)
		}
		for range 2 { // also when nothing happens
			select {
			case <-alive:
			case <-time.After(10 * time.Second):
				t.Fatal("the store does not say that it is alive")
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	})
}

// A store to which no client writes answers all the same. A watch from its newest revision must not end.
func TestAnIdleStoreIsReachable(t *testing.T) {
	must.Long(t)
	t.Parallel()
	kinds(t, func(t *testing.T, s Store) {
		after := commit(t, s, Commit{Put: put("a", "1")})
		ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
		defer end()
		go s.Watch(ctx, Under("none/"), after, func(Changes) {}, nil) // as for the ports of a network
		answers := 0
		err := s.Watch(ctx, All, after, func(ch Changes) {
			if !ch.IsEmpty() {
				t.Errorf("the watch reports changes up to its first revision: %+v", ch)
			}
		}, func() {
			if answers++; answers == 4 { // the first says that the watch has begun
				end()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after %d answers the watch ends with %v", answers, err)
		}
	})
}

// Of many concurrent commits for the same key, one succeeds.
func TestOneOfManyWritersCreatesAKey(t *testing.T) {
	kinds(t, func(t *testing.T, s Store) {
		var got sync.Map
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if _, err := s.Commit(context.Background(), Commit{Exact: map[string]int64{"one": 0}, Put: put("one", fmt.Sprint(i))}); err == nil {
					got.Store(i, true)
				}
			})
		}
		all.Wait()
		var winners []any
		got.Range(func(k, _ any) bool { winners = append(winners, k); return true })
		if len(winners) != 1 || !slices.Equal(keys(t, s), []string{fmt.Sprintf("one=%v", winners[0])}) {
			t.Errorf("%v got it, and %v stands there", winners, keys(t, s))
		}
	})
}

func TestAHeldKeyOutlivesItsTimeToLive(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, s Store) {
		ctx := context.Background()
		if _, isFile := s.(*File); isFile {
			_, err := s.Hold(ctx, "alive/a", []byte("me"), 0, time.Second)
			must.Fail(t, err, "hold alive/a")
			return
		}
		lost := must.Get(s.Hold(ctx, "alive/a", []byte("me"), 0, 2*time.Second))(t)
		var conflict *ConflictError
		if _, err := s.Hold(ctx, "alive/a", []byte("other"), 0, 2*time.Second); !errors.As(err, &conflict) {
			t.Errorf("another one got it: %v", err)
		}
		time.Sleep(2500 * time.Millisecond)
		must.Equal(t, []string{"alive/a=me"}, keys(t, s))
		select {
		case <-lost:
			t.Error("it was lost")
		default:
		}
		began := time.Now()
		commit(t, s, Commit{Delete: []string{"alive/a"}})
		select {
		case <-lost:
			t.Logf("the deletion of the key was reported after %v", time.Since(began))
		case <-time.After(time.Minute):
			t.Error("the deletion of the key was not reported within a minute")
		}
	})
}

// Keys under Unique make commits conflict, but are neither read nor watched.
func TestUniqueKeysAreNotSent(t *testing.T) {
	kinds(t, func(t *testing.T, s Store) {
		before := commit(t, s, Commit{Put: put("a", "0")})
		ctx, end := context.WithTimeout(context.Background(), 10*time.Second)
		defer end()
		var seen []string
		ended := make(chan error, 1)
		go func() {
			ended <- s.Watch(ctx, All, before, func(c Changes) {
				for _, e := range c.Put {
					seen = append(seen, e.Key)
				}
				if seen = append(seen, c.Deleted...); slices.Contains(seen, "b") {
					end()
				}
			}, func() {})
		}()
		mac := Unique + "macs/red/1"
		claim := Commit{Base: before, Exact: map[string]int64{mac: 0}, Put: put(mac, "x", "a", "1")}
		claimed := commit(t, s, claim)
		claim.Put = put(mac, "y", "c", "1")
		for what, c := range map[string]Commit{
			"the same key":    claim,
			"a newer network": {Base: before, Ranges: map[string]int64{Unique + "macs/red/": before}, Put: put("c", "1")},
		} {
			var conflict *ConflictError
			if _, err := s.Commit(ctx, c); !errors.As(err, &conflict) || len(conflict.Keys) != 1 {
				t.Errorf("%s: error %v, want a conflict", what, err)
			}
		}
		commit(t, s, Commit{Base: claimed, Ranges: map[string]int64{Unique + "macs/red/": claimed}, Delete: []string{mac}})
		commit(t, s, claim) // the key is free again, also for a commit of an older copy
		commit(t, s, Commit{Delete: []string{mac}, Put: put("b", "2")})
		err := <-ended
		slices.Sort(seen) // several commits can be reported at once, in the order of their keys
		if !errors.Is(err, context.Canceled) || !slices.Equal(seen, []string{"a", "b", "c"}) {
			t.Errorf("the watch reported %q and %v, want a, b and c", seen, err)
		}
		must.Equal(t, []string{"a=1", "b=2", "c=1"}, keys(t, s))
	})
}

func TestACommitAboveTheLimitsIsRefused(t *testing.T) {
	kinds(t, func(t *testing.T, s Store) {
		commits := []Commit{{Put: map[string][]byte{"a": make([]byte, maxValue+1)}}, {Put: put("a", "b"), Delete: []string{"a"}}}
		if s.MaxKeys() < 1000 {
			many := map[string][]byte{}
			for i := range s.MaxKeys() + 1 {
				many[fmt.Sprint(i)] = nil
			}
			commits = append(commits, Commit{Put: many})
		}
		for _, c := range commits {
			if _, err := s.Commit(context.Background(), c); err == nil {
				t.Error("it was made")
			}
		}
		if got := keys(t, s); len(got) > 0 {
			t.Errorf("%d keys", len(got))
		}
	})
}

// A store that is opened again has its entries and their revisions.
func TestAReopenedStoreHasItsEntriesAndRevisions(t *testing.T) {
	dir := t.TempDir()
	for name, open := range map[string]func() (Store, error){
		"file":     func() (Store, error) { return OpenFile(filepath.Join(dir, "store.db")) },
		"embedded": func() (Store, error) { return OpenEmbedded(EmbeddedOptions{Dir: filepath.Join(dir, "e")}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open()
			must.Succeed(t, err)
			commit(t, s, Commit{Put: put("gone", "1")})
			kept := commit(t, s, Commit{Put: put("a", "1"), Delete: []string{"gone"}})
			must.Succeed(t, s.Close())
			if s, err = open(); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			must.Equal(t, []string{"a=1"}, keys(t, s))
			commit(t, s, Commit{Exact: map[string]int64{"a": kept}, Put: put("a", "2")})
		})
	}
}

// Read and Watch have only the keys of the spans. Read can read an earlier revision.
func TestASpanHasItsKeysOnly(t *testing.T) {
	kinds(t, func(t *testing.T, s Store) {
		ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
		defer end()
		c := Commit{Put: put("a", "0", "q/x/1", "2", "q/y/1", "3", "q/z/1", "4", "r", "5")}
		for i := range 50 {
			c.Put[fmt.Sprintf("p/%02d", i)] = []byte("1")
		}
		before := commit(t, s, c)
		var spans []Span
		for i := range 110 { // more than one request can have
			spans = append(spans, Under(fmt.Sprintf("none/%d/", i)))
		}
		spans = append(spans, Under("p/"), Under("q/y/"), Span{"r", "r\x00"})
		i, err := s.Read(ctx, before, spans...)
		if err != nil || i.Revision != before || len(i.Entries) != 52 {
			t.Fatalf("Read at revision %d: revision %d, %d entries, %v; want 52 entries", before, i.Revision, len(i.Entries), err)
		}
		for _, e := range i.Entries {
			if value := string(e.Value); value != map[string]string{"q/y/1": "3", "r": "5"}[e.Key] && (value != "1" || e.Key[:2] != "p/") {
				t.Errorf("Read returns %s=%s", e.Key, value)
			}
		}
		seen := make(chan Changes, 10)
		ended := make(chan error, 1)
		go func() { ended <- s.Watch(ctx, Under("q/y/"), before, func(ch Changes) { seen <- ch }, nil) }()
		commit(t, s, Commit{Put: put("q/x/2", "1", "q/z/2", "1")})
		last := commit(t, s, Commit{Put: put("q/x/3", "1", "q/y/2", "1"), Delete: []string{"q/y/1", "q/z/1"}})
		if ch := <-seen; ch.Revision != last || len(ch.Put) != 1 || ch.Put[0].Key != "q/y/2" || !slices.Equal(ch.Deleted, []string{"q/y/1"}) {
			t.Errorf("the first changes under q/y/ are %+v, want q/y/2 at revision %d", ch, last)
		}
		end()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch returns %v", err)
		}
		old, err := s.Read(context.Background(), before, Under("q/"))
		if _, isFile := s.(*File); isFile {
			if !errors.Is(err, ErrCompacted) {
				t.Errorf("a file store reads an earlier revision: %v", err)
			}
		} else if err != nil || len(old.Entries) != 3 {
			t.Errorf("Read at an earlier revision: %d entries, %v, want 3", len(old.Entries), err)
		}
	})
}
