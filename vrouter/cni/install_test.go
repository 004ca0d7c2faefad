package cni

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"

	"windtunnel/internal/must"
)

// A runtime can read the written files.
func TestARuntimeReadsTheInstalledConfiguration(t *testing.T) {
	dir := t.TempDir()
	o := InstallOptions{Network: "red", Binaries: filepath.Join(dir, "bin"), Configs: filepath.Join(dir, "net.d"), Chain: []string{"portmap", "tuning"}, Node: "a", Socket: "/run/a.sock"}
	for range 2 { // the second time over the first
		written := must.Get(Install(o))(t)
		if want := []string{dir + "/bin/vrouter", dir + "/net.d/10-red.conflist"}; strings.Join(written, " ") != strings.Join(want, " ") {
			t.Errorf("wrote %v, want %v", written, want)
		}
	}
	self := must.Get(os.Executable())(t)
	from, err1 := os.Stat(self)
	to, err2 := os.Stat(dir + "/bin/vrouter")
	if err1 != nil || err2 != nil || from.Size() != to.Size() || to.Mode() != 0o755 {
		t.Errorf("%v %v: the program is %v, from %v", err1, err2, to, from)
	}
	list := must.Get(libcni.ConfListFromFile(dir + "/net.d/10-red.conflist"))(t)
	var types []string
	for _, p := range list.Plugins {
		types = append(types, p.Network.Type)
	}
	if list.Name != "red" || list.CNIVersion != "1.1.0" || strings.Join(types, " ") != "vrouter portmap tuning" {
		t.Errorf("the list is %s, want network red of CNI 1.1.0 with the plugins vrouter, portmap and tuning", list.Bytes)
	}
	if !strings.Contains(string(list.Bytes), `"cniVersion": "1.0.0"`) {
		t.Errorf("cniVersion, which older runtimes read, is not 1.0.0: %s", list.Bytes)
	}
	if c, _, err := forAdd(list.Plugins[0].Bytes, ""); err != nil || c.Network != "red" || c.Node != "a" || c.Socket != "/run/a.sock" || !list.Plugins[0].Network.Capabilities["ips"] {
		t.Errorf("%v: the plugin reads %+v of %s", err, c, list.Plugins[0].Bytes)
	}
	if !list.Plugins[0].Network.Capabilities["bandwidth"] || !list.Plugins[1].Network.Capabilities["portMappings"] {
		t.Errorf("capabilities of the chain: %s", list.Bytes)
	}
	for _, folder := range []string{o.Binaries, o.Configs} {
		if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
			t.Errorf("%v: %s holds %v", err, folder, files)
		}
	}
}

// The program vrouter-cni starts faster than vrouter, so Install prefers it.
func TestThePluginAloneIsInstalled(t *testing.T) {
	self := must.Get(os.Executable())(t)
	alone := filepath.Join(filepath.Dir(self), "vrouter-cni")
	must.Succeed(t, os.WriteFile(alone, []byte("plugin"), 0o755))
	defer os.Remove(alone)
	dir := t.TempDir()
	must.Get(Install(InstallOptions{Network: "red", Binaries: dir, Configs: dir}))(t)
	if text, err := os.ReadFile(filepath.Join(dir, "vrouter")); err != nil || string(text) != "plugin" {
		t.Errorf("the installed plugin has %d bytes (error %v), want those of vrouter-cni", len(text), err)
	}
}

// vrouter's image has portmap under a name of its own, so a node's portmap stays as it is.
func TestPortmapOfTheImageIsInstalledAndRemoved(t *testing.T) {
	dir := t.TempDir()
	o := InstallOptions{Network: "red", Binaries: dir + "/bin", Configs: dir, Chain: []string{Portmap}}
	_, err := Install(o)
	must.Fail(t, err, Portmap)
	helper := filepath.Join(filepath.Dir(must.Get(os.Executable())(t)), Portmap)
	must.Succeed(t, os.WriteFile(helper, []byte("helper"), 0o755))
	defer os.Remove(helper)
	must.Succeed(t, os.WriteFile(dir+"/bin/portmap", []byte("the node's"), 0o755))
	must.Get(Install(o))(t)
	if text, err := os.ReadFile(filepath.Join(dir, "bin", Portmap)); err != nil || string(text) != "helper" {
		t.Errorf("the installed helper is %q (error %v)", text, err)
	}
	list := must.Get(libcni.ConfListFromFile(dir + "/10-red.conflist"))(t)
	if len(list.Plugins) != 2 || list.Plugins[1].Network.Type != Portmap || !list.Plugins[1].Network.Capabilities["portMappings"] || !strings.Contains(string(list.Bytes), `"masqAll": true`) {
		t.Errorf("the list is %s", list.Bytes)
	}
	must.Get(Uninstall(o))(t)
	if left := must.Get(os.ReadDir(dir + "/bin"))(t); len(left) != 1 || left[0].Name() != "portmap" {
		t.Errorf("%v is left, want the node's portmap", left)
	}
}

// A package installs the plugin as a link to the program.
func TestALinkToTheProgramIsKept(t *testing.T) {
	dir := t.TempDir()
	self := must.Get(os.Executable())(t)
	link := filepath.Join(dir, "vrouter")
	must.Succeed(t, os.Symlink(self, link))
	written, err := Install(InstallOptions{Network: "red", Binaries: dir, Configs: dir})
	if err != nil || len(written) != 1 || filepath.Base(written[0]) != "10-red.conflist" {
		t.Errorf("wrote %v (%v), want the configuration only", written, err)
	}
	if to, err := os.Readlink(link); err != nil || to != self {
		t.Errorf("%s leads to %q (%v), want %s", link, to, err, self)
	}
}

func TestImpossibleInstallationsAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Succeed(t, os.WriteFile(file, nil, 0o644))
	for says, o := range map[string]InstallOptions{
		`"a/b" is not a valid name`:       {Network: "red", Name: "a/b", Binaries: dir, Configs: dir},
		"in the chain twice":              {Network: "red", Chain: []string{"portmap", "portmap"}, Binaries: dir, Configs: dir},
		"remove bandwidth from the chain": {Network: "red", Chain: []string{"bandwidth"}, Binaries: dir, Configs: dir},
		"not a directory":                 {Network: "red", Binaries: file, Configs: dir},
	} {
		_, err := Install(o)
		must.Fail(t, err, says)
	}
}
