package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// compactedStore is a store in which every watch fails with ErrCompacted.
type compactedStore struct {
	store.Store
	nodes int
	reads atomic.Int64
}

func (c *compactedStore) Read(ctx context.Context, _ int64, _ ...store.Span) (store.Image, error) {
	if c.reads.Add(1) > 1000 {
		<-ctx.Done() // the test has failed
	}
	i := store.Image{Revision: 1}
	for n := range c.nodes {
		i.Entries = append(i.Entries, store.Entry{Key: inNodes + nodeName(n), Value: encode(model.Node{Name: nodeName(n)}), Revision: 1})
	}
	return i, nil
}

func (c *compactedStore) Watch(context.Context, store.Span, int64, func(store.Changes), func()) error {
	return store.ErrCompacted
}

// If a copy must read the whole store again, it first waits for a random time, so that the
// agents of a fleet do not all read at the same moment. The larger the fleet, the longer.
func TestACompactedStoreIsReadAfterAWait(t *testing.T) {
	for nodes, most := range map[int]int64{0: 200, 500: 20} {
		t.Run(nodeName(nodes), func(t *testing.T) { readsOfCompactedStore(t, nodes, most) })
	}
}

func readsOfCompactedStore(t *testing.T, nodes int, most int64) {
	synctest.Test(t, func(t *testing.T) {
		s := &compactedStore{nodes: nodes}
		ctx, end := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- New(s, Options{}).Run(ctx) }()
		time.Sleep(10 * time.Second)
		end()
		<-done
		if n := s.reads.Load(); n < 2 || n > most {
			t.Errorf("with %d nodes the store was read %d times in 10 s, want 2 to %d", nodes, n, most)
		}
	})
}
