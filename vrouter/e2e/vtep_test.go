package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/vrouter/model"
)

// seen is a packet as a decoder that is not ours read it.
type seen struct {
	ToS           int    `json:"tos"`
	TTL           int    `json:"ttl"`
	DF            bool   `json:"df"`
	GRE           []int  `json:"gre"` // checksum, key, sequence number present; version, protocol
	Source        int    `json:"sport"`
	Destination   int    `json:"dport"`
	Checksum      int    `json:"checksum"`
	RightChecksum int    `json:"right_checksum"` // UDP over IPv6 requires a checksum
	Label         int    `json:"label"`
	EXP           int    `json:"exp"`
	Bottom        int    `json:"bottom"`
	LabelTTL      int    `json:"label_ttl"`
	InnerDMAC     string `json:"inner_dmac"`
	InnerSource   string `json:"inner_src"`
	InnerTarget   string `json:"inner_dst"`
	InnerToS      int    `json:"inner_tos"`
	InnerTTL      int    `json:"inner_ttl"`
	InnerProtocol int    `json:"inner_protocol"`
}

// scapy returns a Python that has Scapy.
func scapy(t *testing.T) string {
	t.Helper()
	if pythonWithScapy() == "" {
		t.Skip("scapy is not installed; get it with: " + setup.Command("scapy"))
	}
	return pythonWithScapy()
}

// pythonWithScapy looks once: each import takes half a second of CPU time.
var pythonWithScapy = sync.OnceValue(func() string {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import scapy.contrib.mpls").Run() == nil {
			return python
		}
	}
	return ""
})

// vtep runs the Scapy endpoint on a node that has no agent. The function
// returned ends it and gives what it saw.
func vtep(t *testing.T, n *node, encap model.Encapsulation, label uint32, v6 bool) func() []seen {
	t.Helper()
	a := n.bed.nodes[0]
	local, remote := n.v4, a.v4
	if v6 {
		local, remote = n.v6, a.v6
	}
	return scapyPeer[seen](t, n, "testdata/vtep.py", "fab", string(encap), fmt.Sprint(label), local.String(), remote.String(), "02:fa:00:00:00:01")
}

// scapyPeer runs a script of Scapy on a node without an agent. The returned function ends it and
// returns what it read.
func scapyPeer[T any](t *testing.T, n *node, script ...string) func() []T {
	t.Helper()
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.space, scapy(t)}, script...)...)
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	cmd.Stderr = os.Stderr
	must.Succeed(t, started(cmd))
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("%s says %q", script[0], lines.Text())
	}
	return func() (all []T) {
		cmd.Process.Signal(os.Interrupt)
		for lines.Scan() {
			var read T
			if err := json.Unmarshal(lines.Bytes(), &read); err != nil {
				t.Errorf("%s says %q", script[0], lines.Text())
			}
			all = append(all, read)
		}
		cmd.Wait()
		return all
	}
}

// Packets that Scapy builds are delivered, and what leaves is what Scapy, by the
// RFCs, takes it for.
func TestScapyIsAPeer(t *testing.T) {
	must.Long(t)
	t.Parallel()
	scapy(t)
	b := newBed(t, options{bare: 1})
	peer := b.nodes[1]
	for _, encap := range encaps {
		for _, v6 := range []bool{false, true} {
			b.run(fmt.Sprintf("%s/underlay-v6=%v", encap, v6), func(t *testing.T) {
				b.state.Nodes = b.nodesOf(v6, encap)
				b.state.Networks = []model.Network{{Name: "red", ID: 1, VNI: 1001, Subnets: subnets("10.1.0.0/16")}}
				x := b.workload("x", "red", 0, "10.1.0.10")
				b.state.Ports = append(b.state.Ports, model.Port{Name: "y", Network: "red", Node: peer.name, MAC: model.MAC{2, 0, 0, 0, 0, 9}, IPs: addresses("10.1.0.11")})
				b.up()
				label := uint32(18) // network 1's, for IP
				if encap == model.VXLAN {
					label = 1001
				}
				ended := vtep(t, peer, encap, label, v6)
				out, err := x.command("ping", "-c", "3", "-i", "0.3", "-W", "10", "-Q", "0xb8", "10.1.0.11")
				if err != nil || !strings.Contains(out, " 0% packet loss") {
					t.Errorf("ping: %v\n%s", err, out)
				}
				want := map[string]uint64{"unknown_label": 3}
				if encap == model.VXLAN {
					want = map[string]uint64{"unknown_vni": 3}
				}
				if !v6 {
					want["unknown_source"] = 3
				}
				b.nodes[0].dropsUntil(want)
				checkSeen(t, ended(), encap, v6, int(label))
			})
		}
	}
}

// dropsUntil waits until packets were dropped for these reasons, as often.
func (n *node) dropsUntil(want map[string]uint64) {
	n.bed.t.Helper()
	soon(n.bed.t, fmt.Sprintf("node %s drops packets", n.name), func() error {
		got := n.drops()
		maps.DeleteFunc(got, func(reason string, _ uint64) bool { _, is := want[reason]; return !is })
		if !maps.Equal(got, want) {
			return fmt.Errorf("it has dropped %v, want %v", got, want)
		}
		return nil
	})
}

func checkSeen(t *testing.T, all []seen, encap model.Encapsulation, v6 bool, label int) {
	t.Helper()
	if len(all) != 3 {
		t.Errorf("the endpoint saw %d packets: %+v", len(all), all)
	}
	for _, s := range all {
		want := seen{
			// DSCP EF outside as inside (RFC 6040's normal mode, RFC 2983's uniform model).
			ToS: 0xb8, TTL: 64, DF: true, Source: s.Source, Label: label,
			Checksum: s.RightChecksum, RightChecksum: s.RightChecksum,
			InnerSource: "10.1.0.10", InnerTarget: "10.1.0.11", InnerToS: 0xb8, InnerTTL: 63, InnerProtocol: 1,
		}
		if encap != model.VXLAN {
			want.EXP, want.Bottom, want.LabelTTL = 5, 1, 63
		} else {
			want.InnerDMAC = "00:00:5e:00:01:00"
		}
		switch encap {
		case model.MPLSoGRE:
			want.GRE = []int{0, 0, 0, 0, 0x8847}
		case model.MPLSoUDP:
			want.Destination = 6635
		case model.VXLAN:
			want.Destination = 4789
		}
		if fmt.Sprint(s) != fmt.Sprint(want) {
			t.Errorf("a packet left as %+v, want %+v", s, want)
		}
		if (s.RightChecksum != 0) != (v6 && encap != model.MPLSoGRE) {
			t.Errorf("the right checksum is %x", s.RightChecksum)
		}
		if encap != model.MPLSoGRE && s.Source < 49152 {
			t.Errorf("the source port is %d; RFC 7510 wants 49152 or more", s.Source)
		}
	}
}
