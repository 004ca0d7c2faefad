package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/vrouter/store"
)

// compactedStore is a store in which every watch fails with ErrCompacted.
type compactedStore struct {
	store.Store
	reads atomic.Int64
}

func (c *compactedStore) Read(ctx context.Context) (store.Image, error) {
	if c.reads.Add(1) > 1000 {
		<-ctx.Done() // the test has failed
	}
	return store.Image{Revision: 1}, nil
}

func (c *compactedStore) Watch(context.Context, int64, func(store.Changes), func()) error {
	return store.ErrCompacted
}

// If a copy must read the whole store again, it first waits for a random time, so that the
// agents of a fleet do not all read at the same moment.
func TestACompactedStoreIsReadAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &compactedStore{}
		ctx, end := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- New(s, Options{}).Run(ctx) }()
		time.Sleep(10 * time.Second)
		end()
		<-done
		if n := s.reads.Load(); n < 2 || n > 200 {
			t.Errorf("the store was read %d times in 10 s, want 2 to 200", n)
		}
	})
}
