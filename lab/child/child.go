// Package child starts programs, each in a separate session, and ends them together with
// their children.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// killTime is the maximum wait for the end of a program after SIGKILL.
const killTime = 3 * time.Second

// Process is a program that this one started.
type Process struct {
	Ended chan struct{} // closed when the program has ended
	Exit  error         // of the program, once it has ended

	cmd  *exec.Cmd
	left bool // it ended, but children in its process group did not
}

// Command returns a command for a program that prints messages in English and runs in a new session. Ctrl-C in the terminal does
// not end programs of other sessions, so the lab ends this program after its own cleanup. The new session also does not get
// the priority of the lab's session (priority.RaiseSession). When ctx ends, the program and its children are killed.
func Command(ctx context.Context, argv []string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child can keep the output open
	return cmd
}

// Start starts a command, which Command made, by calling a function such as Bound.
func Start(cmd *exec.Cmd, by func(*exec.Cmd) error) (*Process, error) {
	if err := by(cmd); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, Ended: make(chan struct{})}
	go func() {
		defer close(p.Ended)
		p.Exit = cmd.Wait()
		p.left = syscall.Kill(-p.PID(), 0) == nil
	}()
	return p, nil
}

// Bound starts a command that ends with this program, however this program ends.
func Bound(cmd *exec.Cmd) error { return BoundBy(cmd, cmd.Start) }

// BoundBy is like Bound for a command that a function starts. It calls the function on the one
// thread that starts such commands.
func BoundBy(cmd *exec.Cmd, start func() error) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	starts() <- func() { done <- start() }
	return <-done
}

// starts takes functions that start commands. One thread calls them, and lives as long as this
// program: the kernel sends Pdeathsig when the thread that started a command ends.
var starts = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range jobs {
			f()
		}
	}()
	return jobs
})

// PID returns the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// State describes the end of a program that has ended.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// HasEnded reports whether the program has ended. Its children may still run.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the program and its children. It is no error if all have ended.
func (p *Process) Signal(s syscall.Signal) error {
	if p.HasEnded() && !p.left {
		return nil
	}
	if err := syscall.Kill(-p.PID(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %d to process %d: %w", s, p.PID(), err)
	}
	return nil
}

// Kill kills the program and its children.
func (p *Process) Kill() { _ = p.Signal(syscall.SIGKILL) } // fails only if all have ended

// Stop kills the program and its children, and waits for its end. If patience is not 0, Stop first
// sends SIGTERM and waits that long at most.
func (p *Process) Stop(patience time.Duration) error {
	if patience > 0 && !p.HasEnded() {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		p.await(patience)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.await(killTime) {
		return errors.New("it does not end after SIGKILL")
	}
	return nil
}

// await waits for the end of the program at most the given time.
func (p *Process) await(most time.Duration) bool {
	select {
	case <-p.Ended:
		return true
	case <-time.After(most):
		return false
	}
}

// Tail keeps the last part of what is written to it, such as the messages of a program.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10 // bytes

// Write keeps b, and drops the oldest text above 4 KiB.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(b), nil
}

// String returns the text on one line.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.FieldsFunc(string(t.text), func(c rune) bool { return c == '\n' || c == '\r' }), " | ")
}

const (
	lastLines     = 12  // maximum number of lines of a log in a message
	lastLineBytes = 300 // maximum length of such a line
	// panicked begins the line with the reason of a kernel's panic. A long trace follows it.
	panicked = "Kernel panic"
)

// LastLines returns the reasons of a kernel's panic and the last lines of a log, without control
// sequences of the terminal; "" if there are none.
func LastLines(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	plain := strings.ReplaceAll(ansi.Strip(string(bytes.ToValidUTF8(text, nil))), "\r", "")
	lines := strings.Split(strings.TrimSpace(plain), "\n")
	var shown []string
	for i, l := range lines {
		if i < len(lines)-lastLines && !strings.Contains(l, panicked) {
			continue
		}
		if len(l) > lastLineBytes {
			l = strings.ToValidUTF8(l[:lastLineBytes], "") + " …"
		}
		shown = append(shown, l)
	}
	return strings.Join(shown, "\n")
}
