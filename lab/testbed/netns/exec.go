package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"windtunnel/lab/space"
	"windtunnel/lab/testbed"
)

// Exec runs a command on a node ("a") or in a container ("a/c1") of a standing
// testbed, on the node's CPUs and with its share of the CPU time, and waits for it. It sends the
// signals to the command.
func Exec(id, where string, cpus []int, cmd *exec.Cmd, signals <-chan os.Signal) error {
	nodes, err := standing(id)
	if err != nil {
		return err
	}
	name := space.TestbedPrefix(id) + strings.ReplaceAll(where, "/", "-")
	s, err := space.Open(name)
	if err != nil {
		return fmt.Errorf("%q is no node or container of this testbed (`windtunnel lab list` shows them): %w", where, err)
	}
	defer s.Close()
	layout, err := testbed.PlanCPUs(cpus, len(nodes))
	if err != nil {
		return err
	}
	node, _, _ := strings.Cut(where, "/")
	for i := range nodes {
		if nodeName(i) == node {
			if err := startOn(s, layout.Nodes[i], cmd); err != nil {
				return err
			}
			defer forward(cmd.Process, signals)()
			return errors.Join(space.JoinCPULimit(space.TestbedPrefix(id)+node, cmd.Process.Pid), cmd.Wait())
		}
	}
	return fmt.Errorf("%q is no node of this testbed", node)
}

// forward sends signals to a process until the returned function is called. A terminal sends
// Ctrl-C to the process too, because it is in the same process group.
func forward(p *os.Process, signals <-chan os.Signal) (stop func()) {
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if s != os.Interrupt || !term.IsTerminal(int(os.Stdin.Fd())) {
					_ = p.Signal(s) // fails only if the process has ended
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
