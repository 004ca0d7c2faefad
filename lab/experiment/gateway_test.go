package experiment

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/probe"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
)

// With NAT, the host outside sees an address of the workload's node. Otherwise it sees the workload's address.
func TestAHostOutsideSeesTheTranslatedOrTheWorkloadsAddress(t *testing.T) {
	for _, c := range []struct {
		system system.System
		sees   func(sender Endpoint) netip.Prefix
	}{
		{system.BridgeNAT{}, func(e Endpoint) netip.Prefix { return alone(e.Node.Addr(4)) }},
		{system.VRouterGateway{Way: system.ByNAT}, func(Endpoint) netip.Prefix { return netip.MustParsePrefix("10.31.255.0/28") }},
		{system.VRouterGateway{Way: system.ByKernel}, func(e Endpoint) netip.Prefix { return alone(e.V4) }},
		{system.VRouterGateway{Way: system.ByEVPN}, func(e Endpoint) netip.Prefix { return alone(e.V4) }},
	} {
		t.Run(c.system.Name(), func(t *testing.T) {
			ctx := context.Background()
			e := onThisMachine(t, &notebook{}, c.system)
			b, err := NewBench(ctx, e.Executor, e.ID, &e.Plan.Scenarios[0], e.Plan.Nodes)
			must.Succeed(t, err)
			defer func() { must.Succeed(t, b.Down(ctx)) }()
			must.Succeed(t, b.Prove(ctx, 4))
			p := b.Pairs[0]
			var l net.Listener
			inside(t, p.Receiver, func() (err error) {
				l, err = net.Listen("tcp4", ":0")
				return err
			})
			defer l.Close()
			inside(t, p.Sender, func() error {
				to := netip.AddrPortFrom(p.Receiver.V4, uint16(l.Addr().(*net.TCPAddr).Port))
				conn, err := net.Dial("tcp4", to.String())
				if err == nil {
					err = conn.Close()
				}
				return err
			})
			conn, err := l.Accept()
			must.Succeed(t, err)
			defer conn.Close()
			if from := netip.MustParseAddrPort(conn.RemoteAddr().String()).Addr(); !c.sees(p.Sender).Contains(from) {
				t.Errorf("the host outside sees packets from %s, want an address of %s", from, c.sees(p.Sender))
			}
		})
	}
}

// inside calls a function in the network namespace of a container.
func inside(t *testing.T, e Endpoint, f func() error) {
	t.Helper()
	s, err := space.Open(e.Node.Attachment().SpaceBase + "-" + e.Name)
	must.Succeed(t, err)
	defer s.Close()
	must.Succeed(t, s.Do(f))
}

// Without the router's programs, the scenario is skipped, and the reason says how to install them.
func TestAGatewayIsSkippedWithoutItsPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, want := range map[string]string{
		"bridge-nat": "iptables is not installed", "vrouter-nat": "iptables is not installed", "vrouter-evpn": "vtysh is not installed; get it with: apt-get install frr",
	} {
		sc := scenario(name, func(sc *suite.Scenario) { sc.Placement = suite.Gateway })
		if why := skipsOn(planOf(sc), probe.Probe())[sc.ID]; !strings.Contains(why, want) {
			t.Errorf("%s is skipped because %q, want %q", name, why, want)
		}
	}
}
