package agent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/vrouter/model"
)

// On a node without iptables and nftables, workloads reach each other. The status says what to install, until it is installed.
func TestANodeWithoutIptablesSaysSoAndForwards(t *testing.T) {
	if _, err := exec.LookPath("iptables-restore"); err != nil {
		t.Skip("iptables is not installed; get it with: " + setup.Command("iptables"))
	}
	b := newBed(t, nil)
	red := slices.IndexFunc(b.state.Networks, func(n model.Network) bool { return n.Name == "red" })
	b.state.Networks = slices.Clone(b.state.Networks)
	b.state.Networks[red].NodeAccess = true
	a := b.nodes["a"]
	t.Run("missing", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		b.apply(t, "a", b.state)
		b.apply(t, "b", b.state)
		must.Eventually(t, "the status names the program", func() error { return a.complains("iptables-restore", "install iptables or nftables") })
		must.Eventually(t, "packets", b.traffic)
	})
	t.Run("only nftables", func(t *testing.T) {
		nft, err := exec.LookPath("nft")
		if err != nil {
			t.Skip("nft is not installed; get it with: " + setup.Command("nftables"))
		}
		dir := t.TempDir()
		must.Succeed(t, os.Symlink(nft, filepath.Join(dir, "nft")))
		t.Setenv("PATH", dir)
		must.Eventually(t, "the status with nftables", func() error {
			if a.complains("iptables") == nil {
				return errors.New("it says that iptables is missing")
			}
			return b.traffic()
		})
	})
	must.Eventually(t, "the status after iptables was installed", func() error {
		if a.complains("iptables") == nil {
			return errors.New("it still says that iptables is missing")
		}
		return b.traffic()
	})
}
