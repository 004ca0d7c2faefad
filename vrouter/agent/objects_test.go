package agent

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// Three clients have read the same network, and each changes a different field. No change may undo an earlier one.
func TestChangesOfANetworkKeepEachOther(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	must.Get(a.client.PutState(context.Background(), f.State(nil)))(t)
	red := func() model.Network {
		all := must.Get(a.client.Networks(context.Background()))(t)
		return all[slices.IndexFunc(all, func(n model.Network) bool { return n.Name == "red" })]
	}
	was := red()
	pool, resolver := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, []netip.Addr{netip.MustParseAddr("10.7.0.53")}
	for _, change := range []func(*model.Network){
		func(n *model.Network) { n.DHCP = true },
		func(n *model.Network) { n.NATPool, n.NodeAccess = pool, true },
		func(n *model.Network) { n.DNS = resolver },
	} {
		now := was
		change(&now)
		must.Get(a.client.ChangeNetwork(context.Background(), was, now))(t)
	}
	if n := red(); !n.DHCP || !n.NodeAccess || !slices.Equal(n.NATPool, pool) || !slices.Equal(n.DNS, resolver) {
		t.Errorf("after changes of DHCP, the pool and DNS the network is %+v", n)
	}
	with := red()
	must.Get(a.client.ChangeNetwork(context.Background(), with, was))(t)
	if n := red(); n.DHCP || n.NodeAccess || n.NATPool != nil || n.DNS != nil || !slices.Equal(n.Subnets, was.Subnets) {
		t.Errorf("after the change back the network is %+v, want %+v", n, was)
	}
}

// A client's change of a port fails on the node, and the agent undoes it. The agent must keep what another client changed
// meanwhile.
func TestAFailedChangeOfAPortUndoesOnlyItself(t *testing.T) {
	was := model.Port{Name: "p", Attach: model.Attachment{Netns: "n"}, Policies: []string{"open"}, Bandwidth: model.Bandwidth{Ingress: 1e6}}
	made := was
	changePort(&made, api.PortChange{Attach: &model.Attachment{Netns: "none"}, Policies: &[]string{"web"}, AllowSources: &[]netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}})
	for what, c := range map[string]struct {
		other api.PortChange
		want  func(*model.Port)
	}{
		"nothing":          {api.PortChange{}, func(*model.Port) {}},
		"a changed field":  {api.PortChange{Policies: &[]string{"closed"}}, func(p *model.Port) { p.Policies = []string{"closed"} }},
		"an emptied field": {api.PortChange{AllowSources: &[]netip.Prefix{}, Policies: &[]string{}}, func(p *model.Port) { p.Policies = nil }},
		"an untouched one": {api.PortChange{Bandwidth: &model.Bandwidth{Egress: 2e6}}, func(p *model.Port) { p.Bandwidth = model.Bandwidth{Egress: 2e6} }},
		"the attachment":   {api.PortChange{Attach: &model.Attachment{Netns: "m"}}, func(p *model.Port) { p.Attach.Netns = "m" }},
	} {
		is, want := made, was
		changePort(&is, c.other)
		restorePort(&is, was, made)
		if c.want(&want); !is.Equal(want) {
			t.Errorf("another client changed %s: the port is %+v, want %+v", what, is, want)
		}
	}
}
