package fleet

import (
	"context"
	"testing"
	"time"

	"windtunnel/vrouter/store/storetest"
)

// When a cluster's installation is deleted, the store may end before the controller. A pod that
// takes too long is killed.
func TestALeaderDoesNotWaitForAStoreThatHasEnded(t *testing.T) {
	c := storetest.Start(t, 1, nil)
	f := follow(t, openEtcd(t, c))
	leading, end := context.WithCancel(ctx(t))
	defer end()
	works, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f.Lead(leading, "one", func(ctx context.Context) { close(works); <-ctx.Done() })
	}()
	<-works
	c.Kill(0)
	end()
	begun := time.Now()
	<-done
	if took := time.Since(begun); took > 2*leaveWait {
		t.Errorf("the leader ended after %v, want at most %v", took, 2*leaveWait)
	}
}
