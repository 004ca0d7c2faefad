package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/screen"
	"windtunnel/internal/setup"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/api"
)

// levels returns the levels of the findings about a topic, in order.
func levels(findings []api.Finding, topic string) []string {
	var found []string
	for _, f := range findings {
		if f.Topic == topic {
			found = append(found, f.Level)
		}
	}
	return found
}

func TestThisKernelHasTheFeaturesOfTheDataPath(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the kernel tells root alone what it can do")
	}
	findings := diagnoseKernel()
	if got := levels(findings, "kernel"); !slices.Equal(got, []string{api.LevelOK}) {
		t.Errorf("kernel: levels %v, want ok alone, of %+v", got, findings)
	}
	if got := levels(findings, "attach"); len(got) != 2 || slices.Contains(got, api.LevelProblem) {
		t.Errorf("attach: levels %v, want two and no problem, of %+v", got, findings)
	}
}

// namespace makes a network namespace with a device in it.
func namespace(t *testing.T, name string, mtu int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed; get it with: " + setup.Command("ip"))
	}
	testprogram.Output(t, "ip netns add "+name)
	t.Cleanup(func() { exec.Command("ip", "netns", "delete", name).Run() })
	testprogram.Output(t, fmt.Sprintf("ip -n %s link add under0 mtu %d type veth peer name under1", name, mtu))
	testprogram.Output(t, "ip -n "+name+" address add 192.0.2.1/24 dev under0")
	testprogram.Output(t, "ip -n "+name+" link set under0 up")
}

func TestTheUnderlayIsCheckedInTheNodesNamespace(t *testing.T) {
	name := fmt.Sprintf("vr-doctor-%d", os.Getpid())
	namespace(t, name, 9000)
	testprogram.Output(t, "ip -n "+name+" link set under1 up")
	state := filepath.Join(t.TempDir(), "state.yaml")
	must.Succeed(t, os.WriteFile(state, []byte("nodes:\n  - name: a\n    underlay: [192.0.2.1]\n"), 0o644))
	for by, c := range map[string]config.Config{
		"a device's name": {Node: "a", Netns: name, Fabric: []string{"under0"}},
		"a path":          {Node: "a", Netns: "/var/run/netns/" + name, Fabric: []string{"under0"}},
		"its address":     {Node: "a", Netns: name, State: state},
	} {
		findings := diagnoseUnderlay(c)
		if got := levels(findings, "mtu"); !slices.Equal(got, []string{api.LevelOK}) {
			t.Errorf("by %s: %+v", by, findings)
		}
		if at := slices.IndexFunc(findings, func(f api.Finding) bool { return f.Topic == "mtu" }); at >= 0 &&
			!strings.HasPrefix(findings[at].Text, "under0 has MTU 9000: IP packets of workloads have 9000 with direct, 8950 with vxlan, 8968 with mpls-udp, 8972 with mpls-gre") {
			t.Errorf("by %s: %s", by, findings[at].Text)
		}
		if len(levels(findings, "offload")) == 0 || len(levels(findings, "attach")) != 0 {
			t.Errorf("by %s: %+v", by, findings)
		}
	}
}

func TestProblemsOfTheUnderlayAreFound(t *testing.T) {
	name := fmt.Sprintf("vr-doctor-%d", os.Getpid())
	namespace(t, name, 1300)
	for _, line := range []string{"tuntap add tun0 mode tun", "link add other0 type vxlan id 9 dstport 4789 dev under0"} {
		testprogram.Output(t, "ip -n "+name+" "+line)
	}
	for what, c := range map[string]struct {
		config config.Config
		topic  string
		text   string
	}{
		"other VXLAN":    {config.Config{Netns: name, Fabric: []string{"under0"}}, "attach", "VXLAN device other0 uses UDP port 4789"},
		"a small MTU":    {config.Config{Netns: name, Fabric: []string{"under0"}}, "mtu", "under0 has MTU 1300"},
		"a device down":  {config.Config{Netns: name, Fabric: []string{"under1"}}, "attach", "under1 is down"},
		"no carrier":     {config.Config{Netns: name, Fabric: []string{"under0"}}, "attach", "under0 has no carrier"},
		"no Ethernet":    {config.Config{Netns: name, Fabric: []string{"tun0"}}, "attach", "tun0 has no Ethernet header"},
		"no such device": {config.Config{Netns: name, Fabric: []string{"none0"}}, "attach", "fabric device none0 does not exist"},
		"no namespace":   {config.Config{Netns: "vr-nobody-has-this"}, "attach", "enter the network namespace vr-nobody-has-this"},
		"no state file":  {config.Config{Netns: name, State: "/nonexistent"}, "attach", "read the desired state"},
	} {
		findings := diagnoseUnderlay(c.config)
		if !slices.ContainsFunc(findings, func(f api.Finding) bool {
			return f.Topic == c.topic && f.Level != api.LevelOK && strings.Contains(f.Text, c.text)
		}) {
			t.Errorf("%s: %+v, want a finding about %s with %q", what, findings, c.topic, c.text)
		}
	}
}

func TestWrappedLinesOfFindingsAreIndented(t *testing.T) {
	got := findingsText([]api.Finding{{Topic: "mtu", Level: api.LevelNote, Text: "one two three four five", Remedy: "six seven eight nine"}}, screen.Terminal{Width: 35})
	want := "note     mtu      one two three\n                  four five\n                  → six seven eight\n                    nine\n"
	must.Equal(t, want, got)
}
