// Package kerneltest runs a test with another kernel: QEMU boots the kernel without KVM, and
// the test program is its init.
package kerneltest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Key names the environment variable with the paths of kernel images, separated by colons.
const Key = "VROUTER_TEST_KERNEL"

// Guest is the machine that runs a test.
type Guest struct {
	Seconds    int      // the guest is ended after this time
	Megabyte   int      // memory
	Modules    []string // kernel modules to load, each after the modules that it needs; missing ones may be part of the kernel
	Program    string   // path of a program for the guest; "": none
	Parameters string   // more parameters of the kernel
	Namespace  string   // name of the network namespace in which QEMU runs; "": that of the test
	Cards      []Card   // eth0 and so on; they need the modules of CardModules
	Programs   []string // programs of the host, by name or path. The guest has them in /bin, with their libraries; /bin/sh is busybox
	Kernel     string   // path of the kernel image; "": the first one of Key that has Option
	Option     string   // line of the kernel's configuration that the test needs, such as "CONFIG_NETKIT=y"
	Tests      string   // pattern of the tests to run; "": the test that calls Run
	Counted    bool     // the guest's clock counts instructions; see Instruction. Linux 6.1 hangs with this clock when it starts the second CPU
	Image      string   // tar archive of a root file system with systemd, which runs the test as a service; "": the test is init
}

// Card is a network card of the guest.
type Card struct {
	Tap string // a tap device in Guest.Namespace, with virtio-net headers
	MAC string
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

// service is the path of the unit that runs the test in a guest with an image.
const service = "/etc/systemd/system/test.service"

// serviceKey names the environment variable that is set in this service.
const serviceKey = "VROUTER_TEST_SERVICE"

// In reports whether this process runs a test in a guest.
func In() bool { return os.Getpid() == 1 || os.Getenv(serviceKey) != "" }

// Run runs the test of the calling function in a guest. Both processes call it in the same
// test; on the host, it runs the guest. In the guest, call Prepare before, and do the test
// instead. A test that is skipped in the guest is skipped on the host, with its output.
func Run(t *testing.T, g Guest) {
	t.Helper()
	Start(t, g).Wait()
}

// Kernels returns the paths of Key. It skips the test if there is none.
func Kernels(t *testing.T) []string {
	t.Helper()
	if os.Getenv(Key) == "" {
		t.Skip("needs the path of a kernel image in " + Key + "; get one with: make setup")
	}
	return strings.Split(os.Getenv(Key), ":")
}

// kernel returns the kernel of a guest, or skips the test. A kernel without a configuration beside its image
// may have the option: the test must try the feature in the guest.
func (g Guest) kernel(t *testing.T) string {
	t.Helper()
	if g.Kernel != "" {
		return g.Kernel
	}
	all := Kernels(t)
	for _, path := range all {
		options, err := os.ReadFile(strings.Replace(path, "/vmlinuz-", "/config-", 1))
		if g.Option == "" || err != nil || slices.Contains(strings.Split(string(options), "\n"), g.Option) {
			return path
		}
	}
	t.Skipf("needs a kernel with %s, which %s lacks", g.Option, strings.Join(all, ", "))
	return ""
}

// Prepare mounts the guest's filesystems, loads its modules, and starts the process again,
// because packages read /proc when the process starts. It returns in the new process. In a guest with
// an image, it starts systemd, and returns in the service.
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
	if _, err := os.Stat(service); err == nil {
		return unix.Exec("/sbin/init", []string{"/sbin/init"}, os.Environ())
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
