package agent

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// TestAPortWithoutItsNamespaceDoesNotDelayTheOthers applies 100 ports. The namespace of one
// port does not exist. The others must forward, and the status must list this port only. The
// port must forward as soon as its namespace exists, and not only at the next retry.
func TestAPortWithoutItsNamespaceDoesNotDelayTheOthers(t *testing.T) {
	t.Parallel()
	b := newBedOf(t, func(c *config.Config) {
		c.RepairInterval, c.Limits.Vifs, c.Limits.Nexthops = time.Minute, 256, 1024
	}, "a")
	a, many, late := b.nodes["a"], agenttest.NewSpace(t, "many"), b.workloads["a1"].Name+"-late"
	s := b.state
	for i := range 98 {
		s.Ports = append(s.Ports, model.Port{
			Name: fmt.Sprint("p", i), Network: "red", Node: "a", MAC: model.MAC{2, 2, 0, 0, 0, byte(i)},
			IPs:    []netip.Addr{netip.AddrFrom4([4]byte{10, 7, 0, byte(100 + i)})},
			Attach: model.Attachment{Netns: many.Name, Interface: fmt.Sprint("p", i)},
		})
	}
	s.Ports[len(s.Ports)-1].Attach = model.Attachment{Netns: late}
	b.apply(t, "a", s)
	must.Succeed(t, exchange(b.workloads["a2"], many, "10.7.0.100"))
	rows := must.Get(a.client.Vifs(t.Context(), 7))(t)
	must.Equal(t, 99, len(rows))
	var p api.Problem
	must.Eventually(t, "eight failed attempts", func() error { // the next one is 6.4 to 12.8 s later
		if p = a.problemOf(t, "port", "p97"); p.Tries < 8 {
			return fmt.Errorf("port p97: %+v", p)
		}
		return nil
	})
	status := must.Get(a.client.Status(t.Context()))(t)
	if len(status.Problems) != 1 || status.Repairs != 0 {
		t.Errorf("the status lists %+v, want one port; %d repairs", status.Problems, status.Repairs)
	}
	space := agenttest.NamedSpace(t, late)
	must.Eventually(t, "the port in its namespace", a.healthy)
	if time.Now().After(p.Retry) {
		t.Errorf("the port waited until its next retry at %v", p.Retry)
	}
	must.Succeed(t, exchange(b.workloads["a2"], space, "10.7.0.197"))
}
