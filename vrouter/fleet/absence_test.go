package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// With a lease of at most 15 s, a node is gone as soon as its alive key ends. A node that
// is missing when the store is read, or reachable again, is gone after a lease.
func TestMissingNodesAreGoneAfterALease(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	lease := 10 * time.Second
	v := &View{nodes: map[string]model.Node{"a": {Name: "a"}, "b": {Name: "b"}}, alive: map[string]Alive{"a": {}}}
	a := absence{lease: lease, since: map[string]time.Time{}}
	check := func(at time.Duration, want ...string) {
		t.Helper()
		gone, _ := a.gone(v, now.Add(at))
		if got := slices.Sorted(maps.Keys(gone)); !slices.Equal(got, want) {
			t.Errorf("after %v %v are gone, want %v", at, got, want)
		}
	}
	a.read(v, now)
	check(9 * time.Second)
	check(10*time.Second, "b")

	dies := store.Changes{Deleted: []string{"alive/a"}}
	delete(v.alive, "a")
	a.change(v, dies, now.Add(20*time.Second))
	check(20*time.Second, "a", "b")
	v.alive["b"] = Alive{}
	a.change(v, store.Changes{Put: []store.Entry{{Key: "alive/b"}}}, now.Add(21*time.Second))
	check(21*time.Second, "a")

	// The store was away, and with it whatever kept leases.
	delete(v.alive, "b")
	a.reconnected(v, now.Add(30*time.Second))
	check(39 * time.Second)
	if _, next := a.gone(v, now.Add(39*time.Second)); next != time.Second {
		t.Errorf("the next is gone in %v", next)
	}
	check(40*time.Second, "a", "b")
	delete(v.nodes, "a")
	check(40*time.Second, "b")
}

func TestASliceLeavesOutObjectsOfMissingNodes(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 2, Subnets: prefixes("10.2.0.0/24")})
	apply(t, f, s)
	add(t, f, port("x"))
	y, z := port("y"), port("z")
	y.Node, z.Node, z.Network = "b", "b", "blue"
	add(t, f, y)
	add(t, f, z)
	for _, r := range []model.Route{
		{Network: "red", Prefix: prefixes("10.7.0.0/16")[0], Via: []model.Via{{Port: "x"}, {Port: "y"}}},
		{Network: "red", Prefix: prefixes("10.8.0.0/16")[0], Via: []model.Via{{Port: "y"}}},
	} {
		must.Succeed(t, f.PutRoute(ctx(t), r))
	}
	slice := func(node string, gone ...string) (s model.State) {
		missing := map[string]bool{}
		for _, g := range gone {
			missing[g] = true
		}
		must.Succeed(t, f.Look(ctx(t), func(v *View) { s = v.Slice(node, missing).Whole() }))
		if err := s.Validate(); err != nil {
			t.Errorf("slice of %s without %v: %v", node, gone, err)
		}
		return s
	}
	if s := slice("a"); len(s.Networks) != 1 || len(s.Ports) != 2 || len(s.Routes) != 2 || len(s.Nodes) != 2 {
		t.Errorf("a's: %+v", s)
	}
	if s := slice("b"); len(s.Networks) != 2 || len(s.Ports) != 3 {
		t.Errorf("b's: %+v", s)
	}
	s = slice("a", "b")
	if len(s.Ports) != 1 || len(s.Routes[0].Via) != 1 || !s.Routes[1].Discard {
		t.Errorf("a's without b: %+v", s)
	}
	if s := slice("b", "b"); len(s.Ports) != 3 {
		t.Errorf("b does not drop its own: %+v", s)
	}
}

func TestASecondAgentOfANodeIsRefused(t *testing.T) {
	f := open(t)
	g := follow(t, f.store)
	apply(t, f, small())
	c, end := context.WithCancel(context.Background())
	held := make(chan bool, 1)
	done := make(chan error, 1)
	go func() { done <- f.Attend(c, "a", Alive{Instance: "one", Host: "h1", PID: 7}, notify(held)) }()
	<-held
	var taken *TakenError
	if err := g.Attend(ctx(t), "a", Alive{Instance: "two"}, func() { t.Error("it got the node") }); !errors.As(err, &taken) || taken.Holder.PID != 7 {
		t.Errorf("error %v, want that process 7 has the node", err)
	}
	// The same one comes back.
	d, endAgain := context.WithCancel(context.Background())
	again := make(chan error, 1)
	go func() { again <- g.Attend(d, "a", Alive{Instance: "one"}, notify(held)) }()
	<-held
	end()
	endAgain()
	must.Succeed(t, errors.Join(<-done, <-again))
}

func TestADeletedAliveKeyIsWrittenAgain(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	c, end := context.WithCancel(context.Background())
	held, done := make(chan bool, 1), make(chan error, 1)
	go func() { done <- f.Attend(c, "a", Alive{Instance: "one"}, notify(held)) }()
	<-held
	must.Succeed(t, f.await(ctx(t), func() bool { return f.view.alive["a"].Instance == "one" }))
	must.Succeed(t, f.Leave(ctx(t), "a"))
	select {
	case <-held:
	case <-ctx(t).Done():
		t.Error("the key stays deleted")
	}
	end()
	must.Succeed(t, <-done)
}
