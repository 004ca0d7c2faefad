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

// SetUp covers the start of dockerd and of its containers.
func (DockerBridge) SetUp() time.Duration { return 1600 * time.Millisecond }
func (DockerBridge) Describe() string {
	return "two Docker containers on one bridge network of a dockerd, whose iptables rules see bridged frames where the kernel has br_netfilter; one node only; tools run in the containers' network namespaces"
}
func (DockerBridge) Features() []string          { return []string{"veth", "bridge"} }
func (DockerBridge) Programs() []program.Program { return dockerPrograms() }
func (DockerBridge) MTU(fabric int) int          { return fabric }
func (DockerBridge) OnNode() bool                { return false }

// Supports returns an error for two nodes. Published ports connect them, and there
// the node's address replaces the container's. The proof of connectivity, and tools
// that choose ports or need the endpoint's own address, would measure something else.
func (DockerBridge) Supports(p suite.Placement, _ suite.Fabric) error {
	if p != suite.Colocated {
		return errors.New("a Docker bridge network is limited to one node: from another node only published ports can be reached, by NAT, but no echo and no other port of a container; use placement colocated, or docker-overlay")
	}
	return nil
}

func (DockerBridge) Attach(n *Node) error {
	if len(n.Endpoints) == 0 {
		return nil
	}
	// Users have Docker's modules loaded. The lab does not load br_netfilter, because
	// it changes the host's bridges. If it is loaded, it must apply here too,
	// independent of the settings of earlier systems.
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
		return fmt.Errorf("%w%s", err, n.said(dockerDaemon))
	}
	return d.dualStack()
}

// dualStack runs the node's containers in a network of both IP versions, with its
// devices in the node's namespace.
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
