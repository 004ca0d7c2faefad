package netns

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// twoCPUs is an executor whose nodes have the same two CPUs, so that a NIC with two
// queues works on any machine with a test's CPUs.
func twoCPUs(t *testing.T) *Executor {
	x := executor(t)
	x.Given = testbed.Layout{Nodes: [][]int{x.CPUs[:2], x.CPUs[:2]}, Shared: true}
	return x
}

// byQueue counts the frames that each receive queue of a node's NIC has taken.
func byQueue(t *testing.T, tb *Testbed, node int) []uint64 {
	t.Helper()
	frames := make([]uint64, tb.spec.Fabric.Queues)
	err := tb.nodes[node].space.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		stats, err := e.Stats(fabricDevice(node, 0))
		for q := range frames {
			n, ok := stats[fmt.Sprintf("rx_queue_%d_xdp_packets", q)] // veth counts every frame that it polls
			if !ok && err == nil {
				err = fmt.Errorf("no counter of queue %d in %v", q, stats)
			}
			frames[q] = n
		}
		return err
	})
	must.Succeed(t, err)
	return frames
}

// attachTwo puts two containers on the bridge of each node, and lets the first node reach
// each container of the second.
func attachTwo(t *testing.T, tb *Testbed) (reach func(container int)) {
	t.Helper()
	ctx := context.Background()
	container := func(node, number int) agent.Container {
		return agent.Container{
			Name: fmt.Sprintf("c%d", number), MAC: net.HardwareAddr{2, 'w', 't', byte(node), 0, byte(number)},
			V4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 31, byte(node), byte(number)}), 16),
			V6: netip.MustParsePrefix(fmt.Sprintf("fd31:c::%d:%d/64", node+1, number)),
		}
	}
	for i, n := range tb.nodes {
		args := n.Attachment()
		args.System, args.Containers = "bridge", []agent.Container{container(i, 1), container(i, 2)}
		must.Get(n.agent.Attach(ctx, args))(t)
	}
	return func(number int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		to := container(1, number)
		args := agent.ReachArgs{Endpoint: to.Name, Address: to.V4.Addr(), Port: agent.ProofPort, MTU: 1500, Bytes: 1 << 20, Wait: 10 * time.Second}
		answered := make(chan error, 1)
		go func() { answered <- tb.nodes[1].agent.AnswerProof(ctx, args) }()
		must.Succeed(t, tb.nodes[0].agent.Reach(ctx, args))
		must.Succeed(t, <-answered)
	}
}

// added returns how many frames each queue has taken since before.
func added(after, before []uint64) []uint64 {
	d := slices.Clone(after)
	for i := range d {
		d[i] -= before[i]
	}
	return d
}

// All flows of an adapter are on its queue, and another adapter has another queue.
func TestEachAdapterHasAReceiveQueue(t *testing.T) {
	for name, change := range map[string]func(*suite.Fabric){
		"tcp offload": func(f *suite.Fabric) {}, "no offload": func(f *suite.Fabric) { f.Offload = suite.OffloadNone },
		"jumbo frames": func(f *suite.Fabric) { f.MTU = 9000 },
	} {
		t.Run(name, func(t *testing.T) {
			f := fabric(func(f *suite.Fabric) { f.Queues, f.Steering = 2, suite.ByMAC })
			change(&f)
			tb := up(t, twoCPUs(t), 2, f)
			reach := attachTwo(t, tb)
			reach(1) // the adapters get their queues in this order
			reach(2)
			for queue, container := range []int{1, 2} {
				before := byQueue(t, tb, 1)
				for range 6 {
					reach(container)
				}
				got := added(byQueue(t, tb, 1), before)
				if got[queue] < 6<<20/uint64(f.MTU) || got[1-queue] > 100 { // ARP and neighbour discovery are few
					t.Errorf("frames for container %d by queue: %v, want them on queue %d", container, got, queue)
				}
			}
		})
	}
}

// Without steering, the flows of one adapter are on all queues.
func TestFlowsOfAnAdapterAreOnAllReceiveQueues(t *testing.T) {
	tb := up(t, twoCPUs(t), 2, fabric(func(f *suite.Fabric) { f.Queues = 2 }))
	reach := attachTwo(t, tb)
	before := byQueue(t, tb, 1)
	var got []uint64
	for range 24 { // ports, and so queues, are by chance
		reach(1)
		if got = added(byQueue(t, tb, 1), before); slices.Min(got) > 700 {
			return
		}
	}
	t.Errorf("24 flows to one container are on the queues %v", got)
}

// A queue has one CPU, or all of its node where the scheduler moves it.
func TestReceiveQueuesHaveACPUEachOrMove(t *testing.T) {
	for _, moving := range []bool{false, true} {
		tb := up(t, twoCPUs(t), 2, fabric(func(f *suite.Fabric) { f.Queues, f.MovingQueues = 2, moving }))
		n := tb.nodes[1]
		pids := napiOf(t, n)
		served := map[int]int{} // by CPU: queues that it may serve
		for _, pid := range pids {
			var set unix.CPUSet
			must.Succeed(t, unix.SchedGetaffinity(pid, &set))
			for _, cpu := range n.cpus {
				if set.IsSet(cpu) {
					served[cpu]++
				}
			}
		}
		want := map[int]int{n.cpus[0]: 1, n.cpus[1]: 1}
		if moving {
			want = map[int]int{n.cpus[0]: 2, n.cpus[1]: 2}
		}
		if !maps.Equal(served, want) {
			t.Errorf("moving %v: queues by CPU are %v, want %v", moving, served, want)
		}
		if err := tb.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// The listing by device never falls back to the one by name, which also has the threads of
// other testbeds.
func TestThreadsAreListedByDevice(t *testing.T) {
	tb := up(t, twoCPUs(t), 2, fabric(func(f *suite.Fabric) { f.Queues = 2 }))
	l := must.Get(tb.nodes[0].space.Link(fabricDevice(0, 0)))(t)
	for range 200 {
		if pids, err := napiThreads(tb.nodes[0].space, l.Attrs().Index); err != nil || len(pids) != 2 {
			t.Fatalf("threads %v (%v), want one for each of 2 queues", pids, err)
		}
	}
}
