package experiment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/parallel"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
)

// Bench is a testbed with an attached system and the endpoints of every pair.
type Bench struct {
	Testbed testbed.Testbed
	Pairs   []Pair
	MTU     int // of the endpoints' devices

	scenario resolved
	devices  [][]system.Device // by node
	clocks   []time.Duration   // by node: its CLOCK_MONOTONIC minus the engine's
	settings space.Settings
	proof    int      // bytes that the proof of connectivity moves each way
	warnings []string // warnings of every trial on this system
}

// Pair is a sender and a receiver.
type Pair struct{ Sender, Receiver Endpoint }

// Endpoint is where a tool runs.
type Endpoint struct {
	Node   testbed.Node
	Name   string // container; empty for the node itself
	V4, V6 netip.Addr
	// Listen is the container's address if others reach it by V4 of its node, through
	// published ports.
	Listen netip.Addr

	agent *agent.Client    // in the endpoint; nil if the node's agent starts the tools
	in    agent.Namespaces // of agent
}

// String returns the endpoint's name in reports: "a/c1", or "a" for the node.
func (e Endpoint) String() string {
	if e.Name == "" {
		return e.Node.Name()
	}
	return e.Node.Name() + "/" + e.Name
}

// Addr is the endpoint's address of an IP version.
func (e Endpoint) Addr(version int) netip.Addr {
	if version == 6 {
		return e.V6
	}
	return e.V4
}

// NewBench brings up the testbed, the system and the endpoints of a scenario. The
// names in the testbed contain the id. If it fails, everything is removed.
func NewBench(ctx context.Context, x testbed.Executor, id string, sc *suite.Scenario, nodes int) (_ *Bench, err error) {
	c, err := resolve(sc)
	if err != nil {
		return nil, err
	}
	if why := c.unsupported(); len(why) > 0 {
		return nil, failed(sample.Unsupported, "%s", strings.Join(why, "; "))
	}
	if x, err = executorOf(x, sc); err != nil {
		return nil, err
	}
	tb, err := x.Up(ctx, testbed.Spec{ID: id, Nodes: nodes, Fabric: sc.Fabric, Marks: sc.Workload.DSCP > 0})
	if err != nil {
		return nil, fmt.Errorf("bring the testbed up: %w", err)
	}
	b := &Bench{Testbed: tb, MTU: system.MTU(c.system, sc.Fabric.MTU), scenario: c, settings: tb.Settings(), proof: proofSize(sc)}
	defer func() {
		if err != nil {
			err = errors.Join(err, tb.Down(context.WithoutCancel(ctx)))
		}
	}()
	if err := b.compareClocks(ctx); err != nil {
		return nil, err
	}
	plan, err := b.furnish()
	if err != nil {
		return nil, err
	}
	if plan == nil {
		plan = c.placeContainers(nodes)
		b.pair(plan)
	}
	if err := b.attach(ctx, plan); err != nil {
		return nil, errors.Join(err, b.detach(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// compareClocks measures the clock offset of each node that runs another kernel than
// the engine. It records the release of that kernel in the settings.
func (b *Bench) compareClocks(ctx context.Context) (err error) {
	nodes := b.Testbed.Nodes()
	b.clocks = make([]time.Duration, len(nodes))
	for i, n := range nodes {
		if sameKernel(n, agent.Boot()) {
			continue
		}
		if b.clocks[i], err = n.Agent().ClockOffset(ctx); err != nil {
			return fmt.Errorf("compare the clock of node %s: %w", n.Name(), err)
		}
		b.settings.Note(n.Name()+" kernel", n.Hello().Kernel)
	}
	return nil
}

// sameKernel reports whether a node runs the kernel with this boot ID.
func sameKernel(n testbed.Node, boot string) bool { return boot != "" && n.Hello().Boot == boot }

// Settings returns the network settings of every namespace, by node and container.
func (b *Bench) Settings() space.Settings { return b.settings }

// withOutput adds the last output of the system's programs to an error. It asks
// every node.
func (b *Bench) withOutput(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, n := range b.Testbed.Nodes() {
		if words, asked := n.Agent().LastWords(ctx); asked == nil && words != "" {
			err = fmt.Errorf("%w\non node %s %s", err, n.Name(), words)
		}
	}
	return err
}

// watched ends a context when a node's agent is lost, with that as its cause.
func (b *Bench) watched(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, a := range b.agents() {
		go func() {
			select {
			case <-a.Gone():
				cancel(a.Lost())
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// Down detaches the system and then removes the testbed.
func (b *Bench) Down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	return errors.Join(b.detach(ctx), b.Testbed.Down(ctx))
}

// detach detaches the system on every node in parallel.
func (b *Bench) detach(ctx context.Context) error {
	return parallel.Each(b.Testbed.Nodes(), func(_ int, n testbed.Node) error {
		// The testbed's Down ends the processes of a lost agent.
		if err := n.Agent().Detach(ctx); !isLost(err) {
			return err
		}
		return nil
	})
}

// placeContainers lists the containers of each node: one side of every pair on
// each of the first two nodes, or both sides on the first. A container without a name is
// the node itself.
func (c resolved) placeContainers(nodes int) [][]agent.Container {
	on := make([][]agent.Container, nodes)
	if c.about.OnNode {
		return on
	}
	sides := []int{0, 1}
	if c.Placement == suite.Colocated {
		sides[1] = 0
	}
	for i := range c.Pairs {
		for _, node := range sides {
			container := newContainer(node, len(on[node])+1)
			if c.Endpoint.HostVNIC && i == c.Pairs-1 {
				container.Name = ""
			}
			on[node] = append(on[node], container)
		}
	}
	return on
}

// spares returns another container for each node with containers.
func spares(plan [][]agent.Container) []agent.Container {
	list := make([]agent.Container, len(plan))
	for node, containers := range plan {
		if len(containers) > 0 {
			list[node] = newContainer(node, len(containers)+1)
		}
	}
	return list
}

// newContainer gives a container on a node its addresses. All containers share
// one network: 10.31.NODE.NUMBER+1/16 and fd31:c::NODE:NUMBER+1/64. The first
// address stays free for a router.
func newContainer(node, number int) agent.Container {
	host := number + 1
	v6 := [16]byte{0: 0xfd, 1: 0x31, 3: 0x0c, 13: byte(node), 14: byte(host >> 8), 15: byte(host)}
	return agent.Container{
		Name: fmt.Sprintf("c%d", number),
		V4:   netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 31, byte(node<<4 | host>>8), byte(host)}), 16),
		V6:   netip.PrefixFrom(netip.AddrFrom16(v6), 64),
		MAC:  net.HardwareAddr{0x02, 'w', 't', byte(node), byte(number >> 8), byte(number)},
	}
}

// attach attaches the system on every node in parallel.
func (b *Bench) attach(ctx context.Context, plan [][]agent.Container) error {
	nodes := b.Testbed.Nodes()
	b.devices = make([][]system.Device, len(nodes))
	var mu sync.Mutex
	return parallel.Each(nodes, func(i int, n testbed.Node) error {
		args := n.Attachment()
		args.System, args.Containers, args.Everywhere = b.scenario.System, plan[i], plan
		args.Endpoint, args.Change = b.scenario.Endpoint, b.scenario.Workload.Change
		if args.Change == suite.ChangePorts {
			args.Spares = spares(plan)
		}
		for _, p := range b.scenario.tool.Programs() {
			args.Programs = append(args.Programs, p.Name)
		}
		a, err := n.Agent().Attach(ctx, args)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		b.devices[i] = a.Devices
		for _, w := range a.Warnings {
			if !slices.Contains(b.warnings, w) {
				b.warnings = append(b.warnings, w)
			}
		}
		b.settings.Add(n.Name(), a.Settings)
		return nil
	})
}

// pair makes the pairs of senders and receivers.
func (b *Bench) pair(plan [][]agent.Container) {
	nodes := b.Testbed.Nodes()
	taken := make([]int, len(nodes))
	next := func(node int) Endpoint {
		e := Endpoint{Node: nodes[node], V4: nodes[node].Addr(4), V6: nodes[node].Addr(6)}
		if len(plan[node]) > 0 {
			c := plan[node][taken[node]]
			taken[node]++
			e.Name, e.V4, e.V6 = c.Name, c.V4.Addr(), c.V6.Addr()
		}
		return e
	}
	receiver := 1
	if b.scenario.Placement == suite.Colocated {
		receiver = 0
	}
	for range b.scenario.Pairs {
		p := Pair{Sender: next(0), Receiver: next(receiver)}
		if b.scenario.about.Publishes && receiver > 0 {
			p.Receiver.Listen, p.Receiver.V4 = p.Receiver.V4, nodes[receiver].Addr(4)
		}
		b.Pairs = append(b.Pairs, p)
	}
}

const (
	downTimeout  = 10 * time.Second
	proofTimeout = 10 * time.Second
)

// Prove tests that every pair can communicate over an IP version: a small and a
// full-MTU echo, and a bulk TCP transfer each way.
func (b *Bench) Prove(ctx context.Context, version int) error {
	for i, p := range b.Pairs {
		if err := b.provePair(ctx, p, version); err != nil {
			return failed(sample.NoConnectivity, "pair %d, IPv%d, node %s to node %s: %w", i+1, version, p.Sender.Node.Name(), p.Receiver.Node.Name(), err)
		}
	}
	return nil
}

// ProveAll is Prove over each IP version that the system carries.
func (b *Bench) ProveAll(ctx context.Context) error {
	if err := b.Prove(ctx, 4); err != nil || b.scenario.about.IPv4Only {
		return err
	}
	return b.Prove(ctx, 6)
}

func (b *Bench) provePair(ctx context.Context, p Pair, version int) error {
	wait := proofWait(b.scenario.Scenario, b.proof)
	ctx, cancel := context.WithTimeout(ctx, 2*wait)
	defer cancel()
	sender, from := p.Sender.tools()
	receiver, at := p.Receiver.tools()
	args := agent.ReachArgs{Endpoint: from, Address: p.Receiver.Addr(version), Port: agent.ProofPort, MTU: b.MTU, Bytes: b.proof, Wait: wait}
	args.NoEcho = p.Receiver.agent != nil && p.Receiver.Listen.IsValid() // the address of a service
	answer := args
	answer.Endpoint = at
	answered := make(chan error, 1)
	go func() { answered <- receiver.AnswerProof(ctx, answer) }()
	if err := sender.Reach(ctx, args); err != nil {
		cancel()
		<-answered
		return err
	}
	return <-answered
}

const (
	proofBytes = 10 << 20 // each way
	// guestProof is less, because an emulated CPU of a busy machine receives some Mbit/s.
	guestProof = 1 << 20
	// leastProof is still dozens of full frames, and crosses a link of 5 Mbit/s
	// in a tenth of a second.
	leastProof = 64 << 10
	proofTime  = 50 * time.Millisecond // duration of the transfer on a slow link, each way
	proofDelay = 10 * time.Millisecond // on a link with a longer delay the proof transfers leastProof, because slow start makes a large transfer take seconds
)

// proofWait returns the time limit of a proof of connectivity that transfers this number of bytes in each direction.
func proofWait(sc *suite.Scenario, bytes int) time.Duration {
	const trips = 30 // number of one-way delays that two echoes, a TCP handshake, two slow starts and some retransmissions take at most
	wait := proofTimeout + trips*sc.Fabric.Delay
	if sc.Fabric.Rate > 0 {
		wait += time.Duration(2 * 8 * float64(bytes) / float64(sc.Fabric.Rate) * float64(time.Second))
	}
	return wait
}

// proofSize returns the bytes that the proof of connectivity moves each way in a scenario.
func proofSize(sc *suite.Scenario) int {
	most := proofBytes
	if sc.Endpoint.Kind == suite.VM {
		most = guestProof
	}
	switch {
	case sc.Fabric.Delay > proofDelay:
		return leastProof
	case sc.Fabric.Rate <= 0:
		return most
	}
	carried := float64(sc.Fabric.Rate) / 8 * proofTime.Seconds()
	return int(min(float64(most), max(leastProof, carried)))
}

// furnish uses endpoints that the testbed has already, such as pods, as the sender and the
// receiver of the scenario. It returns them as the containers of each node; nil if the testbed
// has none, or if the tools run on the nodes.
func (b *Bench) furnish() ([][]agent.Container, error) {
	tb, ok := b.Testbed.(testbed.Furnished)
	if !ok || b.scenario.about.OnNode {
		return nil, nil
	}
	sender, receiver, err := tb.Endpoints(b.scenario.Scenario, b.scenario.about)
	if err != nil {
		return nil, err
	}
	nodes := b.Testbed.Nodes()
	plan := make([][]agent.Container, len(nodes))
	for _, e := range []testbed.Endpoint{sender, receiver} {
		if b.scenario.Workload.IPVersion == 4 && !e.V4.IsValid() || b.scenario.Workload.IPVersion == 6 && !e.V6.IsValid() {
			return nil, fmt.Errorf("endpoint %s of node %s has no IPv%d address; the cluster does not give it one", e.Name, nodes[e.Node].Name(), b.scenario.Workload.IPVersion)
		}
		plan[e.Node] = append(plan[e.Node], agent.Container{Name: e.Name, V4: alone(e.V4), V6: alone(e.V6), Network: e.Namespaces.Network})
	}
	b.MTU = min(sender.Namespaces.MTU, receiver.Namespaces.MTU)
	own := func(e testbed.Endpoint) Endpoint {
		return Endpoint{Node: nodes[e.Node], Name: e.Name, V4: e.V4, V6: e.V6, Listen: e.Listen, agent: e.Agent, in: e.Namespaces}
	}
	b.Pairs = []Pair{{Sender: own(sender), Receiver: own(receiver)}}
	return plan, nil
}

// alone returns the prefix that has only this address; not valid if the address is not.
func alone(a netip.Addr) netip.Prefix {
	if !a.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// tools returns the agent that starts the endpoint's tools, and the endpoint's name there.
func (e Endpoint) tools() (a *agent.Client, name string) {
	if e.agent != nil {
		return e.agent, ""
	}
	return e.Node.Agent(), e.Name
}

// tracked returns the arguments with which the agent of the endpoint's node meters a
// process of the endpoint.
func (e Endpoint) tracked(p *agent.Process, label string) agent.TrackArgs {
	if e.agent != nil {
		return agent.TrackArgs{PID: p.PID(), Processes: e.in.Processes, Label: label}
	}
	return agent.TrackArgs{Process: p.ID(), Label: label}
}

// agents lists the agents of all nodes and of the endpoints that have one.
func (b *Bench) agents() (list []*agent.Client) {
	for _, n := range b.Testbed.Nodes() {
		list = append(list, n.Agent())
	}
	for _, p := range b.Pairs {
		for _, e := range []Endpoint{p.Sender, p.Receiver} {
			if e.agent != nil {
				list = append(list, e.agent)
			}
		}
	}
	return list
}
