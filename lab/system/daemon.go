package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"windtunnel/lab/space"
)

// daemon is a program that a system runs on a node while the system is attached. The
// program runs in the node's namespace and on the node's CPUs. A log file in the
// node's home has its output.
type daemon struct {
	name string // name of its log file
	argv []string
	env  []string // added to the environment, KEY=value
	dir  string   // working directory; the node's home if empty
	// ready returns nil once the daemon accepts requests. start calls it repeatedly
	// until then. If ready is nil, start does not wait.
	ready func() error
}

const (
	daemonReady   = 30 * time.Second // dockerd took more than 10 s on a busy machine
	daemonAsk     = 20 * time.Millisecond
	daemonEnds    = 3 * time.Second
	commandEnds   = 20 * time.Second
	lastLines     = 10  // number of lines of a log in a message
	lastLineBytes = 300 // maximum length of such a line
)

// running is a daemon that was started.
type running struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// home returns the node's home: the directory for the files of the node's programs.
// It creates the directory if necessary. stopDaemons removes it, as does the
// deletion of the node's namespace.
func (n *Node) home() (string, error) {
	home := space.Home(n.Name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", fmt.Errorf("make the directory for the files of node %s: %w", n.Name, err)
	}
	return home, nil
}

// start starts a daemon and waits until it is ready. If the daemon ends before, or
// is not ready in time, the error contains the last lines of its output.
func (n *Node) start(d daemon) error {
	home, err := n.home()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(home, d.name+".log"))
	if err != nil {
		return fmt.Errorf("make the log of %s: %w", d.name, err)
	}
	defer log.Close()
	cmd := exec.Command(d.argv[0], d.argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(append(environment(), "LC_ALL=C"), d.env...)
	cmd.Dir = home
	if d.dir != "" {
		cmd.Dir = d.dir
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to the group also ends its children
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", d.name, err)
	}
	r := &running{d.name, cmd, make(chan struct{})}
	go func() {
		cmd.Wait() // the exit status is in cmd.ProcessState
		close(r.ended)
	}()
	n.daemons = append(n.daemons, r)
	if d.ready == nil {
		return nil
	}
	deadline := time.After(daemonReady)
	for {
		notReady := d.ready()
		if notReady == nil {
			return nil
		}
		select {
		case <-r.ended:
			return fmt.Errorf("%s ended at once (%v)%s", d.name, cmd.ProcessState, n.lastOutput(d.name))
		case <-deadline:
			return fmt.Errorf("%s was not ready within %v: %w%s", d.name, daemonReady, notReady, n.lastOutput(d.name))
		case <-time.After(daemonAsk):
		}
	}
}

// stopDaemons ends the daemons that start started, the newest first, and removes the
// node's home.
func (n *Node) stopDaemons() error {
	var errs []error
	for _, r := range slices.Backward(n.daemons) {
		errs = append(errs, r.stop())
	}
	n.daemons = nil
	return errors.Join(append(errs, space.DeleteHome(n.Name))...)
}

// stop ends a daemon with all its children. It sends SIGTERM, waits until the daemon
// ends, and then sends SIGKILL.
func (r *running) stop() error {
	group := -r.cmd.Process.Pid
	if !r.hasEnded() {
		if err := syscall.Kill(group, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end %s: %w", r.name, err)
		}
		select {
		case <-r.ended:
		case <-time.After(daemonEnds):
		}
	}
	if err := syscall.Kill(group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", r.name, err)
	}
	select {
	case <-r.ended:
		return nil
	case <-time.After(daemonEnds):
		return fmt.Errorf("%s does not end after SIGKILL", r.name)
	}
}

// command runs a program in the node's namespace, waits until it ends, and returns
// its standard output. An error contains the program's output.
func (n *Node) command(argv ...string) (string, error) { return n.commandWith(nil, argv...) }

// commandWith is like command, with additional environment variables, KEY=value.
func (n *Node) commandWith(env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandEnds)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(environment(), "LC_ALL=C"), env...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}

// environment returns the agent's environment without the settings of the agent's Go
// runtime, which would also affect daemons written in Go.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "GOMAXPROCS=") || strings.HasPrefix(kv, "GOGC=")
	})
}

// lastOutput returns the last lines of a daemon's log, as the end of a message.
func (n *Node) lastOutput(name string) string {
	text, err := os.ReadFile(filepath.Join(space.Home(n.Name), name+".log"))
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "; it printed nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-lastLines):]
	for i, l := range lines {
		if len(l) > lastLineBytes {
			lines[i] = strings.ToValidUTF8(l[:lastLineBytes], "") + " …"
		}
	}
	return fmt.Sprintf("; last output of %s:\n%s", name, strings.Join(lines, "\n"))
}

// LastWords returns the last output of each of the system's programs on this node,
// and says whether the program still runs. It returns "" if the system has no
// program.
func (n *Node) LastWords() string {
	var words []string
	logs, _ := filepath.Glob(filepath.Join(space.Home(n.Name), "*.log"))
	for _, log := range logs {
		name := strings.TrimSuffix(filepath.Base(log), ".log")
		state := name + " runs"
		if i := slices.IndexFunc(n.daemons, func(r *running) bool { return r.name == name }); i >= 0 && n.daemons[i].hasEnded() {
			state = fmt.Sprintf("%s has ended (%v)", name, n.daemons[i].cmd.ProcessState)
		}
		words = append(words, state+n.lastOutput(name))
	}
	return strings.Join(words, "\n")
}

func (r *running) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}
