package kernel

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// write makes files with their folders; a content "module:a,b" is a module
// that needs a and b.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

// module makes an ELF object with a .modinfo section, by the assembler's
// sibling objcopy, which adds sections to any object.
func module(t *testing.T, path, info string) {
	t.Helper()
	objcopy, err := exec.LookPath("objcopy")
	if err != nil {
		t.Skip("objcopy is not installed; get it with: apt-get install binutils")
	}
	section := filepath.Join(t.TempDir(), "modinfo")
	write(t, "/", map[string]string{section: info})
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
	blank := filepath.Join(t.TempDir(), "blank")
	write(t, "/", map[string]string{blank: "x"}) // it refuses an empty one
	out, err := exec.Command(objcopy, "-I", "binary", "-O", "elf64-x86-64", "--add-section", ".modinfo="+section, blank, path).CombinedOutput()
	if err != nil {
		t.Skipf("objcopy cannot make a module here: %v: %s", err, out)
	}
}

// tree is a root with kernel 6.1.0-9, whose modules need each other.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, map[string]string{
		"boot/vmlinuz-6.1.0-9":                 "kernel",
		"lib/modules/6.1.0-9/modules.builtin":  "kernel/drivers/virtio/virtio-ring.ko\n",
		"lib/modules/6.1.0-9/modules.order":    "",
		"boot/vmlinuz-6.1.0-56":                "newer, without modules",
		"lib/modules/6.1.0-56/modules.builtin": "",
	})
	dir := filepath.Join(root, "lib/modules/6.1.0-9/kernel")
	module(t, filepath.Join(dir, "virtio_pci.ko"), "license=GPL\x00depends=virtio_ring,virtio\x00")
	module(t, filepath.Join(dir, "virtio.ko"), "depends=\x00")
	module(t, filepath.Join(dir, "virtio_console.ko"), "depends=virtio\x00")
	module(t, filepath.Join(dir, "failover.ko"), "depends=\x00")
	module(t, filepath.Join(dir, "net-failover.ko"), "depends=failover\x00")
	module(t, filepath.Join(dir, "deep/virtio_net.ko"), "depends=net_failover,virtio\x00")
	return root
}

func TestModulesComeAfterTheirDependenciesAndBuiltInOnesAreOmitted(t *testing.T) {
	k := must.Get(find([]string{tree(t)}))(t)
	plan := must.Get(k.Plan(Required))(t)
	var names []string
	for _, m := range plan {
		names = append(names, m.Name)
	}
	must.Equal(t, []string{"virtio", "virtio_pci", "virtio_console", "failover", "net_failover", "virtio_net"}, names)
}

func TestTheNewestKernelThatHasItsModulesIsTaken(t *testing.T) {
	k, err := find([]string{t.TempDir(), tree(t)})
	if err != nil || k.Release != "6.1.0-9" {
		t.Errorf("found %+v, %v; 6.1.0-56 lacks modules", k, err)
	}
}

func TestTheErrorOfAMissingKernelHasTheRemedyAndWhatEachLacks(t *testing.T) {
	root := t.TempDir()
	_, err := find([]string{root})
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), FetchCommand) {
		t.Errorf("nothing there: %v", err)
	}
	write(t, root, map[string]string{"boot/vmlinuz-5.10": "k", "lib/modules/5.10/modules.builtin": ""})
	_, err = find([]string{root})
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "5.10 cannot be used: it has no module virtio_pci") {
		t.Errorf("without modules: %v", err)
	}
}

func TestModulesThatNeedEachOtherAreRefused(t *testing.T) {
	root := tree(t)
	dir := filepath.Join(root, "lib/modules/6.1.0-9/kernel")
	module(t, filepath.Join(dir, "failover.ko"), "depends=net_failover\x00")
	k := Kernel{"6.1.0-9", "", filepath.Dir(dir)}
	_, err := k.Plan([]string{"virtio_net"})
	must.Fail(t, err, "needs itself")
}

func TestAPackedModuleIsUnpacked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.ko")
	write(t, dir, map[string]string{"m.ko": "content"})
	if out, err := exec.Command("gzip", path).CombinedOutput(); err != nil {
		t.Skipf("gzip: %v: %s", err, out)
	}
	got, err := Module{"m", path + ".gz"}.Read()
	if err != nil || string(got) != "content" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestAPackageThatOnlyNamesTheCurrentOneIsFollowed(t *testing.T) {
	const listing = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n"
	must.Equal(t, "linux-image-6.1.0-56-cloud-amd64", dependency(listing, "linux-image-cloud-amd64"))
	must.Equal(t, "linux-image-6.1.0-56-cloud-amd64", dependency("linux-image-6.1.0-56-cloud-amd64\n  Depends: kmod\n", "linux-image-6.1.0-56-cloud-amd64"))
}

func TestKernelsAreOrderedByTheirNumbers(t *testing.T) {
	names := []string{"6.1.0-56", "6.12.1", "6.1.0-9", "6.1"}
	slices.SortFunc(names, compare)
	must.Equal(t, []string{"6.1", "6.1.0-9", "6.1.0-56", "6.12.1"}, names)
}

func FuzzDepends(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if names, err := depends(b); err != nil && names != nil {
			t.Errorf("names %v with error %v", names, err)
		}
	})
}
