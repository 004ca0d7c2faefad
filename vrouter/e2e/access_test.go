package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// outsides are the addresses of the namespace behind each node.
var outsides = addresses("203.0.113.9", "2001:db8:99::9")

// outside makes a namespace behind a node. The node's default routes lead to it. It has no
// routes to the networks.
func (b *bed) outside(n *node) netns.NsHandle {
	b.t.Helper()
	ns := b.namespace("out-" + n.name)
	h, there := b.handle(n.ns), b.handle(ns)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "out"
	b.must(h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "node", PeerNamespace: netlink.NsFd(int(ns))}))
	configure := func(h *netlink.Handle, device string, all ...string) netlink.Link {
		l, err := h.LinkByName(device)
		b.must(err)
		b.must(h.LinkSetUp(l))
		for _, text := range all {
			p := netip.MustParsePrefix(text)
			b.must(h.AddrAdd(l, &netlink.Addr{IPNet: ipNet(p), Flags: map[bool]int{true: 0x02 /* IFA_F_NODAD */}[p.Addr().Is6()]}))
		}
		return l
	}
	l := configure(h, "out", "198.51.100.1/24", "2001:db8:1::1/64")
	configure(there, "node", "198.51.100.2/24", "2001:db8:1::2/64")
	configure(there, "lo", outsides[0].String()+"/32", outsides[1].String()+"/128")
	for to, via := range map[string]string{"0.0.0.0/0": "198.51.100.2", "::/0": "2001:db8:1::2"} {
		b.must(h.RouteAdd(&netlink.Route{Dst: ipNet(netip.MustParsePrefix(to)), Gw: netip.MustParseAddr(via).AsSlice(), LinkIndex: l.Attrs().Index}))
	}
	return ns
}

// replies serves TCP and UDP on port 7 of addresses of a namespace. Each client gets a
// word, and the address that the server sees.
func replies(t *testing.T, ns netns.NsHandle, word string, at ...netip.Addr) {
	t.Helper()
	for _, a := range at {
		repliesAt(t, ns, word, netip.AddrPortFrom(a, 7).String())
	}
}

func repliesAt(t *testing.T, ns netns.NsHandle, word, at string) {
	t.Helper()
	var l net.Listener
	var u net.PacketConn
	must.Succeed(t, in(ns, func() (err error) {
		if l, err = net.Listen("tcp", at); err == nil {
			u, err = net.ListenPacket("udp", at)
		}
		return err
	}))
	t.Cleanup(func() { l.Close(); u.Close() })
	reply := func(from net.Addr) []byte {
		a := netip.MustParseAddrPort(from.String())
		return []byte(word + " " + a.Addr().Unmap().String())
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write(reply(c.RemoteAddr()))
			c.Close()
		}
	}()
	go func() {
		for buffer := make([]byte, 16); ; {
			_, from, err := u.ReadFrom(buffer)
			if err != nil {
				return
			}
			u.WriteTo(reply(from), from)
		}
	}()
}

// replied asks the server at an address.
func replied(ns netns.NsHandle, network string, to netip.Addr, port uint16) (text string, err error) {
	err = in(ns, func() error {
		c, err := net.DialTimeout(network, netip.AddrPortFrom(to, port).String(), time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Second))
		if network == "udp" {
			c.Write([]byte("?"))
		}
		buffer := make([]byte, 64)
		n, err := c.Read(buffer)
		text = string(buffer[:n])
		return err
	})
	return text, err
}

// expectReplies expects a reply with TCP and UDP over both IP versions, several times: flows
// are spread by their ports.
func expectReplies(t *testing.T, from netns.NsHandle, to []netip.Addr, want func(v6 bool) string) {
	t.Helper()
	for _, a := range to {
		for _, network := range []string{"tcp", "udp"} {
			for range 8 {
				soon(t, network+" to "+a.String(), func() error {
					got, err := replied(from, network, a, 7)
					if err == nil && got != want(a.Is6()) {
						t.Fatalf("%s to %s: %q replies, want %q", network, a, got, want(a.Is6()))
					}
					return err
				})
			}
		}
	}
}

// kernelState returns what the agent must restore on a node.
func (n *node) kernelState() (text string) {
	n.bed.t.Helper()
	for _, command := range []string{"iptables -S -t nat", "iptables -S -t raw", "iptables -S", "ip6tables -S -t nat", "ip6tables -S -t raw", "ip6tables -S", "sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv6.conf.fab.forwarding", "ip -br link"} {
		for line := range strings.Lines(n.exec(command)) {
			if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "vr-") && !strings.HasPrefix(f[0], "lo") {
				text += line
			}
		}
	}
	return text
}

// filtered returns an error unless a rule of a chain, with a word in it, has dropped a packet.
func (n *node) filtered(program, table, chain, word string) error {
	text, err := exec.Command("ip", "netns", "exec", n.space, program, "-t", table, "-nvxL", chain).CombinedOutput()
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "DROP" && f[0] != "0" && strings.Contains(line, word) {
			return nil
		}
	}
	return fmt.Errorf("no rule of chain %s with %q has dropped a packet: %v\n%s", chain, word, err, text)
}

// A bridging workload reaches its node and addresses outside, and the node reaches the workload. But if the workload sends its node a
// packet for an address of another network, the node does not forward it, although the packet's source is allowed.
func TestABridgedPacketReachesNoOtherNetworkByTheNode(t *testing.T) {
	t.Parallel()
	needs(t, "iptables", "ip6tables")
	b := newBed(t, options{})
	b.state.Nodes = b.nodesOf(false)
	for i, name := range []string{"red", "blue"} {
		b.state.Networks = append(b.state.Networks, model.Network{Name: name, ID: uint32(i + 1), Tenant: name, Forwarding: model.L2L3, NodeAccess: true, Subnets: subnets(fmt.Sprintf("10.%d.0.0/16", i+1))})
	}
	x, y := b.workload("x", "red", 0, "10.1.0.10"), b.workload("y", "blue", 0, "10.2.0.10")
	b.state.Ports[0].AllowSources = subnets("192.168.5.0/24")
	own := model.MAC{2, 0, 0, 0, 9, 1}
	for i, name := range []string{"red", "blue"} {
		b.state.Ports = append(b.state.Ports, model.Port{
			Name: name + "-node", Network: name, Node: b.nodes[0].name, MAC: model.MAC{2, 0, 0, 0, 9, byte(i + 1)},
			IPs: addresses(fmt.Sprintf("10.%d.0.20", i+1)), Attach: model.Attachment{Host: true},
		})
	}
	a := b.nodes[0]
	out := b.outside(a)
	b.up()
	replies(t, out, "outside", outsides[0])
	expectReplies(t, x.ns, outsides[:1], func(bool) string { return "outside 198.51.100.1" })
	node := addresses("10.1.0.20")
	replies(t, a.ns, "node", node...)
	expectReplies(t, x.ns, node, func(bool) string { return "node 10.1.0.10" })
	replies(t, x.ns, "workload", x.port.IPs...)
	expectReplies(t, a.ns, x.port.IPs, func(bool) string { return "workload 10.1.0.20" })

	secret := []byte("from another network")
	seen := watchFor(t, y.ns, "eth0", secret)
	soon(t, "the packet is dropped", func() error {
		x.sendFrame(udpFrame(t, x.port.MAC, own, netip.MustParseAddr("192.168.5.7"), y.ip(4), 7777, secret))
		return a.filtered("iptables", "filter", "VROUTER-FORWARD", "! ctstate DNAT")
	})
	if all := seen(100 * time.Millisecond); len(all) > 0 {
		t.Errorf("%d packets of network red reach network blue", len(all))
	}
}

// Workloads reach their own node, the other node, a service, and addresses outside the network by their
// own node. Policies admit probes. Nothing is left once the network is deleted.
func TestWorkloadsReachOutsideByTheirNode(t *testing.T) {
	t.Parallel()
	needs(t, "ip", "iptables", "ip6tables")
	b := fleetBed(t, "10s")
	nodes := map[string]*node{"A": b.nodes[0], "B": b.nodes[1]}
	before, out := map[*node]string{}, map[string]netns.NsHandle{}
	for word, n := range nodes {
		out[word] = b.outside(n)
		replies(t, out[word], "outside "+word, outsides...)
		replies(t, n.ns, "node "+word, n.v4)
	}
	service := addresses("10.96.0.1") // a service whose endpoint is the other node
	b.nodes[0].exec("iptables -t nat -A PREROUTING -d " + service[0].String() + " -j DNAT --to-destination " + b.nodes[1].v4.String())
	for _, n := range nodes {
		before[n] = n.kernelState()
	}
	a := b.nodes[0]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16", "--subnet", "fd00:1::/64", "--node-access")
	x, y := b.connected("x", "red", 0), b.connected("y", "red", 1)
	workloads := map[string]*workload{"A": x, "B": y}
	masqueraded := func(word string) func(bool) string {
		return func(v6 bool) string {
			return "outside " + word + " " + map[bool]string{false: "198.51.100.1", true: "2001:db8:1::1"}[v6]
		}
	}
	hosts := map[string]model.Port{}
	soon(t, "both nodes are connected", func() error {
		for _, p := range answer(a, (*api.Client).State).Ports {
			if p.Origin == model.NodeAccess {
				hosts[strings.ToUpper(p.Node)] = p
			}
		}
		if len(hosts) < 2 {
			return fmt.Errorf("the nodes have the ports %v, want 2", hosts)
		}
		return nil
	})
	for word, w := range workloads {
		expectReplies(t, w.ns, outsides, masqueraded(word))
	}
	replies(t, a.ns, "node A", hosts["A"].IPs...)
	expectReplies(t, x.ns, hosts["A"].IPs, func(v6 bool) string {
		return "node A " + x.ip(map[bool]int{false: 4, true: 6}[v6]).String()
	})
	expectReplies(t, x.ns, []netip.Addr{nodes["A"].v4}, func(bool) string { return "node A " + x.ip(4).String() })
	expectReplies(t, x.ns, []netip.Addr{nodes["B"].v4}, func(bool) string { return "node B " + nodes["A"].v4.String() })
	expectReplies(t, x.ns, service, func(bool) string { return "node B " + nodes["A"].v4.String() })

	// A service of the kernel, as kube-proxy's, whose endpoint is a workload.
	for word, w := range workloads {
		replies(t, w.ns, "workload "+word, w.port.IPs...)
	}
	rule := " PREROUTING -d 10.96.0.2 -j DNAT --to-destination " + y.ip(4).String()
	a.exec("iptables -t nat -A" + rule)
	expectReplies(t, x.ns, addresses("10.96.0.2"), func(bool) string { return "workload B " + hosts["A"].IPs[0].String() })
	a.exec("iptables -t nat -D" + rule)

	// Each node probes its workloads, and nothing else reaches them.
	a.closeNetwork("red")
	for word, w := range workloads {
		host := hosts[word].IPs
		expectReplies(t, nodes[word].ns, w.port.IPs, func(v6 bool) string {
			return "workload " + word + " " + host[map[bool]int{false: 0, true: 1}[v6]].String()
		})
	}
	for _, network := range []string{"tcp", "udp"} {
		for _, to := range x.port.IPs {
			for who, ns := range map[string]netns.NsHandle{"the other workload": y.ns, "the other node": nodes["B"].ns} {
				if got, err := replied(ns, network, to, 7); err == nil {
					t.Errorf("%s reaches %s with %s in spite of the policy: %s", who, to, network, got)
				}
			}
		}
	}
	for word, w := range workloads {
		expectReplies(t, w.ns, outsides, masqueraded(word))
	}

	// The node cannot use the addresses of workloads on other nodes.
	a.forgetDrops()
	h := b.handle(a.ns)
	lo, err := h.LinkByName("lo")
	b.must(err)
	for _, ip := range y.port.IPs {
		b.must(h.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(ip, ip.BitLen())), Flags: map[bool]int{true: 0x02}[ip.Is6()]}))
	}
	spoofed := uint64(0)
	for i, from := range y.port.IPs {
		b.must(in(a.ns, func() error {
			d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
			c, err := d.Dial("udp", netip.AddrPortFrom(x.port.IPs[i], 7).String())
			if err == nil {
				defer c.Close()
				_, err = c.Write([]byte("?"))
			}
			return err
		}))
		soon(t, "a packet with the address of the other node's workload is dropped", func() error {
			if now := a.drops()["spoofed_ip"]; now <= spoofed {
				return fmt.Errorf("node a drops %v, want more than %d packets for spoofed_ip", a.drops(), spoofed)
			}
			return nil
		})
		spoofed = a.drops()["spoofed_ip"]
	}
	for _, ip := range y.port.IPs {
		b.must(h.AddrDel(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(ip, ip.BitLen()))}))
	}

	// Nor can a host outside use addresses of the node or of its workloads.
	route := b.handle(out["A"])
	link, err := route.LinkByName("node")
	b.must(err)
	for i, to := range x.port.IPs {
		from := hosts["A"].IPs[i]
		via, program := "198.51.100.1", "iptables"
		if to.Is6() {
			via, program = "2001:db8:1::1", "ip6tables"
		}
		b.must(route.RouteAdd(&netlink.Route{Dst: ipNet(netip.PrefixFrom(to, to.BitLen())), Gw: netip.MustParseAddr(via).AsSlice(), LinkIndex: link.Attrs().Index}))
		b.must(route.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(from, from.BitLen())), Flags: map[bool]int{true: 0x02}[from.Is6()]}))
		b.must(in(out["A"], func() error {
			d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
			c, err := d.Dial("udp", netip.AddrPortFrom(to, 7).String())
			if err == nil {
				defer c.Close()
				_, err = c.Write([]byte("?"))
			}
			return err
		}))
		soon(t, "a packet from outside with the node's address "+from.String()+" is dropped", func() error {
			return a.filtered(program, "raw", "VROUTER-PREROUTING", "")
		})
	}

	// A workload does not reach the node's 127.0.0.1, although portmap sets this sysctl.
	a.exec("sysctl -w net.ipv4.conf.all.route_localnet=1")
	loopback := netip.MustParseAddr("127.0.0.1")
	var local net.PacketConn
	b.must(in(a.ns, func() (err error) { local, err = net.ListenPacket("udp", "127.0.0.1:7"); return err }))
	defer local.Close()
	x.sendFrame(udpFrame(t, x.port.MAC, model.RouterMAC, x.ip(4), loopback, 7, []byte("?")))
	soon(t, "a packet to 127.0.0.1 is dropped", func() error { return a.filtered("iptables", "raw", "VROUTER-PREROUTING", "127.0.0.0/8") })
	local.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, from, err := local.ReadFrom(make([]byte, 16)); err == nil {
		t.Errorf("%d bytes of %v reach 127.0.0.1", n, from)
	}

	// Packets flow without the agent, and its next start changes nothing.
	during := nodes["B"].kernelState()
	nodes["B"].kill(syscall.SIGKILL)
	expectReplies(t, y.ns, outsides, masqueraded("B"))
	nodes["B"].start()
	expectReplies(t, y.ns, outsides, masqueraded("B"))
	if after := nodes["B"].kernelState(); after != during {
		t.Errorf("the start of the agent changes\n%s\nto\n%s", during, after)
	}

	for _, w := range workloads {
		a.run("port", "delete", w.port.Name)
	}
	a.run("network", "delete", "red")
	for _, n := range nodes {
		soon(t, "nothing of the network is left on node "+n.name, func() error {
			if after := n.kernelState(); after != before[n] {
				return fmt.Errorf("before\n%s\nafter\n%s", before[n], after)
			}
			return nil
		})
	}

	// Removal of a node whose agent is stopped.
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16", "--subnet", "fd00:1::/64", "--node-access")
	z := b.connected("z", "red", 1)
	expectReplies(t, z.ns, outsides, masqueraded("B"))
	nodes["B"].kill(syscall.SIGKILL)
	if text, err := nodes["B"].remove(); err != nil {
		t.Errorf("remove: %v: %s", err, text)
	}
	if after := nodes["B"].kernelState(); after != before[nodes["B"]] {
		t.Errorf("after the removal\n%s\nbefore\n%s", after, before[nodes["B"]])
	}
}

// A mapped port works in a network with node_access, and in one to which the node was connected
// before. The workload sees the client's address, and each reply leaves by the node by which the
// request came.
func TestMappedPortsKeepTheClientsAddress(t *testing.T) {
	t.Parallel()
	needs(t, "ip", "iptables", "ip6tables")
	b := cniBed(t)
	plugins := filepath.Dir(built(t, portmap))
	out := map[*node]netns.NsHandle{}
	for _, n := range b.nodes {
		out[n] = b.outside(n)
	}
	ctx := context.Background()
	expect := func(n *node, id string, port uint16) {
		t.Helper()
		r := newRuntime(t, n, `}, {"type": "portmap", "capabilities": {"portMappings": true}, "snat": false`)
		r.CNIConfig = libcni.NewCNIConfigWithCacheDir(append(r.Path, plugins), t.TempDir(), nil)
		ns := b.namespace(id)
		conf := r.container(id)
		conf.CapabilityArgs = map[string]any{"portMappings": []map[string]any{{"hostPort": port, "containerPort": 7, "protocol": "tcp"}}}
		b.must(in(n.ns, func() error { _, err := r.AddNetworkList(ctx, r.list, conf); return err }))
		for _, p := range answer(n, (*api.Client).State).Ports {
			if p.Owner == "pods/"+id+"/eth0" {
				replies(t, ns, id, p.IPs...)
			}
		}
		for to, from := range map[string]string{"198.51.100.1": "198.51.100.2", "2001:db8:1::1": "2001:db8:1::2"} {
			for range 8 {
				soon(t, "a client reaches the mapped port at "+to, func() error {
					got, err := replied(out[n], "tcp", netip.MustParseAddr(to), port)
					if want := id + " " + from; err == nil && got != want {
						t.Fatalf("%q replies, want %q", got, want)
					}
					return err
				})
			}
		}
	}
	a := b.nodes[0]
	a.run("network", "set", "red", "--node-access")
	for i, n := range b.nodes {
		expect(n, "access-"+n.name, 8080)
		expect(n, fmt.Sprintf("again-%d", i), 8081)
	}
	hosts := func() (all []string) {
		for _, p := range answer(a, (*api.Client).State).Ports {
			if p.Attach.Host {
				all = append(all, p.Name)
			}
		}
		return all
	}
	if all := hosts(); len(all) != 2 {
		t.Errorf("the ports that connect the nodes: %v", all)
	}
	// A port that an operator made serves too.
	a.run("network", "set", "red", "--node-access=false")
	soon(t, "the nodes are disconnected", func() error {
		if all := hosts(); len(all) > 0 {
			return fmt.Errorf("left: %v", all)
		}
		return nil
	})
	answer(a, func(c *api.Client, ctx context.Context) (api.Port, error) {
		return c.AddPort(ctx, model.PortRequest{Port: model.Port{Name: "own", Network: "red", Attach: model.Attachment{Host: true}}})
	})
	r := newRuntime(t, a, "")
	b.namespace("own")
	conf := r.container("own")
	conf.CapabilityArgs = map[string]any{"portMappings": []map[string]any{{"hostPort": 8082, "containerPort": 7, "protocol": "tcp"}}}
	if _, err := r.AddNetworkList(ctx, r.list, conf); err != nil {
		t.Error(err)
	}
	if all := hosts(); len(all) != 1 || all[0] != "own" {
		t.Errorf("the ports that connect the node: %v", all)
	}
}

// closeNetwork makes a network's policy deny all that comes to its workloads.
func (n *node) closeNetwork(network string) {
	n.bed.t.Helper()
	answer(n, func(c *api.Client, ctx context.Context) (any, error) {
		return nil, c.PutPolicy(ctx, model.Policy{Name: "closed", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny}}})
	})
	n.run("network", "set", network, "--policy", "closed")
}
