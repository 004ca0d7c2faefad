package fib

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// crowd has of everything that a limit counts: 3 networks, 6 ports (3 here), 5
// addresses of other nodes, IPv4 and IPv6.
func crowd() model.State {
	s := model.State{Nodes: []model.Node{
		{Name: "a", Underlay: addrs("192.0.2.1", "2001:db8::1")}, {Name: "b", Underlay: addrs("192.0.2.2", "2001:db8::2")}, {Name: "c", Underlay: addrs("192.0.2.3", "2001:db8::3")},
	}}
	for i := range 3 {
		name := fmt.Sprint("net", i)
		s.Networks = append(s.Networks, model.Network{Name: name, ID: uint32(1 + i), Tenant: name, Forwarding: model.L2L3, Subnets: []netip.Prefix{prefix("10.1.0.0/16"), prefix("fd00:1::/64")}})
		for j, node := range []string{"a", "b"} {
			s.Ports = append(s.Ports, model.Port{
				Name: name + node, Network: name, Node: node, MAC: model.MAC{2, 0, 0, 0, byte(i), byte(j)}, IPs: addrs(fmt.Sprint("10.1.0.", 5+j), fmt.Sprint("fd00:1::", 5+j)),
			})
		}
		s.Routes = append(s.Routes,
			model.Route{Network: name, Prefix: prefix("10.9.0.0/16"), Via: []model.Via{{Port: name + "a"}, {Port: name + "b"}}},
			model.Route{Network: name, Prefix: prefix("fd99::/32"), Discard: true})
	}
	s.Gateways = []model.Gateway{{Name: "mx", Addresses: addrs("192.0.2.9"), Encapsulation: model.VXLAN, Networks: []model.GatewayNetwork{{Network: "net0", Prefixes: []netip.Prefix{prefix("0.0.0.0/0")}}}}}
	return s.WithDefaults()
}

func compileWithin(s model.State, l Limits) error {
	f := factsFor(s, "a", nil)
	f.Limits = l
	_, _, err := compile(s, "a", f, &IDs{})
	return err
}

func TestEachLimitIsNamedWithItsMapItsCountAndItsSetting(t *testing.T) {
	must.Succeed(t, crowd().Validate())
	for _, c := range []struct {
		limits Limits // one less than what is wanted
		want   string
	}{
		{Limits{Vifs: 2}, "table vifs: 3 vifs are wanted, its limit is 2; raise limits.vifs in the node's configuration"},
		// 6 nexthops of each network: VRF-translate, receive, L2-receive, a port, flood, ECMP. 2 tunnels to b, 1 tunnel to mx, and entry 0.
		{Limits{Nexthops: 21}, "table nexthops: 21 nexthops are wanted, its limit is 20; raise limits.nexthops in the node's configuration"},
	} {
		err := compileWithin(crowd(), c.limits)
		if err == nil || err.Error() != c.want {
			t.Errorf("%+v:\n     %v\nwant %s", c.limits, err, c.want)
		}
		var limit *LimitError
		if !errors.As(err, &limit) {
			t.Errorf("%+v: %T is no *LimitError", c.limits, err)
		}
	}
}

func TestTablesThatFitExactlyAreAccepted(t *testing.T) {
	if err := compileWithin(crowd(), Limits{Vifs: 3, Nexthops: 22}); err != nil {
		t.Error(err)
	}
}

func TestALimitOfZeroIsNoLimit(t *testing.T) {
	if err := compileWithin(crowd(), Limits{}); err != nil {
		t.Error(err)
	}
}

// A broadcast is copied to so many places at most: the data path's loop ends.
func TestANetworkThatFloodsToTooManyPlacesIsRefused(t *testing.T) {
	flooding := func(ports int) model.State {
		s := model.State{Nodes: []model.Node{{Name: "a", Underlay: addrs("192.0.2.1")}}, Networks: []model.Network{{Name: "lan", ID: 7, Forwarding: model.L2}}}
		for i := range ports {
			s.Ports = append(s.Ports, model.Port{Name: fmt.Sprint("p", i), Network: "lan", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, byte(1 + i)}})
		}
		return s.WithDefaults()
	}
	if err := compileWithin(flooding(128), Limits{}); err != nil {
		t.Error(err)
	}
	const want = `network "lan": 129 destinations of broadcast are wanted, at most 128 fit; make it l3, or split it`
	if err := compileWithin(flooding(129), Limits{}); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestTheErrorOfAnUnknownNodeListsTheNodes(t *testing.T) {
	s := crowd()
	_, _, err := compile(s, "z", Facts{}, &IDs{})
	const want = `node "z" is not in the state, which has a, b, c; apply the state of this node's fleet, or correct node in its configuration`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for i := range 10 {
		s.Nodes = append(s.Nodes, model.Node{Name: fmt.Sprint("n", i)})
	}
	if _, _, err := compile(s, "z", Facts{}, &IDs{}); err == nil || !strings.Contains(err.Error(), `a, b, c, n0, n1, n2, n3, n4 and 5 more;`) {
		t.Errorf("%v does not count the nodes it leaves out", err)
	}
}
