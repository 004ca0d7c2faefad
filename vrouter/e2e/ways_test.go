package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("decode: %v\n%s", err, text)
	}
}

// command runs a program in the workload; the test is skipped where it is not
// installed.
func (w *workload) command(name string, args ...string) (string, error) {
	w.bed.t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		w.bed.t.Skipf("%s is not installed", name)
	}
	out, err := exec.Command("ip", append([]string{"netns", "exec", w.port.Attach.Netns, name}, args...)...).CombinedOutput()
	return string(out), err
}

// Real ping: the gateway answers, the MTU is as said, and what is larger is
// refused by an error that the sender's kernel believes.
func TestPingTheGatewayAndThePathMTU(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{config: map[string]any{"repair_interval": "1h"}}) // it would set the workload's MTU right again
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	for _, to := range []string{"10.1.0.1", "fd00:1::1", y.ip(4).String(), y.ip(6).String()} {
		if out, err := x.command("ping", "-c", "2", "-i", "0.2", "-W", "2", to); err != nil {
			t.Errorf("ping %s: %v\n%s", to, err, out)
		}
	}
	if out, err := x.command("ping", "-c", "1", "-W", "2", "-M", "do", "-s", "1440", y.ip(4).String()); err != nil { // 1468 = 1500 − 32
		t.Errorf("a packet as large as the MTU: %v\n%s", err, out)
	}
	// The workload thinks that it may send more: the way says no.
	testprogram.Output(t, "ip -n "+x.port.Attach.Netns+" link set eth0 mtu 1500")
	checkTransfer(x, y, 4, 1<<20)
	out, err := x.command("ping", "-c", "2", "-i", "0.3", "-W", "1", "-M", "do", "-s", "1460", y.ip(4).String())
	if err == nil || !strings.Contains(out, "mtu = 1468") && !strings.Contains(out, "mtu=1468") {
		t.Errorf("a packet that is too large: %v\n%s", err, out)
	}
	route, _ := x.command("ip", "route", "get", y.ip(4).String())
	if !strings.Contains(route, "mtu 1468") {
		t.Errorf("the sender's kernel did not learn the MTU: %s", route)
	}
}

// Between two subnets of a network the router shows as one hop.
func TestTracerouteShowsTheHop(t *testing.T) {
	t.Parallel()
	needs(t, "traceroute")
	b := sharedBed(t, options{})
	for _, encap := range []model.Encapsulation{model.MPLSoUDP, model.Direct} {
		b.run(string(encap), func(t *testing.T) {
			b.state.Nodes = b.nodesOf(false, encap)
			b.state.Networks = []model.Network{{Name: "red", ID: 1, Subnets: subnets("10.1.0.0/24", "10.2.0.0/24", "fd00:1::/64", "fd00:2::/64")}}
			x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
			b.workload("y", "red", 1, "10.2.0.10", "fd00:2::10")
			b.up()
			b.awaitWays(string(encap))
			for to, hop := range map[string]string{"10.2.0.10": "10.1.0.1", "fd00:2::10": "fd00:1::1"} {
				// Other tests' floods overflow the kernel's backlog for some ms, so not all probes go at once.
				out, err := x.command("traceroute", "-n", "-N", "1", "-q", "3", "-w", "2", "-m", "4", to)
				lines := strings.Split(strings.TrimSpace(out), "\n")
				if err != nil || len(lines) != 3 || !strings.Contains(lines[1], " "+hop+" ") || !strings.Contains(lines[2], " "+to+" ") {
					t.Errorf("traceroute to %s, %v:\n%s", to, err, out)
				}
			}
		})
	}
}

// Bridged networks carry what is not IP, and broadcast reaches everyone but the
// sender, once.
func TestBridgedNetworksFloodAndAnswer(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3})
	for _, encap := range encaps {
		b.run(string(encap), func(t *testing.T) {
			b.state.Nodes = b.nodesOf(false, encap)
			b.state.Networks = []model.Network{{Name: "lan", ID: 5, VNI: 500, Forwarding: model.L2, Subnets: []netip.Prefix{netip.MustParsePrefix("10.5.0.0/24")}}}
			var all []*workload
			for i, name := range []string{"w1", "w2", "w3", "w4"} {
				all = append(all, b.workload(name, "lan", min(i, 2), netip.AddrFrom4([4]byte{10, 5, 0, byte(10 + i)}).String()))
			}
			b.up()
			// ARP is not known to the vrouter here: it is flooded and answered by
			// the workloads themselves.
			for _, to := range all[1:] {
				checkTransfer(all[0], to, 4, 1<<20)
			}
			checkBroadcast(t, all)
		})
	}
}

func TestATraceHasThePathOfAPacket(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	_, y := pair(b, model.L3, false, model.MPLSoUDP)
	var trace inspect.Trace
	decode(t, b.nodes[0].run("trace", "--from", "x", "--to", y.ip(4).String(), "--proto", "tcp", "--dport", "80", "-o", "json"), &trace)
	if trace.Dropped || !containsAll(trace.Verdict, "mpls-udp", "18") || len(trace.Steps) < 3 {
		t.Errorf("the trace is %+v, want mpls-udp with label 18", trace)
	}
	decode(t, b.nodes[0].run("trace", "--from", "x", "--to", "10.1.9.9", "-o", "json"), &trace)
	if !trace.Dropped || !strings.Contains(trace.Verdict, "no_route") {
		t.Errorf("the trace is %+v, want a drop with no_route", trace)
	}
}

// Kernel VXLAN on another node: both ways, with a bridge's static entries.
func TestTheKernelsVXLANIsAPeer(t *testing.T) {
	t.Parallel()
	needs(t, "bridge")
	b := newBed(t, options{})
	kernel := b.nodes[1]
	b.nodes = b.nodes[:1]
	foreign := model.MAC{2, 0xee, 0, 0, 0, 1}
	b.state.Nodes = b.nodesOf(false, model.VXLAN)
	b.state.Networks = []model.Network{{Name: "lan", ID: 7, VNI: 700, Forwarding: model.L2, Subnets: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/24")}}}
	b.state.Gateways = []model.Gateway{{Name: "kernel", Addresses: []netip.Addr{kernel.v4}, Encapsulation: model.VXLAN,
		Networks: []model.GatewayNetwork{{Network: "lan", VNI: 700, MACs: []model.MAC{foreign}, Flood: true}}}}
	x := b.workload("x", "lan", 0, "10.7.0.10")
	b.up()
	w := &workload{bed: b, ns: b.namespace("k")}
	w.port = model.Port{Name: "k", IPs: []netip.Addr{netip.MustParseAddr("10.7.0.20")}, Attach: model.Attachment{Netns: b.name + "-k"}}
	kernel.ip("link add vx type vxlan id 700 dstport 4789 local " + kernel.v4.String() + " nolearning")
	kernel.ip("link add br0 type bridge")
	kernel.ip("link set vx master br0 mtu 1450 up")
	kernel.ip("link set br0 up")
	kernel.ip("link add v0 mtu 1450 type veth peer name eth0 mtu 1450 netns " + b.name + "-k")
	kernel.ip("link set v0 master br0 up")
	testprogram.Output(t, "ip -n "+b.name+"-k link set eth0 address "+foreign.String()+" up")
	testprogram.Output(t, "ip -n "+b.name+"-k addr add 10.7.0.20/24 dev eth0")
	for _, mac := range []string{"00:00:00:00:00:00", x.port.MAC.String()} {
		testprogram.Output(t, "bridge -n "+kernel.space+" fdb append "+mac+" dev vx dst "+b.nodes[0].v4.String())
	}
	for _, n := range []int{1 << 10, 20 << 20} {
		checkTransfer(x, w, 4, n)
		checkTransfer(w, x, 4, n)
	}
	if n := train(t, w, x, 4, 8); n != 8 {
		t.Errorf("%d of 8 datagrams arrived that the kernel's sent as one superpacket", n)
	}
}

// A kernel with a VXLAN device and default settings is the gateway of a network that only routes. It
// resolves the addresses of workloads, and takes only packets with a checksum over IPv6, also if the node's
// device writes no checksums.
func TestTheKernelsVXLANIsAGatewayOfANetworkThatOnlyRoutes(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{bare: 1})
	kernel := b.nodes[1]
	for i, v6 := range []bool{false, true, true} {
		b.run(fmt.Sprintf("underlay-v6=%v/offloads=%v", v6, i < 2), func(t *testing.T) {
			if i == 2 {
				b.nodes[0].offload("none")
			}
			own, far := kernel.v4, b.nodes[0].v4
			if v6 {
				own, far = kernel.v6, b.nodes[0].v6
			}
			foreign := model.MAC{2, 0xee, 0, 0, 0, 1}
			b.state.Nodes = b.nodesOf(v6, model.VXLAN)[:1]
			b.state.Networks = []model.Network{{Name: "lan", ID: 7, VNI: 700, Forwarding: model.L3, Subnets: subnets("10.7.0.0/24", "fd07::/64")}}
			b.state.Gateways = []model.Gateway{{Name: "kernel", Addresses: []netip.Addr{own}, Encapsulation: model.VXLAN, MAC: foreign,
				Networks: []model.GatewayNetwork{{Network: "lan", VNI: 700, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.7.0.254/32"), netip.MustParsePrefix("fd07::fe/128")}}}}}
			x := b.workload("x", "lan", 0, "10.7.0.10", "fd07::10")
			b.up()
			kernel.ip("link add vx type vxlan id 700 dstport 4789 local " + own.String() + " remote " + far.String())
			kernel.ip("link set vx address " + foreign.String() + " mtu 1430 up")
			kernel.ip("addr add 10.7.0.254/24 dev vx")
			kernel.ip("addr add fd07::fe/64 dev vx nodad")
			defer kernel.ip("link del vx")
			w := &workload{bed: b, ns: kernel.ns, port: model.Port{Name: "k", IPs: addresses("10.7.0.254", "fd07::fe")}}
			for _, version := range []int{4, 6} {
				for _, n := range []int{64, 1300} {
					if err := datagram(w, x, version, n); err != nil {
						t.Errorf("IPv%d: %v; drops %v", version, err, b.nodes[0].drops())
					}
				}
				if err := errors.Join(transfer(x, w, version, 1<<20), transfer(w, x, version, 1<<20)); err != nil {
					t.Errorf("IPv%d: %v; drops %v", version, err, b.nodes[0].drops())
				}
			}
		})
	}
}

// A kernel with a VXLAN device, without BGP, is a gateway with `floating`. Its hosts reach a workload by its floating address,
// and see it as the source of its packets, also after a restart of the agent. Packets of a workload without a floating address
// have its address in the subnet as their source. Without `floating`, this is true of all workloads.
func TestAGatewayReachesAFloatingAddress(t *testing.T) {
	t.Parallel()
	needs(t, "ip", "iptables", "ip6tables")
	b := newBed(t, options{bare: 1})
	a, kernel, router := b.nodes[0], b.nodes[1], model.MAC{2, 0xee, 0, 0, 0, 1}
	b.state.Nodes = b.nodesOf(false, model.VXLAN)[:1]
	b.state.Networks = []model.Network{{Name: "red", ID: 1, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	b.state.Gateways = []model.Gateway{{Name: "kernel", Addresses: []netip.Addr{kernel.v4}, Encapsulation: model.VXLAN, MAC: router, Floating: true,
		Networks: []model.GatewayNetwork{{Network: "red", Prefixes: subnets("10.9.0.0/24", "fd00:9::/64")}}}}
	x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	a.run("network", "nat", "red", "--pool", "192.0.2.8/29", "--pool", "2001:db8:77::8/125")
	w, floating := &workload{bed: b, ns: b.namespace("w")}, addresses("192.0.2.14", "2001:db8:77::e")
	w.port = one[api.Port](a, "port", "add", "--name", "w", "--network", "red", "--netns", b.name+"-w", "--floating", floating[0].String(), "--floating", floating[1].String()).Port
	kernel.ip("link add vx type vxlan id 1001 dstport 4789 local " + kernel.v4.String() + " remote " + a.v4.String())
	kernel.ip("link set vx address " + router.String() + " mtu 1430 up")
	for i, far := range []string{"10.9.0.2", "fd00:9::2"} {
		kernel.ip("addr add " + far + " dev lo nodad") // otherwise the kernel can refuse it as a source at first
		kernel.ip("route add " + b.state.Networks[0].Subnets[i].String() + " dev vx src " + far)
		kernel.ip(fmt.Sprintf("route add %s via %s dev vx onlink src %s", floating[i], []string{"10.1.0.1", "fd00:1::1"}[i], far))
	}
	lan := &workload{bed: b, ns: kernel.ns, port: model.Port{Name: "lan", IPs: addresses("10.9.0.2", "fd00:9::2")}}
	of := func(word string, all []netip.Addr) func(bool) string {
		return func(v6 bool) string { return word + " " + all[map[bool]int{false: 0, true: 1}[v6]].String() }
	}
	replies(t, w.ns, "floating", w.port.IPs...)
	replies(t, lan.ns, "lan", lan.port.IPs...)
	for _, version := range []int{4, 6} {
		reaches(t, w, lan, version)
		reaches(t, x, lan, version)
	}
	for range 2 {
		expectReplies(t, lan.ns, floating, of("floating", lan.port.IPs))
		expectReplies(t, w.ns, lan.port.IPs, of("lan", floating))
		expectReplies(t, x.ns, lan.port.IPs, of("lan", x.port.IPs))
		for _, version := range []int{4, 6} {
			checkTransfer(w, lan, version, bulk/4)
		}
		a.kill(syscall.SIGTERM)
		a.start()
	}
	a.run("gateway", "create", "kernel", "--address", kernel.v4.String(), "--encapsulation", "vxlan", "--mac", router.String(), "--serve", "red,prefix=10.9.0.0/24,prefix=fd00:9::/64")
	expectReplies(t, w.ns, lan.port.IPs, of("lan", w.port.IPs))
	a.run("gateway", "create", "kernel", "--address", kernel.v4.String(), "--encapsulation", "vxlan", "--mac", router.String(), "--serve", "red,prefix=10.9.0.0/24,prefix=fd00:9::/64", "--floating")
	expectReplies(t, w.ns, lan.port.IPs, of("lan", floating))
}

// service starts a workload on node 0, and on nodes 1 and 2 a server each. Both servers have one address, to which
// an ECMP route leads.
func (b *bed) service() (x *workload, servers []*workload, service netip.Addr) {
	b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)
	b.state.Networks = []model.Network{{Name: "red", ID: 1, Subnets: subnets("10.1.0.0/16")}}
	x = b.workload("x", "red", 0, "10.1.0.10")
	servers = []*workload{b.workload("s1", "red", 1, "10.1.0.21"), b.workload("s2", "red", 2, "10.1.0.22")}
	service = netip.MustParseAddr("10.99.0.1")
	for i := range servers {
		b.state.Ports[1+i].AllowSources = []netip.Prefix{netip.PrefixFrom(service, 32)}
	}
	b.state.Routes = []model.Route{{Network: "red", Prefix: netip.PrefixFrom(service, 32), Via: []model.Via{{Port: "s1"}, {Port: "s2"}}}}
	b.up()
	for _, s := range servers {
		testprogram.Output(b.t, "ip -n "+s.port.Attach.Netns+" addr add "+service.String()+"/32 dev lo")
	}
	return x, servers, service
}

// A static route over two nodes is ECMP: flows spread, and each stays.
func TestFlowsSpreadOverEqualPathsAndStay(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3})
	x, servers, service := b.service()
	for _, s := range servers {
		s.port.IPs = []netip.Addr{service}
	}
	for range 20 {
		// Both listen; whichever is reached must stay the same for a transfer.
		must.Succeed(t, anyTransfer(x, servers, 1<<20))
	}
	stats := map[string]uint64{}
	for _, n := range b.nodes[1:] {
		for _, v := range table(n, (*api.Client).Vifs) {
			if v.Type == "virtual" {
				stats[n.name] += v.TxPackets
			}
		}
	}
	if stats["b"] == 0 || stats["c"] == 0 {
		t.Errorf("all flows took one way: %v", stats)
	}
}
