package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// unpacked returns the folder of an unpacked package.
func unpacked(t *testing.T, product, arch string) string {
	t.Helper()
	need(t, "dpkg-deb")
	dir := filepath.Join(t.TempDir(), "root")
	output(t, "dpkg-deb", "-x", artifact(t, product, arch+".deb"), dir)
	return dir
}

func TestThePackagesHaveTheirFiles(t *testing.T) {
	common := map[string]string{
		"/usr/bin/%":                                  "-rwxr-xr-x",
		"/usr/share/doc/%/copyright":                  "-rw-r--r--",
		"/usr/share/man/man1/%.1.gz":                  "-rw-r--r--",
		"/usr/share/bash-completion/completions/%":    "-rw-r--r--",
		"/usr/share/zsh/vendor-completions/_%":        "-rw-r--r--",
		"/usr/share/fish/vendor_completions.d/%.fish": "-rw-r--r--",
	}
	special := map[string]map[string]string{
		"windtunnel": {"/usr/share/man/man1/windtunnel-lab-up.1.gz": "-rw-r--r--"},
		"vrouter": {
			"/usr/bin/vrouter-cni":                           "-rwxr-xr-x",
			"/etc/vrouter":                                   "drwxr-xr-x",
			"/etc/vrouter/node.yaml":                         "-rw-r--r--",
			"/usr/lib/systemd/system/vrouter.service":        "-rw-r--r--",
			"/usr/lib/systemd/system/vrouter-docker.service": "-rw-r--r--",
			"/usr/lib/systemd/system/vrouter-docker.socket":  "-rw-r--r--",
			"/opt/cni/bin/vrouter":                           "link to /usr/bin/vrouter-cni",
			"/usr/lib/cni/vrouter":                           "link to ../../bin/vrouter-cni",
			"/usr/share/man/man1/vrouter-agent.1.gz":         "-rw-r--r--", // the units name these pages
			"/usr/share/man/man1/vrouter-docker.1.gz":        "-rw-r--r--",
		},
	}
	for _, p := range products {
		for _, arch := range supported {
			t.Run(p.name+"/"+arch, func(t *testing.T) {
				dir := unpacked(t, p.name, arch)
				got := tree(t, dir)
				for path, want := range common {
					path = strings.ReplaceAll(path, "%", p.name)
					if !strings.HasPrefix(got[path], want) {
						t.Errorf("%s is %q, want %q", path, got[path], want)
					}
				}
				for path, want := range special[p.name] {
					if !strings.HasPrefix(got[path], want) {
						t.Errorf("%s is %q, want %q", path, got[path], want)
					}
				}
				if digest(t, dir+"/usr/bin/"+p.name) != digest(t, artifact(t, p.name, "linux_"+arch)) {
					t.Error("the package has another program than the release")
				}
				if page := unzip(t, dir+"/usr/share/man/man1/"+p.name+".1.gz"); !strings.Contains(page, ".TH \""+strings.ToUpper(p.name)+"\"") {
					t.Errorf("the manual page of %s has no title: %.200s", p.name, page)
				}
				for line := range strings.Lines(output(t, "dpkg-deb", "-c", artifact(t, p.name, arch+".deb"))) {
					if fields := strings.Fields(line); fields[1] != "root/root" && fields[1] != "0/0" {
						t.Errorf("a file does not belong to root: %s", line)
					}
				}
			})
		}
	}
}

func TestThePackagesHaveDescriptions(t *testing.T) {
	need(t, "dpkg-deb")
	for _, p := range products {
		for _, arch := range supported {
			field := func(name string) string {
				return strings.TrimSpace(output(t, "dpkg-deb", "-f", artifact(t, p.name, arch+".deb"), name))
			}
			for name, want := range map[string]string{
				"Package": p.name, "Architecture": arch, "Maintainer": maintainer, "Section": "net", "Depends": "",
				"Recommends": strings.Join(p.recommends, ", "), "Suggests": strings.Join(p.suggests, ", "),
			} {
				if got := field(name); got != want {
					t.Errorf("%s of %s: %q, want %q", name, p.name, got, want)
				}
			}
			version := field("Version")
			if !strings.Contains(artifact(t, p.name, arch+".deb"), "_"+version+"_") {
				t.Errorf("%s has the version %s", artifact(t, p.name, arch+".deb"), version)
			}
			output(t, "dpkg", "--validate-version", version)
		}
	}
}

func TestSystemdAcceptsTheUnits(t *testing.T) {
	need(t, "systemd-analyze")
	dir := unpacked(t, "vrouter", runtime.GOARCH)
	units, err := filepath.Glob(dir + "/usr/lib/systemd/system/*")
	if err != nil || len(units) != 3 {
		t.Fatalf("%v (%v), want 3 units", units, err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// systemd looks for the program at the path in the unit.
		if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "=/usr/bin/vrouter ", "="+dir+"/usr/bin/vrouter ")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out := output(t, append([]string{"systemd-analyze", "verify", "--man=no"}, units...)...); strings.Contains(out, "vrouter") {
		t.Errorf("systemd-analyze verify: %s", out)
	}
}

// root is a folder in which dpkg installs packages. systemctl and deb-systemd-invoke there write
// down how they are called: systemd itself cannot run as process 1 in a test.
type root struct {
	t   *testing.T
	dir string
}

func newRoot(t *testing.T) root {
	t.Helper()
	needRoot(t)
	need(t, "dpkg", "busybox")
	r := root{t, t.TempDir()}
	for _, dir := range []string{"bin", "etc/systemd/system/multi-user.target.wants", "etc/systemd/system/sockets.target.wants",
		"run/systemd/system", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(r.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	r.write("bin/sh", string(program))
	if exec.Command("chroot", r.dir, "/bin/sh", "-c", "true").Run() != nil {
		t.Skip("busybox is not static: apt-get install busybox-static")
	}
	if err := os.Symlink("sh", r.path("bin/rm")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"systemctl", "deb-systemd-invoke"} {
		r.write("bin/"+name, "#!/bin/sh\necho "+name+" \"$@\" >> /calls\n")
	}
	r.write("var/lib/dpkg/status", "")
	r.write("calls", "")
	return r
}

func (r root) path(name string) string { return filepath.Join(r.dir, name) }

func (r root) write(name, content string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(content), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// dpkg runs dpkg in the root, and returns its output and the calls of systemd's programs.
func (r root) dpkg(args ...string) (said, calls string) {
	r.t.Helper()
	r.write("calls", "")
	said = output(r.t, append([]string{"dpkg", "--root=" + r.dir, "--log=/dev/null", "--force-bad-path", "--force-confold"}, args...)...)
	text, err := os.ReadFile(r.path("calls"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.write("calls", "")
	return said, string(text)
}

func (r root) exists(name string) bool {
	_, err := os.Lstat(r.path(name))
	return !errors.Is(err, fs.ErrNotExist)
}

// left compares the root with a former tree, without dpkg's own files.
func (r root) left(before map[string]string) {
	r.t.Helper()
	after := tree(r.t, r.dir)
	for _, all := range []map[string]string{before, after} {
		maps.DeleteFunc(all, func(path, _ string) bool { return strings.HasPrefix(path, "/var/lib/dpkg") })
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if before[path] != after[path] {
			r.t.Errorf("%s is %q after the purge, before the installation it was %q", path, after[path], before[path])
		}
	}
	for path := range before {
		if after[path] == "" {
			r.t.Errorf("%s is gone", path)
		}
	}
}

func TestAPackageIsInstalledAndRemoved(t *testing.T) {
	for _, p := range products {
		t.Run(p.name, func(t *testing.T) {
			r := newRoot(t)
			before := tree(t, r.dir)
			r.dpkg("--install", artifact(t, p.name, runtime.GOARCH+".deb"))
			if out := output(t, "chroot", r.dir, "/usr/bin/"+p.name, "version"); !strings.Contains(out, "0.") {
				t.Errorf("the installed program prints %q, want its version", out)
			}
			if said, _ := r.dpkg("--verify", p.name); said != "" {
				t.Errorf("dpkg --verify: %s", said)
			}
			r.dpkg("--remove", p.name)
			r.dpkg("--purge", p.name)
			r.left(before)
		})
	}
}

// Nothing starts before the node is configured. An upgrade restarts what runs. Removal stops it,
// keeps the configuration, and says that packets keep flowing. Purge deletes the configuration
// and keeps the state.
func TestVRoutersPackageIsInstalledUpgradedRemovedAndPurged(t *testing.T) {
	r := newRoot(t)
	before := tree(t, r.dir)
	deb := artifact(t, "vrouter", runtime.GOARCH+".deb")
	if _, calls := r.dpkg("--install", deb); calls != "systemctl daemon-reload\n" {
		t.Errorf("the installation called %q, want nothing but daemon-reload", calls)
	}

	const restart = "deb-systemd-invoke try-restart vrouter.service vrouter-docker.service\n"
	configuration := "node: a\n"
	r.write("etc/vrouter/node.yaml", configuration)
	if _, calls := r.dpkg("--install", deb); calls != "systemctl daemon-reload\n"+restart {
		t.Errorf("the upgrade called %q, want a restart of what runs", calls)
	}
	if text, err := os.ReadFile(r.path("etc/vrouter/node.yaml")); err != nil || string(text) != configuration {
		t.Errorf("after the upgrade the configuration is %q (%v), want %q", text, err, configuration)
	}

	enabled := []string{"etc/systemd/system/multi-user.target.wants/vrouter.service", "etc/systemd/system/sockets.target.wants/vrouter-docker.socket"}
	for _, link := range enabled {
		if err := os.Symlink("/usr/lib/systemd/system/"+filepath.Base(link), r.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(r.path("run/vrouter/a/bpf"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("var/lib/vrouter/a/store.db", "state")
	said, calls := r.dpkg("--remove", "vrouter")
	if want := "deb-systemd-invoke stop vrouter-docker.socket vrouter-docker.service vrouter.service\nsystemctl daemon-reload\n"; calls != want {
		t.Errorf("the removal called %q, want %q", calls, want)
	}
	if !strings.Contains(said, "node a stay in the kernel") {
		t.Errorf("the removal prints %q, want that the programs of node a stay", said)
	}
	for _, kept := range append(enabled, "etc/vrouter/node.yaml", "run/vrouter/a/bpf", "var/lib/vrouter/a/store.db") {
		if !r.exists(kept) {
			t.Errorf("the removal deleted %s", kept)
		}
	}

	if said, _ := r.dpkg("--purge", "vrouter"); !strings.Contains(said, "/var/lib/vrouter") {
		t.Errorf("the purge prints %q, want that it keeps /var/lib/vrouter", said)
	}
	for _, gone := range append(enabled, "etc/vrouter") {
		if r.exists(gone) {
			t.Errorf("the purge left %s", gone)
		}
	}
	if !r.exists("var/lib/vrouter/a/store.db") {
		t.Error("the purge deleted the state of a node")
	}
	for _, mine := range []string{"run/vrouter", "var/lib/vrouter"} {
		if err := os.RemoveAll(r.path(mine)); err != nil {
			t.Fatal(err)
		}
	}
	r.left(before)
}

func TestLintianFindsOnlyTheExpectedTags(t *testing.T) {
	need(t, "lintian")
	for _, p := range products {
		// The packages are no part of Debian: they have no Debian changelog, contain static Go
		// programs, and carry the texts of all licences, also for the images. CNI plugins of
		// upstream are in /opt. The maintainer of the test has no real address.
		out, err := exec.Command("lintian", "--fail-on=error,warning", "--suppress-tags",
			"statically-linked-binary,no-changelog,dir-or-file-in-opt,copyright-file-contains-full-apache-2-license,copyright-not-using-common-license-for-gpl,bogus-mail-host",
			artifact(t, p.name, runtime.GOARCH+".deb")).CombinedOutput()
		if err != nil {
			t.Errorf("lintian: %v: %s", err, out)
		}
	}
}
