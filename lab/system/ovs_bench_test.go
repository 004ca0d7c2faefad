package system

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

// nodesOnASwitch makes n nodes with one container each, joined by a bridge in a
// namespace between them, and skips where root or a program of the system is
// missing. All is gone after the test.
func nodesOnASwitch(t *testing.T, s System, n int) []*Node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	for _, p := range programsOf(s) {
		if _, err := exec.LookPath(p.Name); err != nil {
			t.Skipf("%s is not installed; get it with: %s", p.Name, p.Remedy())
		}
	}
	fabric := freshSpace(t, "switch")
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "switch"
	must.Succeed(t, errors.Join(fabric.Add(&netlink.Bridge{LinkAttrs: attrs}), fabric.Up("switch")))
	var nodes []*Node
	for i := range n {
		node := &Node{Index: i, Space: freshSpace(t, string(rune('a'+i))), Fabric: []string{"fab"}, MTU: 1500}
		node.Name = node.Space.Name
		port := fmt.Sprintf("port%d", i)
		err := errors.Join(
			node.Space.Workloads(),
			fabric.Pair(space.Veth{Name: port, PeerName: "fab", MTU: 1500}, node.Space),
			fabric.Enslave(port, "switch"), fabric.Up(port), node.Space.Up("fab"),
			node.Space.Connect("fab", netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 30, 0, byte(i + 1)}), 24)),
			node.Space.Connect("fab", netip.MustParsePrefix(fmt.Sprintf("fd30::%d/64", i+1))),
		)
		must.Succeed(t, err)
		container := freshSpace(t, string(rune('a'+i))+"-c1")
		must.Succeed(t, container.Workloads())
		node.Endpoints = []Endpoint{{
			Name: "c1", Space: container, MAC: net.HardwareAddr{2, 'w', 't', 0, 0, byte(i)},
			V4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 31, 0, byte(i + 2)}), 16),
			V6: netip.MustParsePrefix(fmt.Sprintf("fd31:c::%d/64", i+2)),
		}}
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		for i := range nodes {
			node.Underlay = append(node.Underlay, netip.AddrFrom4([4]byte{172, 30, 0, byte(i + 1)}))
		}
	}
	return nodes
}

func freshSpace(t *testing.T, name string) *space.Space {
	t.Helper()
	s := must.Get(space.Create(fmt.Sprintf("wt-o%d-%s", os.Getpid(), name)))(t)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), space.Delete(s.Name)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// onAll does something on every node at once, as its agent would: on a thread
// in the node's namespace, which what it starts inherits.
func onAll(nodes []*Node, do func(*Node) error) error {
	errs := make([]error, len(nodes))
	var doing sync.WaitGroup
	for i, n := range nodes {
		doing.Go(func() { errs[i] = n.Space.Do(func() error { return do(n) }) })
	}
	doing.Wait()
	return errors.Join(errs...)
}

// attached brings a system up on all nodes; it is taken away after the test.
func attached(t *testing.T, s System, nodes []*Node) {
	t.Helper()
	err := onAll(nodes, s.Attach)
	t.Cleanup(func() {
		if err := onAll(nodes, s.Detach); err != nil {
			t.Error(err)
		}
	})
	must.Succeed(t, err)
}

// carry sends some TCP from one node's container to another's and returns how
// many bytes came.
func carry(t *testing.T, from, to *Node, bytes int) int {
	t.Helper()
	var l net.Listener
	err := to.Endpoints[0].Space.Do(func() (err error) {
		l, err = net.Listen("tcp", ":4242")
		return err
	})
	must.Succeed(t, err)
	defer l.Close()
	came := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			came <- 0
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		n, _ := io.Copy(io.Discard, c) // what is missing shows in the number
		came <- int(n)
	}()
	var c net.Conn
	addr := netip.AddrPortFrom(to.Endpoints[0].V4.Addr(), 4242).String()
	err = from.Endpoints[0].Space.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", addr, 10*time.Second)
		return err
	})
	must.Succeed(t, err)
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(make([]byte, bytes)); err != nil {
		t.Error(err)
	}
	c.Close()
	return <-came
}

// received counts what a container's device has received.
func received(t *testing.T, n *Node) uint64 {
	t.Helper()
	l := must.Get(n.Endpoints[0].Space.Link(EndpointDevice))(t)
	return l.Attrs().Statistics.RxPackets
}

// assertNoCircle: a broadcast reaches every container, and does not go round.
func assertNoCircle(t *testing.T, nodes []*Node) {
	t.Helper()
	const broadcasts, others = 10, 100
	first := nodes[0].Endpoints[0]
	var before []uint64
	for _, n := range nodes {
		before = append(before, received(t, n))
	}
	var c net.Conn
	err := first.Space.Do(func() (err error) {
		c, err = net.Dial("udp", "10.31.255.255:9") // the containers' network's
		return err
	})
	must.Succeed(t, err)
	defer c.Close()
	for range broadcasts {
		must.Get(c.Write([]byte("round?")))(t)
	}
	time.Sleep(300 * time.Millisecond)
	for i, n := range nodes[1:] {
		if got := received(t, n) - before[i+1]; got < broadcasts || got > broadcasts+others {
			t.Errorf("container on node %d received %d packets of %d broadcasts", i+1, got, broadcasts)
		}
	}
}

// failingProgram puts a program of that name first in PATH that says something
// and ends.
func failingProgram(t *testing.T, name, says string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho '" + says + "' >&2\nexit 1\n"
	must.Succeed(t, os.WriteFile(dir+"/"+name, []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
