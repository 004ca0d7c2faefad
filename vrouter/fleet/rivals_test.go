package fleet

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// write writes a port past the rules, as a node could.
func write(t *testing.T, f *Fleet, p model.Port) {
	t.Helper()
	revision, err := f.store.Commit(ctx(t), store.Commit{Put: map[string][]byte{portKey(p): encode(p)}})
	if err != nil {
		t.Fatal(err)
	}
	f.awaitRevision(ctx(t), revision)
}

func problems(f *Fleet) (all string) {
	f.Peek(func(v *View) { all = strings.Join(v.Problems(), "\n") })
	return all
}

// A port that has the name, the MAC or an address of another node's port is ignored
// until the older port is deleted.
func TestANodeDoesNotTakeWhatAnOlderPortHas(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	x := add(t, f, port("x", "10.1.0.9"))
	for what, change := range map[string]func(*model.Port){
		"the name":            func(p *model.Port) { p.Name = "x" },
		"the MAC":             func(p *model.Port) { p.MAC = x.MAC },
		"the address 10.1.0.": func(p *model.Port) { p.IPs = x.IPs },
	} {
		p := port("evil", "10.1.0.66")
		p.Node, p.MAC = "b", model.MAC{2, 0, 0, 0, 6, 6}
		change(&p)
		write(t, f, p)
		f.Peek(func(v *View) {
			if is, _ := v.Port("x"); !is.Equal(x) {
				t.Errorf("%s: the older port is now %+v", what, is)
			}
			if at, _ := v.PortAt("red", x.IPs[0]); at.Node != "a" {
				t.Errorf("%s: the address is at %q of node %q", what, at.Name, at.Node)
			}
			if n := v.PortsOn("b"); n != 0 {
				t.Errorf("%s: %d ports on node b", what, n)
			}
			if n := len(v.Slice("a", nil).Ports); n != 1 {
				t.Errorf("%s: a slice of %d ports", what, n)
			}
		})
		if got := problems(f); !strings.Contains(got, "has "+what) || !strings.Contains(got, "node-ports/b/red/") {
			t.Errorf("%s: the problem is %q", what, got)
		}
		if _, err := f.store.Commit(ctx(t), store.Commit{Delete: []string{portKey(p)}}); err != nil {
			t.Fatal(err)
		}
		if err := f.await(ctx(t), func() bool { return len(f.view.rivals) == 0 }); err != nil {
			t.Fatal(err)
		}
	}

	p := port("next", "10.1.0.9")
	p.Node, p.MAC = "b", model.MAC{2, 0, 0, 0, 6, 6}
	write(t, f, p)
	if _, err := f.DeletePort(ctx(t), "x"); err != nil {
		t.Fatal(err)
	}
	f.Peek(func(v *View) {
		if at, _ := v.PortAt("red", x.IPs[0]); at.Name != "next" || len(v.Problems()) != 0 {
			t.Errorf("after the older port: %+v, %v", at, v.Problems())
		}
	})
}

// A port under the keys of one node is not a port of another.
func TestAPortUnderTheKeyOfAnotherNodeIsIgnored(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	p := port("x", "10.1.0.9")
	p.MAC = model.MAC{2, 0, 0, 0, 0, 1}
	key := portKey(p)
	p.Node = "b"
	if _, err := f.store.Commit(ctx(t), store.Commit{Put: map[string][]byte{key: encode(p)}}); err != nil {
		t.Fatal(err)
	}
	if err := f.await(ctx(t), func() bool { return len(f.view.broken) == 1 }); err != nil {
		t.Fatal(err)
	}
	f.Peek(func(v *View) {
		if _, there := v.Port("x"); there {
			t.Error("it counts")
		}
	})
}

// A store of schema 1 is used as it is until it is upgraded.
func TestAStoreOfTheFirstSchemaIsUpgraded(t *testing.T) {
	f := open(t)
	if _, err := f.store.Commit(ctx(t), store.Commit{Put: map[string][]byte{keySchema: encode(schema{1})}}); err != nil {
		t.Fatal(err)
	}
	if err := f.await(ctx(t), func() bool { return f.view != nil && f.view.schema.Version == 1 }); err != nil {
		t.Fatal(err)
	}
	s := small()
	applied := port("applied", "10.1.0.50")
	applied.MAC, applied.Origin = model.MAC{2, 0, 0, 0, 0, 50}, model.Applied
	s.Ports = append(s.Ports, applied)
	apply(t, f, s)
	x := add(t, f, port("x"))
	keys := func(prefix string) (n int) {
		f.Peek(func(v *View) {
			for key := range v.revisions {
				if strings.HasPrefix(key, prefix) {
					n++
				}
			}
		})
		return n
	}
	if keys(inFlat) != 2 || keys(inPorts) != 0 {
		t.Fatalf("a store of schema 1 has %d and %d ports", keys(inFlat), keys(inPorts))
	}
	if moved, err := f.Upgrade(ctx(t)); err != nil || moved != 2 {
		t.Fatalf("moved %d ports, %v", moved, err)
	}
	if keys(inFlat) != 0 || keys(inPorts) != 2 {
		t.Errorf("after it: %d and %d ports", keys(inFlat), keys(inPorts))
	}
	if moved, err := f.Upgrade(ctx(t)); err != nil || moved != 0 {
		t.Errorf("a second time: moved %d ports, %v", moved, err)
	}
	got := state(t, f)
	if len(got.Ports) != 2 || !got.Ports[1].Equal(x) {
		t.Errorf("the ports are %+v", got.Ports)
	}
	if _, err := f.UpdatePort(ctx(t), "x", func(p *model.Port) error { p.Node = "b"; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := state(t, f); got.Ports[1].Node != "b" || keys(inPorts+"b/") != 1 || keys(inPorts) != 2 {
		t.Errorf("a port that moved: %+v", got.Ports[1])
	}
	apply(t, f, small())
	if _, err := f.DeletePort(ctx(t), "x"); err != nil {
		t.Fatal(err)
	}
	if got := state(t, f); len(got.Ports) != 0 {
		t.Errorf("%+v", got.Ports)
	}
}

// An invalid port that a node wrote does not stop the changes of others. A change that
// is invalid itself is still refused.
func TestAnInvalidPortDoesNotStopOtherChanges(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	add(t, f, port("x"))
	bad := port("bad", "192.0.2.99") // outside the subnet
	bad.Node, bad.MAC = "b", model.MAC{2, 0, 0, 0, 9, 9}
	write(t, f, bad)
	for what, err := range map[string]error{
		"a node":   f.PutNode(ctx(t), model.Node{Name: "c", Underlay: addresses("192.0.2.3")}),
		"a policy": f.PutPolicy(ctx(t), model.Policy{Name: "p"}),
		"a route":  f.PutRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes("10.7.0.0/16")[0], Via: []model.Via{{Port: "x"}}}),
		"a network": func() error {
			_, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { n.Policies = []string{"web"}; return nil })
			return err
		}(),
		"a port": func() error { _, _, err := f.AddPort(ctx(t), PortRequest{Port: port("y")}); return err }(),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"a node": f.PutNode(ctx(t), model.Node{Name: "d", Underlay: addresses("192.0.2.3")}),
		"a network": func() error {
			_, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { n.Subnets = prefixes("10.1.0.128/25"); return nil })
			return err
		}(),
		"a port": func() error { _, _, err := f.AddPort(ctx(t), PortRequest{Port: port("z", "10.9.0.1")}); return err }(),
	} {
		if !IsWhy(err, Invalid) {
			t.Errorf("%s that is invalid: %v", what, err)
		}
	}
	s := small()
	s.Nodes = append(s.Nodes, model.Node{Name: "c", Underlay: addresses("192.0.2.3")})
	apply(t, f, s)
	s.Networks = nil
	if err := f.Apply(ctx(t), s); !IsWhy(err, Exists) {
		t.Errorf("a document without the ports' network: %v", err)
	}
}

func addresses(all ...string) (list []netip.Addr) {
	for _, a := range all {
		list = append(list, netip.MustParseAddr(a))
	}
	return list
}
