package netdev

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/service"
)

// rulesBed is a node with a client outside, and with two workloads in one namespace.
type rulesBed struct {
	*testing.T
	node, client, workloads *Space
	rules                   ServiceRules
}

// Addresses of a rulesBed by IP version.
var (
	ofClient  = []string{"192.0.2.2", "fd00:2::2"}
	ofNode    = []string{"192.0.2.1", "fd00:2::1"}
	inNetwork = []string{"10.1.0.1", "fd00:1::1"} // of the node
	workloads = [][]string{{"10.1.0.2", "10.1.0.3"}, {"fd00:1::2", "fd00:1::3"}}
	clusterIP = []string{"10.96.0.1", "fd00:96::1"}
	external  = []string{"198.51.100.1", "fd00:51::1"}
	balancer  = []string{"198.51.100.2", "fd00:51::2"}
)

func newRulesBed(t *testing.T) *rulesBed {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed; get it with: apt-get install nftables")
	}
	b := &rulesBed{T: t, node: newSpace(t), client: newSpace(t), workloads: newSpace(t)}
	for device, peer := range map[string]*Space{"out": b.client, "vrh-test": b.workloads} {
		must.Succeed(t, b.node.Links.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: "eth0", PeerNamespace: netlink.NsFd(peer.Ns)}))
	}
	script := func(s *Space, lines ...string) {
		t.Helper()
		must.Succeed(t, s.Once(func() error {
			out, err := exec.Command("sh", "-ec", "ip link set lo up\n"+strings.Join(lines, "\n")).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		}))
	}
	script(b.node, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1", "ip link set out up", "ip link set vrh-test up",
		"ip address add 192.0.2.1/24 dev out", "ip address add fd00:2::1/64 dev out nodad", "ip address add 10.1.0.1/24 dev vrh-test", "ip address add fd00:1::1/64 dev vrh-test nodad",
		"ip route add default via 192.0.2.2", "ip route add default via fd00:2::2")
	script(b.client, "ip link set eth0 up", "ip address add 192.0.2.2/24 dev eth0", "ip address add fd00:2::2/64 dev eth0 nodad", "ip route add default via 192.0.2.1", "ip route add default via fd00:2::1")
	script(b.workloads, "ip link set eth0 up", "ip address add 10.1.0.2/24 dev eth0", "ip address add fd00:1::2/64 dev eth0 nodad", "ip address add 10.1.0.3/24 dev eth0", "ip address add fd00:1::3/64 dev eth0 nodad",
		"ip route add default via 10.1.0.1", "ip route add default via fd00:1::1")
	for _, all := range workloads {
		for _, address := range all {
			b.listen(b.workloads, net.JoinHostPort(address, "8080"))
		}
	}
	return b
}

// listen answers connections and datagrams with the local address and the client's address.
func (b *rulesBed) listen(at *Space, address string) {
	b.Helper()
	must.Succeed(b, at.Once(func() error {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		p, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		b.Cleanup(func() { l.Close(); p.Close() })
		answer := func(client net.Addr) []byte {
			return fmt.Appendf(nil, "%s %s", netip.MustParseAddrPort(address).Addr(), netip.MustParseAddrPort(client.String()).Addr())
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write(answer(c.RemoteAddr()))
				c.Close()
			}
		}()
		go func() {
			for {
				_, from, err := p.ReadFrom(make([]byte, 64))
				if err != nil {
					return
				}
				_, _ = p.WriteTo(answer(from), from)
			}
		}()
		return nil
	}))
}

// ask connects from a namespace. It returns the address of the workload that answers, and the client's address that the
// workload sees.
func (b *rulesBed) ask(from *Space, address string) (workload, client string, err error) {
	err = from.Once(func() error {
		c, err := net.DialTimeout("tcp", address, 500*time.Millisecond)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		said, err := io.ReadAll(c)
		workload, client, _ = strings.Cut(string(said), " ")
		return err
	})
	return workload, client, err
}

func (b *rulesBed) set(all ...service.Service) {
	b.Helper()
	slices.SortFunc(all, func(a, b service.Service) int { return a.Key.Compare(b.Key) })
	must.Succeed(b, b.rules.Set(b.node, all))
}

// web returns an IPv4 and an IPv6 service. numbers selects the workloads that are their backends.
func web(protocol uint8, change func(version int, s *service.Service), numbers ...int) (all []service.Service) {
	for v := range clusterIP {
		s := service.Service{Name: "shop/web", Key: service.Key{Address: netip.MustParseAddr(clusterIP[v]), Port: 80, Protocol: protocol}, Backends: backends(v, numbers...)}
		s.Outside = &service.Outside{
			NodePort: 30080, Addresses: []netip.Addr{netip.MustParseAddr(external[v])}, Balancers: []netip.Addr{netip.MustParseAddr(balancer[v])}, Backends: s.Backends,
		}
		if change != nil {
			change(v, &s)
		}
		all = append(all, s)
	}
	return all
}

func backends(version int, numbers ...int) (all []netip.AddrPort) {
	for _, n := range numbers {
		all = append(all, netip.AddrPortFrom(netip.MustParseAddr(workloads[version][n]), 8080))
	}
	return all
}

// ways returns the addresses at which clients outside reach the service of web.
func ways(version int) (all []string) {
	for _, at := range []string{ofNode[version] + " 30080", external[version] + " 80", balancer[version] + " 80"} {
		host, port, _ := strings.Cut(at, " ")
		all = append(all, net.JoinHostPort(host, port))
	}
	return all
}

// expect connects until each of the given workloads has answered.
func (b *rulesBed) expect(from *Space, address, client string, want ...string) {
	b.Helper()
	seen := map[string]bool{}
	for range 100 {
		workload, sees, err := b.ask(from, address)
		if err != nil || sees != client || !slices.Contains(want, workload) {
			b.Errorf("%s: %v, workload %q sees %q, want one of %v and %q", address, err, workload, sees, want, client)
			return
		}
		if seen[workload] = true; len(seen) == len(want) {
			return
		}
	}
	b.Errorf("%s: only %v answered, want %v", address, seen, want)
}

// expectRefusal expects that the client gets an answer that refuses the connection.
func (b *rulesBed) expectRefusal(from *Space, address string) {
	b.Helper()
	if _, _, err := b.ask(from, address); !errors.Is(err, syscall.ECONNREFUSED) {
		b.Errorf("%s: %v, want %v", address, err, syscall.ECONNREFUSED)
	}
}

// expectNone expects that the client gets no answer.
func (b *rulesBed) expectNone(from *Space, address string) {
	b.Helper()
	var e net.Error
	if _, _, err := b.ask(from, address); !errors.As(err, &e) || !e.Timeout() {
		b.Errorf("%s: %v, want no answer", address, err)
	}
}

func (b *rulesBed) clusterAt(version int) string { return net.JoinHostPort(clusterIP[version], "80") }

func TestRulesOfServices(t *testing.T) {
	b := newRulesBed(t)
	for v := range clusterIP {
		b.set(web(unix.IPPROTO_TCP, nil, 0, 1)...)
		b.expect(b.node, b.clusterAt(v), inNetwork[v], workloads[v]...)
		for _, way := range ways(v) {
			b.expect(b.node, way, inNetwork[v], workloads[v]...)
			b.expect(b.client, way, inNetwork[v], workloads[v]...)
		}
		b.expectRefusal(b.node, net.JoinHostPort(clusterIP[v], "81"))

		// Local: the client outside reaches only the workloads of this node, and they see its address.
		local := func(numbers ...int) func(v int, s *service.Service) {
			return func(v int, s *service.Service) {
				s.Outside.Local, s.Outside.All, s.Outside.Backends = true, s.Backends, backends(v, numbers...)
			}
		}
		b.set(web(unix.IPPROTO_TCP, local(1), 0, 1)...)
		for _, way := range ways(v) {
			b.expect(b.node, way, inNetwork[v], workloads[v]...)
			b.expect(b.client, way, ofClient[v], workloads[v][1])
		}
		b.set(web(unix.IPPROTO_TCP, local(), 0, 1)...)
		for _, way := range ways(v) {
			b.expect(b.node, way, inNetwork[v], workloads[v]...)
			b.expectNone(b.client, way)
		}

		// Without backends, packets are rejected, or dropped.
		b.set(web(unix.IPPROTO_TCP, nil)...)
		b.expectRefusal(b.node, b.clusterAt(v))
		for _, way := range ways(v) {
			b.expectRefusal(b.client, way)
			b.expectRefusal(b.node, way)
		}

		// Only clients in loadBalancerSourceRanges reach the address of the load balancer.
		for prefix, refused := range map[string]bool{"192.0.2.0/24": v == 1, "fd00:2::/64": v == 0, "0.0.0.0/0": v == 1, "::/0": v == 0} {
			b.set(web(unix.IPPROTO_TCP, func(_ int, s *service.Service) { s.Outside.Sources = []netip.Prefix{netip.MustParsePrefix(prefix)} }, 0)...)
			for i, way := range ways(v) {
				if refused && i == 2 {
					b.expectNone(b.client, way)
				} else {
					b.expect(b.client, way, inNetwork[v], workloads[v][0])
				}
			}
		}
	}
	b.set()
	for _, family := range tableFamilies {
		must.Succeed(t, b.node.Do(func() error {
			if tableHandle(family, service.RulesTable) != 0 {
				t.Errorf("the table of family %s exists, although there are no services", family.name)
			}
			return nil
		}))
	}
}

// A client keeps its workload while the service has it. Other clients may get another one.
func TestRulesOfServicesWithAffinity(t *testing.T) {
	b := newRulesBed(t)
	affine := func(_ int, s *service.Service) { s.Affinity = time.Hour }
	for v := range clusterIP {
		b.set(web(unix.IPPROTO_TCP, affine, 0, 1)...)
		first, _, err := b.ask(b.client, ways(v)[0])
		must.Succeed(t, err)
		for range 10 {
			b.expect(b.client, ways(v)[0], inNetwork[v], first)
		}
		other := 1 - slices.Index(workloads[v], first)
		b.set(web(unix.IPPROTO_TCP, affine, other)...)
		b.expect(b.client, ways(v)[0], inNetwork[v], workloads[v][other])
		b.set(web(unix.IPPROTO_TCP, affine, 0, 1)...)
		for range 10 {
			b.expect(b.client, ways(v)[0], inNetwork[v], workloads[v][other])
		}
	}
}

// A UDP socket stays open while the service changes. Its datagrams reach another workload when the first one leaves the
// service, and they reach a workload as soon as a deleted service exists again.
func TestRulesOfServicesOverUDP(t *testing.T) {
	b := newRulesBed(t)
	for v := range clusterIP {
		for from, address := range map[*Space]string{b.client: ways(v)[0], b.node: b.clusterAt(v)} {
			var c net.Conn
			must.Succeed(t, from.Once(func() (err error) { c, err = net.Dial("udp", address); return err }))
			ask := func() string {
				must.Succeed(t, c.SetDeadline(time.Now().Add(2*time.Second)))
				said := make([]byte, 64)
				n, err := c.Write([]byte("?"))
				if err == nil {
					n, err = c.Read(said)
				}
				if err != nil {
					return err.Error()
				}
				workload, _, _ := strings.Cut(string(said[:n]), " ")
				return workload
			}
			for round := range 2 {
				for n, workload := range workloads[v] {
					b.set(web(unix.IPPROTO_UDP, nil, n)...)
					_ = ask() // can return the ICMP error of the former packet
					if said := ask(); said != workload {
						t.Errorf("%s, round %d: %q answers, want %q", address, round, said, workload)
					}
				}
				b.set(web(unix.IPPROTO_UDP, nil)...)
				if said := ask(); !strings.Contains(said, "connection refused") && !strings.Contains(said, "operation not permitted") { // EPERM: on the node itself
					t.Errorf("%s, round %d: %q, want that the connection is refused", address, round, said)
				}
			}
			c.Close()
			b.set()
		}
	}
}

// Deleted tables are written again. If the kernel refuses a change, the tables are replaced.
func TestRulesOfServicesComeBack(t *testing.T) {
	b := newRulesBed(t)
	b.set(web(unix.IPPROTO_TCP, nil, 0)...)
	if changed, err := b.rules.Keep(b.node); changed || err != nil {
		t.Errorf("Keep with unchanged rules returns %v, %v; want false, nil", changed, err)
	}
	nft := func(args ...string) {
		t.Helper()
		must.Succeed(t, b.node.Once(exec.Command("nft", args...).Run))
	}
	nft("flush", "ruleset")
	if changed, err := b.rules.Keep(b.node); !changed || err != nil {
		t.Errorf("Keep after the rules were deleted returns %v, %v; want true, nil", changed, err)
	}
	for v := range clusterIP {
		b.expect(b.node, b.clusterAt(v), inNetwork[v], workloads[v][0])
	}
	nft("flush", "ruleset")
	b.set(web(unix.IPPROTO_TCP, nil, 0)...) // no change, but the rules must be written again
	b.expect(b.node, b.clusterAt(0), inNetwork[0], workloads[0][0])
	nft("flush", "map", "ip", service.RulesTable, "node-ports")
	b.set(web(unix.IPPROTO_TCP, func(_ int, s *service.Service) { s.Outside.NodePort++ }, 1)...)
	b.expect(b.client, ofNode[0]+":30081", inNetwork[0], workloads[0][1])
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	must.Fail(t, b.rules.Set(b.node, nil), "install nftables")
	if changed, err := b.rules.Keep(b.node); !changed || err == nil {
		t.Errorf("Keep without nft returns %v, %v; want true and an error", changed, err)
	}
	t.Setenv("PATH", path)
	if changed, err := b.rules.Keep(b.node); !changed || err != nil {
		t.Errorf("Keep with nft again returns %v, %v; want true, nil", changed, err)
	}
	b.expectNone(b.node, b.clusterAt(0))
	b.set(web(unix.IPPROTO_TCP, nil, 0)...)
	must.Succeed(t, RemoveServiceRules(b.node))
	must.Succeed(t, RemoveServiceRules(b.node))
	b.expectNone(b.node, b.clusterAt(0))
}

// On a node without iptables, nftables masquerades the packets of workloads. Packets from outside whose source address is in
// a subnet of the network are dropped.
func TestANodeWithoutIptablesMasquerades(t *testing.T) {
	b := newRulesBed(t)
	path := t.TempDir()
	must.Succeed(t, os.Symlink(must.Get(exec.LookPath("nft"))(t), filepath.Join(path, "nft")))
	conf := config.Config{RunDir: t.TempDir(), Node: "a"}
	must.Succeed(t, os.MkdirAll(conf.NodeDir(), 0o700))
	for v := range clusterIP {
		b.listen(b.client, net.JoinHostPort(ofClient[v], "8080"))
	}
	expect := func(from *Space, address, client string) {
		t.Helper()
		if _, sees, err := b.ask(from, address); err != nil || sees != client {
			t.Errorf("%s: %v, the client is %q, want %q", address, err, sees, client)
		}
	}
	b.set(web(unix.IPPROTO_TCP, nil, 1)...)
	t.Setenv("PATH", path)
	_, err := KeepAccess(b.node, conf, Access{Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00:1::/64")}})
	must.Succeed(t, err)
	for v := range clusterIP {
		expect(b.workloads, net.JoinHostPort(ofClient[v], "8080"), ofNode[v])
		// A workload that reaches itself by the service sees the node's address as the source.
		expect(b.workloads, ways(v)[0], inNetwork[v])
		expect(b.client, ways(v)[0], inNetwork[v])
	}
	forged := must.Get(netlink.ParseAddr("10.1.0.77/32"))(t)
	must.Succeed(t, b.client.Links.AddrAdd(must.Get(b.client.Links.LinkByName("eth0"))(t), forged))
	err = b.client.Once(func() error {
		d := net.Dialer{Timeout: 300 * time.Millisecond, LocalAddr: &net.TCPAddr{IP: forged.IP}}
		c, err := d.Dial("tcp", "10.1.0.2:8080")
		if err == nil {
			c.Close()
		}
		return err
	})
	if err == nil {
		t.Error("a host outside connects from an address of the subnets")
	}
	must.Succeed(t, RemoveAccess(b.node, conf))
	expect(b.workloads, net.JoinHostPort(ofClient[0], "8080"), workloads[0][0])
}

// Measures the time to write the rules of 5,000 services with 20,000 backends, and of one changed service.
func BenchmarkRulesOfServices(b *testing.B) {
	if _, err := exec.LookPath("nft"); err != nil {
		b.Skip("nft is not installed")
	}
	var all []service.Service
	for i := range 5000 {
		s := service.Service{Name: fmt.Sprintf("shop/service-%d", i), Key: service.Key{Address: netip.AddrFrom4([4]byte{10, 96, byte(i / 250), byte(i%250 + 1)}), Port: 80, Protocol: unix.IPPROTO_TCP}}
		for j := range 4 {
			s.Backends = append(s.Backends, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 128 + byte(j), byte(i / 250), byte(i%250 + 1)}), 8080))
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b service.Service) int { return a.Key.Compare(b.Key) })
	space := newSpace(b)
	var rules ServiceRules
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			rules.written = nil
			must.Succeed(b, rules.Set(space, all))
		}
	})
	b.Run("change", func(b *testing.B) {
		for b.Loop() {
			slices.Reverse(all[2500].Backends)
			changed := slices.Clone(all)
			changed[2500].Backends = slices.Clone(all[2500].Backends)
			must.Succeed(b, rules.Set(space, changed))
		}
	})
}
