package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/setup"
	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/model"
)

// bird is BIRD on a node without an agent.
type bird struct {
	*node
	socket string
	cmd    *exec.Cmd
}

// startBIRD starts BIRD with a configuration.
func startBIRD(t *testing.T, n *node, config string) *bird {
	t.Helper()
	if _, err := exec.LookPath("bird"); err != nil {
		t.Skip("BIRD is not installed; get it with: " + setup.Command("bird2"))
	}
	path := filepath.Join(n.bed.dir, "bird-"+n.name)
	n.bed.must(os.WriteFile(path+".conf", []byte(config), 0o600))
	cmd := exec.Command("nsenter", "--net=/run/netns/"+n.space, "bird", "-f", "-c", path+".conf", "-s", path+".ctl", "-P", path+".pid")
	n.bed.must(startLogged(cmd, path+".log"))
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		if t.Failed() {
			t.Logf("BIRD: %s", readable(path+".log"))
		}
	})
	return &bird{n, path + ".ctl", cmd}
}

// birdc sends a command to BIRD and returns its output.
func (b *bird) birdc(command string) (string, error) {
	out, err := exec.Command("birdc", append([]string{"-s", b.socket}, strings.Fields(command)...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("birdc %s: %w: %s", command, err, out)
	}
	return string(out), nil
}

// shows waits until the output of a command has all words.
func (b *bird) shows(command string, words ...string) {
	b.bed.t.Helper()
	hasAll(b.bed.t, command, words, func() (string, error) { return b.birdc(command) })
}

// BIRD and a node exchange VPNv4 and VPNv6 routes. The node says why it does not use a route, and uses the others. Routes
// that BIRD withdraws are gone. BIRD keeps the node's routes while its agent restarts. The test sends no packets, because
// the kernels of the tests have no MPLS.
func TestBIRDExchangesVPNRoutes(t *testing.T) {
	t.Parallel()
	b := bgpBed(t, 2, 1)
	b.configureBGP(model.MPLSoUDP, model.MPLSoGRE)
	b.state.Nodes[0].BGP.Families = []model.BGPFamily{model.VPNv4, model.VPNv6}
	router, node := b.nodes[1].v4, b.nodes[0].v4
	hop := router.Next() // BIRD announces the gateway of its static routes as next hop, with their label
	const target = "bgp_ext_community.add((rt, 64512, 1001));"
	config := fmt.Sprintf(`log stderr all;
router id %[1]s;
vpn4 table vpn4tab;
vpn6 table vpn6tab;
protocol device {}
protocol static good {
  vpn4 { table vpn4tab; };
  route %[1]s:1 10.9.0.0/24 via %[3]s mpls 300 { %[4]s };
  route %[1]s:1 10.12.0.0/24 via %[3]s mpls 302 { %[4]s bgp_ext_community.add((generic, 0x030c0000, 11)); };
}
protocol static bad {
  vpn4 { table vpn4tab; };
  route %[1]s:1 10.10.0.0/24 via %[3]s mpls 3 { %[4]s };
  route %[1]s:1 10.11.0.0/24 via %[3]s mpls 300 { %[4]s bgp_ext_community.add((generic, 0x030c0000, 9)); };
  route %[1]s:1 10.13.0.0/24 via %[3]s mpls 300/301 { %[4]s };
  route %[1]s:1 10.14.0.0/24 via %[3]s mpls 300 { bgp_ext_community.add((rt, 64512, 7)); };
  route %[1]s:1 10.1.0.10/32 via %[3]s mpls 303 { %[4]s };
  route %[1]s:1 10.1.0.0/25 via %[3]s mpls 303 { %[4]s };
}
protocol static good6 {
  vpn6 { table vpn6tab; };
  route %[1]s:1 fd00:9::/64 via %[3]s mpls 301 { %[4]s };
}
protocol bgp node {
  local %[1]s as 64512;
  neighbor %[2]s as 64512;
  multihop;
  connect retry time 1;
  graceful restart on;
  vpn4 mpls { table vpn4tab; import all; export all; };
  vpn6 mpls { table vpn6tab; import all; export all; extended next hop; };
}
`, router, node, hop, target)
	b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	d := startBIRD(t, b.nodes[1], config)
	a := b.nodes[0]
	a.uses("10.9.0.0/24", "10.12.0.0/24", "fd00:9::/64")
	want := map[string]struct {
		state, why string
		encap      model.Encapsulation
		label      uint32
	}{
		"10.9.0.0/24":  {bgp.Used, "", model.MPLSoUDP, 300},
		"10.12.0.0/24": {bgp.Used, "", model.MPLSoGRE, 302},
		"fd00:9::/64":  {bgp.Used, "", model.MPLSoUDP, 301},
		"10.10.0.0/24": {bgp.Unused, "its label 3 is not from 16 to 1048575", model.MPLSoUDP, 0},
		"10.11.0.0/24": {bgp.Unused, "its encapsulation is tunnel type 9 (nvgre), but for such routes this node offers mpls-udp, mpls-gre", "", 0},
		"10.13.0.0/24": {bgp.Unused, "it has 2 labels, but only one is supported", "", 0},
		"10.14.0.0/24": {bgp.Unused, "no network with ports on this node imports 64512:7", "", 0},
		"10.1.0.10/32": {bgp.Unused, `port "x" has the address`, model.MPLSoUDP, 303},
		"10.1.0.0/25":  {bgp.Unused, `network "red" has the subnet 10.1.0.0/16, which comes first; within it, only routes to single addresses are used`, model.MPLSoUDP, 303},
	}
	soon(t, "the node has all paths", func() (err error) { // they come in several messages
		all := a.rib()
		for _, v := range all {
			w := want[v.Destination()]
			if v.State != w.state || v.Why != w.why || v.Encapsulation != w.encap || v.Value != w.label || v.NextHop != hop || v.RD.String() != router.String()+":1" {
				err = errors.Join(err, fmt.Errorf("the path to %s is %+v, want %+v with the next hop %s", v.Destination(), v, w, hop))
			}
		}
		if len(all) != len(want) {
			err = errors.Join(err, fmt.Errorf("the node has %d paths, want %d", len(all), len(want)))
		}
		return err
	})
	d.shows("show route table vpn4tab all", node.String()+":1 10.1.0.10/32", "(rt, 64512, 1001)", "BGP.mpls_label_stack: 18") // label 16 + 2·id
	d.shows("show route table vpn6tab all", node.String()+":1 fd00:1::10/128", "BGP.mpls_label_stack: 18")
	if rt := a.run("rt", "list"); !strings.Contains(rt, "10.9.0.0/24") || !strings.Contains(rt, "302") {
		t.Errorf("the node's table has no route with label 302:\n%s", rt)
	}
	a.run("network", "create", "green", "--subnet", "10.3.0.0/24", "--import", "64512:7")
	b.connected("z", "green", 0)
	a.uses("10.14.0.0/24") // received before a network imports it
	_, err := d.birdc("disable good")
	b.must(err)
	soon(t, "the node has only the routes that BIRD still announces", func() error {
		if rt := a.run("rt", "list"); strings.Contains(rt, "10.9.0.0/24") || strings.Contains(rt, "10.12.0.0/24") || !strings.Contains(rt, "fd00:9::/64") {
			return fmt.Errorf("the routes are\n%s", rt)
		}
		return nil
	})
	a.kill(syscall.SIGTERM)
	d.shows("show protocols node", "Connect")
	d.shows("show route table vpn4tab", node.String()+":1 10.1.0.10/32")
	a.start()
	_, err = d.birdc("enable good")
	b.must(err)
	a.uses("10.9.0.0/24", "10.12.0.0/24", "fd00:9::/64")
}
