package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// reconcileAccess does what the agent of a node does, until nothing is left to do.
func reconcileAccess(t *testing.T, f *Fleet, node string) {
	t.Helper()
	for {
		var add []model.PortRequest
		var remove []string
		must.Succeed(t, f.Look(ctx(t), func(v *View) { add, remove = v.Access(node, "") }))
		if len(add)+len(remove) == 0 {
			return
		}
		for _, r := range add {
			if _, _, err := f.AddPort(ctx(t), r); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range remove {
			must.Get(f.DeletePort(ctx(t), name, nil))(t)
		}
	}
}

// hostsOf are the ports that connect a node.
func hostsOf(t *testing.T, f *Fleet, node string) (all []model.Port) {
	t.Helper()
	for _, p := range state(t, f).Ports {
		if p.Node == node && p.Attach.Host {
			all = append(all, p)
		}
	}
	return all
}

func TestANodeIsConnectedWhileItHasPorts(t *testing.T) {
	f := open(t)
	s := small()
	s.Ports = nil
	s.Routes = nil
	apply(t, f, s)
	set := func(on bool) {
		t.Helper()
		must.Get(f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { n.NodeAccess = on; return nil }))(t)
	}
	expect := func(when string, want int) {
		t.Helper()
		reconcileAccess(t, f, "a")
		if all := hostsOf(t, f, "a"); len(all) != want {
			t.Fatalf("%s: %d ports connect the node, want %d: %+v", when, len(all), want, all)
		}
	}
	set(true)
	expect("no workload", 0)
	add(t, f, port("x", "10.1.0.9"))
	expect("a workload", 1)
	if p := hostsOf(t, f, "a")[0]; p.Origin != model.NodeAccess || len(p.IPs) == 0 || p.Name != model.NodePort("a", "red") {
		t.Errorf("the node's port is %+v, want one of node_access with addresses and the name of NodePort", p)
	}
	set(false)
	expect("without node_access", 0)
	set(true)
	expect("with node_access again", 1)

	s.Networks[0].NodeAccess = true
	apply(t, f, s) // keeps the ports of other clients
	expect("a document with the network", 1)

	own := port("own", "10.1.0.77")
	own.Attach = model.Attachment{Host: true}
	if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: own}); err == nil {
		t.Error("a node has two ports of its own in a network")
	}
	if err := f.DeleteNetwork(ctx(t), "red"); !IsWhy(err, InUse) {
		t.Errorf("a network with a workload is deleted: %v", err)
	}
	must.Get(f.DeletePort(ctx(t), "x", nil))(t)
	if err := f.DeleteNetwork(ctx(t), "red"); err != nil { // before the agent has deleted the node's port
		t.Error(err)
	}
	if left := state(t, f).Ports; len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// A refused deletion changes nothing.
func TestANetworkThatCannotBeDeletedKeepsTheNodesPort(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks[0].NodeAccess = true
	s.Ports, s.Routes = nil, []model.Route{{Network: "red", Prefix: prefixes("10.9.0.0/16")[0], Discard: true}}
	apply(t, f, s)
	var ports []model.PortRequest
	must.Succeed(t, f.Look(ctx(t), func(v *View) { ports, _ = v.Access("a", "red") }))
	_, _, err := f.AddPort(ctx(t), ports[0])
	must.Succeed(t, err)
	if err := f.DeleteNetwork(ctx(t), "red"); !IsWhy(err, InUse) || len(hostsOf(t, f, "a")) != 1 {
		t.Errorf("a network with a route is deleted: %v; the ports of the node are %v", err, hostsOf(t, f, "a"))
	}
	must.Succeed(t, f.DeleteRoute(ctx(t), s.Routes[0]))
	must.Succeed(t, f.DeleteNetwork(ctx(t), "red"))
	if left := state(t, f); len(left.Ports)+len(left.Networks) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestADocumentWithoutTheNetworkDisconnectsTheNode(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks[0].NodeAccess = true
	s.Ports = nil
	apply(t, f, s)
	x := add(t, f, port("x", "10.1.0.9"))
	reconcileAccess(t, f, "a")
	if all := hostsOf(t, f, "a"); len(all) != 1 {
		t.Fatalf("the node has ports %+v, want 1", all)
	}
	must.Get(f.DeletePort(ctx(t), x.Name, nil))(t)
	s.Networks, s.Routes = nil, nil
	apply(t, f, s)
	if left := state(t, f).Ports; len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// An agent can keep its node connected to one network.
func TestANodeStaysConnectedToOneNetwork(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks[0].NodeAccess = true
	s.Ports, s.Routes = nil, nil
	apply(t, f, s)
	access := func(always string) (add []model.PortRequest, remove []string) {
		must.Succeed(t, f.Look(ctx(t), func(v *View) { add, remove = v.Access("a", always) }))
		return add, remove
	}
	if add, remove := access("none"); len(add)+len(remove) > 0 {
		t.Errorf("a network that does not exist: %v, %v", add, remove)
	}
	add, _ := access("red")
	if len(add) != 1 {
		t.Fatalf("%d ports must be added, want 1", len(add))
	}
	_, _, err := f.AddPort(ctx(t), add[0])
	must.Succeed(t, err)
	if add, remove := access("red"); len(add)+len(remove) > 0 {
		t.Errorf("a connected node: %v, %v", add, remove)
	}
	if _, remove := access(""); len(remove) != 1 {
		t.Errorf("a node without workloads must be disconnected: %v", remove)
	}
}

// A node has one route to each prefix. So host ports must not connect it to two networks with common addresses.
func TestANodeIsNotConnectedToTheSameAddressesOfTwoTenants(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 2, Tenant: "other", Subnets: prefixes("10.1.0.0/24")})
	apply(t, f, s)
	host := func(name, network, node, address string) error {
		p := model.Port{Name: name, Network: network, Node: node, IPs: addresses(address), Attach: model.Attachment{Host: true}}
		_, _, err := f.AddPort(ctx(t), model.PortRequest{Port: p})
		return err
	}
	refused := func(what string, err error) {
		t.Helper()
		if !IsWhy(err, Invalid) || !strings.Contains(err.Error(), "delete one of the ports") {
			t.Errorf("%s: error %v, want %v", what, err, Invalid)
		}
	}
	must.Succeed(t, host("x", "red", "a", "10.1.0.8"))
	must.Succeed(t, host("y", "blue", "b", "10.1.0.9"))
	refused("a second tenant's port on node a", host("z", "blue", "a", "10.1.0.10"))
	part := followWith(t, f.store, Options{Node: "c"}) // a node without ports: its copy of the store has none
	subnets := func(all ...string) error {
		_, err := part.UpdateNetwork(ctx(t), "blue", func(n *model.Network) error { n.Subnets = prefixes(all...); return nil })
		return err
	}
	must.Get(f.DeletePort(ctx(t), "y", nil))(t)
	must.Succeed(t, subnets("10.2.0.0/24"))
	f.awaitRevision(ctx(t), part.Health().Revision)
	must.Succeed(t, host("z", "blue", "a", "10.2.0.10"))
	refused("a subnet of both", subnets("10.2.0.0/24", "10.1.0.0/25"))
	state(t, f)
}

// readPorts is a store that records the networks whose ports are read.
type readPorts struct {
	store.Store
	networks map[string]bool
}

func (r *readPorts) Read(ctx context.Context, at int64, spans ...store.Span) (store.Image, error) {
	i, err := r.Store.Read(ctx, at, spans...)
	for _, e := range i.Entries {
		if isPort(e.Key) {
			r.networks[placeOfKey(e.Key).network] = true
		}
	}
	return i, err
}

// The time of an update must not depend on the size of the fleet.
func TestAnUpdateOfANetworkReadsOnlyPortsThatItCanContradict(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks = append(s.Networks,
		model.Network{Name: "blue", ID: 2, Tenant: "other", Subnets: prefixes("10.1.0.0/24")},
		model.Network{Name: "green", ID: 3, Subnets: prefixes("10.2.0.0/24")})
	apply(t, f, s)
	for _, n := range s.Networks {
		add(t, f, model.Port{Name: "in-" + n.Name, Network: n.Name, Node: "a"})
	}
	r := &readPorts{Store: f.store}
	part := followWith(t, r, Options{Node: "c"})
	must.Succeed(t, part.Reach(ctx(t)))
	check := func(when string, want ...string) {
		t.Helper()
		r.networks = map[string]bool{}
		must.Get(part.UpdateNetwork(ctx(t), "blue", func(n *model.Network) error { n.VNI ^= 1 << 10; return nil }))(t)
		if got := slices.Sorted(maps.Keys(r.networks)); !slices.Equal(got, want) {
			t.Errorf("%s: an update of blue reads the ports of %v, want %v", when, got, want)
		}
	}
	check("without host ports", "blue")
	add(t, f, model.Port{Name: "host", Network: "blue", Node: "b", Attach: model.Attachment{Host: true}})
	check("with a host port", "blue", "red")
}
