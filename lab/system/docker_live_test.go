package system

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/program"
	"windtunnel/lab/space"
)

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must.Succeed(t, unix.Stat(path, &st))
	return st.Ino
}

// assertAdopted: a container's name leads where its process lives.
func assertAdopted(t *testing.T, n *Node, e Endpoint) {
	t.Helper()
	d := dockerOf(n)
	root := must.Get(d.root())(t)
	pid := must.Get(d.run("inspect", "--format", "{{.State.Pid}}", e.Name))(t)
	lives := inode(t, filepath.Join(root, "proc", pid, "ns/net"))
	if got := inode(t, filepath.Join(space.Dir, e.Space.Name)); got != lives {
		t.Errorf("the name %s leads to %d; the container lives in %d", e.Space.Name, got, lives)
	}
	l := must.Get(e.Space.Link(EndpointDevice))(t)
	routes := must.Get(e.Space.Links.RouteList(l, unix.AF_INET))(t)
	connected := 0
	for _, r := range routes {
		if r.Dst != nil && r.Dst.String() == e.V4.Masked().String() {
			connected++
			if r.Congctl != space.CongestionControl() {
				t.Errorf("the route to %s has the congestion control %q, want %q", r.Dst, r.Congctl, space.CongestionControl())
			}
		}
	}
	if connected != 1 {
		t.Errorf("container %s has %d routes to %s", e.Name, connected, e.V4.Masked())
	}
	if got := e.Space.Settings().Sysctls["net.ipv6.conf.default.accept_ra"]; got != "0" {
		t.Errorf("accept_ra in container %s is recorded as %q", e.Name, got)
	}
}

// assertApart: the daemon has places of its own where the machine's user may
// have a dockerd, and nothing that it mounts is seen from outside.
func assertApart(t *testing.T, n *Node) {
	t.Helper()
	d := dockerOf(n)
	root := must.Get(d.root())(t)
	for _, path := range []string{"/run", "/var/lib"} {
		if inode(t, root+path) == inode(t, path) {
			t.Errorf("dockerd shares %s with the machine", path)
		}
	}
	if _, err := os.Stat(root + "/run/netns"); err == nil {
		t.Error("dockerd sees, and so may hold, other people's network namespaces")
	}
	mounts := must.Get(os.ReadFile("/proc/self/mountinfo"))(t)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, d.home) && !strings.Contains(line, " - bpf ") { // a vrouter's pins
			t.Errorf("a mount of dockerd's is seen from outside: %s", line)
		}
	}
}

// The containers of two nodes reach each other through the swarm's network in
// the namespaces that have the endpoints' names; then all of it is gone.
func TestDockersOverlayJoinsTheContainersOfEveryNode(t *testing.T) {
	o := DockerOverlay{}
	before := dockersOwnPlaces(t)
	nodes := nodesOnASwitch(t, o, 2)
	for _, n := range nodes {
		n.Steer, n.CPUs = true, []int{0}
	}
	attached(t, o, nodes)
	const bytes = 2 << 20
	for _, pair := range [][2]*Node{{nodes[0], nodes[1]}, {nodes[1], nodes[0]}} {
		if got := carry(t, pair[0], pair[1], bytes); got != bytes {
			t.Errorf("%d of %d bytes came from node %d to node %d", got, bytes, pair[0].Index, pair[1].Index)
		}
	}
	for _, n := range nodes {
		assertAdopted(t, n, n.Endpoints[0])
		assertApart(t, n)
		l, err := n.Endpoints[0].Space.Link(EndpointDevice)
		if err != nil || l.Attrs().MTU != MTU(o, n.MTU) {
			t.Errorf("%s on node %d: MTU %d, want %d (%v)", EndpointDevice, n.Index, l.Attrs().MTU, MTU(o, n.MTU), err)
		}
		if got := n.Space.Settings().Others["overlay vxlan0/queues/rx-0/rps_cpus"]; got != "1" {
			t.Errorf("the receive work of the overlay's VXLAN on node %d goes to CPUs %q, want 1", n.Index, got)
		}
	}
	must.Succeed(t, onAll(nodes, o.Detach))
	for _, n := range nodes {
		assertNoDocker(t, n)
	}
	assertUntouched(t, before)
}

// What docker run gives on vrouter: containers of two nodes in one virtual
// network; then all of it is gone.
func TestVRoutersPluginJoinsTheContainersOfEveryNode(t *testing.T) {
	must.Long(t)
	s := VRouterDocker{}
	if _, err := program.Beside(vrouterProgram); err != nil {
		t.Skip(err)
	}
	before := dockersOwnPlaces(t)
	nodes := nodesOnASwitch(t, s, 2)
	attached(t, s, nodes)
	const bytes = 2 << 20
	for _, pair := range [][2]*Node{{nodes[0], nodes[1]}, {nodes[1], nodes[0]}} {
		if got := carry(t, pair[0], pair[1], bytes); got != bytes {
			t.Errorf("%d of %d bytes came from node %d to node %d", got, bytes, pair[0].Index, pair[1].Index)
		}
	}
	must.Succeed(t, dialEndpoint(nodes[0].Endpoints[0], nodes[1].Endpoints[0], nodes[1].Endpoints[0].V6.Addr()))
	for _, n := range nodes {
		assertAdopted(t, n, n.Endpoints[0])
		assertApart(t, n)
		var roles []string
		for _, d := range s.Devices(n) {
			roles = append(roles, d.Role)
		}
		if got := strings.Join(roles, " "); got != "endpoint vif fabric" {
			t.Errorf("the hops of node %d are %s", n.Index, got)
		}
		l, err := n.Endpoints[0].Space.Link(EndpointDevice)
		if err != nil || l.Attrs().MTU != MTU(s, n.MTU) {
			t.Errorf("%s on node %d: MTU %d, want %d (%v)", EndpointDevice, n.Index, l.Attrs().MTU, MTU(s, n.MTU), err)
		}
	}
	must.Succeed(t, onAll(nodes, s.Detach))
	for _, n := range nodes {
		assertNoDocker(t, n)
	}
	assertUntouched(t, before)
}

// bridgeOfTwo is one node with two containers on Docker's bridge.
func bridgeOfTwo(t *testing.T) *Node {
	t.Helper()
	n := nodesOnASwitch(t, DockerBridge{}, 1)[0]
	second := freshSpace(t, "a-c2")
	n.Endpoints = append(n.Endpoints, Endpoint{
		Name: "c2", Space: second, MAC: net.HardwareAddr{2, 'w', 't', 0, 0, 77},
		V4: netip.MustParsePrefix("10.31.0.77/16"), V6: netip.MustParsePrefix("fd31:c::77/64"),
	})
	return n
}

func TestDockersBridgeJoinsTwoContainersOfANode(t *testing.T) {
	s := DockerBridge{}
	before := dockersOwnPlaces(t)
	n := bridgeOfTwo(t)
	attached(t, s, []*Node{n})
	const bytes = 2 << 20
	to := *n
	to.Endpoints = n.Endpoints[1:]
	must.Equal(t, bytes, carry(t, n, &to, bytes))
	must.Succeed(t, dialEndpoint(n.Endpoints[0], n.Endpoints[1], n.Endpoints[1].V6.Addr()))
	var roles []string
	for _, d := range s.Devices(n) {
		roles = append(roles, d.Role)
		where := n.Space
		if d.Endpoint != "" {
			where = n.Endpoints[0].Space
		}
		if l, err := where.Link(d.Name); err != nil || l.Attrs().MTU != n.MTU {
			t.Errorf("hop %+v: %v", d, err)
		}
	}
	must.Equal(t, "endpoint vif endpoint vif bridge fabric", strings.Join(roles, " "))
	for _, e := range n.Endpoints {
		assertAdopted(t, n, e)
		assertDefaultRoutes(t, e)
	}
	assertApart(t, n)
	must.Succeed(t, onAll([]*Node{n}, s.Detach))
	assertNoDocker(t, n)
	assertUntouched(t, before)
}

// assertDefaultRoutes checks that a container's default routes, of IPv4 and IPv6, have the lab's congestion control. Packets to the
// other node's address take a default route.
func assertDefaultRoutes(t *testing.T, e Endpoint) {
	t.Helper()
	var got []string
	for _, r := range must.Get(e.Space.Links.RouteList(nil, netlink.FAMILY_ALL))(t) {
		if ones := 0; r.Gw != nil {
			if r.Dst != nil {
				ones, _ = r.Dst.Mask.Size()
			}
			if ones == 0 {
				got = append(got, r.Congctl)
			}
		}
	}
	must.Equal(t, []string{space.CongestionControl(), space.CongestionControl()}, got)
}

// dialEndpoint connects from one container to another.
func dialEndpoint(from, to Endpoint, at netip.Addr) error {
	var l net.Listener
	err := to.Space.Do(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(at, 4243).String())
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	return from.Space.Do(func() error {
		c, err := net.DialTimeout("tcp", netip.AddrPortFrom(at, 4243).String(), 5*time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// A node without endpoints needs no dockerd on a network of one node.
func TestDockersBridgeStartsNothingWhereNoContainerIs(t *testing.T) {
	n := nodesOnASwitch(t, DockerBridge{}, 1)[0]
	n.Endpoints = nil
	attached(t, DockerBridge{}, []*Node{n})
	must.Equal(t, 0, len(n.daemons))
	assertNoDocker(t, n)
}

// A dockerd that cannot start is an error with what it said, and leaves nothing.
func TestTheErrorOfADockerdThatEndsAtStartHasItsOutput(t *testing.T) {
	n := bridgeOfTwo(t)
	home, err := n.home()
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(filepath.Join(home, "data"), nil, 0o600)) // where it wants a directory
	err = onAll([]*Node{n}, DockerBridge{}.Attach)
	must.Fail(t, err, "dockerd ended at once", "points to a file", filepath.Join(home, "data"))
	must.Succeed(t, onAll([]*Node{n}, DockerBridge{}.Detach))
	assertNoDocker(t, n)
}

// With the daemon its container ends, whatever ends it; the last words say so,
// and detaching still leaves nothing.
func TestADockerdThatIsKilledTakesItsContainerWithIt(t *testing.T) {
	n := nodesOnASwitch(t, DockerBridge{}, 1)[0]
	attached(t, DockerBridge{}, []*Node{n})
	pid, err := dockerOf(n).pid()
	must.Succeed(t, err)
	shims := func() (many int) {
		for _, line := range argvOf(t) {
			if strings.Contains(line, "containerd-shim") && strings.Contains(line, dockerOf(n).home) {
				many++
			}
		}
		return many
	}
	must.Equal(t, 1, shims())
	must.Succeed(t, syscall.Kill(pid, syscall.SIGKILL))
	r := dockerOf(n).running()
	select {
	case <-r.Ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the node has not noticed the end of dockerd")
	}
	must.Equal(t, 0, shims())
	if got := n.LastWords(); !strings.Contains(got, "dockerd has ended") {
		t.Errorf("the last words are %q", got)
	}
	_, err = dockerOf(n).root()
	must.Fail(t, err, fmt.Sprintf("node %s does not run", n.Name))
	must.Succeed(t, onAll([]*Node{n}, DockerBridge{}.Detach))
	assertNoDocker(t, n)
}
