package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/datapath"
)

var samePrefix = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestConfigFillsInDefaults(t *testing.T) {
	got := must.Get(parseConfig("n.yaml", []byte("node: a\n"), "/etc/vrouter"))(t)
	want := Config{
		Node: "a", Socket: "/run/vrouter/a.sock", StateDir: "/var/lib/vrouter/a", RunDir: "/run/vrouter",
		XDP: Auto, TCX: Auto, WorkloadDevice: Veth, VXLANGRO: Auto, BigTCP: Auto, UDPChecksum: Auto, RepairInterval: 5 * time.Second, Lease: 90 * time.Second, Handover: 5 * time.Second, FlowIdle: 3 * time.Minute, FlowUnanswered: 30 * time.Second, FlowClosed: 10 * time.Second,
		Limits: Limits{LinkLabels: 100},
	}
	must.Equal(t, want, got, samePrefix)
}

func TestConfigReadsEveryFieldAndPathsStartAtTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node.yaml")
	text := `node: b.1
socket: s/api.sock
state_dir: /srv/state
run_dir: run
netns: node-b
fabric: [eth1, eth2]
locator: fd00:0:0:17::/64
state: fleet.yaml
limits: {routes: 10, prefixes: 11, bridge: 12, nexthops: 13, vifs: 14, labels: 15, remotes: 16, flows: 17, link_labels: 18}
xdp: "off"
udp_checksum: on
tcx: "off"
big_tcp: "off"
workload_device: netkit
metrics: 127.0.0.1:9464
liveness: 300ms
repair_interval: 250ms
handover: 8s
flow_idle: 30s
flow_unanswered: 3s
flow_closed: 2s
`
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	got := must.Get(Load(path))(t)
	want := Config{
		Node: "b.1", Socket: filepath.Join(dir, "s/api.sock"), StateDir: "/srv/state", RunDir: filepath.Join(dir, "run"), Netns: "node-b",
		Fabric: []string{"eth1", "eth2"}, Locator: Locator{Prefix: netip.MustParsePrefix("fd00:0:0:17::/64")}, State: filepath.Join(dir, "fleet.yaml"), Limits: Limits{datapath.Limits{Routes: 10, Prefixes: 11, Bridge: 12, Nexthops: 13, Vifs: 14, Labels: 15, Remotes: 16, Flows: 17}, 18},
		XDP: Off, TCX: Off, WorkloadDevice: Netkit, VXLANGRO: Auto, BigTCP: Off, UDPChecksum: On, Metrics: "127.0.0.1:9464", Liveness: 300 * time.Millisecond, RepairInterval: 250 * time.Millisecond, Lease: 90 * time.Second, Handover: 8 * time.Second, FlowIdle: 30 * time.Second, FlowUnanswered: 3 * time.Second, FlowClosed: 2 * time.Second,
	}
	must.Equal(t, want, got, samePrefix)
}

func TestAnInvalidConfigIsRefusedWithTheFieldAndTheRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                "node: is missing",
		"node: a/b":                                       `node: "a/b" is not a valid name`,
		"node: .a":                                        `node: ".a" is not a valid name`,
		"node: a\nnodes: []":                              `unknown field "nodes"`,
		"node: a\nudp_checksum: yes":                      `udp_checksum: "yes" is not auto, on or off`,
		"node: a\nxdp: yes":                               `xdp: "yes" is neither auto nor off`,
		"node: a\nbig_tcp: on":                            `big_tcp: "on" is neither auto nor off`,
		"node: a\ntcx: native":                            `tcx: "native" is neither auto nor off`,
		"node: a\nworkload_device: tap":                   `workload_device: "tap" is not auto, veth or netkit`,
		"node: a\nfabric: [\"\"]":                         `fabric[0]: "" is not a device name: it is empty`,
		"node: a\nfabric: [\"eth%d\"]":                    `fabric[0]: "eth%d" is not a device name: the kernel refuses the byte '%'`,
		"node: a\nfabric: [a-name-too-long1]":             "fabric[0]",
		"node: a\nliveness: 1ms":                          "liveness: 1ms is not within 50ms … 10s",
		"node: a\nrepair_interval: 1ms":                   "repair_interval: 1ms is less than 100ms",
		"node: a\nhandover: 10ms":                         "handover: 10ms is not within",
		"node: a\nflow_idle: 10ms":                        "flow_idle: 10ms is not within",
		"node: a\nflow_closed: 200h":                      "flow_closed: 200h0m0s is not within",
		"node: a\nflow_unanswered: 5ms":                   "flow_unanswered: 5ms is not within",
		"node: a\nmetrics: \":9464\"":                     `metrics: ":9464" has no IP address`,
		"node: a\nmetrics: there":                         `metrics: "there" is not host:port`,
		"node: a\nlimits: {routes: -1}":                   "n.yaml:2:18: routes: -1 is too small; the smallest number is 0",
		"node: a\nlimits: {flows: 99999999}":              "n.yaml: limits.flows: 99999999 is more than 67108864",
		"node: a\nresolvers: [localhost]":                 `n.yaml:2:13: resolvers: "localhost" is not an IP address`,
		"node: a\nrepair_interval: 5":                     `n.yaml:2:18: repair_interval: a time with its unit belongs here, such as 5s, not "5"`,
		"node: a\nlease: 5 s":                             `n.yaml:2:8: lease: "5 s" is not a time; write one with its unit, such as 5s`,
		"node: a\nencapsulations: [gre]":                  `n.yaml: node "a": encapsulations: "gre" is not known; write direct, mpls-udp, mpls-gre or vxlan`,
		"node: a\nencapsulations: [vxlan, direct, vxlan]": `n.yaml: node "a": encapsulations: vxlan is listed twice; remove one`,
		"node: a\nunderlay: [127.0.0.1]":                  `n.yaml: node "a": underlay: 127.0.0.1 cannot be a node's address`,
		"node: a\nlocator: fd00::/48":                     `n.yaml: node "a": locator: fd00::/48`,
		"node: a\nnode: b":                                `n.yaml:2:1: "node" is already defined in line 1; keep one`,
		"node: [":                                         "",
	} {
		_, err := parseConfig("n.yaml", []byte(text), "/")
		must.Fail(t, err, want)
	}
	long := "node: a\nrun_dir: /" + strings.Repeat("r", 120)
	_, err := parseConfig("n.yaml", []byte(long), "/")
	must.Fail(t, err, "a unix socket's path at most 107")
}

func TestTheErrorOfAConfigListsEveryMistake(t *testing.T) {
	_, err := parseConfig("n.yaml", []byte("xdp: on\nflow_idle: 1ms\n"), "/")
	for _, want := range []string{"node:", "xdp:", "flow_idle:"} {
		must.Fail(t, err, want)
	}
}

// A node can get its locator from a pool only if the fleet has a shared store.
func TestALocatorFromThePoolNeedsASharedStore(t *testing.T) {
	if c, err := parseConfig("n.yaml", []byte("node: a\nlocator: auto\nstore: etcd://127.0.0.1:2379\n"), "/"); err != nil || c.Locator != (Locator{Auto: true}) {
		t.Errorf("auto with etcd is parsed as %+v, %v", c.Locator, err)
	}
	for text, want := range map[string]string{
		"node: a\nlocator: auto\n": "locator: auto needs a store that the nodes share; write the locator of each node, or settings.locators",
		"node: a\nlocator: any\n":  "any",
	} {
		_, err := parseConfig("n.yaml", []byte(text), "/")
		must.Fail(t, err, want)
	}
}

// A node's name is the text in the file, also if it looks like a number.
func TestANodesNameIsItsText(t *testing.T) {
	for _, name := range []string{"a", "7", "007", "010", "0x1f", "0b1", "1e3", "1.10", "123.40", "1-2", "no", "2026-01-01"} {
		for _, text := range []string{"node: " + name + " # this one\n", "netns: x\nnode: \"" + name + "\"\n"} {
			if c, err := parseConfig("n.yaml", []byte(text), "/"); err != nil || c.Node != name {
				t.Errorf("parse %q: the node's name is %q and the error is %v, want the name %q", text, c.Node, err, name)
			}
		}
	}
}

func TestConfigThatIsFarTooLargeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	must.Succeed(t, os.WriteFile(path, make([]byte, maxConfigBytes+1), 0o600))
	_, err := Load(path)
	must.Fail(t, err, "check that it is the right file")
}

func FuzzConfig(f *testing.F) {
	for _, s := range []string{"node: a", "node: a\nlimits: {flows: 9}\nfabric: [eth0]", "{", "node: &x [*x]", "node: a\nrepair_interval: 1e9", "? - :"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig("n.yaml", text, "/d")
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("what was accepted is not valid: %v", err)
		}
		if !filepath.IsAbs(c.Socket) || !filepath.IsAbs(c.StateDir) || !filepath.IsAbs(c.RunDir) {
			t.Errorf("relative paths are left: %+v", c)
		}
		must.Equal(t, "", cmp.Diff(c, c.WithDefaults(), samePrefix))
	})
}

func TestRelativePathsStartAtTheFilesDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node.yaml")
	text := "node: a\nnetns: ns/a\nstore: etcd://192.0.2.1:2379\nstore_tls: {ca: ca.pem, cert: tls/a.pem, key: /etc/a.key}\n"
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	c := must.Get(Load(path))(t)
	got := []string{c.Netns, c.StoreTLS.CA, c.StoreTLS.Cert, c.StoreTLS.Key}
	want := []string{filepath.Join(dir, "ns/a"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "tls/a.pem"), "/etc/a.key"}
	must.Equal(t, want, got)
}
