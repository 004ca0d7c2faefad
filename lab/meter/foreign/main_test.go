package foreign

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

const spinVariable = "WT_TEST_SPIN"

// The test binary also serves as a busy program: WT_TEST_SPIN is the CPU time,
// in nanoseconds, that it uses after a line on standard input.
func TestMain(m *testing.M) {
	if ns := os.Getenv(spinVariable); ns != "" {
		if err := spin(ns); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// spin takes CPU time after a line on standard input, and says how much it took.
func spin(ns string) error {
	runtime.LockOSThread()
	want, err := strconv.ParseInt(ns, 10, 64)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	before, err := ownCPU()
	for err == nil {
		var now int64
		if now, err = ownCPU(); now-before >= want {
			fmt.Println(now - before)
			break
		}
	}
	return err
}

func ownCPU() (int64, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts)
	return ts.Nano(), err
}

// spinner is a child that waits to be busy on one CPU.
type spinner struct {
	t   *testing.T
	cmd *exec.Cmd
	ask *os.File
	out *os.File
}

// newSpinner starts a child with its own name, in the namespace of the calling
// thread.
func newSpinner(t *testing.T, name string, cpu int, busy time.Duration) *spinner {
	t.Helper()
	exe := must.Get(os.Executable())(t)
	path := t.TempDir() + "/" + name // the kernel names a process after its file
	must.Succeed(t, os.Symlink(exe, path))
	childIn, in, err := os.Pipe()
	must.Succeed(t, err)
	out, childOut, err := os.Pipe()
	must.Succeed(t, err)
	cmd := exec.Command("taskset", "-c", strconv.Itoa(cpu), path)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", spinVariable, busy), "GOMAXPROCS=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Skipf("start a busy program (taskset of util-linux is needed): %v", err)
	}
	childIn.Close()
	childOut.Close()
	s := &spinner{t: t, cmd: cmd, ask: in, out: out}
	t.Cleanup(func() {
		in.Close()
		out.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	var line string
	if _, err := fmt.Fscanln(out, &line); err != nil || line != "ready" {
		t.Fatalf("the busy program said %q: %v", line, err)
	}
	return s
}

func (s *spinner) begin() {
	s.t.Helper()
	must.Get(s.ask.Write([]byte{'\n'}))(s.t)
}

// took waits until the child has been busy and returns its CPU seconds, as the
// scheduler counted them.
func (s *spinner) took() float64 {
	s.t.Helper()
	var ns int64
	must.Get(fmt.Fscanln(s.out, &ns))(s.t)
	return float64(ns) / 1e9
}

// lastCPU is the highest that this process may use.
func lastCPU(t testing.TB) int {
	t.Helper()
	cpus := testprogram.CPUs(t)
	return cpus[len(cpus)-1]
}

func open(t testing.TB, cpus ...int) *Meter {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("BPF tracepoints need root")
	}
	m := must.Get(Open(cpus))(t)
	t.Cleanup(m.Close)
	return m
}

func read(t testing.TB, m *Meter) map[int]Usage {
	t.Helper()
	return must.Get(m.Read())(t)
}

// in is the time that the child used, as the meter has it.
func (s *spinner) in(u Usage) float64 {
	for _, t := range u.Top {
		if t.TGID == s.cmd.Process.Pid {
			return t.Seconds
		}
	}
	return 0
}
