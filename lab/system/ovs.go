package system

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// OVS is Open vSwitch on each node: a learning bridge with the containers' devices
// and a tunnel to every other node. It switches in the kernel if the kernel has Open
// vSwitch's datapath, else in ovs-vswitchd.
type OVS struct{ Tunnel string } // "vxlan" or "gre"

const (
	ovsBridge = "br-int" // the containers'
	ovsKey    = "42"     // VNI, or GRE key
	ovsLeast  = "2.13"   // Ubuntu 20.04's
)

func (o OVS) Name() string { return "ovs-" + o.Tunnel }
func (o OVS) About() About {
	return About{
		Description: "containers on Open vSwitch, joined by its " + map[string]string{"vxlan": "VXLAN", "gre": "GRE"}[o.Tunnel] +
			" tunnels; switched in the kernel where it has Open vSwitch's datapath, else in ovs-vswitchd",
		SetUp: 500 * time.Millisecond, // the start of its daemons
		// On an IPv4 underlay: outer IP 20, then UDP 8 and VXLAN 8, or GRE 4 and its key 4
		// (RFC 2890), then inner Ethernet 14.
		Overhead: 20 + map[string]int{"vxlan": 16, "gre": 8}[o.Tunnel] + 14,
		OneLink:  true,
	}
}

// Needs implements System. The userspace datapath makes taps.
func (OVS) Needs() ([]string, []program.Program) {
	var ps []program.Program
	for _, name := range []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-appctl", "ovs-dpctl"} {
		ps = append(ps, program.Program{Name: name, Version: []string{name, "--version"}, Least: ovsLeast})
	}
	return []string{"veth", "tun"}, ps
}

// Attach implements System.
func (o OVS) Attach(n *Node) error {
	path, why := o.choose(n)
	n.Space.Note(ovsDatapathKey, path.String()+why)
	if err := startOVS(n); err != nil {
		return err
	}
	if path == ovsUserspace {
		if err := takeUnderlay(n); err != nil {
			return err
		}
	}
	for _, e := range n.Endpoints {
		if err := o.connect(n, e, path); err != nil {
			return err
		}
	}
	return configureOVS(n, o.wiring(n, path)...)
}

// connect gives a container a device, and connects the other end to the bridge.
func (o OVS) connect(n *Node, e Endpoint, path ovsDatapath) error {
	if err := addVif(n, e, MTU(o, n.MTU)); err != nil {
		return err
	}
	if path == ovsUserspace {
		if err := e.Space.Offloads(EndpointDevice, userspaceOffloads); err != nil {
			return err
		}
	}
	return bringUp(n, e)
}

// wiring returns the arguments with which ovs-vsctl creates the containers' bridge
// and its ports. Tunnels are protected ports: no frame passes from one tunnel to
// another. Every node has a tunnel to every other node, so broadcasts would loop
// otherwise.
func (o OVS) wiring(n *Node, path ovsDatapath) []string {
	args := []string{"add-br", ovsBridge, "--", "set", "bridge", ovsBridge, "fail_mode=standalone", "datapath_type=" + string(path)}
	for _, e := range n.Endpoints {
		args = append(args, "--", "add-port", ovsBridge, vifName(e))
	}
	for i, addr := range n.peers() {
		args = append(append(args, "--"), o.addTunnel(n, i, addr)...)
	}
	return args
}

func ovsTunnel(i int) string { return fmt.Sprintf("tunnel%d", i) }

// addTunnel returns the arguments with which ovs-vsctl adds the tunnel to node i.
func (o OVS) addTunnel(n *Node, i int, addr netip.Addr) []string {
	port := ovsTunnel(i)
	return []string{
		"add-port", ovsBridge, port,
		"--", "set", "port", port, "protected=true",
		"--", "set", "interface", port, "type=" + o.Tunnel,
		"options:remote_ip=" + addr.String(), "options:local_ip=" + n.Underlay[n.Index].String(), "options:key=" + ovsKey,
	}
}

// Detach implements System.
func (o OVS) Detach(n *Node) error {
	taken, err := readTaken(n)
	if err != nil {
		return errors.Join(err, n.stopDaemons())
	}
	errs := []error{disconnectContainers(n), n.stopDaemons(), removeKernelDatapath(n)}
	for _, tap := range []string{ovsBridge, ovsPhysical, "ovs-netdev"} { // the userspace datapath leaves them
		errs = append(errs, n.Space.Remove(tap))
	}
	if taken != nil {
		errs = append(errs, taken.giveBack(n))
	}
	return errors.Join(errs...)
}

// Changes implements Changer.
func (o OVS) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{
		suite.ChangePorts: joins(o.join, o.leave),
		suite.ChangeNodes: {
			Make: func(n *Node) error { return configureOVS(n, o.addTunnel(n, len(n.Underlay), spareUnderlay(n))...) },
			Undo: func(n *Node) error { return configureOVS(n, "del-port", ovsBridge, ovsTunnel(len(n.Underlay))) },
		},
	}
}

// join connects a container after Attach.
func (o OVS) join(n *Node, e Endpoint) error {
	path := ovsUserspace
	if o.inKernel(n) {
		path = ovsKernel
	}
	if err := o.connect(n, e, path); err != nil {
		return err
	}
	return configureOVS(n, "add-port", ovsBridge, vifName(e))
}

func (OVS) leave(n *Node, e Endpoint) error {
	return errors.Join(configureOVS(n, "del-port", ovsBridge, vifName(e)), removeVif(n, e))
}

// inKernel reports whether the attached system switches in the kernel.
func (OVS) inKernel(n *Node) bool {
	return n.Space.Settings().Others[ovsDatapathKey] == ovsKernel.String()
}

// Devices implements System. It omits the bridges' internal ports: the containers'
// frames do not pass them.
func (o OVS) Devices(n *Node) []Device {
	if o.inKernel(n) {
		return hops(n, vifName, tunnelHop(ovsKernelTunnel[o.Tunnel]))
	}
	return hops(n, vifName)
}

// configureOVS changes the node's database with ovs-vsctl and waits until
// ovs-vswitchd has applied the change. ovs-vswitchd reports failures in the
// database; the exit status of ovs-vsctl does not show them.
func configureOVS(n *Node, args ...string) error {
	if _, err := ovsCommand(n, append([]string{"ovs-vsctl", "--db=" + ovsDatabase(n), "--timeout=8"}, args...)...); err != nil {
		return fmt.Errorf("configure Open vSwitch: %w%s", err, n.lastOutput("ovs-vswitchd"))
	}
	failed, err := ovsCommand(n, "ovs-vsctl", "--db="+ovsDatabase(n), "--timeout=8", "--bare", "--columns=name,error", "find", "interface", "error!=[]")
	if err != nil {
		return fmt.Errorf("list Open vSwitch's ports: %w%s", err, n.lastOutput("ovs-vswitchd"))
	}
	if failed = strings.TrimSpace(failed); failed != "" {
		return fmt.Errorf("set up Open vSwitch's port %s%s", strings.ReplaceAll(failed, "\n", ": "), n.lastOutput("ovs-vswitchd"))
	}
	return nil
}

func ovsDatabase(n *Node) string { return "unix:" + filepath.Join(space.Home(n.Name), "db.sock") }
