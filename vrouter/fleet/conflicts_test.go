package fleet

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/lists"
	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// write writes a port without the checks of Fleet, as the program of a hostile node can.
func write(t *testing.T, f *Fleet, p model.Port) {
	t.Helper()
	c := store.Commit{Put: map[string][]byte{portKey(p): encode(p)}}
	f.Peek(func(v *View) {
		if v.listed[p.Network][p.Node] == 0 {
			c.Put[placeOf(p).key()] = nil
		}
	})
	revision := must.Get(f.store.Commit(ctx(t), c))(t)
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
			if got, _ := v.Port("x"); !got.Equal(x) {
				t.Errorf("node b writes a port with %s of port x: port x is now %+v", what, got)
			}
			if at, _ := v.PortAt("red", x.IPs[0]); at.Node != "a" {
				t.Errorf("node b writes a port with %s of port x: %s belongs to port %q of node %q", what, x.IPs[0], at.Name, at.Node)
			}
			if n := v.PortsOn("b"); n != 0 {
				t.Errorf("node b writes a port with %s of port x: node b has %d ports, want 0", what, n)
			}
			if n := len(v.Slice("a", nil).All); n != 1 {
				t.Errorf("node b writes a port with %s of port x: the slice of node a has %d ports, want 1", what, n)
			}
		})
		if got := problems(f); !strings.Contains(got, "has "+what) || !strings.Contains(got, "switch-ports/b/red/") {
			t.Errorf("node b writes a port with %s of port x: the problems are %q", what, got)
		}
		must.Get(f.store.Commit(ctx(t), store.Commit{Delete: []string{portKey(p)}}))(t)
		must.Succeed(t, f.await(ctx(t), func() bool { return len(f.view.ignored) == 0 }))
	}

	p := port("next", "10.1.0.9")
	p.Node, p.MAC = "b", model.MAC{2, 0, 0, 0, 6, 6}
	write(t, f, p)
	must.Get(f.DeletePort(ctx(t), "x", nil))(t)
	f.Peek(func(v *View) {
		if at, _ := v.PortAt("red", x.IPs[0]); at.Name != "next" || len(v.Problems()) != 0 {
			t.Errorf("after port x is deleted: %s belongs to port %q, want \"next\"; problems %v", x.IPs[0], at.Name, v.Problems())
		}
	})
}

// If the value of a node's key names another node, the port is ignored.
func TestAPortUnderTheKeyOfAnotherNodeIsIgnored(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	p := port("x", "10.1.0.9")
	p.MAC = model.MAC{2, 0, 0, 0, 0, 1}
	key, at := portKey(p), placeOf(p)
	p.Node = "b"
	must.Get(f.store.Commit(ctx(t), store.Commit{Put: map[string][]byte{key: encode(p), at.key(): nil}}))(t)
	must.Succeed(t, f.await(ctx(t), func() bool { return len(f.view.broken) == 1 }))
	f.Peek(func(v *View) {
		if _, there := v.Port("x"); there {
			t.Errorf("port x of node b is used, although its key is %s", key)
		}
	})
}

// A port can move to another node. Its key then contains the new node.
func TestAPortMovesToAnotherNode(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	add(t, f, port("x"))
	must.Get(f.UpdatePort(ctx(t), "x", func(p *model.Port) error { p.Node = "b"; return nil }))(t)
	if got := state(t, f); len(got.Ports) != 1 || got.Ports[0].Node != "b" {
		t.Errorf("after port x moved to node b: ports %+v", got.Ports)
	}
	f.Peek(func(v *View) {
		if key := portKey(v.ports["x"].Port()); !strings.HasPrefix(key, inPorts+"b/") || v.PortsOn("a") != 0 || v.PortsOn("b") != 1 {
			t.Errorf("port x has the key %s; node a has %d ports and node b %d, want 0 and 1", key, v.PortsOn("a"), v.PortsOn("b"))
		}
	})
}

// An invalid port that a node wrote does not prevent valid changes. Invalid changes are
// still refused.
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
		"a port": func() error { _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port("y")}); return err }(),
	} {
		if err != nil {
			t.Errorf("a valid change of %s, beside an invalid port: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"a node": f.PutNode(ctx(t), model.Node{Name: "d", Underlay: addresses("192.0.2.3")}),
		"a network": func() error {
			_, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { n.Subnets = prefixes("10.1.0.128/25"); return nil })
			return err
		}(),
		"a port": func() error {
			_, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port("z", "10.9.0.1")})
			return err
		}(),
	} {
		if !IsWhy(err, Invalid) {
			t.Errorf("an invalid change of %s: error %v, want Invalid", what, err)
		}
	}
	s := small()
	s.Nodes = append(s.Nodes, model.Node{Name: "c", Underlay: addresses("192.0.2.3")})
	apply(t, f, s)
	s.Networks = nil
	if err := f.Apply(ctx(t), s); !IsWhy(err, Exists) {
		t.Errorf("a document without the network of port x: error %v, want Exists", err)
	}
}

func addresses(all ...string) []netip.Addr {
	return lists.Map(all, netip.MustParseAddr)
}
