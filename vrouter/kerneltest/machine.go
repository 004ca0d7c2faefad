package kerneltest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
)

// Instruction is the time by which each instruction advances the clock of a guest with Guest.Counted. So the load of the
// host does not change the guest's times. When all CPUs of the guest are idle, the clock jumps to the next timer.
const Instruction = 2 * time.Nanosecond

// Machine is a guest that runs.
type Machine struct {
	t       *testing.T
	tests   string
	kernel  string
	qemu    *exec.Cmd
	console io.Writer
	output  output

	released int // calls of Release
}

// Start is as Run, but returns while the guest runs. If the test ends before Wait, the guest is killed.
func Start(t *testing.T, g Guest) *Machine {
	t.Helper()
	m := &Machine{t: t, tests: cmp.Or(g.Tests, "^"+t.Name()+"$"), kernel: g.kernel(t)}
	const qemu = "qemu-system-x86_64"
	if _, err := exec.LookPath(qemu); err != nil {
		t.Skip(qemu + " is not installed; get it with: " + setup.Command(qemu))
	}
	initrd := filepath.Join(t.TempDir(), "initrd")
	must.Succeed(t, os.WriteFile(initrd, g.archive(t, m.kernel), 0o600))
	// With a thread for each emulated CPU, one CPU can see a breakpoint that the other has replaced (QEMU 7.2): where the
	// kernel patches its code, as when the first NAT rule is added, the guest then ends with "Oops: int3".
	command := []string{"timeout", fmt.Sprint(g.Seconds), qemu, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
		"-machine", "q35", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", fmt.Sprint(g.Megabyte), "-serial", "stdio", "-kernel", m.kernel, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 net.ifnames=0 " + g.Parameters + " -- -test.v -test.run=" + m.tests}
	if g.Counted {
		command = append(command, "-icount", "shift=1,sleep=off")
	}
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

// Signal sends a signal to QEMU. After SIGSTOP the guest hangs until SIGCONT.
func (m *Machine) Signal(s unix.Signal) {
	m.t.Helper()
	pid := m.qemu.Process.Pid // of timeout, whose only child is QEMU
	child := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)))(m.t)
	must.Succeed(m.t, unix.Kill(must.Get(strconv.Atoi(strings.TrimSpace(string(child))))(m.t), s))
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
	case err == nil && strings.Contains(out, "--- PASS: ") && strings.Contains(out, "\nPASS"):
		t.Logf("kernel %s:\n%s", m.kernel, out)
	case err == nil && strings.Contains(out, "--- SKIP: "+t.Name()+" "):
		t.Skipf("kernel %s:\n%s", m.kernel, out)
	default:
		t.Errorf("the test fails with kernel %s: %v\n%s", m.kernel, err, out)
	}
}
