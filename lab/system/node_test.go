package system

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

// loneNode is the first of two nodes, whose peer never comes up: all that a
// system does on a node is done without it.
func loneNode(t *testing.T) *Node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	name := fmt.Sprintf("wt-system%d-a", os.Getpid())
	s := newSpace(t, name)
	peers := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	take(t, s, "fab")
	must.Succeed(t, errors.Join(s.Address("fab", netip.PrefixFrom(peers[0], 24)), s.Up("fab")))
	v4, v6 := routedSubnets(0)
	return &Node{
		Index: 0, Name: name, Space: s, Fabric: []string{"fab"}, Underlay: peers, MTU: 1500, CPUs: []int{0},
		Endpoints: []Endpoint{{
			Name: "c1", Space: newSpace(t, name+"-c1"), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1},
			V4: netip.PrefixFrom(v4.Addr().Next().Next(), 16), V6: netip.PrefixFrom(v6.Addr().Next().Next(), 64),
		}},
	}
}

func newSpace(t *testing.T, name string) *space.Space {
	t.Helper()
	s := must.Get(space.Create(name))(t)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), space.Delete(name)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// attach runs Attach where an agent would: inside the node. Detach follows at
// the test's end, after which nothing may be left.
func attach(t *testing.T, s System, n *Node) error {
	t.Helper()
	before := devices(t, n)
	err := n.Space.Do(func() error { return s.Attach(n) })
	t.Cleanup(func() {
		if err := n.Space.Do(func() error { return s.Detach(n) }); err != nil {
			t.Errorf("detach %s: %v", s.Name(), err)
		}
		if after := devices(t, n); !slices.Equal(before, after) {
			t.Errorf("%s left %v of %v", s.Name(), after, before)
		}
		if _, err := os.Stat(space.Home(n.Name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s left %s (%v)", s.Name(), space.Home(n.Name), err)
		}
	})
	return err
}

func devices(t *testing.T, n *Node) (names []string) {
	t.Helper()
	links := must.Get(n.Space.Links.LinkList())(t)
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	return names
}

// take makes some device of that name; kernels without bridges have no nodes.
func take(t *testing.T, s *space.Space, device string) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = device
	must.Succeed(t, s.Add(&netlink.Bridge{LinkAttrs: attrs}))
}

// listen lets somebody else have a UDP port.
func listen(t *testing.T, n *Node, port int) {
	t.Helper()
	err := n.Space.Do(func() error {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
		if err == nil {
			t.Cleanup(func() { socket.Close() })
		}
		return err
	})
	must.Succeed(t, err)
}

// startShell starts a daemon that runs a script of sh, and is ready once it printed "up".
func startShell(t *testing.T, n *Node, script string) error {
	t.Helper()
	t.Cleanup(func() {
		if err := n.stopDaemons(); err != nil {
			t.Error(err)
		}
	})
	return n.start(daemon{name: "shell", argv: []string{"sh", "-c", script}, ready: func() error {
		if !strings.HasSuffix(n.lastOutput("shell"), "up") {
			return errors.New("the shell has not printed up")
		}
		return nil
	}})
}

func TestTheErrorOfADaemonThatEndsAtOnceHasItsReason(t *testing.T) {
	must.Fail(t, startShell(t, loneNode(t), "echo no entropy left >&2; exit 7"), "shell ended at once (exit status 7)", "no entropy left")
}

func TestTheErrorOfADaemonThatEndsHasItsLastLines(t *testing.T) {
	n := loneNode(t)
	must.Succeed(t, startShell(t, n, "echo up; exec sleep 60"))
	if got := n.LastWords(); !strings.Contains(got, "shell runs") {
		t.Errorf("while it runs: %q", got)
	}
	must.Succeed(t, n.daemons[0].Signal(syscall.SIGTERM))
	select {
	case <-n.daemons[0].Ended:
	case <-time.After(daemonEnds):
		t.Fatal("it runs on")
	}
	must.Equal(t, "shell has ended (signal: terminated); last output of shell:\nup", n.LastWords())
}
