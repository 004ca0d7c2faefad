package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// nfcapd is a collector (nfdump) that listens on the underlay address of node a. It writes files into dir.
type nfcapd struct{ dir string }

const collectorPort = 4739

// startNfcapd starts a collector that begins a new file every 2 seconds.
func startNfcapd(t *testing.T, s *netdev.Space) *nfcapd {
	t.Helper()
	path, err := exec.LookPath("nfcapd")
	if err != nil {
		t.Skip("nfcapd is not installed; get it with: " + setup.Command("nfcapd"))
	}
	c := &nfcapd{t.TempDir()}
	cmd := exec.Command(path, "-w", c.dir, "-p", fmt.Sprint(collectorPort), "-b", "172.31.0.1", "-t", "2")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Succeed(t, s.Do(cmd.Start))
	t.Cleanup(func() {
		cmd.Process.Signal(unix.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	must.Eventually(t, "the socket of the collector", func() error { // not by a bind: the collector would then find the port in use
		var sockets []byte
		must.Succeed(t, s.Do(func() (err error) { sockets, err = os.ReadFile("/proc/thread-self/net/udp"); return err }))
		if !bytes.Contains(sockets, fmt.Appendf(nil, ":%04X ", collectorPort)) {
			return fmt.Errorf("no socket has UDP port %d:\n%s", collectorPort, sockets)
		}
		return nil
	})
	return c
}

// collected is a record as nfdump prints it.
type collected struct {
	From     netip.Addr `json:"src4_addr"`
	To       netip.Addr `json:"dst4_addr"`
	From6    netip.Addr `json:"src6_addr"`
	To6      netip.Addr `json:"dst6_addr"`
	FromPort uint16     `json:"src_port"`
	ToPort   uint16     `json:"dst_port"`
	Protocol uint8      `json:"proto"`
	Packets  uint64     `json:"in_packets"`
	Bytes    uint64     `json:"in_bytes"`
	Type     uint8      `json:"icmp_type"`
	Network  string     `json:"ingress_vrf"`

	// After NAT.
	PostFrom     netip.Addr `json:"src4_xlt_ip"`
	PostTo       netip.Addr `json:"dst4_xlt_ip"`
	PostFromPort uint16     `json:"src_xlt_port,string"`
	PostToPort   uint16     `json:"dst_xlt_port,string"`
}

// line is one direction of a flow.
type line struct {
	protocol uint8
	from, to netip.AddrPort
	icmp     uint8

	postFrom, postTo netip.AddrPort // zero: not translated
}

type sum struct{ packets, bytes uint64 }

// sums returns the sums of all records of a node, by direction of a flow. node: its underlay address.
func (c *nfcapd) sums(node string) (map[line]sum, error) {
	out, err := exec.Command("nfdump", "-q", "-R", c.dir, "-o", "json", "router ip "+node).Output()
	if err != nil {
		return nil, err
	}
	var all []collected
	if bytes.HasPrefix(out, []byte("{")) { // without records, nfdump prints no JSON
		if err := json.Unmarshal(slices.Concat([]byte("["), out, []byte("]")), &all); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	sums := map[line]sum{}
	for _, r := range all {
		if r.Network != "7" {
			return nil, fmt.Errorf("a record has the network %q, want 7: %s", r.Network, out)
		}
		from, to := r.From, r.To
		if !from.IsValid() {
			from, to = r.From6, r.To6
		}
		l := line{protocol: r.Protocol, from: netip.AddrPortFrom(from, r.FromPort), to: netip.AddrPortFrom(to, r.ToPort), icmp: r.Type}
		if r.PostFrom.IsValid() {
			l.postFrom, l.postTo = netip.AddrPortFrom(r.PostFrom, r.PostFromPort), netip.AddrPortFrom(r.PostTo, r.PostToPort)
		}
		s := sums[l]
		sums[l] = sum{s.packets + r.Packets, s.bytes + r.Bytes}
	}
	return sums, nil
}

// await waits until the records of each node for a direction of a flow have exactly these sums.
func (c *nfcapd) await(t *testing.T, l line, want sum, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		must.Eventually(t, "records of node "+node, func() error {
			all, err := c.sums(node)
			if err == nil && all[l] != want {
				err = fmt.Errorf("%v: %+v, want %+v; all: %+v", l, all[l], want, all)
			}
			return err
		})
	}
}

// exporting returns the state of the bed, with flow export to the collector.
func (b *bed) exporting() model.State {
	s := b.state
	s.Settings.FlowExport = model.FlowExport{Collector: model.Collector{AddrPort: netip.MustParseAddrPort(fmt.Sprintf("172.31.0.1:%d", collectorPort))}, Active: model.Duration(2 * time.Second), Idle: model.Duration(time.Second)}
	return s
}

func TestExportedCountsMatchThoseOfTheSenders(t *testing.T) {
	must.Long(t)
	b := newBed(t, nil)
	c, both := startNfcapd(t, b.A), []string{"172.31.0.1", "172.31.0.2"}
	for node := range b.nodes {
		b.apply(t, node, b.exporting())
	}
	withoutSACK(t, b.workloads["a1"])
	withoutSACK(t, b.workloads["b1"])
	for _, addresses := range [][2]string{{"10.7.0.10", "10.7.0.11"}, {"fd07::10", "fd07::11"}} {
		from, to := netip.MustParseAddr(addresses[0]), netip.MustParseAddr(addresses[1])
		header := map[bool]uint64{true: 20, false: 40}[from.Is4()]
		flow, sent, answered := transfer(t, b.workloads["a1"], b.workloads["b1"], from, to, header)
		c.await(t, flow, sent, both...)
		c.await(t, line{protocol: flow.protocol, from: flow.to, to: flow.from}, answered, both...)

		family, protocol := "-4", uint8(unix.IPPROTO_ICMP)
		if from.Is6() {
			family, protocol = "-6", unix.IPPROTO_ICMPV6
		}
		must.Succeed(t, b.workloads["a1"].Do(func() error {
			return exec.Command("ping", family, "-c", "3", "-i", "0.01", "-s", "100", to.String()).Run()
		}))
		sent = sum{3, 3 * (100 + 8 + header)}
		types := map[bool][2]uint8{true: {8, 0}, false: {128, 129}}[from.Is4()]
		c.await(t, line{protocol: protocol, from: netip.AddrPortFrom(from, 0), to: netip.AddrPortFrom(to, 0), icmp: types[0]}, sent, both...)
		c.await(t, line{protocol: protocol, from: netip.AddrPortFrom(to, 0), to: netip.AddrPortFrom(from, 0), icmp: types[1]}, sent, both...)

		stream := newStream(t, b.workloads["a1"], b.workloads["b1"], from, to)
		c.await(t, stream.line, stream.send(t, 50, 700), both...)
		if to.Is6() { // the end of the export exports the last packets
			last := stream.send(t, 10, 700)
			b.apply(t, "a", b.state)
			c.await(t, stream.line, last, both[0])
		}
	}
}

// withoutSACK sets that TCP uses no SACK options, whose bytes TCP_INFO does not count.
func withoutSACK(t *testing.T, s *netdev.Space) {
	t.Helper()
	must.Succeed(t, s.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_sack", []byte("0"), 0) }))
}

// The records of translated packets have the addresses and ports before and after NAT, in both directions. The host outside
// is node a itself.
func TestExportedFlowsHaveTheAddressesAfterNAT(t *testing.T) {
	b := newBedOf(t, nil, "a")
	withoutSACK(t, b.workloads["a1"])
	withoutSACK(t, b.A)
	c, s := startNfcapd(t, b.A), b.exporting()
	n := &s.Networks[slices.IndexFunc(s.Networks, func(n model.Network) bool { return n.Name == "red" })]
	n.NodeAccess, n.NATPool = true, []netip.Prefix{netip.MustParsePrefix("203.0.113.8/32"), netip.MustParsePrefix("2001:db8:77::8/128")}
	b.apply(t, "a", s)
	must.Succeed(t, b.A.Do(func() error {
		return exec.Command("sh", "-c", "ip address add 192.0.2.77/32 dev lo; ip address add 2001:db8:7::77/128 dev lo nodad").Run()
	}))
	for _, addresses := range [][3]string{{"10.7.0.10", "192.0.2.77", "203.0.113.8"}, {"fd07::10", "2001:db8:7::77", "2001:db8:77::8"}} {
		from, to, pool := netip.MustParseAddr(addresses[0]), netip.MustParseAddr(addresses[1]), netip.MustParseAddr(addresses[2])
		must.Eventually(t, "a ping of "+to.String(), func() error {
			return b.workloads["a1"].Do(func() error { return exec.Command("ping", "-c", "1", "-W", "1", to.String()).Run() })
		})
		header := map[bool]uint64{true: 20, false: 40}[from.Is4()]
		flow, sent, answered := transfer(t, b.workloads["a1"], b.A, from, to, header)
		public := netip.AddrPortFrom(pool, flow.from.Port())
		if from.Is6() { // nfcapd 1.7 does not read postNATSourceIPv6Address and postNATDestinationIPv6Address
			c.await(t, flow, sum{2 * sent.packets, 2 * sent.bytes}, "172.31.0.1") // of the workload's port and of the node's
			c.await(t, line{protocol: flow.protocol, from: flow.to, to: public}, answered, "172.31.0.1")
			continue
		}
		flow.postFrom, flow.postTo = public, flow.to
		c.await(t, flow, sent, "172.31.0.1")
		c.await(t, line{protocol: flow.protocol, from: flow.to, to: public, postFrom: flow.to, postTo: flow.from}, answered, "172.31.0.1")
		ping := line{protocol: unix.IPPROTO_ICMP, from: netip.AddrPortFrom(from, 0), to: netip.AddrPortFrom(to, 0), icmp: 8, postFrom: netip.AddrPortFrom(pool, 0), postTo: netip.AddrPortFrom(to, 0)}
		must.Eventually(t, "a record of the ping", func() error {
			all, err := c.sums("172.31.0.1")
			if err == nil && all[ping].packets == 0 {
				err = fmt.Errorf("no record %+v: %+v", ping, all)
			}
			return err
		})
	}
}

// The flow continues while the agent restarts, and ends when its port is deleted.
func TestEachPacketOfAFlowIsExportedOnce(t *testing.T) {
	b := newBed(t, nil)
	c := startNfcapd(t, b.A)
	state := b.exporting()
	b.apply(t, "a", state)
	stream := newStream(t, b.workloads["a1"], b.workloads["b1"], netip.MustParseAddr("10.7.0.10"), netip.MustParseAddr("10.7.0.11"))
	c.await(t, stream.line, stream.send(t, 20, 700), "172.31.0.1")
	b.nodes["a"].stop(t)
	sent := stream.send(t, 30, 100)
	b.nodes["a"] = start(t, b.nodes["a"].config)
	c.await(t, stream.line, sent, "172.31.0.1")

	sent = stream.send(t, 7, 1000)
	state.Ports = slices.DeleteFunc(slices.Clone(state.Ports), func(p model.Port) bool { return p.Name == "a1" })
	b.apply(t, "a", state)
	c.await(t, stream.line, sent, "172.31.0.1")

	metrics, err := b.nodes["a"].client.Metrics(context.Background())
	if err != nil || !regexp.MustCompile("vrouter_flow_export_records_total [1-9]").MatchString(metrics) {
		t.Errorf("metrics (error %v) without vrouter_flow_export_records_total above 0: %s", err, metrics)
	}
	state.Settings.FlowExport = model.FlowExport{}
	b.apply(t, "a", state)
	if found, _ := filepath.Glob(filepath.Join(pinsOf(t, b.nodes["a"].config), "g*", "exported_flows")); len(found) != 0 {
		t.Errorf("after the end of the export, the maps %q exist", found)
	}
}

// No collector listens. Ports without a policy have flows while the export is on, and their packets pass.
func TestTheExportIsReportedUntilItIsTurnedOff(t *testing.T) {
	b := newBedOf(t, nil, "a")
	state, a := b.exporting(), b.nodes["a"]
	b.apply(t, "a", state)
	must.Eventually(t, "flows", func() error {
		must.Succeed(t, b.traffic())
		rows, err := a.client.Flows(context.Background(), 0)
		if err == nil && len(rows) == 0 {
			err = errors.New("the flow table is empty")
		}
		return err
	})
	must.Eventually(t, "the status reports the collector", func() error { return a.complains("172.31.0.1:4739", "connection refused") })
	b.apply(t, "a", b.state)
	if err := a.complains("172.31.0.1:4739"); err == nil {
		t.Error("the status reports the collector after the export was turned off")
	}
}

// transfer sends bytes over TCP, in superpackets, and closes the connection. It returns the sums of both directions,
// from the counters of the two sockets (TCP_INFO).
func transfer(t *testing.T, from, to *netdev.Space, source, destination netip.Addr, header uint64) (l line, sent, answered sum) {
	t.Helper()
	var listener net.Listener
	must.Succeed(t, to.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(destination, 0).String())
		return err
	}))
	defer listener.Close()
	far := make(chan *net.TCPConn, 1)
	go func() {
		defer close(far)
		c, err := listener.Accept()
		if err != nil {
			return
		}
		io.Copy(io.Discard, c)
		c.(*net.TCPConn).CloseWrite()
		far <- c.(*net.TCPConn)
	}()
	var conn net.Conn
	must.Succeed(t, from.Do(func() (err error) {
		conn, err = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: source.AsSlice()}}).Dial("tcp", listener.Addr().String())
		return err
	}))
	defer conn.Close()
	_, err := conn.Write(make([]byte, 4<<20))
	must.Succeed(t, err)
	must.Succeed(t, conn.(*net.TCPConn).CloseWrite())
	_, err = io.Copy(io.Discard, conn) // until the other side closes
	must.Succeed(t, err)
	other := <-far
	defer other.Close()
	return line{protocol: unix.IPPROTO_TCP, from: conn.LocalAddr().(*net.TCPAddr).AddrPort(), to: conn.RemoteAddr().(*net.TCPAddr).AddrPort()}, tcpSum(t, conn.(*net.TCPConn), 0, header), tcpSum(t, other, 1, header)
}

// tcpSum returns the number and the bytes of the IP packets that a socket has sent. The first segment has 20 bytes of
// options, each other segment 12. uncounted: segments that TCP_INFO does not count; 1 for an accepted socket.
func tcpSum(t *testing.T, c *net.TCPConn, uncounted, header uint64) (s sum) {
	t.Helper()
	raw := must.Get(c.SyscallConn())(t)
	must.Succeed(t, raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Error(err)
			return
		}
		segments := uint64(info.Segs_out) + uncounted
		s = sum{segments, info.Bytes_sent + segments*(header+20+12) + 8}
	}))
	return s
}

// stream is a UDP socket that sends a flow.
type stream struct {
	net.Conn
	line
	header uint64
	sent   sum
}

func newStream(t *testing.T, from, to *netdev.Space, source, destination netip.Addr) *stream {
	t.Helper()
	s := &stream{header: map[bool]uint64{true: 20 + 8, false: 40 + 8}[source.Is4()]}
	var in net.Conn
	must.Succeed(t, to.Do(func() (err error) {
		in, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(destination, 0)))
		return err
	}))
	t.Cleanup(func() { in.Close() })
	must.Succeed(t, from.Do(func() (err error) {
		s.Conn, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0)), in.LocalAddr().(*net.UDPAddr))
		return err
	}))
	t.Cleanup(func() { s.Close() })
	s.line = line{protocol: unix.IPPROTO_UDP, from: s.LocalAddr().(*net.UDPAddr).AddrPort(), to: s.RemoteAddr().(*net.UDPAddr).AddrPort()}
	return s
}

// send sends n datagrams. It returns the sum of all that the stream has sent.
func (s *stream) send(t *testing.T, n, bytes uint64) sum {
	t.Helper()
	for range n {
		must.Get(s.Write(make([]byte, bytes)))(t)
	}
	s.sent = sum{s.sent.packets + n, s.sent.bytes + n*(bytes+s.header)}
	return s.sent
}
