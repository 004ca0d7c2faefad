package system

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// DockerOverlay is Docker Swarm's overlay network: a dockerd on each node, all in one
// swarm, and containers in an attachable network. Its data path is the kernel's VXLAN
// behind a bridge, both in a namespace that dockerd makes for the network. Gossip
// between the daemons fills the forwarding tables.
type DockerOverlay struct{}

const (
	swarmPort = 2377
	// dockerDynamic is the range from which Docker takes one address for each node.
	// The containers' addresses are below it.
	dockerDynamic = "10.31.240.0/20"
)

func (DockerOverlay) Name() string { return "docker-overlay" }

// SetUp covers the start of two dockerd and of the swarm.
func (DockerOverlay) SetUp() time.Duration { return 2800 * time.Millisecond }
func (DockerOverlay) Describe() string {
	return "Docker containers on Swarm's overlay network: VXLAN behind a bridge in a namespace of dockerd's; tools run in the containers' network namespaces"
}
func (DockerOverlay) Features() []string          { return []string{"veth", "bridge", "vxlan"} }
func (DockerOverlay) Programs() []program.Program { return dockerPrograms() }
func (DockerOverlay) MTU(fabric int) int          { return fabric - vxlanOverhead }
func (DockerOverlay) OnNode() bool                { return false }

// IPv4Only marks that the swarm's overlay has no IPv6, which Docker 20.10 does not
// support there.
func (DockerOverlay) IPv4Only() {}

func (DockerOverlay) Supports(suite.Placement, suite.Fabric) error { return nil }

func (o DockerOverlay) Attach(n *Node) error {
	d := dockerOf(n)
	if err := d.up(); err != nil {
		return err
	}
	var given *tokenGiver
	var err error
	if n.Index == 0 {
		given, err = o.found(d)
	} else {
		err = o.join(d)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, n.said(dockerDaemon))
	}
	if given != nil { // when all nodes have it, they can join
		if err := given.serve(tokenWait); err != nil {
			return err
		}
	}
	for _, e := range n.Endpoints {
		if err := d.container(e); err != nil {
			return err
		}
	}
	return o.steer(d)
}

// found makes the swarm and its network, and prepares the token for the other nodes.
func (DockerOverlay) found(d dockerd) (*tokenGiver, error) {
	own := d.node.Underlay[0].String()
	if _, err := d.run("swarm", "init", "--advertise-addr", own, "--listen-addr", own+":"+strconv.Itoa(swarmPort)); err != nil {
		return nil, err
	}
	// The driver's "mtu" is the underlay's. The driver subtracts VXLAN's headers
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

// steer lets the node's CPUs do the receive work of the network's devices too, if the
// fabric needs it.
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
		if err := steer(d.node, inner, l.Attrs().Name); err != nil {
			return err
		}
	}
	d.node.Space.Include("overlay", inner.Settings())
	return nil
}

// dockerOverlaySpace returns the path of the namespace that dockerd made for the
// network. Its name is the network's number in the swarm with the beginning of its
// ID.
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
		return "", fmt.Errorf("find the namespace of Docker's overlay %s: there are %v (%v)", id, strings.Join(names, ", "), err)
	}
	return names[0], nil
}

func (DockerOverlay) Detach(n *Node) error { return dockerOf(n).down() }

// Devices returns the containers' devices and the fabric's. The devices between them
// are in dockerd's namespace.
func (DockerOverlay) Devices(n *Node) []Device {
	return append(endpointDevices(n), fabricDevices(n)...)
}
