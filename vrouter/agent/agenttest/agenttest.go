// Package agenttest creates network namespaces, devices and small filesystems for the tests
// of the agent's packages.
package agenttest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// NeedRoot skips the test if it does not run as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces and eBPF need root")
	}
}

var spacesMade atomic.Int32 // tests run in parallel

// NewSpace creates a network namespace and deletes it after the test.
func NewSpace(t testing.TB, part string) *netdev.Space {
	t.Helper()
	return NamedSpace(t, fmt.Sprintf("vr-%d-%d-%s", os.Getpid(), spacesMade.Add(1), part))
}

// NamedSpace creates a network namespace with a given name and deletes it after the test.
func NamedSpace(t testing.TB, name string) *netdev.Space {
	t.Helper()
	NeedRoot(t)
	h, err := netspace.Create(name)
	if err != nil {
		t.Fatalf("create network namespace %s: %v", name, err)
	}
	h.Close()
	t.Cleanup(func() { DeleteSpace(name) })
	s := must.Get(netdev.Open(name))(t)
	t.Cleanup(func() { s.Close() })
	up(t, s, "lo")
	return s
}

// DeleteSpace deletes a network namespace if it exists.
func DeleteSpace(name string) {
	if err := netspace.Delete(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// LinkIn finds a device; the test ends if it does not exist.
func LinkIn(t testing.TB, s *netdev.Space, name string) netlink.Link {
	t.Helper()
	l := must.Get(s.Link(name))(t)
	if l == nil {
		t.Fatalf("%s has no device %s", s.Name, name)
	}
	return l
}

func up(t testing.TB, s *netdev.Space, name string) {
	t.Helper()
	must.Succeed(t, s.Links.LinkSetUp(LinkIn(t, s, name)))
}

// Addressed adds an address to a device, without duplicate address detection.
func Addressed(t testing.TB, s *netdev.Space, name, prefix string) {
	t.Helper()
	a := &netlink.Addr{IPNet: netdev.IPNet(netip.MustParsePrefix(prefix))}
	if netip.MustParsePrefix(prefix).Addr().Is6() {
		a.Flags = 0x02 // IFA_F_NODAD
	}
	must.Succeed(t, s.Links.AddrAdd(LinkIn(t, s, name), a))
}

// Joined creates a veth pair with one end in each namespace, and sets both ends up.
func Joined(t testing.TB, a, b *netdev.Space, nameA, nameB string, mtu int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameA, mtu
	must.Succeed(t, a.Links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerMTU: uint32(mtu), PeerNamespace: netlink.NsFd(b.Ns)}))
	up(t, a, nameA)
	up(t, b, nameB)
}

// TwoNodes has two nodes that are connected by an underlay.
type TwoNodes struct {
	A, B *netdev.Space
	Dir  string
}

// UnderlayMTU is the MTU of the underlay, in bytes. With it, packets of 1500 bytes fit into
// every encapsulation.
const UnderlayMTU = 1600

// NewFleet creates two nodes with the addresses 172.31.0.1 and 172.31.0.2 on device fab0.
func NewFleet(t testing.TB) *TwoNodes {
	t.Helper()
	f := &TwoNodes{A: NewSpace(t, "a"), B: NewSpace(t, "b"), Dir: t.TempDir()}
	Joined(t, f.A, f.B, "fab0", "fab0", UnderlayMTU)
	Addressed(t, f.A, "fab0", "172.31.0.1/24")
	Addressed(t, f.B, "fab0", "172.31.0.2/24")
	return f
}

// TestLimits are small limits, because the tests create the tables of many agents.
var TestLimits = config.Limits{Limits: datapath.Limits{Routes: 4096, Prefixes: 1024, Bridge: 4096, Nexthops: 512, Vifs: 64, Labels: 512, Remotes: 512, Flows: 4096}}

// Config returns the configuration of a node's agent. Its files are in the test's directory.
func (f *TwoNodes) Config(node string) config.Config {
	s := map[string]*netdev.Space{"a": f.A, "b": f.B}[node]
	return config.Config{
		Node: node, Netns: s.Name, RunDir: filepath.Join(f.Dir, "run"), StateDir: filepath.Join(f.Dir, "state-"+node),
		RepairInterval: 100 * time.Millisecond, Limits: TestLimits,
	}.WithDefaults()
}

// State returns the state of the fleet. Network red has two ports on node a and one port on
// node b. encaps are the encapsulations of both nodes; none: every tunnel.
func (f *TwoNodes) State(workloads map[string]*netdev.Space, encaps ...model.Encapsulation) model.State {
	if encaps == nil {
		encaps = []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE, model.VXLAN}
	}
	s := model.State{
		Nodes: []model.Node{
			{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.1")}, Encapsulations: encaps},
			{Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.2")}, Encapsulations: encaps},
		},
		Networks: []model.Network{{Name: "red", ID: 7, Subnets: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/24"), netip.MustParsePrefix("fd07::/64")}}},
	}
	for i, p := range []struct{ name, node string }{{"a1", "a"}, {"b1", "b"}, {"a2", "a"}} {
		w, ok := workloads[p.name]
		if !ok {
			continue
		}
		s.Ports = append(s.Ports, model.Port{
			Name: p.name, Network: "red", Node: p.node, MAC: model.MAC{2, 0, 0, 0, 7, byte(i + 10)},
			IPs:    []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.7.0.%d", i+10)), netip.MustParseAddr(fmt.Sprintf("fd07::%d", i+10))},
			Attach: model.Attachment{Netns: w.Name},
		})
	}
	return s
}

// TinyDisk mounts a filesystem of 256 kB and returns its path.
func TinyDisk(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a filesystem")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// LockThread locks the goroutine to its thread. The thread ends with the goroutine.
func LockThread() { runtime.LockOSThread() }
