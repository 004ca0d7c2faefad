package follow

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// keeper returns a follower of a remote store, and a function that sets the desired state to
// one with a number of networks and saves it.
func keeper(t *testing.T) (f *Follower, keep func(networks int)) {
	k := Kept{t.TempDir(), "a"}
	own := must.Get(k.LoadNode())(t)
	f = &Follower{
		shared: &shared{Fleet: fleet.New(nil, fleet.Options{}), Address: store.Address{Kind: store.KindEtcd}}, log: slog.New(slog.DiscardHandler), Kept: k, Own: own,
		reconciler: &reconcile.Reconciler{}, saving: saving{slices: make(chan model.Slice, 1)},
	}
	return f, func(networks int) {
		s := smallState()
		for i := range networks - 1 {
			s.Networks = append(s.Networks, model.Network{Name: string(rune('a' + i)), ID: uint32(i + 2), Forwarding: model.L2})
		}
		f.reconciler.Want = reconcile.NewDesired("a", s.Slice("a"), &fib.IDs{}, nil)
		f.KeepSlice()
	}
}

// saved is the number of networks in slice.json; 0: the file is missing.
func (f *Follower) saved(t *testing.T) int {
	s := must.Get(f.Kept.loadSlice())(t)
	if s == nil {
		return 0
	}
	return len(s.Networks)
}

func TestTheNewestSliceIsSavedInTheBackgroundAndAtTheEnd(t *testing.T) {
	f, keep := keeper(t)
	ctx, end := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { f.saveSlices(ctx) })
	keep(1)
	must.Eventually(t, "the first slice is saved", func() error {
		if f.saved(t) != 1 {
			return context.DeadlineExceeded
		}
		return nil
	})
	for networks := 2; networks < 6; networks++ {
		keep(networks)
	}
	end()
	wait.Wait()
	if f.saveLastSlice(); f.saved(t) != 5 {
		t.Errorf("the saved slice has %d networks, want 5", f.saved(t))
	}
}

func TestTheBackgroundWritesNoFileOfARemovedNode(t *testing.T) {
	f, keep := keeper(t)
	keep(1)
	f.EndSaving()
	must.Succeed(t, f.Kept.Remove())
	if f.saveLastSlice(); f.saved(t) != 0 {
		t.Error("slice.json was written after the node was removed")
	}
}

func TestAnUnchangedNodeFileIsNotWritten(t *testing.T) {
	f, keep := keeper(t)
	keep(1)
	must.Succeed(t, f.Kept.Remove())
	keep(1)
	if n, err := f.Kept.LoadNode(); err != nil || n.Instance == f.Own.Instance {
		t.Errorf("node.json was written again without a change (%v)", err)
	}
	f.Own.Leaving = []string{"p"}
	keep(1)
	if n, err := f.Kept.LoadNode(); err != nil || n.Instance != f.Own.Instance || len(n.Leaving) != 1 {
		t.Errorf("node.json has %+v (%v), want the port that leaves", n, err)
	}
}
