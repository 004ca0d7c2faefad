package fleet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// If all ids of networks are used, a further network is refused, and the fleet stays as it is. The
// id of a deleted network is free.
func TestANetworkNeedsAFreeID(t *testing.T) {
	f := openFile(t)
	s := small()
	s.Networks = nil
	for id := uint32(1); id <= model.MaxNetworkID; id++ {
		s.Networks = append(s.Networks, model.Network{Name: fmt.Sprint("n", id), ID: id, VNI: id, Forwarding: model.L2})
	}
	apply(t, f, s)
	_, err := f.AddNetwork(ctx(t), model.Network{Name: "late", Forwarding: model.L2})
	if !IsWhy(err, Full) || !strings.Contains(err.Error(), `add network "late": all 4095 ids are in use; delete networks`) {
		t.Errorf("the network after the last id: %v, want a refusal", err)
	}
	_, err = f.AddNetwork(ctx(t), model.Network{Name: "late", ID: model.MaxNetworkID + 1, Forwarding: model.L2})
	if !IsWhy(err, Invalid) || !strings.Contains(err.Error(), "4096 is not from 1 to 4095") {
		t.Errorf("a network with the id 4096: %v, want a refusal", err)
	}
	if now := state(t, f); len(now.Networks) != model.MaxNetworkID {
		t.Errorf("the fleet has %d networks, want %d", len(now.Networks), model.MaxNetworkID)
	}
	must.Succeed(t, f.DeleteNetwork(ctx(t), "n77"))
	if n, err := f.AddNetwork(ctx(t), model.Network{Name: "late", Forwarding: model.L2}); err != nil || n.ID != 77 {
		t.Errorf("after network n77 was deleted, the new one has the id %d (%v), want 77", n.ID, err)
	}
}

func TestANetworkWithoutNumbersGetsFreeOnes(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	blue, err := f.AddNetwork(ctx(t), model.Network{Name: "blue", Subnets: prefixes("10.2.0.0/16")})
	if err != nil || blue.ID != 2 || blue.VNI != 2 || blue.Forwarding != model.L3 {
		t.Errorf("the network is %+v (%v), want ID 2, VNI 2 and l3", blue, err)
	}
	if again, err := f.AddNetwork(ctx(t), model.Network{Name: "blue", Subnets: prefixes("10.2.0.0/16")}); err != nil || again.ID != 2 {
		t.Errorf("asked for again: %+v, %v", again, err)
	}
	for want, n := range map[string]model.Network{
		`network "blue" already exists`:                       {Name: "blue", Subnets: prefixes("10.3.0.0/16")},
		`10.1.0.128/25 overlaps 10.1.0.0/24 of network "red"`: {Name: "green", Subnets: prefixes("10.1.0.128/25")},
		`has node "a"'s underlay address 192.0.2.1`:           {Name: "green", Subnets: prefixes("192.0.2.0/24")},
		`id: 1 is already used by network "red"`:              {Name: "green", ID: 1, VNI: 9, Subnets: prefixes("10.4.0.0/16")},
		`needs one`:                                           {Name: "green"},
	} {
		_, err := f.AddNetwork(ctx(t), n)
		must.Fail(t, err, want)
	}
	if _, err := f.AddNetwork(ctx(t), model.Network{Name: "green", Tenant: "other", Subnets: prefixes("10.1.0.0/24")}); err != nil {
		t.Errorf("another tenant may have the same addresses: %v", err)
	}
	state(t, f)
}

func TestADeletedNodeIsNotANextHop(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	add(t, f, port("x"))
	must.Succeed(t, f.PutRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes("10.7.0.0/16")[0], Via: []model.Via{{Port: "x"}}}))
	must.Succeed(t, f.DeleteNode(ctx(t), "a", true))
	if s := state(t, f); len(s.Nodes) != 1 || len(s.Ports) != 0 || len(s.Routes) != 1 || !s.Routes[0].Discard || len(s.Routes[0].Via) != 0 {
		t.Errorf("nodes %v, ports %v and routes %+v remain, want node b and a route that discards packets", s.Nodes, s.Ports, s.Routes)
	}
}

func TestObjectsInUseAreNotDeleted(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks[0].Policies = []string{"web"}
	s.Gateways = []model.Gateway{{
		Name: "g", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.99")}, Encapsulation: model.VXLAN,
		Networks: []model.GatewayNetwork{{Network: "red", Prefixes: prefixes("10.8.0.0/16")}},
	}}
	apply(t, f, s)
	add(t, f, port("x"))
	for what, err := range map[string]error{
		"network with ports":  f.DeleteNetwork(ctx(t), "red"),
		"policy of a network": f.DeletePolicy(ctx(t), "web"),
		"node with ports":     f.DeleteNode(ctx(t), "a", false),
	} {
		if !IsWhy(err, InUse) {
			t.Errorf("delete a %s: error %v, want one of an object in use", what, err)
		}
	}
	must.Succeed(t, f.DeleteNode(ctx(t), "a", true))
	if err := f.DeleteNetwork(ctx(t), "red"); !IsWhy(err, InUse) {
		t.Errorf("network of a gateway: %v", err)
	}
	must.Succeed(t, f.DeleteGateway(ctx(t), "g"))
	must.Succeed(t, f.DeleteNetwork(ctx(t), "red"))
	must.Succeed(t, f.DeletePolicy(ctx(t), "web"))
	left := state(t, f)
	if len(left.Ports)+len(left.Networks)+len(left.Gateways)+len(left.Policies) > 0 || len(left.Nodes) != 1 {
		t.Errorf("left: %+v", left)
	}
}

func TestAChangeThatContradictsExistingObjectsIsRefused(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	add(t, f, port("x", "10.1.0.200"))
	_, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { n.Subnets = prefixes("10.1.0.0/25"); return nil })
	if !IsWhy(err, Invalid) || !strings.Contains(err.Error(), `10.1.0.200 is in no subnet`) {
		t.Errorf("error %v, want that 10.1.0.200 is in no subnet", err)
	}
	n, err := f.UpdateNetwork(ctx(t), "red", func(n *model.Network) error { n.Policies = []string{"web"}; return nil })
	if err != nil || state(t, f).Networks[0].Policies[0] != "web" {
		t.Errorf("the network is %+v (%v), want policy web", n, err)
	}
	if err := f.PutNode(ctx(t), model.Node{Name: "c", Underlay: []netip.Addr{netip.MustParseAddr("10.1.0.77")}}); !IsWhy(err, Invalid) {
		t.Errorf("a node whose address is a network's: %v", err)
	}
}
