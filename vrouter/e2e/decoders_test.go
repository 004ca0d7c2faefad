package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/vrouter/model"
)

// capture is tcpdump on a device.
type capture struct {
	t             *testing.T
	cmd           *exec.Cmd
	space, device string
	file          string
	said          bytes.Buffer
}

// needs skips the test where a program is not installed.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed; get it with: %s", p, setup.Command(p))
		}
	}
}

func startCapture(t *testing.T, space, device string) *capture {
	t.Helper()
	needs(t, "tcpdump")
	c := &capture{t: t, space: space, device: device, file: filepath.Join(t.TempDir(), device+".pcap")}
	c.cmd = exec.Command("ip", "netns", "exec", space, "tcpdump", "-U", "--immediate-mode", "-B", "65536", "-Z", "root", "-i", device, "-w", c.file)
	c.cmd.Stderr = &c.said
	must.Succeed(t, started(c.cmd))
	t.Cleanup(func() { c.cmd.Process.Kill() })
	must.EventuallyTrue(t, "tcpdump writes its file", func() bool { return strings.Contains(readable(c.file), "\xd4\xc3\xb2\xa1") })
	return c
}

// stop ends the capture and returns its file.
func (c *capture) stop() string {
	c.t.Helper()
	const last = "the last frame of the capture" // tcpdump loses what is in the kernel's buffer when it ends
	ns := must.Get(netns.GetFromName(c.space))(c.t)
	defer ns.Close()
	frame := slices.Concat([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}, []byte(last), make([]byte, 60)) // for local experiments (IEEE 802)
	must.Succeed(c.t, in(ns, func() error { return rawFrames{frames: [][]byte{frame}}.send(c.device) }))
	must.EventuallyTrue(c.t, "tcpdump writes the last frame", func() bool { return strings.Contains(readable(c.file), last) })
	c.cmd.Process.Signal(syscall.SIGINT)
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("tcpdump: %v: %s", err, c.said.String())
	}
	if !strings.Contains(c.said.String(), "0 packets dropped by kernel") {
		c.t.Fatalf("tcpdump lost packets: %s", c.said.String())
	}
	return c.file
}

// decoded reads fields of every frame as tshark sees them.
func decoded(t *testing.T, file string, fields ...string) [][]string {
	t.Helper()
	needs(t, "tshark")
	args := []string{"-r", file, "-n", "-T", "fields", "-E", "separator=;", "-E", "occurrence=a",
		"-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-d", "mpls.label==19,pwethnocw", // network 1's label for Ethernet payload
		"--disable-protocol", "manolito"} // it takes a random payload for its own
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	var frames [][]string
	for line := range strings.Lines(string(out)) {
		frames = append(frames, strings.Split(strings.TrimRight(line, "\n"), ";"))
	}
	return frames
}

// Another's decoder understands every frame of each encapsulation down to the
// workloads' payload, and finds every checksum of it right.
func TestOuterPacketsAreWellFormed(t *testing.T) {
	must.Long(t)
	t.Parallel()
	needs(t, "tshark")
	b := sharedBed(t, options{offload: "none"})
	checkOuterPackets(t, b, encaps)
}

// With udp_checksum: on the kernel cuts superpackets on the node, and each packet has a checksum.
func TestOuterPacketsHaveAChecksumIfItIsOn(t *testing.T) {
	must.Long(t)
	t.Parallel()
	needs(t, "tshark")
	b := sharedBed(t, options{offload: "none", config: map[string]any{"udp_checksum": "on"}})
	frames := checkOuterPackets(t, b, []model.Encapsulation{model.MPLSoUDP, model.VXLAN})
	for i, f := range frames {
		if outer, _, _ := strings.Cut(f[len(f)-1], ","); outer == "0x0000" {
			t.Errorf("frame %d of %d has no outer checksum: %q", i+1, len(frames), f)
		}
	}
}

// checkOuterPackets returns the frames with tunnel packets. Their last field has the UDP checksums.
func checkOuterPackets(t *testing.T, b *bed, encaps []model.Encapsulation) (all [][]string) {
	t.Helper()
	for _, encap := range encaps {
		for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
			for _, v6 := range []bool{false, true} {
				b.run(fmt.Sprintf("%s/%s/underlay-v6=%v", encap, forwarding, v6), func(t *testing.T) {
					x, y := pair(b, forwarding, v6, encap)
					c := startCapture(t, b.name+"-sw", "port0")
					for _, version := range []int{4, 6} {
						checkTransfer(x, y, version, 200<<10)
						checkTransfer(y, x, version, 200<<10)
						must.Succeed(t, datagram(x, y, version, 4000))
						if out, err := x.command("ping", "-c", "2", "-i", "0.2", y.ip(version).String()); err != nil {
							t.Errorf("ping over IPv%d: %v: %s", version, err, out)
						}
					}
					fields := append(append([]string{"frame.protocols", "_ws.malformed"}, checksumFields...), "udp.checksum")
					all = append(all, checkFrames(t, decoded(t, c.stop(), fields...), encap, forwarding)...)
				})
			}
		}
	}
	return all
}

// checkFrames returns the frames with tunnel packets.
func checkFrames(t *testing.T, frames [][]string, encap model.Encapsulation, forwarding model.Forwarding) (tunnels [][]string) {
	t.Helper()
	shim := map[model.Encapsulation]string{model.MPLSoGRE: ":gre:mpls:", model.MPLSoUDP: ":udp:mpls:", model.VXLAN: ":udp:vxlan:"}[encap]
	kinds := map[string]int{}
	right := 0
	for i, f := range frames {
		outer, inner, is := strings.Cut(f[0], shim)
		if !is {
			continue // the underlay's own neighbour discovery
		}
		tunnels = append(tunnels, f)
		if f[1] != "" {
			t.Errorf("frame %d is malformed: %q", i+1, f)
		}
		sums := checksumsOf(f[2:])
		if sums.wrong > 0 {
			t.Errorf("frame %d has a wrong checksum: %q", i+1, f)
		}
		right += sums.right
		if (forwarding == model.L2 || encap == model.VXLAN) != strings.Contains(inner, "eth:ethertype:") {
			t.Errorf("frame %d, %s, carries %s in %s", i+1, forwarding, inner, outer)
		}
		inner = strings.TrimPrefix(inner, "pwethnocw:")
		kinds[strings.TrimPrefix(inner, "eth:ethertype:")]++
	}
	for kind, least := range map[string]int{"ip:tcp": 20, "ipv6:tcp": 20, "ip:icmp:data": 4, "ipv6:icmpv6:data": 4} {
		if kinds[kind] < least {
			t.Errorf("%d frames of %s, want %d at least; there are %v", kinds[kind], kind, least, kinds)
		}
	}
	if right < 200 {
		t.Errorf("only %d checksums were found right", right)
	}
	if t.Failed() {
		t.Logf("kinds: %v", kinds)
	}
	return tunnels
}

// Where no NIC fills checksums in, the node does: whoever looks on the
// workload's device sees right ones.
func TestChecksumsAreRightAtTheReceiver(t *testing.T) {
	must.Long(t)
	t.Parallel()
	needs(t, "tshark")
	b := sharedBed(t, options{offload: "none"})
	for _, encap := range encaps {
		b.run(string(encap), func(t *testing.T) {
			x, y := pair(b, model.L3, false, encap)
			c := startCapture(t, y.port.Attach.Netns, "eth0")
			for _, version := range []int{4, 6} {
				for _, n := range []int{1, 300, 1200, 3000} {
					must.Succeed(t, datagram(x, y, version, n))
				}
				checkTransfer(x, y, version, 500) // one segment, which GRO leaves alone
			}
			checked := 0
			for i, f := range decoded(t, c.stop(), append([]string{"eth.dst", "frame.protocols", "tcp.len"}, checksumFields...)...) {
				if f[0] != y.port.MAC.String() {
					continue // what y sends, its own NIC would complete
				}
				sums := checksumsOf(f[3:])
				if sums.wrong > 0 {
					t.Errorf("frame %d has a wrong checksum: %q", i+1, f)
				}
				checked += sums.right
			}
			if checked < 20 {
				t.Errorf("%d checksums were checked", checked)
			}
		})
	}
}
