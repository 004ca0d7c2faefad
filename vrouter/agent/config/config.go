// Package config is the configuration of a node's agent.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Config is the configuration of a node's agent.
type Config struct {
	Node           string                `yaml:"node"`            // the node's name in the desired state
	Socket         string                `yaml:"socket"`          // of the API; default run_dir/NODE.sock
	StateDir       string                `yaml:"state_dir"`       // directory of the agent's files; default /var/lib/vrouter/NODE
	RunDir         string                `yaml:"run_dir"`         // lock, socket and pins; default /run/vrouter
	Netns          string                `yaml:"netns"`           // name or path of the node's network namespace; default: the agent's
	Fabric         []string              `yaml:"fabric"`          // underlay devices; default: the devices with this node's underlay addresses
	State          string                `yaml:"state"`           // state file to apply to an empty store
	Store          string                `yaml:"store"`           // address of the store: file (default), embedded, etcd://HOST:PORT,HOST:PORT
	StoreTLS       store.TLS             `yaml:"store_tls"`       // TLS files of an etcd client, or of an embedded store with store_listen
	NewStore       bool                  `yaml:"-"`               // accept an empty store although the node had ports; set by a flag, not by the file
	StoreListen    string                `yaml:"store_listen"`    // host:port of an embedded store for other nodes; default: none
	StoreInsecure  bool                  `yaml:"store_insecure"`  // the embedded store serves without TLS
	Lease          time.Duration         `yaml:"lease"`           // time after which a silent node counts as gone; default 90s
	Liveness       time.Duration         `yaml:"liveness"`        // interval of the tests whether other nodes answer, such as 300ms; default: no tests of nodes of ECMP routes, and 1s for nodes with several links
	Underlay       []netip.Addr          `yaml:"underlay"`        // addresses to register in a shared store; default: those of the fabric devices
	Encapsulations []model.Encapsulation `yaml:"encapsulations"`  // encapsulations to register, preferred first
	Locator        Locator               `yaml:"locator"`         // IPv6 /64 or /80 prefix to register, which the underlay routes to this node, or auto; default: none
	Limits         Limits                `yaml:"limits"`          // sizes of tables
	XDP            Switch                `yaml:"xdp"`             // auto (default), off
	TCX            Switch                `yaml:"tcx"`             // auto (default), off: classic tc filters
	WorkloadDevice WorkloadDevice        `yaml:"workload_device"` // devices that the agent creates for ports: veth (default), netkit, auto
	VXLANGRO       Switch                `yaml:"vxlan_gro"`       // auto (default): the kernel merges VXLAN packets; off: XDP decapsulates them
	BigTCP         Switch                `yaml:"big_tcp"`         // auto (default): superpackets above 64 KiB where all devices can pass them; off: none
	UDPChecksum    Switch                `yaml:"udp_checksum"`    // outer UDP checksums: auto (default): over IPv6, except in superpackets to other nodes; on: in all packets; off: in none
	Resolvers      []netip.Addr          `yaml:"resolvers"`       // answer the DNS queries of workloads for names outside their networks; default: those of /etc/resolv.conf
	Metrics        string                `yaml:"metrics"`         // host:port to serve Prometheus metrics on; default: on the socket only
	RepairInterval time.Duration         `yaml:"repair_interval"` // interval of checks for drift; default 5s
	Handover       time.Duration         `yaml:"handover"`        // time for which nodes still send with the former encapsulation after a change; the same on all nodes; default 5s
	FlowIdle       time.Duration         `yaml:"flow_idle"`       // timeout of idle flows; default 3m
	FlowUnanswered time.Duration         `yaml:"flow_unanswered"` // idle timeout of unanswered flows other than TCP; default 30s
	FlowClosed     time.Duration         `yaml:"flow_closed"`     // timeout of closed or half-open TCP flows; default 10s
}

// Limits are the sizes of a node's tables in entries; zero is the default.
type Limits struct {
	datapath.Limits `yaml:",inline"`
	// LinkLabels is the maximum number of networks whose labels (MAC addresses of direct) the
	// fabric devices receive.
	LinkLabels uint32 `yaml:"link_labels"`
}

// Switch enables or disables the use of a kernel feature.
type Switch string

// Auto: use the feature if the kernel has it. On: always use it. Off: never use it.
const (
	Auto Switch = "auto"
	On   Switch = "on"
	Off  Switch = "off"
)

// WorkloadDevice is the kind of the device pairs that connect workloads, as the kernel names it.
type WorkloadDevice string

// Kinds of device pairs. AutoDevice: netkit if the kernel has it, else veth.
const (
	AutoDevice WorkloadDevice = "auto"
	Veth       WorkloadDevice = "veth"
	Netkit     WorkloadDevice = "netkit"
)

// Defaults and limits of Config.
const (
	defaultRunDir         = "/run/vrouter"
	defaultStateDir       = "/var/lib/vrouter"
	defaultRepair         = 5 * time.Second
	defaultFlowIdle       = 3 * time.Minute
	defaultFlowUnanswered = 30 * time.Second
	defaultFlowClosed     = 10 * time.Second
	defaultLinkLabels     = 100 // below the 128 unicast filters of Intel's 82599
	minRepair             = 100 * time.Millisecond
	minHandover           = time.Second
	maxHandover           = 10 * time.Minute
	minLease              = 2 * time.Second
	maxLease              = 24 * time.Hour
	minLiveness           = 50 * time.Millisecond
	maxLiveness           = 10 * time.Second
	minFlowTime           = time.Second
	maxFlowTime           = 7 * 24 * time.Hour
	maxConfigBytes        = 1 << 20
	maxEntries            = 1 << 26 // of a table
	maxSocketPath         = 107     // sizeof(sockaddr_un.sun_path) − 1, unix(7)
)

// Load reads a node's configuration. Paths in it are relative to the file's
// directory.
func Load(path string) (Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the node's configuration: %w", err)
	}
	if info.Size() > maxConfigBytes {
		return Config{}, fmt.Errorf("read the node's configuration %s: the file has %d bytes, more than the maximum of %d; check that it is the right file", path, info.Size(), maxConfigBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the node's configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Config{}, fmt.Errorf("read the node's configuration %s: %w", path, err)
	}
	return parseConfig(path, text, dir)
}

// parseConfig decodes the YAML of a file strictly and fills in the defaults.
func parseConfig(name string, text []byte, dir string) (c Config, err error) {
	defer func() {
		if p := recover(); p != nil { // the YAML library panics on some broken files
			c, err = Config{}, fmt.Errorf("%s: parse the YAML: %v; check indentation, quotes and brackets", name, p)
		}
	}()
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		return Config{}, model.YAMLError(name, text, err)
	}
	var raw struct {
		Node scalar `yaml:"node"`
	}
	if err := yaml.Unmarshal(text, &raw); err == nil && raw.Node != "" {
		c.Node = string(raw.Node)
	}
	paths := []*string{&c.State, &c.Socket, &c.StateDir, &c.RunDir, &c.StoreTLS.CA, &c.StoreTLS.Cert, &c.StoreTLS.Key}
	if strings.ContainsRune(c.Netns, '/') { // else it is a name
		paths = append(paths, &c.Netns)
	}
	for _, p := range paths {
		*p = absolute(*p, dir)
	}
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// scalar is the text of a YAML number, such as 007, which the decoder reads as 7. It is empty for other YAML values.
type scalar string

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *scalar) UnmarshalYAML(n ast.Node) error {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		*s = scalar(n.GetToken().Value)
	}
	return nil
}

func absolute(path, dir string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// WithDefaults fills in the defaults.
func (c Config) WithDefaults() Config {
	c.RunDir = cmp.Or(c.RunDir, defaultRunDir)
	c.Socket = cmp.Or(c.Socket, filepath.Join(c.RunDir, c.Node+".sock"))
	c.StateDir = cmp.Or(c.StateDir, filepath.Join(defaultStateDir, c.Node))
	c.XDP, c.TCX, c.VXLANGRO = cmp.Or(c.XDP, Auto), cmp.Or(c.TCX, Auto), cmp.Or(c.VXLANGRO, Auto)
	c.UDPChecksum, c.BigTCP = cmp.Or(c.UDPChecksum, Auto), cmp.Or(c.BigTCP, Auto)
	c.WorkloadDevice = cmp.Or(c.WorkloadDevice, Veth)
	c.Limits.LinkLabels = cmp.Or(c.Limits.LinkLabels, defaultLinkLabels)
	c.RepairInterval = cmp.Or(c.RepairInterval, defaultRepair)
	c.Lease = cmp.Or(c.Lease, fleet.DefaultLease)
	c.Handover = cmp.Or(c.Handover, fib.HoldTime)
	c.FlowIdle = cmp.Or(c.FlowIdle, defaultFlowIdle)
	c.FlowUnanswered = cmp.Or(c.FlowUnanswered, defaultFlowUnanswered)
	c.FlowClosed = cmp.Or(c.FlowClosed, defaultFlowClosed)
	return c
}

// Validate returns an error with all problems of the configuration.
func (c Config) Validate() error {
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	switch {
	case c.Node == "":
		fail("node: is missing; write the node's name in the desired state, such as \"node: a\"")
	case !model.IsName(c.Node):
		fail("node: %q is not a valid name: use at most %d letters, digits, dots, dashes and underscores, a letter or digit first", c.Node, model.MaxName)
	default:
		self := model.Node{Name: c.Node, Underlay: c.Underlay, Encapsulations: c.Encapsulations, Locator: c.Locator.Prefix}
		if len(self.Underlay) == 0 { // default: the addresses of the fabric devices
			self.Underlay = []netip.Addr{netip.MustParseAddr("192.0.2.1")}
		}
		if err := (model.State{Nodes: []model.Node{self}}).Validate(); err != nil {
			fail("%w", err)
		}
	}
	if len(c.Socket) > maxSocketPath {
		fail("socket: %s has %d characters, a unix socket's path at most %d; choose a shorter one, or a shorter run_dir", c.Socket, len(c.Socket), maxSocketPath)
	}
	for _, s := range []struct {
		name  string
		value Switch
	}{{"xdp", c.XDP}, {"tcx", c.TCX}, {"vxlan_gro", c.VXLANGRO}, {"big_tcp", c.BigTCP}} {
		if s.value != Auto && s.value != Off {
			fail("%s: %q is neither auto nor off", s.name, s.value)
		}
	}
	if c.UDPChecksum != Auto && c.UDPChecksum != On && c.UDPChecksum != Off {
		fail("udp_checksum: %q is not auto, on or off", c.UDPChecksum)
	}
	if c.WorkloadDevice != AutoDevice && c.WorkloadDevice != Veth && c.WorkloadDevice != Netkit {
		fail("workload_device: %q is not auto, veth or netkit", c.WorkloadDevice)
	}
	if address, err := store.ParseAddress(c.Store); err != nil {
		fail("%w", err)
	} else if c.Locator.Auto && address.Kind == store.KindFile {
		fail("locator: auto needs a store that the nodes share; write the locator of each node, or settings.locators with 32 bits, to the desired state, or set store")
	}
	for i, d := range c.Fabric {
		if err := model.CheckDevice(d); err != nil {
			fail("fabric[%d]: %w", i, err)
		}
	}
	l := c.Limits
	for _, s := range []struct {
		name  string
		value uint32
	}{{"routes", l.Routes}, {"prefixes", l.Prefixes}, {"bridge", l.Bridge}, {"nexthops", l.Nexthops}, {"vifs", l.Vifs}, {"labels", l.Labels}, {"remotes", l.Remotes}, {"flows", l.Flows}, {"link_labels", l.LinkLabels}} {
		if s.value > maxEntries {
			fail("limits.%s: %d is more than %d; write a lower number", s.name, s.value, maxEntries)
		}
	}
	if c.RepairInterval < minRepair {
		fail("repair_interval: %v is less than %v; write a time with its unit, such as 5s", c.RepairInterval, minRepair)
	}
	for _, s := range []struct {
		name               string
		value, least, most time.Duration
		example            string
	}{
		{"lease", c.Lease, minLease, maxLease, "90s"},
		{"liveness", cmp.Or(c.Liveness, minLiveness), minLiveness, maxLiveness, "300ms"}, // 0: off
		{"handover", c.Handover, minHandover, maxHandover, "5s"},
		{"flow_idle", c.FlowIdle, minFlowTime, maxFlowTime, "30s"},
		{"flow_unanswered", c.FlowUnanswered, minFlowTime, maxFlowTime, "30s"},
		{"flow_closed", c.FlowClosed, minFlowTime, maxFlowTime, "30s"},
	} {
		if s.value < s.least || s.value > s.most {
			fail("%s: %v is not within %v … %v; write a time with its unit, such as %s", s.name, s.value, s.least, s.most, s.example)
		}
	}
	if c.Metrics != "" {
		if err := listenable(c.Metrics); err != nil {
			fail("metrics: %w", err)
		}
	}
	return errors.Join(wrong...)
}

// listenable checks an IP:port to listen on. The IP address is required: without one
// the agent would listen on all addresses.
func listenable(at string) error {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return fmt.Errorf("%q is not host:port, such as 127.0.0.1:9464: %w", at, err)
	}
	if host == "localhost" {
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Errorf("%q has no IP address; write one such as 127.0.0.1:9464, or 0.0.0.0 for all", at)
	}
	return nil
}

// LockPath is the file that the node's agent locks.
func (c Config) LockPath() string { return filepath.Join(c.RunDir, c.Node+".lock") }

// NodeDir is the directory of the node's pins.
func (c Config) NodeDir() string { return filepath.Join(c.RunDir, c.Node) }

// PinsDir is the mount point of the node's bpf filesystem.
func (c Config) PinsDir() string { return filepath.Join(c.NodeDir(), "bpf") }

// Locator is the locator with which the node adds itself to a shared store: a prefix, or with
// Auto one from the pool settings.locators of the fleet. Zero: none.
type Locator struct {
	Prefix netip.Prefix
	Auto   bool
}

// UnmarshalText parses a prefix or the word auto.
func (l *Locator) UnmarshalText(text []byte) error {
	if string(text) == string(Auto) {
		*l = Locator{Auto: true}
		return nil
	}
	return l.Prefix.UnmarshalText(text)
}
