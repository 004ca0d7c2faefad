package follow

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// The store refuses to delete port p, because a route uses it. The agent must nevertheless delete the other ports, and
// delete p after the route is deleted.
func TestARefusedDeletionDoesNotDelayOthers(t *testing.T) {
	st := must.Get(store.OpenFile(filepath.Join(t.TempDir(), "store.db")))(t)
	ctx, end := context.WithCancel(t.Context())
	k, log := Kept{t.TempDir(), "a"}, &bytes.Buffer{}
	f := &Follower{
		shared: &shared{Fleet: fleet.New(st, fleet.Options{}), awake: make(chan struct{}, 1)}, log: slog.New(slog.NewTextHandler(log, nil)),
		Kept: k, Own: must.Get(k.LoadNode())(t), Requests: make(chan func()), publish: func() {},
	}
	var wait sync.WaitGroup
	defer func() { end(); wait.Wait(); st.Close() }()
	wait.Go(func() { f.Run(ctx) }) // its only error is that ctx has ended
	wait.Go(func() {
		for {
			select {
			case do := <-f.Requests:
				do()
			case <-ctx.Done():
				return
			}
		}
	})
	s := smallState()
	route := model.Route{Network: "red", Prefix: netip.MustParsePrefix("10.9.0.0/24"), Via: []model.Via{{Port: "p"}}}
	s.Routes = []model.Route{route}
	s.Ports[0].Origin = model.Added
	q := s.Ports[0]
	q.Name, q.MAC, q.IPs, q.Attach.Interface = "q", model.MAC{2, 0, 0, 0, 0, 2}, []netip.Addr{netip.MustParseAddr("10.0.0.3")}, "eth1"
	s.Ports = append(s.Ports, q)
	must.Succeed(t, f.Reach(ctx))
	must.Succeed(t, f.Apply(ctx, s))
	f.Own.Leaving = []string{"p", "q"}
	wait.Go(func() { f.finishLeaving(ctx) })
	waiting := func(want ...string) {
		t.Helper()
		must.EventuallyTrue(t, "the ports that wait are "+strings.Join(want, ", "), func() (is bool) {
			must.Succeed(t, f.Ask(ctx, func() error { is = slices.Equal(f.Own.Leaving, want); return nil }))
			return is
		})
	}
	waiting("p")
	must.Succeed(t, f.DeleteRoute(ctx, route))
	waiting()
	end()
	wait.Wait()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "port=p") || !strings.Contains(got, "the agent retries") {
		t.Errorf("the log is %q, want one warning that the deletion of port p is retried", got)
	}
}
