package datapath

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/vrouter/model"
)

// scapy returns a Python that has Scapy.
func scapy(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import scapy.layers.inet6").Run() == nil {
			return python
		}
	}
	t.Skip("scapy is not installed; get it with: " + setup.Command("scapy"))
	return ""
}

// judged is a packet as testdata/translator.py read it.
type judged struct {
	Version, Protocol, Fragments, Network int
	From, To                              string
	Neutral                               bool
	SameAsBuilt                           bool     `json:"same_as_built"`
	OuterChecksum                         bool     `json:"outer_checksum"`
	InnerChecksum                         bool     `json:"inner_checksum"`
	Answers                               []string // frames in hexadecimal digits
}

// checksumIsRight reports whether the checksum of an unfragmented packet's transport is right.
func checksumIsRight(ip []byte) bool {
	if ip[0]>>4 == 6 {
		payload := ip[40:]
		return sum16(append(append(bytes.Clone(ip[8:40]), byte(len(payload)>>8), byte(len(payload)), 0, ip[6]), padded(payload)...)) == 0xffff
	}
	payload := ip[20:]
	if ip[9] == 1 {
		return sum16(padded(payload)) == 0xffff
	}
	return sum16(append(append(bytes.Clone(ip[12:20]), byte(len(payload)>>8), byte(len(payload)), 0, ip[9]), padded(payload)...)) == 0xffff
}

// padded returns bytes with an even length.
func padded(b []byte) []byte { return append(bytes.Clone(b), make([]byte, len(b)%2)...) }

// A translator of Scapy, written from docs/datapath.md, reads the packets that the programs send
// to another node, and the programs deliver its answers. This holds for all lengths of locators.
func TestScapyReadsAndWritesTranslatedPackets(t *testing.T) {
	must.Long(t)
	python := scapy(t)
	pairs := append(locatorPairs[:len(locatorPairs):len(locatorPairs)], struct{ own, far netip.Prefix }{netip.PrefixFrom(ownLocator, 64), netip.PrefixFrom(farLocator, 64)})
	for _, c := range pairs {
		t.Run(fmt.Sprint(c.own, " ", c.far), func(t *testing.T) {
			r := newRig(t, model.MPLSoUDP, false, translateBetween(c.own, c.far))
			var sent []string
			for _, data := range []string{"even", "odd"} {
				for name, l := range transports(data) {
					if name == "echo reply" {
						continue
					}
					for _, ip := range [][]byte{serialize(t, l[0](ip4(addrA, addrB, 64), layers.IPv6{})...), serialize(t, l[1](layers.IPv4{}, ip6(addrA6, addrB6, 64))...)} {
						code, out := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, ip))
						if code != actRedirect {
							t.Fatalf("%s: action %d and drop reason %s, want a redirect", name, code, r.drop(t, nil))
						}
						out[12], out[13] = 0x86, 0xdd // the kernel writes the header after the redirect
						sent = append(sent, hex.EncodeToString(out))
					}
				}
			}
			cmd := exec.Command(python, "testdata/translator.py", "-", c.far.String(), c.own.String(), "1", "fd00:1::/96")
			cmd.Stdin = strings.NewReader(strings.Join(sent, "\n"))
			var problems bytes.Buffer
			cmd.Stderr = &problems
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, problems.String())
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != len(sent) {
				t.Fatalf("Scapy has read %d of %d packets:\n%s", len(lines), len(sent), out)
			}
			for _, line := range lines {
				var j judged
				must.Succeed(t, json.Unmarshal([]byte(line), &j))
				from, to := addrA, addrB
				if j.Version == 6 {
					from, to = addrA6, addrB6
				}
				if j.Network != 1 || j.From != from.String() || j.To != to.String() || !j.Neutral || !j.SameAsBuilt || !j.OuterChecksum || !j.InnerChecksum || len(j.Answers) != 1 {
					t.Errorf("Scapy has read %+v, want network 1 from %s to %s, and right addresses and checksums", j, from, to)
					continue
				}
				b := must.Get(hex.DecodeString(j.Answers[0]))(t)
				code, out := r.run(t, r.programs.FabricTc, r.fabric, b)
				if code != actRedirect {
					t.Errorf("the answer to %s has action %d and drop reason %s, want a redirect", line, code, r.drop(t, nil))
					continue
				}
				source, target := endsOf(out[14:])
				if source != to || target != from || !checksumIsRight(out[14:]) {
					t.Errorf("the answer to %s arrives as %x, want a packet from %s to %s with a right checksum", line, out[14:], to, from)
				}
			}
		})
	}
}
