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
	"time"

	"windtunnel/lab/child"
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
	daemonReady = 30 * time.Second // dockerd took more than 10 s on a busy machine
	daemonAsk   = 20 * time.Millisecond
	daemonEnds  = 3 * time.Second
	commandEnds = 20 * time.Second
)

// running is a daemon that was started.
type running struct {
	name string
	*child.Process
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
	cmd := child.Command(context.Background(), d.argv)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(append(environment(), "LC_ALL=C"), d.env...)
	cmd.Dir = home
	if d.dir != "" {
		cmd.Dir = d.dir
	}
	process, err := child.Start(cmd, (*exec.Cmd).Start)
	if err != nil {
		return fmt.Errorf("start %s: %w", d.name, err)
	}
	n.daemons = append(n.daemons, &running{d.name, process})
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
		case <-process.Ended:
			return fmt.Errorf("%s ended at once (%v)%s", d.name, process.State(), n.lastOutput(d.name))
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

// stop ends a daemon with all its children.
func (r *running) stop() error {
	if err := r.Stop(daemonEnds); err != nil {
		return fmt.Errorf("end %s: %w", r.name, err)
	}
	return nil
}

// command runs a program in the node's namespace, waits until it ends, and returns
// its standard output. An error contains the program's output.
func (n *Node) command(argv ...string) (string, error) { return n.commandWith(nil, argv...) }

// commandWith is like command, with additional environment variables, KEY=value.
func (n *Node) commandWith(env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandEnds)
	defer cancel()
	cmd := child.Command(ctx, argv)
	cmd.Env = append(append(environment(), "LC_ALL=C"), env...)
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
	lines := child.LastLines(filepath.Join(space.Home(n.Name), name+".log"))
	if lines == "" {
		return "; it printed nothing"
	}
	return fmt.Sprintf("; last output of %s:\n%s", name, lines)
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
		if i := slices.IndexFunc(n.daemons, func(r *running) bool { return r.name == name }); i >= 0 && n.daemons[i].HasEnded() {
			state = fmt.Sprintf("%s has ended (%v)", name, n.daemons[i].State())
		}
		words = append(words, state+n.lastOutput(name))
	}
	return strings.Join(words, "\n")
}
