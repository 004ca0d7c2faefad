package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store/storetest"
)

// guestModules are the kernel modules of the tests that need a guest.
var guestModules = append(bedModules, "net/802/garp", "net/802/mrp", "net/8021q/8021q", "net/tls/tls", "drivers/net/bonding/bonding", "lib/libcrc32c", "net/sctp/sctp")

// Hosts have bonds, VLAN devices, SCTP and clocks that jump; containers often do not. One guest and one
// start of two agents serve all cases, because these take longest.
func TestHostsWithBondsVLANsAndSCTP(t *testing.T) {
	if !kerneltest.In() {
		cases := os.Getenv("VROUTER_GUEST")
		if cases == "" {
			t.Skip("takes minutes; set VROUTER_GUEST=all, or to the name of a case")
		}
		kerneltest.Run(t, kerneltest.Guest{Seconds: 1800, Megabyte: 3072, Modules: guestModules, Program: program, Parameters: "VROUTER_GUEST=" + cases})
		return
	}
	b := newBed(t, options{})
	own := b.nodes[0]
	c := storetest.NewCertificates(t, own.v4.String())
	own.config["store"], own.config["store_listen"] = "embedded", own.v4.String()+":2379"
	own.config["store_tls"] = map[string]string{"ca": c.CA, "cert": c.ServerCert, "key": c.ServerKey}
	b.nodes[1].config["store"] = "etcd://" + own.v4.String()
	b.nodes[1].config["store_tls"] = map[string]string{"ca": c.CA, "cert": c.ClientCert, "key": c.ClientKey}
	underlays := b.underlays()
	began := time.Now()
	b.launch()
	t.Logf("the agents answer after %v", time.Since(began))
	for _, c := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"underlays", func(t *testing.T, b *bed) { bondsAndVLANsCarryTraffic(t, b, underlays) }},
		{"sctp", sctpCarriesDataWhereThePolicyAllowsIt},
		{"clock", theClockJumps},
	} {
		if cases := os.Getenv("VROUTER_GUEST"); cases == "all" || cases == c.name {
			t.Run(c.name, func(t *testing.T) {
				whole := b.t
				b.t = t
				defer func() { b.t = whole }()
				began := time.Now()
				c.run(t, b)
				t.Logf("took %v", time.Since(began))
			})
		}
	}
}

// The test is process 1 of the guest. Its first thread must stay in the guest's network namespace: agents
// refuse workloads in the namespace of process 1.
func init() {
	if kerneltest.In() {
		runtime.LockOSThread()
	}
}

// cable connects two nodes by a pair of devices with the same name.
func (b *bed) cable(name string) {
	b.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	b.must(b.handle(b.nodes[0].ns).LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(int(b.nodes[1].ns))}))
}

// bond connects two nodes by two cables that are one bond on each node.
func (b *bed) bond(name string, mode netlink.BondMode) {
	b.t.Helper()
	for i := range 2 {
		b.cable(fmt.Sprint(name, "-", i))
	}
	for _, n := range b.nodes {
		h := b.handle(n.ns)
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		bond := netlink.NewLinkBond(attrs)
		bond.Mode, bond.Miimon = mode, 100
		if mode != netlink.BOND_MODE_ACTIVE_BACKUP {
			bond.XmitHashPolicy = netlink.BOND_XMIT_HASH_POLICY_LAYER3_4
		}
		if mode == netlink.BOND_MODE_802_3AD {
			bond.LacpRate = netlink.BOND_LACP_RATE_FAST
		}
		b.must(h.LinkAdd(bond))
		for i := range 2 {
			slave, err := h.LinkByName(fmt.Sprint(name, "-", i))
			b.must(err)
			b.must(h.LinkSetMaster(slave, bond))
		}
		b.must(h.LinkSetUp(bond))
	}
}

// vlan adds a VLAN device with the number 100 over a device of each node.
func (b *bed) vlan(over string) {
	b.t.Helper()
	for _, n := range b.nodes {
		h := b.handle(n.ns)
		l, err := h.LinkByName(over)
		b.must(err)
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex = over+".100", l.Attrs().Index
		vlan := &netlink.Vlan{LinkAttrs: attrs, VlanId: 100}
		b.must(h.LinkAdd(vlan))
		b.must(h.LinkSetUp(vlan))
	}
}

// cut sets a device of the second node down, or up again. The first node's end loses its carrier.
func (b *bed) cut(name string, down bool) {
	b.t.Helper()
	h := b.handle(b.nodes[1].ns)
	l, err := h.LinkByName(name)
	b.must(err)
	if down {
		b.must(h.LinkSetDown(l))
	} else {
		b.must(h.LinkSetUp(l))
	}
}

// underlay is a link between two nodes. slave is the device of a bond that a test cuts.
type underlay struct {
	device, slave string
	encaps        []model.Encapsulation // to test; VXLAN over IPv6, the others over IPv4
	v4, v6        [2]netip.Addr         // of the nodes
}

// underlays makes links of each kind.
func (b *bed) underlays() []underlay {
	b.t.Helper()
	b.bond("ab", netlink.BOND_MODE_ACTIVE_BACKUP)
	b.bond("ad", netlink.BOND_MODE_802_3AD)
	b.bond("xor", netlink.BOND_MODE_BALANCE_XOR)
	b.vlan("fab")
	b.vlan("ab")
	mpls := []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE}
	others := []model.Encapsulation{model.VXLAN, model.Direct}
	all := []underlay{
		{device: "ab", slave: "ab-0", encaps: append(mpls, others...)}, {device: "ad", slave: "ad-0", encaps: mpls}, {device: "xor", slave: "xor-0", encaps: mpls},
		{device: "fab.100", encaps: append(others, model.MPLSoUDP)}, {device: "ab.100", slave: "ab-0", encaps: append(mpls, others...)},
	}
	fabric := []string{"fab"}
	for i := range all {
		u := &all[i]
		fabric = append(fabric, u.device)
		for j, n := range b.nodes {
			u.v4[j], u.v6[j] = netip.AddrFrom4([4]byte{172, 31, byte(i), byte(j + 1)}), netip.MustParseAddr(fmt.Sprintf("fd31:0:0:%d::%d", i, j+1))
			h := b.handle(n.ns)
			l, err := h.LinkByName(u.device)
			b.must(err)
			b.must(h.AddrAdd(l, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(u.v4[j], 24))}))
			b.must(h.AddrAdd(l, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(u.v6[j], 64)), Flags: 0x02 /* IFA_F_NODAD */}))
		}
	}
	for _, n := range b.nodes {
		n.config["fabric"], n.config["underlay"] = fabric, []string{n.v4.String()}
	}
	return all
}

// on runs a subtest on two workloads of a network that bridges and routes. Their nodes are connected by
// u; nil: by the device fab.
func (b *bed) on(u *underlay, v6 bool, encap model.Encapsulation, name string, f func(t *testing.T, x, y *workload)) {
	whole := b.t.(*testing.T)
	whole.Run(name, func(t *testing.T) {
		b.t = t
		defer func() { b.t = whole }()
		for j, n := range b.nodes {
			v4, own6 := n.v4, n.v6
			if u != nil {
				n.v4, n.v6 = u.v4[j], u.v6[j]
			}
			defer func() { n.v4, n.v6 = v4, own6 }()
		}
		b.begin()
		defer b.clear()
		defer func() {
			if t.Failed() {
				for i, n := range b.nodes {
					t.Logf("node %s: drops %v\n%s\n%s\n%s", n.name, n.drops(), n.run("status"), n.run("nh", "list"), strings.Join(n.ways(b.nodes[1-i].name), " "))
				}
			}
		}()
		x, y := pair(b, model.L2L3, v6, encap)
		soon(t, "the first packets", func() error { return datagram(x, y, 4, 64) })
		f(t, x, y)
	})
}

// Encapsulations cross each underlay. A connection goes on while a device of the bond is cut.
func bondsAndVLANsCarryTraffic(t *testing.T, b *bed, all []underlay) {
	for _, u := range all {
		for _, encap := range u.encaps {
			b.on(&u, encap == model.VXLAN, encap, fmt.Sprint(u.device, " ", encap), func(t *testing.T, x, y *workload) {
				if encap == model.Direct {
					b.awaitWays(directWays(model.L2L3)...)
				}
				for _, version := range []int{4, 6} {
					checkTransfer(x, y, version, 1<<20)
					for _, size := range []int{1400, 9000} {
						if err := datagram(y, x, version, size); err != nil {
							t.Errorf("IPv%d: %v", version, err)
						}
					}
				}
				if u.slave == "" {
					return
				}
				end := openTransfer(x, y, 4)
				b.cut(u.slave, true)
				soon(t, "a transfer while "+u.slave+" is cut", func() error { return transfer(y, x, 6, 1<<18) })
				b.cut(u.slave, false)
				soon(t, "a transfer after "+u.slave+" was cut", func() error { return transfer(y, x, 4, 1<<18) })
				if err := end(); err != nil {
					t.Errorf("the connection during the cut: %v", err)
				}
			})
		}
	}
}

// sctp sends n messages to an SCTP port, and expects each back.
func sctp(from, to *workload, version, port, n int) error {
	family := unix.AF_INET
	address := func(w *workload, port int) unix.Sockaddr {
		if version == 6 {
			return &unix.SockaddrInet6{Port: port, Addr: w.ip(6).As16()}
		}
		return &unix.SockaddrInet4{Port: port, Addr: w.ip(4).As4()}
	}
	if version == 6 {
		family = unix.AF_INET6
	}
	limit := unix.NsecToTimeval(int64(patience * time.Second))
	socket := func(w *workload) (fd int, err error) {
		err = in(w.ns, func() error {
			if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP); err != nil {
				return err
			}
			return errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
		})
		return fd, err
	}
	server, err := socket(to)
	if err != nil {
		return err
	}
	defer unix.Close(server)
	if err := errors.Join(unix.Bind(server, address(to, port)), unix.Listen(server, 1)); err != nil {
		return err
	}
	go func() {
		fd, _, err := unix.Accept(server)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		for buf := make([]byte, 1<<16); ; {
			n, err := unix.Read(fd, buf)
			if err != nil || n == 0 {
				return
			}
			unix.Write(fd, buf[:n])
		}
	}()
	client, err := socket(from)
	if err != nil {
		return err
	}
	defer unix.Close(client)
	if err := unix.Connect(client, address(to, port)); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	for i := range n {
		size := 100 + i*1000
		want, err := io.ReadAll(payload(uint64(size), size))
		if err != nil {
			return err
		}
		if _, err := unix.Write(client, want); err != nil {
			return fmt.Errorf("send %d bytes: %w", size, err)
		}
		got := make([]byte, 0, size)
		for buf := make([]byte, 1<<16); len(got) < size; {
			n, err := unix.Read(client, buf)
			if err != nil || n == 0 {
				return fmt.Errorf("receive %d of %d bytes: %w", len(got), size, cmp.Or(err, io.EOF))
			}
			got = append(got, buf[:n]...)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("a message of %d bytes came back as other bytes", size)
		}
	}
	return nil
}

func sctpCarriesDataWhereThePolicyAllowsIt(t *testing.T, b *bed) {
	const allowed, denied = 5000, 5001
	for _, encap := range []model.Encapsulation{model.Direct, model.MPLSoUDP, model.MPLSoGRE, model.VXLAN} {
		for _, v6 := range []bool{false, true} {
			if v6 && encap == model.Direct {
				continue // the same frames
			}
			b.on(nil, v6, encap, fmt.Sprintf("%s underlay-v6=%v", encap, v6), func(t *testing.T, x, y *workload) {
				z := b.workload("z", "red", 0, "10.1.0.12", "fd00:1::12")
				b.state.Policies = []model.Policy{{Name: "sctp", Rules: []model.Rule{
					{Direction: model.Ingress, Action: model.Allow, Protocol: "sctp", Ports: "5000"}, {Direction: model.Egress, Action: model.Allow},
				}}}
				for i := range b.state.Ports {
					b.state.Ports[i].Policies = []string{"sctp"}
				}
				b.apply()
				for _, to := range []*workload{y, z} {
					for _, version := range []int{4, 6} {
						soon(t, fmt.Sprintf("SCTP over IPv%d to %s", version, to.port.Name), func() error { return sctp(x, to, version, allowed, 6) })
						if err := sctp(x, to, version, denied, 1); err == nil {
							t.Errorf("IPv%d: the policy of %s denies port %d, but SCTP connects", version, to.port.Name, denied)
						}
					}
				}
			})
		}
	}
}

// setClock moves the wall clock of the guest.
func setClock(t *testing.T, by time.Duration) {
	t.Helper()
	now := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
	must.Succeed(t, unix.ClockSettime(unix.CLOCK_REALTIME, &now))
}

// The wall clock jumps under traffic, in a fleet whose certificates are valid for an hour. Connections to
// the store go on, and so do leases, because they count monotonic time. A new connection needs a right
// clock; an agent that starts meanwhile uses its copy.
func theClockJumps(t *testing.T, b *bed) {
	b.on(nil, false, model.MPLSoUDP, "under traffic", func(t *testing.T, x, y *workload) {
		follower := b.nodes[1]
		end := openTransfer(x, y, 4)
		var off time.Duration
		defer func() { setClock(t, -off) }()
		for i, by := range []time.Duration{time.Hour, -2 * time.Hour, 25 * time.Hour, -48 * time.Hour} {
			setClock(t, by)
			off += by
			name := fmt.Sprint("later", i)
			b.connected(name, "red", 1)
			soon(t, "a port that is added while the clock is wrong by "+off.String(), func() error {
				if _, err := b.nodes[0].try("port", "get", name); err != nil {
					return err
				}
				return errors.Join(transfer(x, y, 4, 1<<18), datagram(y, x, 6, 1400))
			})
			for _, n := range b.nodes {
				if s := one[api.Status](n, "status"); s.Store.Problem != "" || len(s.Problems) > 0 {
					t.Errorf("the clock is wrong by %v: the status of node %s is %+v", off, n.name, s)
				}
			}
		}
		follower.kill(syscall.SIGKILL)
		follower.start()
		soon(t, "the problem in the status", func() error {
			s := one[api.Status](follower, "status")
			if !strings.Contains(s.Store.Problem, "the store is unreachable") || !strings.Contains(s.Store.Problem, "clock") {
				return fmt.Errorf("the problem of the store is %q", s.Store.Problem)
			}
			return errors.Join(transfer(x, y, 4, 1<<18), transfer(y, x, 6, 1<<18))
		})
		setClock(t, -off)
		off = 0
		soon(t, "the store after the clock is right again", func() error {
			if s := one[api.Status](follower, "status"); s.Store.Problem != "" {
				return errors.New(s.Store.Problem)
			}
			return nil
		})
		if err := end(); err != nil {
			t.Errorf("the connection during the jumps: %v", err)
		}
		for i := range 4 {
			follower.run("port", "delete", fmt.Sprint("later", i))
		}
	})
}
