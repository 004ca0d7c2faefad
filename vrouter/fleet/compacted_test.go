package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/vrouter/store"
)

// compacted is a store that never has the changes for a watch.
type compacted struct {
	store.Store
	reads atomic.Int64
}

func (c *compacted) Read(ctx context.Context) (store.Image, error) {
	if c.reads.Add(1) > 1000 {
		<-ctx.Done() // the test has failed
	}
	return store.Image{Revision: 1}, nil
}

func (c *compacted) Watch(context.Context, int64, func(store.Changes), func()) error {
	return store.ErrCompacted
}

// A copy that must read the whole store again waits a random time before, so that the
// agents of a fleet do not all read at the same moment.
func TestACompactedStoreIsReadAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &compacted{}
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
