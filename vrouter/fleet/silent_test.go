package fleet

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// A node is silent when its alive key ends. It is gone when the lease has passed too.
func TestAMissingNodeIsFirstSilent(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	v := &View{nodes: map[string]model.Node{"a": {Name: "a"}, "b": {Name: "b"}}, alive: map[string]Alive{"a": {}, "b": {}}}
	a := absence{lease: 90 * time.Second, since: map[string]time.Time{}}
	check := func(at, wantNext time.Duration, want map[string]bool) {
		t.Helper()
		if gone, next := a.gone(v, now.Add(at)); !maps.Equal(gone, want) || next != wantNext {
			t.Errorf("after %v: silent nodes %v, next change in %v; want %v, %v", at, gone, next, want, wantNext)
		}
	}
	a.read(v, now)
	check(0, 0, map[string]bool{})
	delete(v.alive, "a")
	a.change(v, store.Changes{Deleted: []string{"alive/a"}}, now)
	check(0, 75*time.Second, map[string]bool{"a": false})
	check(75*time.Second, 0, map[string]bool{"a": true})
	v.alive["b"] = Alive{Stopped: true}
	check(75*time.Second, 0, map[string]bool{"a": true, "b": false})
	a.reconnected(v, now)
	check(0, 15*time.Second, map[string]bool{"b": false})
	check(15*time.Second, 75*time.Second, map[string]bool{"a": false, "b": false})
}

// A route avoids a silent node if the route has another next hop. The slice keeps the
// silent node's ports.
func TestARouteAvoidsSilentNodes(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	add(t, f, port("x"))
	y := port("y")
	y.Node = "b"
	add(t, f, y)
	for _, r := range []model.Route{
		{Network: "red", Prefix: prefixes("10.7.0.0/16")[0], Via: []model.Via{{Port: "x"}, {Port: "y"}}},
		{Network: "red", Prefix: prefixes("10.8.0.0/16")[0], Via: []model.Via{{Port: "y"}}},
	} {
		must.Succeed(t, f.PutRoute(ctx(t), r))
	}
	f.Peek(func(v *View) {
		s := v.Slice("a", map[string]bool{"b": false})
		if len(s.All) != 2 || len(s.Routes[0].Via) != 1 || s.Routes[0].Via[0].Port != "x" || len(s.Routes[1].Via) != 1 || s.Routes[1].Discard {
			t.Errorf("the slice of node a, while node b is silent: %+v", s)
		}
		s = v.Slice("b", map[string]bool{"b": false})
		if len(s.Routes[0].Via) != 2 {
			t.Errorf("the slice of node b, while node b is silent: routes %+v, want 2 next hops", s.Routes)
		}
	})
}

// A node writes into its alive key which of its workloads do not answer. A route avoids such a workload, unless it is the route's
// only next hop. The node itself avoids its workloads also without the store.
func TestARouteAvoidsSilentWorkloads(t *testing.T) {
	f := open(t)
	g := follow(t, f.store)
	apply(t, f, small())
	add(t, f, port("x"))
	y := port("y")
	y.Node = "b"
	add(t, f, y)
	must.Succeed(t, f.PutRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes("10.7.0.0/16")[0], Via: []model.Via{{Port: "x"}, {Port: "y"}}}))
	c, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Attend(c, "b", Alive{Instance: "one"}, func() {}) }()
	for _, silent := range [][]string{{"y"}, nil, {"y"}} {
		f.SetSilent(silent)
		must.Succeed(t, g.await(ctx(t), func() bool {
			is, there := g.view.alive["b"]
			return there && slices.Equal(is.Silent, silent) && len(g.view.routes["red"]) > 0
		}))
		g.Peek(func(v *View) {
			want := []model.Via{{Port: "x"}, {Port: "y"}}
			must.Equal(t, want[:2-len(silent)], v.Slice("a", nil).Routes[0].Via)
			must.Equal(t, want, v.Slice("b", nil).Routes[0].Via)
			must.Equal(t, want[:1], v.Slice("b", nil, "y").Routes[0].Via)
			both := want[1:]
			if len(silent) > 0 {
				both = want // no next hop would remain
			}
			must.Equal(t, both, v.Slice("a", nil, "x").Routes[0].Via)
		})
	}
	end()
	must.Succeed(t, <-done)
}

// Stop keeps the alive key, and sets Stopped in it. Another instance cannot do that.
func TestAnAgentThatStopsReportsIt(t *testing.T) {
	f := open(t)
	g := follow(t, f.store)
	apply(t, f, small())
	c, end := context.WithCancel(context.Background())
	held, done := make(chan bool, 1), make(chan error, 1)
	go func() { done <- f.Attend(c, "a", Alive{Instance: "one"}, notify(held)) }()
	<-held
	alive := func(stopped bool) {
		t.Helper()
		for _, of := range []*Fleet{f, g} {
			if err := of.await(ctx(t), func() bool { is := of.view.alive["a"]; return is.Instance == "one" && is.Stopped == stopped }); err != nil {
				t.Fatalf("the alive key of node a is %+v, want stopped %v: %v", of.view.alive["a"], stopped, err)
			}
		}
	}
	alive(false)
	end()
	must.Succeed(t, <-done)
	must.Succeed(t, f.Stop(ctx(t), "a", "another"))
	alive(false)
	must.Succeed(t, f.Stop(ctx(t), "a", "one"))
	alive(true)
	if gone, _ := g.Gone(); gone["a"] || len(gone) != 1 {
		t.Errorf("after Stop: silent nodes %v, want node a alone, not gone", gone)
	}
	c, end = context.WithCancel(context.Background())
	go func() { done <- f.Attend(c, "a", Alive{Instance: "one"}, notify(held)) }()
	<-held
	alive(false)
	end()
	<-done
}

// Retire deletes the ports and the record of a node, and removes the ports from the routes.
func TestARetiredNodeLeavesNothing(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	for _, name := range []string{"x", "y"} {
		add(t, f, port(name))
	}
	z := port("z")
	z.Node = "b"
	add(t, f, z)
	for prefix, via := range map[string][]model.Via{"10.7.0.0/16": {{Port: "x"}, {Port: "z"}}, "10.8.0.0/16": {{Port: "x"}}, "10.9.0.0/16": {{Port: "z"}}} {
		must.Succeed(t, f.PutRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes(prefix)[0], Via: via}))
	}
	must.Succeed(t, commit(f, inAlive+"a", encode(Alive{Instance: "one"})))
	if n, err := f.Retire(ctx(t), "a", false); n != 2 || err != nil {
		t.Errorf("Retire deletes %d ports, %v; want 2", n, err)
	}
	onZ := []model.Via{{Port: "z"}}
	for i, r := range state(t, f).Routes {
		want := []model.Route{{Via: onZ}, {Discard: true}, {Via: onZ}}[i]
		if !slices.Equal(r.Via, want.Via) || r.Discard != want.Discard {
			t.Errorf("after Retire: the route to %s has the next hops %v and discard %v, want %v and %v", r.Prefix, r.Via, r.Discard, want.Via, want.Discard)
		}
	}
	f.Peek(func(v *View) {
		if alive, has := v.alive["a"]; has {
			t.Errorf("after Retire: node a still has the alive key %+v", alive)
		}
	})
	if s := state(t, f); len(s.Ports) != 1 || len(s.Nodes) != 2 {
		t.Errorf("after Retire: %d ports and %d nodes remain, want 1 and 2", len(s.Ports), len(s.Nodes))
	}
	for range 2 { // the second call finds no node
		if n, err := f.Retire(ctx(t), "a", true); n != 0 || err != nil {
			t.Errorf("a node without ports: Retire deletes %d ports, %v; want 0", n, err)
		}
	}
	if s := state(t, f); len(s.Nodes) != 1 {
		t.Errorf("with record: nodes %+v remain, want node b", s.Nodes)
	}
}

// A node that is installed again has a new state directory and has booted. Its former ports
// are deleted at once. Ports of a document and ports of the new installation stay.
func TestAnInstalledNodeFreesItsFormerAddresses(t *testing.T) {
	f := openShared(t)
	s := small()
	applied := port("applied", "10.1.0.50")
	applied.MAC, applied.Origin = model.MAC{2, 0, 0, 0, 0, 50}, model.Applied
	s.Ports = []model.Port{applied}
	apply(t, f, s)
	attend := func(instance, boot string, want ...string) {
		t.Helper()
		c, end := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- f.Attend(c, "a", Alive{Instance: instance, Boot: boot}, func() {}) }()
		is := func() bool { return f.view.installs["a"] == install{instance, boot} }
		must.Succeed(t, f.await(ctx(t), is))
		var got []string
		for _, p := range state(t, f).Ports {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("instance %s, boot %s: the fleet has the ports %v, want %v", instance, boot, got, want)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		must.Succeed(t, f.Leave(ctx(t), "a"))
		must.Succeed(t, f.await(ctx(t), func() bool { return f.view.alive["a"].Instance == "" }))
	}
	attend("one", "boot 1", "applied")
	x := add(t, f, port("x"))
	onB := port("y")
	onB.Node = "b"
	add(t, f, onB)
	attend("one", "boot 2", "applied", "x", "y")
	attend("two", "boot 2", "applied", "x", "y") // the state directory was deleted, but the workloads run
	attend("three", "boot 3", "applied", "y")
	add(t, f, port("z", x.IPs[0].String())) // the address of x is free
	attend("three", "boot 3", "applied", "y", "z")
}

// Routes avoid a dead node within 1 s after the lease of its alive key has ended.
func TestARouteAvoidsADeadNodeSoon(t *testing.T) {
	t.Parallel()
	f := openShared(t) // its lease is 3 s
	apply(t, f, small())
	lease, end := context.WithCancel(context.Background())
	lost := must.Get(f.store.Hold(lease, inAlive+"b", encode(Alive{Instance: "b"}), 0, f.absence.ttl()))(t)
	must.Succeed(t, f.await(ctx(t), func() bool { return f.view.alive["b"].Instance == "b" }))
	end() // no renewal from now on
	<-lost
	began := time.Now()
	must.Succeed(t, f.await(ctx(t), func() bool { _, there := f.view.alive["b"]; return !there }))
	took := time.Since(began)
	if gone, _ := f.Gone(); !gone["b"] {
		t.Errorf("after the end of the lease: silent nodes %v, want node b", gone)
	}
	t.Logf("the alive key ended %v after the last moment of a renewal; the lease is %v", took, f.absence.ttl())
	if took > f.absence.ttl()+time.Second && os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" {
		t.Errorf("the alive key ended after %v, want at most %v", took, f.absence.ttl()+time.Second)
	}
}
