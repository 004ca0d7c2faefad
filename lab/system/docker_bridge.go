package system

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// DockerBridge is the network of a plain `docker network create` and `docker run`:
// containers on a bridge that dockerd made, with Docker's rules.
type DockerBridge struct{}

func (DockerBridge) Name() string { return "docker-bridge" }

// SetUp returns the time for the start of dockerd and of its containers.
func (DockerBridge) SetUp() time.Duration { return 1600 * time.Millisecond }
func (DockerBridge) Describe() string {
	return "two Docker containers on one bridge network of a dockerd, whose iptables rules see bridged frames where the kernel has br_netfilter; one node only; tools run in the containers' network namespaces"
}
func (DockerBridge) Features() []string          { return []string{"veth", "bridge"} }
func (DockerBridge) Programs() []program.Program { return dockerPrograms() }
func (DockerBridge) MTU(fabric int) int          { return fabric }
func (DockerBridge) OnNode() bool                { return false }

// Supports returns an error for two nodes. A container on another node can be
// reached only by published ports, where NAT replaces the container's address by the
// node's. The proof of connectivity needs ICMP, and some tools need other ports or
// the container's address.
func (DockerBridge) Supports(p suite.Placement, _ suite.Fabric) error {
	if p != suite.Colocated {
		return errors.New("a Docker bridge network is limited to one node: other nodes reach only published ports of a container, by NAT; use placement colocated, or the system docker-overlay")
	}
	return nil
}

func (DockerBridge) Attach(n *Node) error {
	if len(n.Endpoints) == 0 {
		return nil
	}
	// On a user's machine dockerd loads br_netfilter. The lab does not load it,
	// because the module changes the host's bridges. If the module is loaded, iptables
	// must process bridged frames here too. An earlier system may have turned it off.
	if err := n.Space.Sysctl("net.bridge.bridge-nf-call-iptables", "1"); err != nil {
		return err
	}
	d := dockerOf(n)
	if err := d.up(); err != nil {
		return err
	}
	v4, v6 := n.Endpoints[0].V4.Masked(), n.Endpoints[0].V6.Masked()
	_, err := d.run("network", "create", "--driver", "bridge",
		"--subnet", v4.String(), "--gateway", gateway(v4).Addr().String(),
		"--ipv6", "--subnet", v6.String(), "--gateway", gateway(v6).Addr().String(),
		"--opt", "com.docker.network.bridge.name="+bridgeDevice,
		"--opt", "com.docker.network.driver.mtu="+strconv.Itoa(n.MTU), dockerNetwork)
	if err != nil {
		return fmt.Errorf("%w%s", err, n.lastOutput(dockerDaemon))
	}
	return d.dualStack()
}

// dualStack starts the node's containers in a network with IPv4 and IPv6. The
// network's devices are in the node's namespace.
func (d dockerd) dualStack() error {
	for _, e := range d.node.Endpoints {
		if err := d.container(e, "--ip6", e.V6.Addr().String()); err != nil {
			return err
		}
		if err := e.Space.Reconnect(EndpointDevice, e.V6); err != nil {
			return err
		}
		vif, err := vifOf(d.node, e)
		if err != nil {
			return err
		}
		if err := steer(d.node, d.node.Space, vif); err != nil {
			return err
		}
	}
	return nil
}

func (DockerBridge) Detach(n *Node) error { return dockerOf(n).down() }

func (DockerBridge) Devices(n *Node) []Device {
	ds := connectedDevices(n)
	if len(n.Endpoints) > 0 {
		ds = append(ds, Device{Name: bridgeDevice, Role: "bridge"})
	}
	return append(ds, fabricDevices(n)...)
}
