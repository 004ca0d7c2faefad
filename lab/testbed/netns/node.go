package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/agent"
	"windtunnel/lab/child"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// node is a compute node with a network namespace, CPUs and an agent.
type node struct {
	index   int
	space   *space.Space
	cpus    []int // the CPUs of this node alone in the layout
	allowed []int // CPUs on which the node's programs may run: cpus; if the nodes are not pinned, those of all nodes
	fabric  suite.Fabric
	team    *team // nil where links are not bonded
	agent   *agent.Client
	hello   agent.Hello
	process *child.Piped // the agent's
	killed  bool         // the agent did not end normally, so its children may still run

	underlay []netip.Addr // of every node
	steer    bool
}

func newNode(id string, index int, layout testbed.Layout, f suite.Fabric) (*node, error) {
	s, err := space.Create(nodeSpace(id, index))
	if err != nil {
		return nil, err
	}
	n := &node{index: index, space: s, cpus: layout.Nodes[index], allowed: layout.Nodes[index], fabric: f}
	if f.Unpinned {
		n.allowed = slices.Compact(slices.Sorted(slices.Values(slices.Concat(layout.Nodes...))))
	}
	if err := s.Node(); err != nil {
		return nil, errors.Join(err, n.release(context.Background()), n.remove())
	}
	return n, nil
}

func (n *node) Name() string { return nodeName(n.index) }

func (n *node) CPUs() []int { return n.cpus }

// Space is the node's network namespace.
func (n *node) Space() *space.Space { return n.space }

// FabricDevices are the node's NICs, one for each link.
func (n *node) FabricDevices() []string {
	var ds []string
	for l := range n.fabric.Links {
		ds = append(ds, fabricDevice(n.index, l))
	}
	return ds
}

// uplinks are the devices that systems use: the team, or every NIC.
func (n *node) uplinks() []string {
	if n.team != nil {
		return []string{n.team.device}
	}
	return n.FabricDevices()
}

// route gives the node's uplinks their addresses. If there are several, it adds a route to
// every other node over all of them.
func (n *node) route(nodes int) error {
	for l, dev := range n.uplinks() {
		for _, version := range []int{4, 6} {
			if err := n.space.Connect(dev, underlay(n.index, l, version)); err != nil {
				return err
			}
		}
	}
	if len(n.uplinks()) < 2 {
		return nil
	}
	for _, version := range []int{4, 6} {
		if err := n.space.Address("lo", steady(n.index, version)); err != nil {
			return err
		}
		for other := range nodes {
			if other == n.index {
				continue
			}
			r := &netlink.Route{Dst: space.IPNet(steady(other, version)), Src: net.IP(steady(n.index, version).Addr().AsSlice()), Congctl: space.CongestionControl()}
			for l := range n.fabric.Links {
				r.MultiPath = append(r.MultiPath, &netlink.NexthopInfo{Gw: net.IP(underlay(other, l, version).Addr().AsSlice())})
			}
			if err := n.space.Links.RouteAdd(r); err != nil {
				return fmt.Errorf("route from node %s to node %s over %d links: %w", n.Name(), nodeName(other), n.fabric.Links, err)
			}
		}
	}
	return nil
}

// startAgent starts the agent in the node's namespace. The agent, and the programs that it starts, may run on the CPUs in n.allowed.
func (n *node) startAgent(ctx context.Context, argv []string) error {
	cmd := child.Command(context.Background(), argv, "GOMAXPROCS=2", "GOGC=400")
	cmd.Stderr = os.Stderr
	var err error
	n.process, err = child.StartPiped(cmd, func(cmd *exec.Cmd) error { return startOn(n.space, n.allowed, cmd) })
	if err != nil {
		return fmt.Errorf("start the agent of node %s: %w", n.Name(), err)
	}
	if err := n.limitCPU(n.process.PID()); err != nil {
		return err
	}
	n.agent = agent.NewClient(n.Name(), n.process)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if n.hello, err = n.agent.Hello(ctx); err != nil {
		return fmt.Errorf("start the agent of node %s: %w", n.Name(), err)
	}
	if len(n.hello.CPUs) != len(n.allowed) {
		return fmt.Errorf("the agent of node %s runs on CPUs %v, not on %v: a cpuset forbids it", n.Name(), n.hello.CPUs, n.allowed)
	}
	return nil
}

// limitCPU gives the agent, and all that it will start, its share of the node's
// CPU time. The kernel never stops softirqs and kernel threads because of the share. But without CONFIG_IRQ_TIME_ACCOUNTING it counts
// the time of a softirq as time of the program that the softirq interrupts. Then that program uses up the share sooner.
func (n *node) limitCPU(pid int) error {
	if n.fabric.CPUShare == 0 {
		return nil
	}
	if err := space.LimitCPU(n.space.Name, n.fabric.CPUShare*float64(len(n.cpus)), pid); err != nil {
		return fmt.Errorf("give node %s %.3g %% of its CPU time: %w", n.Name(), 100*n.fabric.CPUShare, err)
	}
	return nil
}

// release ends the agent and closes the handles.
func (n *node) release(ctx context.Context) error {
	var errs []error
	lost := false
	if n.agent != nil {
		lost = n.agent.Lost() != nil
		errs = append(errs, n.agent.Close())
		n.agent = nil
	}
	if n.process != nil {
		errs = append(errs, n.reap(ctx, lost))
		n.process = nil
	}
	n.team.close()
	return errors.Join(append(errs, n.space.Close())...)
}

// reap waits for the agent, which ends when its pipe is closed. If it does not end, reap
// kills it. An agent that was lost before is no error here, because its calls have failed.
func (n *node) reap(ctx context.Context, lost bool) error {
	defer n.process.CloseOutput()
	patience := 2 * time.Second
	if lost {
		patience = 0
	}
	select {
	case <-n.process.Ended:
		n.killed = n.process.Exit != nil
		if lost {
			return nil
		}
		return n.process.Exit
	case <-time.After(patience):
	case <-ctx.Done():
	}
	n.killed = true
	if err := n.process.Stop(0); err != nil {
		return fmt.Errorf("kill the agent of node %s: %w", n.Name(), err)
	}
	if lost {
		return nil
	}
	return fmt.Errorf("the agent of node %s did not end by itself and was killed", n.Name())
}

// remove deletes the namespaces of the node and of its containers.
func (n *node) remove() error {
	base := n.space.Name
	var errs []error
	containers, err := space.Named(base + "-")
	errs = append(errs, err)
	for _, name := range append(containers, base) {
		errs = append(errs, space.Delete(name))
	}
	if n.fabric.CPUShare > 0 {
		errs = append(errs, space.DeleteCgroups(base))
	}
	return errors.Join(errs...)
}
