package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"windtunnel/vrouter/model"
)

// tayga starts TAYGA, another stateless translator (RFC 7915), in the namespace of a node.
// addresses maps the IPv4 addresses of two workloads to their addresses in locators. far is
// the IPv4 address of the workload on the other node. own is the IPv4 address of the second
// workload; this node has no containers, so its device lo gets this address.
func (n *node) tayga(t *testing.T, addresses map[netip.Addr]netip.Addr, far, own netip.Addr) {
	t.Helper()
	path, err := exec.LookPath("tayga")
	n.bed.must(err)
	config := "tun-device nat64\nipv4-addr 192.168.255.1\nipv6-addr fd99::1\n"
	for v4, v6 := range addresses {
		config += fmt.Sprintf("map %s %s\n", v4, v6)
	}
	file := filepath.Join(n.bed.dir, "tayga.conf")
	n.bed.must(os.WriteFile(file, []byte(config), 0o600))
	for _, line := range []string{
		path + " --config " + file + " --mktun",
		"ip link set nat64 up",
		"ip address add " + own.String() + "/32 dev lo",
		"ip address add " + n.locator().Addr().Next().String() + "/128 dev lo",
		"ip route add " + far.String() + "/32 dev nat64 src " + own.String() + " mtu 1450",
		"ip route add " + n.locator().String() + " dev nat64",
		"sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv4.ip_forward=1",
	} {
		n.exec(line)
	}
	daemon := exec.Command("ip", "netns", "exec", n.space, path, "--config", file, "--nodetach", "--pidfile", file+".pid")
	n.bed.must(startLogged(daemon, filepath.Join(n.bed.dir, "tayga.log")))
	t.Cleanup(func() {
		daemon.Process.Kill()
		daemon.Wait()
	})
}

// answerTests runs the program of docs/direct.md that replies to the tests which other nodes send
// to own, the first address of the node's locator. It ends with the Go test.
func (n *node) answerTests(t *testing.T, own netip.Addr) {
	t.Helper()
	needs(t, "python3")
	docs, err := os.ReadFile("../../docs/direct.md")
	n.bed.must(err)
	_, program, _ := strings.Cut(string(docs), "```python\n")
	program, _, _ = strings.Cut(program, "```")
	const address = "fd00:0:0:17::1"
	if strings.Count(program, address) != 1 {
		t.Fatalf("docs/direct.md has no program for %s: %q", address, program)
	}
	cmd := exec.Command("ip", "netns", "exec", n.space, "python3", "-c", strings.Replace(program, address, own.String(), 1))
	n.bed.must(startLogged(cmd, filepath.Join(n.bed.dir, "answers.log")))
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// The programs translate as RFC 7915 says: TCP, UDP and ping work in both directions with a
// node that translates with TAYGA.
func TestTranslationWorksWithAnotherTranslator(t *testing.T) {
	t.Parallel()
	needs(t, "tayga")
	b := newBed(t, options{routed: true})
	t.Cleanup(b.nodes[0].down)
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
	for i, n := range b.nodes {
		b.state.Nodes[i].Locator = n.locator()
	}
	b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16")}}
	x := b.workload("x", "red", 0, "10.1.0.10")
	y := b.nodes[1].itself()
	y.port = model.Port{Name: "y", Network: "red", Node: "b", MAC: model.MAC{2, 0, 0, 0, 0, 9}, IPs: []netip.Addr{netip.MustParseAddr("10.1.0.11")}}
	b.state.Ports = append(b.state.Ports, y.port)
	b.nodes[1].tayga(t, map[netip.Addr]netip.Addr{
		x.ip(4): b.nodes[0].inLocator(291, x.ip(4)), y.ip(4): b.nodes[1].inLocator(291, y.ip(4)),
	}, x.ip(4), y.ip(4))
	b.nodes[1].answerTests(t, b.nodes[1].locator().Addr().Next())
	b.nodes[0].start()
	b.nodes[0].set(b.state)
	b.nodes[0].awaitWays("b", "translated", "vxlan")
	for _, ends := range [][2]*workload{{x, y}, {y, x}} {
		checkTransfer(ends[0], ends[1], 4, 20<<20)
		for _, n := range []int{1, 63, 64, 1400} {
			if err := datagram(ends[0], ends[1], 4, n); err != nil {
				t.Errorf("a datagram of %d bytes from %s: %v", n, ends[0].port.Name, err)
			}
		}
	}
	if out, err := x.command("ping", "-c", "3", "-i", "0.2", "-W", "10", "-M", "do", y.ip(4).String()); err != nil {
		t.Errorf("ping from x: %v: %s", err, out)
	}
	b.nodes[1].exec("ping -c 3 -i 0.2 -W 1 " + x.ip(4).String())
	time.Sleep(100 * time.Millisecond)
	if drops := b.nodes[0].drops(); drops["untranslatable"]+drops["unknown_source"]+drops["forged_source"] > 0 {
		t.Errorf("drops by reason: %v, want none of a translated packet", drops)
	}
}
