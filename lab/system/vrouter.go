package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/lists"
	"windtunnel/lab/child"
	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// VRouter is the overlay of the vrouter program with one encapsulation. The lab uses
// vrouter as a user does: it runs an agent on each node, and sets the desired state
// with vrouter's commands.
type VRouter struct {
	Encap string
	// Rules is the number of policy rules of each port: 0 or 2 to 255. If it is 0,
	// ports have no policy.
	Rules int
	// Netkit: the containers' devices are netkit pairs, and not veth pairs.
	Netkit bool
	// Checksum: tunnel packets over IPv4 have an outer UDP checksum, too.
	Checksum bool
	// BigTCP: the fabric devices pass superpackets above 64 KiB, so vrouter allows them on the containers' devices.
	BigTCP bool
}

const (
	vrouterProgram = "vrouter"
	vrouterCommand = 20 * time.Second
)

func (v VRouter) Name() string {
	name := "vrouter-" + v.Encap
	if v.Rules > 0 {
		name += "-policy"
	}
	if v.Netkit {
		name += "-netkit"
	}
	if v.Checksum {
		name += "-checksum"
	}
	if v.BigTCP {
		name += "-big-tcp"
	}
	return name
}

func (v VRouter) About() About {
	what := "containers on vrouter, " + map[string]string{
		"mpls-gre": "MPLS over GRE", "mpls-udp": "MPLS over UDP", "vxlan": "VXLAN", "direct": "no tunnel", vrouterTranslated: "translation to IPv6",
	}[v.Encap]
	if v.Rules > 0 {
		what += fmt.Sprintf(", stateful policy of %d rules", v.Rules)
	}
	if v.Netkit {
		what += ", netkit devices"
	}
	if v.Checksum {
		what += ", outer UDP checksums"
	}
	if v.BigTCP {
		what += ", superpackets above 64 KiB"
	}
	about := About{
		Description: what, VMs: true,
		SetUp: 400 * time.Millisecond, // the agents start and load their programs
		// On an IPv4 underlay: outer IP 20, then GRE 4 and label 4, UDP 8 and label 4, or UDP 8,
		// VXLAN 8 and inner Ethernet 14. Direct adds nothing. Translation replaces an IPv4 header
		// (20 bytes) with an IPv6 header (40 bytes).
		Overhead: map[string]int{"mpls-gre": 20 + 8, "mpls-udp": 20 + 12, "vxlan": 20 + 30, vrouterTranslated: 40 - 20}[v.Encap],
	}
	if v.Encap == vrouterTranslated {
		about.AddedBytes = map[int]int{4: 40 - 20, 6: 0}
		about.LeastMTU = suite.LeastMTU + 40 + 30 // the nodes also offer VXLAN, on an IPv6 underlay
	}
	return about
}

func (v VRouter) Needs() ([]string, []program.Program) {
	return []string{v.device(), "bpf", "vrouter"}, nil
}

// device returns the kind of the containers' devices.
func (v VRouter) device() string {
	if v.Netkit {
		return probe.Netkit
	}
	return "veth"
}

// The parts of vrouter's files that are used here.
type (
	vrouterState struct {
		Nodes    []vrouterNode    `json:"nodes"`
		Networks []vrouterNetwork `json:"networks"`
		Ports    []vrouterPort    `json:"ports"`
		Routes   []vrouterRoute   `json:"routes,omitempty"`
		Policies []vrouterPolicy  `json:"policies,omitempty"`
	}
	vrouterNode struct {
		Name           string       `json:"name"`
		Underlay       []netip.Addr `json:"underlay"`
		Encapsulations []string     `json:"encapsulations"`
		Locator        netip.Prefix `json:"locator,omitzero"`
	}
	vrouterNetwork struct {
		Name    string         `json:"name"`
		ID      int            `json:"id"`
		Subnets []netip.Prefix `json:"subnets"`
	}
	vrouterPort struct {
		Name     string            `json:"name"`
		Network  string            `json:"network"`
		Node     string            `json:"node"`
		MAC      string            `json:"mac"`
		IPs      []netip.Addr      `json:"ips"`
		Attach   map[string]string `json:"attach"`
		Policies []string          `json:"policies,omitempty"`
	}
	vrouterRoute struct {
		Network string              `json:"network"`
		Prefix  netip.Prefix        `json:"prefix"`
		Via     []map[string]string `json:"via"`
	}
	vrouterConfig struct {
		Node     string   `json:"node"`
		Socket   string   `json:"socket"`
		StateDir string   `json:"state_dir"`
		RunDir   string   `json:"run_dir"`
		Fabric   []string `json:"fabric"`
		Device   string   `json:"workload_device,omitempty"`
		Checksum string   `json:"udp_checksum,omitempty"`

		// Only for nodes of a fleet.
		Store          string       `json:"store,omitempty"`
		StoreListen    string       `json:"store_listen,omitempty"`
		StoreInsecure  bool         `json:"store_insecure,omitempty"`
		Underlay       []netip.Addr `json:"underlay,omitempty"`
		Encapsulations []string     `json:"encapsulations,omitempty"`
	}
)

func (v VRouter) state(n *Node) vrouterState {
	s := vrouterState{Networks: []vrouterNetwork{{Name: "lab", ID: 1}}, Policies: v.policies()}
	for i, addr := range n.Underlay {
		s.Nodes = append(s.Nodes, v.node(n, i, addr))
	}
	for _, p := range n.Everywhere {
		if len(s.Networks[0].Subnets) == 0 {
			s.Networks[0].Subnets = []netip.Prefix{p.V4.Masked(), p.V6.Masked()}
		}
		s.Ports = append(s.Ports, v.port(n, p))
	}
	return s
}

// node returns node i, whose underlay address is addr.
func (v VRouter) node(n *Node, i int, addr netip.Addr) vrouterNode {
	node := vrouterNode{Name: vrouterNodeName(n, i), Underlay: []netip.Addr{addr}, Encapsulations: []string{v.Encap}}
	if v.Encap == vrouterTranslated {
		node.Underlay, node.Encapsulations, node.Locator = []netip.Addr{vrouterUnderlay6(i).Addr()}, []string{"direct", "vxlan"}, vrouterLocator(i)
	}
	return node
}

func (v VRouter) port(n *Node, p NodeEndpoint) vrouterPort {
	policies := lists.Map(v.policies(), func(p vrouterPolicy) string { return p.Name })
	return vrouterPort{
		Name: fmt.Sprintf("n%d%s", p.Node, p.Name), Network: "lab", Node: vrouterNodeName(n, p.Node),
		MAC: p.MAC.String(), IPs: []netip.Addr{p.V4.Addr(), p.V6.Addr()},
		Attach: vrouterAttachment(n, p), Policies: policies,
	}
}

// vrouterNodeName returns vrouter's name of node i, which is the name of the node's
// namespace. The names of all nodes differ only in the last letter.
func vrouterNodeName(n *Node, i int) string {
	base := n.Name[:strings.LastIndex(n.Name, "-")+1]
	return base + string(rune('a'+i))
}

// vrouterAttachment returns where a port attaches: to a namespace, or to a tap device
// that the lab made. The endpoints of all nodes are of the same kind.
func vrouterAttachment(n *Node, p NodeEndpoint) map[string]string {
	for _, e := range n.Endpoints {
		if e.Guest != nil {
			return map[string]string{"device": Endpoint{Name: p.Name}.Tap()}
		}
	}
	return map[string]string{"netns": vrouterNodeName(n, p.Node) + "-" + p.Name, "interface": EndpointDevice}
}

func vrouterSocket(n *Node) string { return filepath.Join(space.Home(n.Name), "vrouter.sock") }

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

func (v VRouter) Attach(n *Node) error {
	path, err := program.Beside(vrouterProgram)
	if err != nil {
		return err
	}
	home := space.Home(n.Name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("make the directory for vrouter's files: %w", err)
	}
	config := vrouterConfig{Node: n.Name, Socket: vrouterSocket(n), StateDir: filepath.Join(home, "state"), RunDir: home, Fabric: n.Fabric, Device: v.device()}
	if v.Checksum {
		config.Checksum = "on"
	}
	if err := writeJSON(filepath.Join(home, "node.yaml"), config); err != nil {
		return fmt.Errorf("write vrouter's configuration: %w", err)
	}
	for _, e := range n.Endpoints {
		if e.Guest == nil {
			continue
		}
		mtu := MTU(v, n.MTU)
		e.Guest.Config = GuestConfig{MTU: mtu, Addresses: []netip.Prefix{e.V4, e.V6}}
		if err := makeTap(n, e, mtu); err != nil {
			return err
		}
	}
	if v.Encap == vrouterTranslated {
		if err := addUnderlay6(n); err != nil {
			return err
		}
	}
	if v.BigTCP {
		if err := setSuperpackets(n, bigSuperpacket); err != nil {
			return err
		}
	}
	agent := daemon{name: vrouterAgent, argv: []string{path, "agent", "--config", filepath.Join(home, "node.yaml")}, ready: func() error {
		return vrouterRun(path, "--socket", vrouterSocket(n), "status")
	}}
	if err := n.start(agent); err != nil {
		return err
	}
	if err := vrouterApply(path, n, v.state(n)); err != nil {
		return err
	}
	for _, e := range n.Endpoints {
		if e.Guest != nil {
			continue
		}
		if err := bringUpPlugged(n, e); err != nil {
			return err
		}
	}
	if v.Encap == vrouterTranslated {
		return awaitTranslation(path, n)
	}
	return nil
}

// vrouterApply makes a state the desired state of the node.
func vrouterApply(program string, n *Node, s vrouterState) error {
	file := filepath.Join(space.Home(n.Name), "state.yaml")
	if err := writeJSON(file, s); err != nil {
		return fmt.Errorf("write vrouter's desired state: %w", err)
	}
	return vrouterRun(program, "--socket", vrouterSocket(n), "apply", "-f", file)
}

func vrouterRun(program string, args ...string) error {
	_, err := vrouterOutput(program, args...)
	return err
}

// vrouterOutput runs a command of vrouter and returns its output.
func vrouterOutput(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), vrouterCommand)
	defer cancel()
	cmd := child.Command(ctx, append([]string{program}, args...))
	cmd.Env = append(environment(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("vrouter %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// awaitVRouter runs a command of vrouter repeatedly until its output shows that the node is ready.
// problem describes the error if this does not happen.
func awaitVRouter(program string, n *Node, problem string, ready func(output string) bool, args ...string) error {
	for end := time.Now().Add(vrouterCommand); ; time.Sleep(50 * time.Millisecond) {
		out, err := vrouterOutput(program, append([]string{"--socket", vrouterSocket(n)}, args...)...)
		switch {
		case err != nil || ready(out):
			return err
		case time.Now().After(end):
			return fmt.Errorf("vrouter %s within %v; `vrouter %s` prints\n%s", problem, vrouterCommand, strings.Join(args, " "), out)
		}
	}
}

// bringUpPlugged configures a container's device that vrouter has attached:
// steering, and the lab's routes.
func bringUpPlugged(n *Node, e Endpoint) error {
	if err := steer(n, e.Space, EndpointDevice, 1); err != nil {
		return err
	}
	for _, p := range []netip.Prefix{e.V4, e.V6} {
		if err := e.Space.Reconnect(EndpointDevice, p); err != nil {
			return err
		}
	}
	return nil
}

func (v VRouter) Detach(n *Node) error {
	home := space.Home(n.Name)
	if _, err := os.Stat(filepath.Join(home, "node.yaml")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	path, err := program.Beside(vrouterProgram)
	if err != nil {
		return err
	}
	err = vrouterRun(path, "remove", "--config", filepath.Join(home, "node.yaml"))
	if v.Encap == vrouterTranslated {
		err = errors.Join(err, removeUnderlay6(n))
	}
	if v.BigTCP {
		err = errors.Join(err, setSuperpackets(n, plainSuperpacket))
	}
	return errors.Join(err, removeTaps(n), space.DeleteHome(n.Name))
}

// Maximum sizes of superpackets, in bytes.
const (
	bigSuperpacket   = 180_000 // vrouter's BigSuperpacket is smaller
	plainSuperpacket = 65_536  // the kernel's default
)

// setSuperpackets sets the maximum sizes of superpackets (GSO and GRO) of the fabric devices.
func setSuperpackets(n *Node, size int) error {
	for _, name := range n.Fabric {
		l, err := n.Space.Link(name)
		if err != nil {
			return err
		}
		links := n.Space.Links
		for _, set := range []func(netlink.Link, int) error{links.LinkSetGSOMaxSize, links.LinkSetGROMaxSize, links.LinkSetGSOIPv4MaxSize, links.LinkSetGROIPv4MaxSize} {
			if err := set(l, size); err != nil {
				return fmt.Errorf("set the maximum size of superpackets of device %s to %d (needs Linux 6.3): %w", name, size, err)
			}
		}
	}
	return nil
}

func (v VRouter) Devices(n *Node) []Device {
	return hops(n, n.foundVif)
}

// The parts of vrouter's policies that are used here.
type (
	vrouterPolicy struct {
		Name  string        `json:"name"`
		Rules []vrouterRule `json:"rules"`
	}
	vrouterRule struct {
		Direction string `json:"direction"`
		Action    string `json:"action"`
		Remote    string `json:"remote,omitempty"`
	}
)

// policies returns the policy of every port. Its last two rules allow all packets; the
// others deny addresses that no endpoint has (RFC 2544). So each port compares the first
// packet of a connection with all rules, or with all but one. Replies match the
// connection's flow and are not compared with rules.
func (v VRouter) policies() []vrouterPolicy {
	if v.Rules == 0 {
		return nil
	}
	directions := []string{"ingress", "egress"}
	var rules []vrouterRule
	for i := range v.Rules - len(directions) {
		rules = append(rules, vrouterRule{directions[i%2], "deny", fmt.Sprintf("198.18.%d.0/24", i)})
	}
	for _, d := range directions {
		rules = append(rules, vrouterRule{Direction: d, Action: "allow"})
	}
	return []vrouterPolicy{{"rules", rules}}
}
