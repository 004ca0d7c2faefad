package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"windtunnel/internal/screen"
	"windtunnel/lab/space"
	"windtunnel/lab/testbed"
)

// Exec runs a command on a node ("a") or in a container ("a/c1") of a standing
// testbed, on the node's CPUs and with its share of the CPU time, and waits for it. It sends the
// signals to the command and to the programs that the command started.
func Exec(id, where string, cpus []int, cmd *exec.Cmd, signals <-chan os.Signal) error {
	nodes, err := standing(id)
	if err != nil {
		return err
	}
	name := space.TestbedPrefix(id) + strings.ReplaceAll(where, "/", "-")
	s, err := space.Open(name)
	if err != nil {
		return fmt.Errorf("%q is not a node or container of this testbed (`windtunnel lab list` shows them): %w", where, err)
	}
	defer s.Close()
	layout, err := testbed.PlanCPUs(cpus, len(nodes))
	if err != nil {
		return err
	}
	node, _, _ := strings.Cut(where, "/")
	for i := range nodes {
		if nodeName(i) == node {
			// On a terminal the command stays in this process group, so that Ctrl-C and Ctrl-Z reach it.
			cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: !screen.IsTerminal(os.Stdin)}
			if err := startOn(s, layout.Nodes[i], cmd); err != nil {
				return err
			}
			defer forward(cmd, signals)()
			return errors.Join(space.JoinCPULimit(space.TestbedPrefix(id)+node, cmd.Process.Pid), cmd.Wait())
		}
	}
	return fmt.Errorf("%q is not a node of this testbed", node)
}

// forward sends signals to a command until the returned function is called: to its process group,
// or to the command alone if it is in the group of this process. A terminal sends Ctrl-C to that
// group itself.
func forward(cmd *exec.Cmd, signals <-chan os.Signal) (stop func()) {
	ended, to := make(chan struct{}), cmd.Process.Pid
	if cmd.SysProcAttr.Setpgid {
		to = -to
	}
	go func() {
		for {
			select {
			case s := <-signals:
				if s != os.Interrupt || to < 0 {
					_ = unix.Kill(to, s.(unix.Signal)) // fails only if the processes have ended
				}
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}

// standing returns the nodes of a testbed that `windtunnel lab up` made.
func standing(id string) ([]string, error) {
	var nodes []string
	names, err := space.Named(space.TestbedPrefix(id))
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		rest := strings.TrimPrefix(n, space.TestbedPrefix(id))
		if rest != "wire" && !strings.Contains(rest, "-") {
			nodes = append(nodes, rest)
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("the testbed is not running; bring it up with `windtunnel lab up`")
	}
	return nodes, nil
}

// startOn starts a command in a namespace and on some CPUs, which it inherits from the
// thread that starts it.
func startOn(s *space.Space, cpus []int, cmd *exec.Cmd) error {
	return s.Do(func() error {
		var set unix.CPUSet
		for _, c := range cpus {
			set.Set(c)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("pin to CPUs %v: %w", cpus, err)
		}
		return cmd.Start()
	})
}
