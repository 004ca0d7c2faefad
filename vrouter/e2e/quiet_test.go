package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/vrouter/model"
)

// A settled agent with NAT only checks for drift: it makes no other pass, and the checks start no program.
func TestASettledAgentIsQuiet(t *testing.T) {
	t.Parallel()
	needs(t, "ip", "iptables", "ip6tables")
	if out, err := exec.Command("iptables", "--version").Output(); err != nil || !strings.Contains(string(out), "nf_tables") {
		t.Skipf("iptables is not that of nftables: %s %v", out, err)
	}
	b := newBed(t, options{nodes: 1, config: map[string]any{"repair_interval": "100ms"}})
	b.state.Nodes = b.nodesOf(false)
	b.state.Networks = []model.Network{{Name: "red", ID: 1, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	a, dir := b.nodes[0], t.TempDir()
	for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
		path, err := exec.LookPath(name)
		b.must(err)
		b.must(os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "#!/bin/sh\necho %s >>%s/runs\nexec %s \"$@\"\n", name, dir, path), 0o755))
	}
	a.under = []string{"env", "PATH=" + dir + ":" + os.Getenv("PATH")}
	b.up()
	a.run("network", "nat", "red", "--pool", "192.0.2.8/29", "--pool", "2001:db8:77::8/125")
	soon(t, "the agent runs iptables-restore", func() error {
		_, err := os.Stat(filepath.Join(dir, "runs"))
		return err
	})
	// activity returns the programs that the agent has started, the passes for other reasons than a check, and the checks.
	activity := func() (programs, passes string, checks int) {
		runs, err := os.ReadFile(filepath.Join(dir, "runs"))
		b.must(err)
		for line := range strings.Lines(a.metrics()) {
			if n, is := strings.CutPrefix(line, `vrouter_passes_total{cause="timer"} `); is {
				fmt.Sscan(n, &checks)
			} else if strings.HasPrefix(line, "vrouter_passes_total{") {
				passes += line
			}
		}
		return string(runs), passes, checks
	}
	soon(t, "the agent makes 10 checks, and does nothing else", func() error {
		programs, passes, checks := activity()
		soon(t, "10 checks", func() error {
			if _, _, now := activity(); now < checks+10 {
				return fmt.Errorf("%d checks since then", now-checks)
			}
			return nil
		})
		if now, also, _ := activity(); now != programs || also != passes {
			return fmt.Errorf("meanwhile it has started %q, and the passes\n%sbecame\n%s", strings.TrimPrefix(now, programs), passes, also)
		}
		return nil
	})
}
