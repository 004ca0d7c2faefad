package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

var samePrefixes = cmpopts.EquateComparable(netip.Prefix{})

func TestARuleIsReadAsItIsWritten(t *testing.T) {
	prefix := netip.MustParsePrefix("10.1.0.0/16")
	for text, want := range map[string]model.Rule{
		"ingress allow":                             {Direction: model.Ingress, Action: model.Allow},
		"egress deny udp 53 log":                    {Direction: model.Egress, Action: model.Deny, Protocol: "udp", Ports: "53", Log: true},
		"ingress allow tcp 80-443 from 10.1.0.0/16": {Direction: model.Ingress, Action: model.Allow, Protocol: "tcp", Ports: "80-443", Remote: prefix},
		"egress allow icmp to 10.1.0.0/16 log":      {Direction: model.Egress, Action: model.Allow, Protocol: "icmp", Remote: prefix, Log: true},
	} {
		got, err := parseRule(text)
		if diff := cmp.Diff(want, got, samePrefixes); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
		must.Equal(t, text, ruleText(got))
	}
	for text, says := range map[string]string{
		"":                                  "the rule is too short; write one such as",
		"ingress":                           "the rule is too short; write one such as",
		"ingress allow tcp 80 90":           `"90" is unexpected`,
		"ingress allow from":                `"from" needs a prefix`,
		"ingress allow from home":           `"home" is not a prefix`,
		"ingress allow to 10.1.0.0/16":      `an ingress rule uses "from", not "to"`,
		"egress deny from 10.1.0.0/16":      `an egress rule uses "to", not "from"`,
		"egress deny to 10.0.0.0/8 to ::/0": "one prefix; write another rule for ::/0",
	} {
		_, err := parseRule(text)
		must.Fail(t, err, says)
	}
}

func TestNetworksOfAGatewayAreReadAsTheyAreWritten(t *testing.T) {
	want := model.GatewayNetwork{
		Network: "red", Label: 100, EthernetLabel: 101, VNI: 7, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("::/0")},
		MACs: []model.MAC{{2, 0, 0, 0, 0, 7}}, Flood: true,
	}
	const text = "red,label=100,ethernet_label=101,vni=7,prefix=10.9.0.0/16,prefix=::/0,mac=02:00:00:00:00:07,flood"
	got, err := parseServed(text)
	if diff := cmp.Diff(want, got, samePrefixes); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	fields := gatewayFields(model.Gateway{Name: "g", Networks: []model.GatewayNetwork{got}})
	if last := fields[len(fields)-1]; last[1] != text {
		t.Errorf("it is written as %q", last[1])
	}
	for text, says := range map[string]string{
		"red,lable=7":        `unknown key "lable"; write label`,
		"red,label=seven":    `label: "seven" is not a number from 0 to 4294967295`,
		"red,vni=4294967296": "vni:",
		"red,prefix=home":    "prefix:",
		"red,mac=02:00":      "mac:",
		"red,flood=maybe":    `flood: "maybe" is neither`,
	} {
		_, err := parseServed(text)
		must.Fail(t, err, says)
	}
}

// Each command has its page.
func TestEveryCommandHasAManualPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	cmd := root()
	cmd.SetArgs([]string{"man", dir})
	var out strings.Builder
	cmd.SetOut(&out)
	must.Succeed(t, cmd.Execute())
	for page, says := range map[string]string{
		"vrouter.1": "vrouter-network", "vrouter-agent.1": "store", "vrouter-cni-install.1": "conf-dir", "vrouter-policy-create.1": "ingress",
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), says) {
			t.Errorf("%v: page %s does not speak of %q", err, page, says)
		}
		for _, section := range []string{"EXIT STATUS", "ENVIRONMENT", "FILES"} {
			if !strings.Contains(string(text), "\n.SH "+section+"\n") {
				t.Errorf("page %s has no section %s", page, section)
			}
		}
	}
}
