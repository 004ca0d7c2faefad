package agent

import (
	"net/netip"
	"testing"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

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
