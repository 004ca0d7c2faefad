package datapath

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// loadedMark ends the lines that the guest prints after it has loaded the programs.
const loadedMark = "the kernel has loaded all programs"

// kernelKey names the environment variable with the path of a kernel image.
const kernelKey = "VROUTER_TEST_KERNEL"

// The verifier of each kernel version accepts other programs. QEMU boots the kernel without
// KVM, and this test program is its init.
func TestTheProgramsLoadOnAnotherKernel(t *testing.T) {
	if os.Getpid() == 1 {
		loadInGuest(t)
		return
	}
	kernel := os.Getenv(kernelKey)
	if kernel == "" {
		t.Skip("needs the path of a kernel image in " + kernelKey)
	}
	const qemu = "qemu-system-x86_64"
	if _, err := exec.LookPath(qemu); err != nil {
		t.Skip(err)
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	for _, f := range []struct {
		name string
		mode uint32
		data []byte
	}{
		{"dev", unix.S_IFDIR | 0o755, nil}, {"dev/console", unix.S_IFCHR | 0o600, nil},
		{"proc", unix.S_IFDIR | 0o755, nil}, {"sys", unix.S_IFDIR | 0o755, nil}, {"tmp", unix.S_IFDIR | 0o755, nil},
		{"init", unix.S_IFREG | 0o755, program}, {"TRAILER!!!", 0, nil},
	} {
		addToArchive(&archive, f.name, f.mode, f.data)
	}
	initrd := filepath.Join(t.TempDir(), "initrd")
	if err := os.WriteFile(initrd, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("timeout", "120", qemu, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-machine", "q35", "-accel", "tcg", "-cpu", "max", "-m", "1024", "-serial", "stdio", "-kernel", kernel, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 -- -test.v -test.run=^"+t.Name()+"$").CombinedOutput()
	if err != nil || !strings.Contains(string(out), loadedMark) {
		t.Errorf("kernel %s does not load the programs: %v\n%s", kernel, err, out)
	}
}

// loadInGuest loads the programs as the first process of a guest. It starts itself again
// with /proc and /sys, because packages read /proc when the process starts.
func loadInGuest(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		for path, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs"} {
			if err := unix.Mount(kind, path, kind, 0, ""); err != nil {
				t.Fatal(err)
			}
		}
		t.Fatal(unix.Exec("/init", os.Args, os.Environ()))
	}
	programs, err := open(t, Options{Pins: pins(t)}).Programs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Logf("%s: the verifier walked %d instructions", p.Name, p.VerifiedInstructions)
	}
	t.Log(loadedMark)
}

// addToArchive appends a file to a cpio archive (newc), the format of an initramfs.
func addToArchive(to *bytes.Buffer, name string, mode uint32, data []byte) {
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
