package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// openShared starts an etcd cluster and a copy of it. The tests need etcd, because a file
// store does not record the revision that created a key.
func openShared(t *testing.T) *Fleet {
	t.Helper()
	return follow(t, openEtcd(t, storetest.Start(t, 1, nil)))
}

// writeKeys commits to the store without the checks of Fleet, as a malicious node does.
func writeKeys(t *testing.T, f *Fleet, c store.Commit) {
	t.Helper()
	revision := must.Get(f.store.Commit(ctx(t), c))(t)
	f.awaitRevision(ctx(t), revision)
}

// portOfB returns a port of node b.
func portOfB(name string, ip string) model.Port {
	p := port(name, ip)
	p.Node, p.MAC = "b", model.MAC{2, 0, 0, 0, 6, 6}
	return p
}

// checkNewCopy checks that a new copy has the same ports as the copy that followed the changes.
func checkNewCopy(t *testing.T, f *Fleet, when string) {
	t.Helper()
	image := must.Get(f.store.Read(ctx(t), 0))(t)
	fresh := must.Get(newView(image))(t)
	f.Peek(func(v *View) {
		if got, want := fmt.Sprint(v.Ports("")), fmt.Sprint(fresh.Ports("")); got != want {
			t.Errorf("%s: a copy that followed the store has the ports %s, a new copy %s", when, got, want)
		}
	})
}

// Node b has a port that is older than a port of node a. Then node b writes the address of
// the port of node a into its port. Node a's port must keep the address.
func TestAnOlderPortDoesNotTakeAnAddressLater(t *testing.T) {
	f := openShared(t)
	apply(t, f, small())
	old := portOfB("old", "10.1.0.200")
	write(t, f, old)
	x := add(t, f, port("x", "10.1.0.9"))
	evil := old
	evil.IPs = x.IPs
	for _, key := range []string{portKey(old), portKey(evil), inPorts + "b/red/old"} {
		writeKeys(t, f, store.Commit{Put: map[string][]byte{key: encode(evil)}})
		f.Peek(func(v *View) {
			if at, _ := v.PortAt("red", x.IPs[0]); at.Name != "x" {
				t.Errorf("after node b wrote its port with address %s to %s: the address belongs to port %q of node %q", x.IPs[0], key, at.Name, at.Node)
			}
		})
		checkNewCopy(t, f, "after node b wrote "+key)
	}
	// A node can also write a value whose port name differs from the name in the key.
	evil.Name = "x"
	writeKeys(t, f, store.Commit{Put: map[string][]byte{portKey(old): encode(evil)}})
	if p, _ := func() (p model.Port, ok bool) { f.Peek(func(v *View) { p, ok = v.Port("x") }); return }(); p.Node != "a" {
		t.Errorf("port x is on node %q", p.Node)
	}
	checkNewCopy(t, f, "after node b wrote the name of port x")
}

// After a node wrote an invalid value for a port, all copies must have the same ports: copies
// that followed the store, and new copies.
func TestAnInvalidValueRemovesThePortFromAllCopies(t *testing.T) {
	f := openShared(t)
	apply(t, f, small())
	p := portOfB("p", "10.1.0.2")
	for what, value := range map[string]string{
		"an unknown field":   `{"evil": 1}`,
		"no JSON":            "x",
		"a very long value":  `{"name": "` + strings.Repeat("x", maxPortValue) + `"}`,
		"too many addresses": string(encode(func() model.Port { p := p; p.IPs = nineAddresses(p); return p }())),
	} {
		write(t, f, p)
		writeKeys(t, f, store.Commit{Put: map[string][]byte{portKey(p): []byte(value)}})
		checkNewCopy(t, f, "after a value with "+what)
		f.Peek(func(v *View) {
			if at, _ := v.PortAt("red", p.IPs[0]); at.Name != "" || len(v.Problems()) != 1 {
				t.Errorf("a value with %s: %s belongs to port %q, problems %v", what, p.IPs[0], at.Name, v.Problems())
			}
		})
	}
	many := p
	many.IPs = nineAddresses(p)
	writeKeys(t, f, store.Commit{Delete: []string{portKey(p)}, Put: map[string][]byte{portKey(many): encode(many)}})
	add(t, f, port("next", "10.1.0.2"))
}

// nineAddresses returns nine addresses, beginning with those of p. A port may have eight.
func nineAddresses(p model.Port) []netip.Addr {
	for len(p.IPs) < 9 {
		p.IPs = append(p.IPs[:len(p.IPs):len(p.IPs)], p.IPs[len(p.IPs)-1].Next())
	}
	return p.IPs
}

// A node can write index keys without a port. These must not reserve names or addresses.
func TestAnIndexKeyWithoutAPortReservesNothing(t *testing.T) {
	f := openShared(t)
	s := small()
	s.Networks[0].Subnets = prefixes("10.1.0.0/24")
	apply(t, f, s)
	c := store.Commit{Put: map[string][]byte{inNames + "x": encode("red"), macKey("red", model.MAC{2, 0, 0, 0, 0, 1}): encode("evil")}}
	for i := 2; i < 90; i++ {
		c.Put[fmt.Sprintf("%sred/10.1.0.%d", inAddresses, i)] = encode("evil")
	}
	writeKeys(t, f, c)
	x := port("x")
	x.MAC = model.MAC{2, 0, 0, 0, 0, 1}
	if x = add(t, f, x); x.IPs[0].String() != "10.1.0.2" {
		t.Errorf("port x has %s, want the first address", x.IPs[0])
	}
	add(t, f, port("y", "10.1.0.9"))
	must.Succeed(t, f.PutRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes("10.1.0.10/32")[0], Discard: true}))
	// Node b deletes the index keys of other ports. These ports still have their addresses.
	writeKeys(t, f, store.Commit{Delete: uniqueKeys(x)})
	p := port("z", x.IPs[0].String())
	if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: p}); !IsWhy(err, Exists) {
		t.Errorf("a second port with address %s: error %v, want Exists", x.IPs[0], err)
	}
	// An index key of an ignored port belongs to that port.
	evil := portOfB("evil", x.IPs[0].String())
	writeKeys(t, f, store.Commit{Put: map[string][]byte{portKey(evil): encode(evil), placeOf(evil).key(): nil, inNames + "evil": encode("red")}})
	short, end := context.WithTimeout(context.Background(), time.Second)
	defer end()
	if _, _, err := f.AddPort(short, model.PortRequest{Port: port("evil", "10.1.0.77")}); err == nil {
		t.Error("a port got the name of an ignored port")
	}
}

// A node can write very many ports that conflict with an older port. A copy must still read
// the store in a short time.
func TestManyConflictingPortsAreReadFast(t *testing.T) {
	i := store.Image{Revision: 1}
	x := port("x", "10.1.0.9")
	i.Entries = append(i.Entries, store.Entry{Key: placeOf(x).key(), Revision: 1}, store.Entry{Key: place{"b", "red"}.key(), Revision: 1}, store.Entry{Key: portKey(x), Value: encode(x), Created: 1})
	const count = 20000
	for n := range count {
		p := portOfB(fmt.Sprint("p", n), "10.1.0.9")
		p.MAC = model.MAC{2, 0, 1, byte(n >> 16), byte(n >> 8), byte(n)}
		i.Entries = append(i.Entries, store.Entry{Key: portKey(p), Value: encode(p), Created: int64(count - n + 1)})
	}
	began := time.Now()
	v := must.Get(newView(i))(t)
	for n := range 2000 {
		p := portOfB(fmt.Sprint("q", n), "10.1.0.9")
		e := store.Entry{Key: portKey(p), Value: encode(p), Created: int64(count + n + 2)}
		v.apply(store.Changes{Put: []store.Entry{e}})
		v.apply(store.Changes{Deleted: []string{e.Key}})
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d conflicting ports are read in %v", count, took)
	}
	if p, _ := v.PortAt("red", x.IPs[0]); p.Name != "x" || len(v.ignored) != count {
		t.Errorf("port %q has the address, and %d ports are ignored; want x and %d", p.Name, len(v.ignored), count)
	}
	must.Equal(t, model.MaxProblems+1, len(v.Problems()))
}

// A node can add a port to a network of another node that it cannot reach. Operators must
// still be able to change other objects.
func TestAPortThatCannotBeReachedDoesNotStopOtherChanges(t *testing.T) {
	f := open(t)
	s := small()
	s.Nodes[0].Encapsulations, s.Nodes[1].Encapsulations = []model.Encapsulation{model.MPLSoUDP}, []model.Encapsulation{model.VXLAN}
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 2, Subnets: prefixes("10.2.0.0/24")})
	apply(t, f, s)
	add(t, f, port("x", "10.1.0.9"))
	write(t, f, portOfB("p", "10.1.0.66"))
	for what, err := range map[string]error{
		"a policy": f.PutPolicy(ctx(t), model.Policy{Name: "p"}),
		"a node":   f.PutNode(ctx(t), model.Node{Name: "c", Underlay: addresses("192.0.2.3")}),
		"a network": func() error {
			_, err := f.UpdateNetwork(ctx(t), "blue", func(n *model.Network) error { n.Policies = []string{"web"}; return nil })
			return err
		}(),
		"a port": func() error { _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port("y")}); return err }(),
	} {
		if err != nil {
			t.Errorf("a change of %s: %v", what, err)
		}
	}
	s.Nodes = append(s.Nodes, model.Node{Name: "c", Underlay: addresses("192.0.2.3")})
	apply(t, f, s)
	s.Nodes[2].Underlay = addresses("192.0.2.1")
	if err := f.Apply(ctx(t), s); !IsWhy(err, Invalid) {
		t.Errorf("a document with two nodes of one address: error %v, want Invalid", err)
	}
}
