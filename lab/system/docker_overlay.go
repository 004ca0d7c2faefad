package system

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// DockerOverlay is Docker Swarm's overlay network: a dockerd on each node, all in
// one swarm, and containers in an attachable network. Its datapath is the kernel's
// VXLAN behind a bridge, both in a namespace that dockerd creates for the network.
// The daemons exchange the containers' addresses by a gossip protocol and write them
// into the forwarding tables.
type DockerOverlay struct{}

const (
	swarmPort = 2377
	// dockerDynamic is the range from which Docker assigns one address to each node.
	// The lab assigns the addresses below it to containers.
	dockerDynamic = "10.31.240.0/20"
)

func (DockerOverlay) Name() string { return "docker-overlay" }
func (DockerOverlay) About() About {
	return About{
		Description: "Docker containers on Swarm's overlay network: VXLAN behind a bridge in a namespace of dockerd's; tools run in the containers' network namespaces",
		Overhead:    vxlanOverhead,
		LeastMTU:    suite.LeastMTU,          // the containers have no IPv6 addresses
		SetUp:       2800 * time.Millisecond, // the start of two dockerd and of the swarm
		IPv4Only:    true,                    // Docker 20.10 does not support IPv6 in Swarm's overlay
	}
}
func (DockerOverlay) Needs() ([]string, []program.Program) {
	return []string{"veth", "bridge", "vxlan"}, dockerPrograms()
}

func (o DockerOverlay) Attach(n *Node) error {
	d := dockerOf(n)
	if err := d.up(); err != nil {
		return err
	}
	var given *tokenGiver
	var err error
	if n.Index == 0 {
		given, err = o.createSwarm(d)
	} else {
		err = o.join(d)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, n.lastOutput(dockerDaemon))
	}
	if given != nil { // the first node: wait until every other node has the token
		if err := given.serve(tokenWait); err != nil {
			return err
		}
	}
	for _, e := range n.Endpoints {
		if err := d.container(e); err != nil {
			return err
		}
	}
	if err := d.startSpare(); err != nil {
		return err
	}
	return o.steer(d)
}

// createSwarm creates the swarm and its network. The returned tokenGiver sends the
// other nodes the token with which they join.
func (DockerOverlay) createSwarm(d dockerd) (*tokenGiver, error) {
	own := d.node.Underlay[0].String()
	if _, err := d.run("swarm", "init", "--advertise-addr", own, "--listen-addr", own+":"+strconv.Itoa(swarmPort)); err != nil {
		return nil, err
	}
	// The driver's option "mtu" is the underlay's MTU. The driver subtracts VXLAN's headers
	// (libnetwork's drivers/overlay, network.maxMTU).
	_, err := d.run("network", "create", "--driver", "overlay", "--attachable",
		"--subnet", routedNetwork.String(), "--gateway", gateway(routedNetwork).Addr().String(), "--ip-range", dockerDynamic,
		"--opt", "com.docker.network.driver.mtu="+strconv.Itoa(d.node.MTU), dockerNetwork)
	if err != nil {
		return nil, err
	}
	token, err := d.run("swarm", "join-token", "--quiet", "worker")
	if err != nil {
		return nil, err
	}
	return giveToken(d.node.Underlay[0], d.node.Underlay[1:], token)
}

func (DockerOverlay) join(d dockerd) error {
	own, first := d.node.Underlay[d.node.Index], d.node.Underlay[0]
	token, err := askToken(own, first, tokenWait)
	if err != nil {
		return err
	}
	_, err = d.run("swarm", "join", "--token", token, "--advertise-addr", own.String(),
		"--listen-addr", netip.AddrPortFrom(own, swarmPort).String(), netip.AddrPortFrom(first, swarmPort).String())
	return err
}

// steer distributes the receive work of the network's devices to the node's CPUs, if
// the fabric needs steering.
func (DockerOverlay) steer(d dockerd) error {
	if !d.node.Steer || len(d.node.Endpoints) == 0 {
		return nil
	}
	path, err := dockerOverlaySpace(d)
	if err != nil {
		return err
	}
	inner, err := space.OpenAt(d.node.Name+" overlay", path)
	if err != nil {
		return err
	}
	defer inner.Close()
	links, err := inner.Links.LinkList()
	if err != nil {
		return fmt.Errorf("list the devices of Docker's overlay: %w", err)
	}
	for _, l := range links {
		if _, veth := l.(*netlink.Veth); !veth && l.Type() != "vxlan" {
			continue
		}
		if err := steer(d.node, inner, l.Attrs().Name, 1); err != nil {
			return err
		}
	}
	d.node.Space.Include("overlay", inner.Settings())
	return nil
}

// dockerOverlaySpace returns the path of the namespace that dockerd created for the
// network. The namespace's name is a number, a hyphen and the first characters of
// the network's ID.
func dockerOverlaySpace(d dockerd) (string, error) {
	id, err := d.run("network", "inspect", "--format", "{{.Id}}", dockerNetwork)
	if err != nil {
		return "", err
	}
	root, err := d.root()
	if err != nil {
		return "", err
	}
	names, err := filepath.Glob(filepath.Join(root, d.file("exec"), "netns", "*-"+id[:min(10, len(id))]))
	if err != nil || len(names) != 1 {
		return "", fmt.Errorf("find the namespace of Docker's overlay %s: want 1 namespace, found %q", id, names)
	}
	return names[0], nil
}

// Changes implements Changer.
func (DockerOverlay) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{suite.ChangePorts: dockerPorts}
}

func (DockerOverlay) Detach(n *Node) error { return dockerOf(n).down() }

// Devices returns the containers' devices and the fabric's. It omits the devices
// between them, which are in a namespace of dockerd.
func (DockerOverlay) Devices(n *Node) []Device {
	return hops(n, noVif)
}
