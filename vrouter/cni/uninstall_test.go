package cni

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// The program stays as long as another configuration uses it. The second time nothing is left.
func TestUninstallRemovesWhatInstallWrote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	red := InstallOptions{Network: "red", Binaries: filepath.Join(dir, "bin"), Configs: filepath.Join(dir, "net.d")}
	blue := red
	blue.Network, blue.Name = "blue", "pods"
	foreign := filepath.Join(red.Configs, "10-other.conflist")
	for _, o := range []InstallOptions{red, blue} {
		must.Get(Install(o))(t)
	}
	must.Succeed(t, os.WriteFile(foreign, []byte(`{"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "bridge"}]}`), 0o644))
	for _, c := range []struct {
		o    InstallOptions
		want string
	}{
		{red, dir + "/net.d/10-red.conflist"},
		{red, ""},
		{blue, dir + "/net.d/10-pods.conflist " + dir + "/bin/vrouter"},
		{blue, ""},
	} {
		removed, err := Uninstall(c.o)
		if got := strings.Join(removed, " "); err != nil || got != c.want {
			t.Errorf("uninstall %s: removed %q (%v), want %q", c.o.Network, got, err, c.want)
		}
		for _, path := range removed {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s is still there", path)
			}
		}
	}
	other := InstallOptions{Network: "other", Binaries: red.Binaries, Configs: red.Configs}
	if removed, err := Uninstall(other); err == nil || !strings.Contains(err.Error(), "has no vrouter plugin") || len(removed) > 0 {
		t.Errorf("removed %v (%v) of another plugin", removed, err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
}

// A package's link to the program is the package's.
func TestUninstallKeepsALinkToTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self := must.Get(os.Executable())(t)
	link := filepath.Join(dir, "vrouter")
	must.Succeed(t, os.Symlink(self, link))
	o := InstallOptions{Network: "red", Binaries: dir, Configs: dir}
	must.Get(Install(o))(t)
	removed, err := Uninstall(o)
	if err != nil || len(removed) != 1 || filepath.Base(removed[0]) != "10-red.conflist" {
		t.Errorf("removed %v (%v), want the configuration only", removed, err)
	}
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
}
