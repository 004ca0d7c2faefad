package system

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// DockerBridge is the network of a plain `docker network create` and `docker run`:
// containers on a bridge that dockerd made, with Docker's rules. A container on another
// node is reached by published ports (`docker run -p`): the rules replace the node's
// address and port by the container's (NAT).
type DockerBridge struct{}

// PublishedFirst to PublishedLast are the ports that a container publishes for the tools,
// for TCP and UDP. PublishedProof is the port of the proof of connectivity.
const (
	PublishedFirst = 5001
	PublishedLast  = 5016
	PublishedProof = 4242
)

func (DockerBridge) Name() string { return "docker-bridge" }
func (DockerBridge) About() About {
	return About{
		Description: "Docker containers on a bridge network of a dockerd, whose iptables rules see bridged frames where the kernel has br_netfilter; between nodes by published ports (docker run -p), with NAT on both; tools run in the containers' network namespaces",
		SetUp:       1600 * time.Millisecond, // the start of dockerd and of its containers
		Publishes:   true,
	}
}
func (DockerBridge) Needs() ([]string, []program.Program) {
	return []string{"veth", "bridge"}, dockerPrograms()
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
	if len(n.Endpoints) > 1 { // colocated: the containers reach each other by their addresses
		return d.dualStack()
	}
	return d.dualStack(
		"--publish", fmt.Sprintf("%d-%d:%[1]d-%[2]d", PublishedFirst, PublishedLast),
		"--publish", fmt.Sprintf("%d-%d:%[1]d-%[2]d/udp", PublishedFirst, PublishedLast),
		"--publish", fmt.Sprintf("%d:%[1]d", PublishedProof))
}

// dualStack starts the node's containers in a network with IPv4 and IPv6, with further
// options of `docker run`. The network's devices are in the node's namespace.
func (d dockerd) dualStack(options ...string) error {
	for _, e := range d.node.Endpoints {
		if err := d.container(e, append(options, "--ip6", e.V6.Addr().String())...); err != nil {
			return err
		}
		if err := e.Space.Reconnect(EndpointDevice, e.V6); err != nil {
			return err
		}
		for _, p := range []netip.Prefix{e.V4, e.V6} { // replaces Docker's default routes, which leave the congestion control to the host
			if err := routeAll(e.Space, gateway(p).Addr()); err != nil {
				return err
			}
		}
		vif, err := vifOf(d.node, e)
		if err != nil {
			return err
		}
		if err := steer(d.node, d.node.Space, vif, 1); err != nil {
			return err
		}
	}
	return d.startSpare()
}

// Changes implements Changer.
func (DockerBridge) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{
		suite.ChangePorts:    dockerPorts,
		suite.ChangeRoutes:   bridgeRoute,
		suite.ChangePolicies: iptablesRules(func(n *Node) []string { return dockerOf(n).env() }),
	}
}

func (DockerBridge) Detach(n *Node) error { return dockerOf(n).down() }

func (DockerBridge) Devices(n *Node) []Device {
	if len(n.Endpoints) == 0 {
		return fabricDevices(n)
	}
	return hops(n, n.foundVif, bridgeHop)
}
