// Package kerneltest runs a test with another kernel: QEMU boots the kernel without KVM, and
// the test program is its init.
package kerneltest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	Namespace  string   // name of the network namespace in which QEMU runs; "": that of the test
	Cards      []Card   // eth0 and so on; they need the modules of CardModules
	Programs   []string // programs of the host, which the guest gets in /bin, with their libraries; busybox is also /bin/sh
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

// Machine is a guest that runs.
type Machine struct {
	t       *testing.T
	kernel  string
	qemu    *exec.Cmd
	console io.Writer
	output  output

	released int // calls of Release
}

// Start is as Run, but returns while the guest runs. If the test ends before Wait, the guest is killed.
func Start(t *testing.T, g Guest) *Machine {
	t.Helper()
	m := &Machine{t: t, kernel: os.Getenv(Key)}
	if m.kernel == "" {
		t.Skip("needs the path of a kernel image in " + Key + "; get one with: make setup")
	}
	const qemu = "qemu-system-x86_64"
	if _, err := exec.LookPath(qemu); err != nil {
		t.Skip(qemu + " is not installed; get it with: " + setup.Command(qemu))
	}
	initrd := filepath.Join(t.TempDir(), "initrd")
	must.Succeed(t, os.WriteFile(initrd, g.archive(t, m.kernel), 0o600))
	command := []string{"timeout", fmt.Sprint(g.Seconds), qemu, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", fmt.Sprint(g.Megabyte), "-serial", "stdio", "-kernel", m.kernel, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 net.ifnames=0 " + g.Parameters + " -- -test.v -test.run=^" + t.Name() + "$"}
	for i, c := range g.Cards {
		command = append(command, "-netdev", fmt.Sprintf("tap,id=net%d,ifname=%s,script=no,downscript=no,vnet_hdr=on", i, c.Tap),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=net%d,romfile=,mac=%s", i, c.MAC))
	}
	if g.Namespace != "" {
		command = append([]string{"ip", "netns", "exec", g.Namespace}, command...)
	}
	m.qemu = exec.Command(command[0], command[1:]...)
	m.qemu.Stdout, m.qemu.Stderr = &m.output, &m.output
	var err error
	m.console, err = m.qemu.StdinPipe()
	must.Succeed(t, err)
	must.Succeed(t, m.qemu.Start())
	t.Cleanup(m.Kill)
	return m
}

// Kill ends the guest at once, as a power failure does.
func (m *Machine) Kill() {
	if m.qemu.ProcessState == nil {
		m.qemu.Process.Signal(unix.SIGTERM) // timeout passes the signal on to QEMU
		m.qemu.Wait()
		m.t.Logf("the guest was killed. Its output:\n%s", &m.output)
	}
}

// waits is what AwaitHost prints.
const waits = "the guest waits for the host"

// Await waits until the guest calls AwaitHost.
func (m *Machine) Await() {
	m.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); strings.Count(m.output.String(), waits) <= m.released; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatal("the guest does not wait for the host after 2 minutes")
		}
	}
}

// Release ends AwaitHost in the guest. Call Await before.
func (m *Machine) Release() {
	m.t.Helper()
	m.released++
	_, err := m.console.Write([]byte{'\n'})
	must.Succeed(m.t, err)
}

// AwaitHost waits in the guest until the host calls Release.
func AwaitHost(t *testing.T) {
	t.Helper()
	fmt.Println(waits)
	_, err := os.Stdin.Read(make([]byte, 1))
	must.Succeed(t, err)
}

// output is the output of a guest so far.
type output struct {
	sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.Lock()
	defer o.Unlock()
	return o.text.String()
}

// Wait waits for the end of the guest, and fails or skips the test if the guest did.
func (m *Machine) Wait() {
	t := m.t
	t.Helper()
	err := m.qemu.Wait()
	out := m.output.String()
	switch {
	case err == nil && strings.Contains(out, "--- PASS: "+t.Name()+" "):
		t.Logf("kernel %s:\n%s", m.kernel, out)
	case err == nil && strings.Contains(out, "--- SKIP: "+t.Name()+" "):
		t.Skipf("kernel %s:\n%s", m.kernel, out)
	default:
		t.Errorf("the test fails with kernel %s: %v\n%s", m.kernel, err, out)
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
	dirs := g.unpack(t, &a)
	var directory func(path string)
	directory = func(path string) { // the kernel makes no parents
		if path == "." || dirs[path] {
			return
		}
		dirs[path] = true
		directory(filepath.Dir(path))
		add(&a, path, unix.S_IFDIR|0o755, nil)
	}
	for _, dir := range []string{"bin", "dev", "etc", "proc", "sys", "tmp", "run", "modules"} {
		directory(dir)
	}
	add(&a, "dev/console", unix.S_IFCHR|0o600, nil)
	files := g.programs(t)
	files["init"] = "/proc/self/exe"
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
		directory(filepath.Dir(name))
		add(&a, name, unix.S_IFREG|0o755, data)
	}
	add(&a, "TRAILER!!!", 0, nil)
	return a.Bytes()
}

// unpack adds the files of the image and the service of the test to an archive. It returns the paths of the image.
func (g Guest) unpack(t *testing.T, to *bytes.Buffer) map[string]bool {
	t.Helper()
	paths, files := map[string]bool{}, map[string][]byte{}
	if g.Image == "" {
		return paths
	}
	image, err := os.Open(g.Image)
	must.Succeed(t, err)
	defer image.Close()
	for r := tar.NewReader(image); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must.Succeed(t, err)
		path := filepath.Clean(h.Name)
		paths[path] = true
		switch mode := uint32(h.Mode); h.Typeflag {
		case tar.TypeDir:
			add(to, path, unix.S_IFDIR|mode, nil)
		case tar.TypeSymlink:
			add(to, path, unix.S_IFLNK|mode, []byte(h.Linkname))
		case tar.TypeReg:
			files[path], err = io.ReadAll(r)
			must.Succeed(t, err)
			add(to, path, unix.S_IFREG|mode, files[path])
		case tar.TypeLink:
			add(to, path, unix.S_IFREG|mode, files[filepath.Clean(h.Linkname)])
		}
	}
	parameter, _, _ := strings.Cut(g.Parameters, "=")
	add(to, service[1:], unix.S_IFREG|0o644, fmt.Appendf(nil, `[Unit]
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Environment=%s=1 PATH=/usr/sbin:/usr/bin
PassEnvironment=%s
ExecStart=/init -test.v -test.run=^%s$$
StandardInput=tty
StandardOutput=tty
TTYPath=/dev/ttyS0
`, serviceKey, parameter, t.Name()))
	for name, target := range map[string]string{
		"multi-user.target.wants/test.service": service,
		"serial-getty@ttyS0.service":           "/dev/null", // it would take the console from the test
	} {
		add(to, filepath.Join(filepath.Dir(service), name)[1:], unix.S_IFLNK|0o777, []byte(target))
	}
	return paths
}

// programs returns the paths in the guest of Programs and their libraries, and those on the host.
func (g Guest) programs(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range g.Programs {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name + " is not installed; get it with: " + setup.Command(name))
		}
		files["bin/"+name] = path
		if name == "busybox" {
			files["bin/sh"] = path
		}
		libraries, _ := exec.Command("ldd", path).Output() // fails for a static program
		for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
			files[library[1:]] = library
		}
	}
	return files
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
