// Package kerneltest runs a test with another kernel: QEMU boots the kernel without KVM, and
// the test program is its init.
package kerneltest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
)

// Key names the environment variable with the path of a kernel image.
const Key = "VROUTER_TEST_KERNEL"

// Guest is the machine that runs a test.
type Guest struct {
	Seconds    int      // the guest is ended after this time
	Megabyte   int      // memory
	Modules    []string // kernel modules to load, each after the modules that it needs; missing ones may be part of the kernel
	Program    string   // path of a program for the guest; "": none
	Parameters string   // more parameters of the kernel
	Card       Card
	Files      map[string]string // more files: for each path in the guest, the path on the host
}

// Card is a network card of the guest, eth0; zero: none. It needs the modules of CardModules.
type Card struct {
	Namespace string // name of the network namespace in which QEMU runs
	Tap       string // a tap device there, with virtio-net headers
	MAC       string
}

// CardModules are the kernel modules of a Card.
var CardModules = []string{
	"drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci_legacy_dev", "drivers/virtio/virtio_pci",
	"net/core/failover", "drivers/net/net_failover", "drivers/net/virtio_net",
}

// Program is the path of Guest.Program in the guest.
const Program = "/program"

// moduleDir has the guest's modules. Their file names begin with their places in the order.
const moduleDir = "/modules"

// In reports whether this process is the init of a guest.
func In() bool { return os.Getpid() == 1 }

// Run runs the test of the calling function in a guest. Both processes call it in the same
// test; on the host, it runs the guest. In the guest, call Prepare before, and do the test
// instead. A test that is skipped in the guest is skipped on the host, with its output.
func Run(t *testing.T, g Guest) {
	t.Helper()
	kernel := os.Getenv(Key)
	if kernel == "" {
		t.Skip("needs the path of a kernel image in " + Key + "; get one with: make setup")
	}
	const qemu = "qemu-system-x86_64"
	if _, err := exec.LookPath(qemu); err != nil {
		t.Skip(qemu + " is not installed; get it with: " + setup.Command(qemu))
	}
	initrd := filepath.Join(t.TempDir(), "initrd")
	must.Succeed(t, os.WriteFile(initrd, g.archive(t, kernel), 0o600))
	command := []string{"timeout", fmt.Sprint(g.Seconds), qemu, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", fmt.Sprint(g.Megabyte), "-serial", "stdio", "-kernel", kernel, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 " + g.Parameters + " -- -test.v -test.run=^" + t.Name() + "$"}
	if g.Card != (Card{}) {
		command = append([]string{"ip", "netns", "exec", g.Card.Namespace}, command...)
		command = append(command, "-netdev", "tap,id=net0,ifname="+g.Card.Tap+",script=no,downscript=no,vnet_hdr=on", "-device", "virtio-net-pci,netdev=net0,romfile=,mac="+g.Card.MAC)
	}
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	switch {
	case err == nil && strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Logf("kernel %s:\n%s", kernel, out)
	case err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()+" "):
		t.Skipf("kernel %s:\n%s", kernel, out)
	default:
		t.Errorf("the test fails with kernel %s: %v\n%s", kernel, err, out)
	}
}

// Needs skips a test if the configuration beside the kernel image lacks an option, such as
// "CONFIG_NETKIT=y". If there is no such file, the test must try the feature in the guest.
func Needs(t *testing.T, option string) {
	t.Helper()
	path := strings.Replace(os.Getenv(Key), "/vmlinuz-", "/config-", 1)
	options, err := os.ReadFile(path)
	if err == nil && !slices.Contains(strings.Split(string(options), "\n"), option) {
		t.Skipf("needs a kernel with %s, which %s lacks", option, path)
	}
}

// archive returns the guest's first filesystem.
func (g Guest) archive(t *testing.T, kernel string) []byte {
	t.Helper()
	var a bytes.Buffer
	for _, dir := range []string{"bin", "dev", "etc", "proc", "sys", "tmp", "run", "modules"} {
		add(&a, dir, unix.S_IFDIR|0o755, nil)
	}
	add(&a, "dev/console", unix.S_IFCHR|0o600, nil)
	files := map[string]string{"init": "/proc/self/exe"}
	maps.Copy(files, g.Files)
	if g.Program != "" {
		files[Program[1:]] = g.Program
	}
	for i, m := range g.Modules {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(kernel), "..", "lib/modules/*/kernel", m+".ko*"))
		if err != nil || len(found) > 1 {
			t.Fatalf("find module %s of kernel %s: %v, %v", m, kernel, found, err)
		}
		for _, path := range found {
			files[fmt.Sprintf("%s/%03d-%s", moduleDir[1:], i, filepath.Base(path))] = path
		}
	}
	for name, path := range files {
		data, err := os.ReadFile(path)
		must.Succeed(t, err)
		add(&a, name, unix.S_IFREG|0o755, data)
	}
	add(&a, "TRAILER!!!", 0, nil)
	return a.Bytes()
}

// add appends a file to a cpio archive (newc), the format of an initramfs.
func add(to *bytes.Buffer, name string, mode uint32, data []byte) {
	var major, minor uint32
	if mode&unix.S_IFMT == unix.S_IFCHR {
		major, minor = 5, 1 // /dev/console
	}
	pad := func() { to.Write(make([]byte, -to.Len()&3)) }
	to.WriteString("070701")
	for _, field := range []uint32{0, mode, 0, 0, 1, 0, uint32(len(data)), 0, 0, major, minor, uint32(len(name) + 1), 0} {
		fmt.Fprintf(to, "%08x", field)
	}
	to.WriteString(name + "\x00")
	pad()
	to.Write(data)
	pad()
}

// Prepare mounts the guest's filesystems, loads its modules, and starts the process again,
// because packages read /proc when the process starts. It returns in the new process.
func Prepare() error {
	if _, err := os.Stat("/proc/self"); err == nil {
		return nil
	}
	for path, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs", "/tmp": "tmpfs", "/run": "tmpfs"} {
		if err := unix.Mount(kind, path, kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	modules, err := os.ReadDir(moduleDir) // sorted by name
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := load(filepath.Join(moduleDir, m.Name())); err != nil {
			return fmt.Errorf("load kernel module %s: %w", m.Name(), err)
		}
	}
	return unix.Exec("/init", os.Args, os.Environ())
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if filepath.Ext(path) != ".ko" {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	return unix.FinitModule(int(f.Fd()), "", flags)
}
