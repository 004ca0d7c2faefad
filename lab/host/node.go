package host

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/lab/agent"
	"windtunnel/lab/probe"
)

// AgentCommand is the argument with which the windtunnel program runs a node's agent
// that ends when the engine is silent for too long.
const AgentCommand = "node"

// AgentArgs returns the arguments for the agent of a node in a namespace ("" for the
// host's) and on CPUs.
func AgentArgs(space string, cpus []int) []string {
	return []string{AgentCommand, "-space", space, "-cpus", probe.FormatCPUList(cpus)}
}

// Agent runs the agent of a node until its pipe ends. args are those of AgentArgs,
// without the first.
func Agent(version string, args []string, in io.Reader, out io.WriteCloser) error {
	f := flag.NewFlagSet(AgentCommand, flag.ContinueOnError)
	name := f.String("space", "", "name of the node's network namespace (default: the host's)")
	cpus := f.String("cpus", "", "list of the node's CPUs")
	placed := f.Bool("placed", false, "the process is in its place")
	if err := f.Parse(args); err != nil {
		return err
	}
	if !*placed {
		return place(*name, *cpus)
	}
	return agent.Serve(version, agent.Expire(in, Silence), out, nil)
}

// place runs this program again in a network namespace and on CPUs. All threads of the
// new program inherit both from the calling thread.
func place(name, cpus string) error {
	runtime.LockOSThread()
	list, err := probe.ParseCPUList(cpus)
	if err != nil {
		return err
	}
	var set unix.CPUSet
	for _, c := range list {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to CPUs %s: %w", cpus, err)
	}
	if name != "" {
		ns, err := netns.GetFromName(name)
		if err == nil {
			err = netns.Set(ns)
		}
		if err != nil {
			return fmt.Errorf("enter network namespace %s: %w", name, err)
		}
	}
	self, err := os.Executable()
	if err == nil {
		err = unix.Exec(self, []string{self, AgentCommand, "-placed"}, append(os.Environ(), "GOMAXPROCS=2", "GOGC=400"))
	}
	return errors.Join(errors.New("start the agent in its place"), err)
}
