// Package testbedtest has fake testbeds for tests of the engine. They need neither
// root nor network namespaces. The engine uses its real client and protocol to call
// a fake agent on each node. A fake agent attaches no system, starts no program and
// returns computed meter readings. It uses the clock of package time. Tests that use
// testing/synctest therefore take no real time.
package testbedtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/rpc"
	"sync"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/meter"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
)

// Executor makes fake testbeds. With the zero value, each node has one CPU and every
// operation succeeds.
type Executor struct {
	CPUs  []int       // CPUs of all nodes; 0 and 1 if empty
	Hello agent.Hello // each agent's answer; CPUs and Boot are set for each node
	// NoFabric is the error of Requires.
	NoFabric error
	// Ahead is how far each node's clock is ahead of the test's clock. A node in this
	// list has a different boot ID, so it counts as another machine.
	Ahead []time.Duration
	// Hook is called before each operation. Its error is the operation's result.
	Hook func(Operation) error
	// Program returns the behaviour of a program that an agent starts. The default
	// is Generator.
	Program func(argv []string) Program

	mu     sync.Mutex
	done   []Operation
	up     *Testbed // the testbed that was made last
	forget bool     // do not keep the operations
}

// Operation is a call to the executor or to an agent.
type Operation struct {
	Up   int    // number of the testbed, from 1
	Node string // empty for Up and Down
	Name string // Up, Down, or the agent's method
	Args any
}

// String returns "Up", or for an agent's method "a.Attach".
func (o Operation) String() string {
	if o.Node == "" {
		return o.Name
	}
	return o.Node + "." + o.Name
}

// Operations lists the operations so far, oldest first.
func (x *Executor) Operations() []Operation {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]Operation(nil), x.done...)
}

// do records an operation and calls the hook.
func (x *Executor) do(o Operation) error {
	if !x.forget {
		x.mu.Lock()
		x.done = append(x.done, o)
		x.mu.Unlock()
	}
	if x.Hook != nil {
		return x.Hook(o)
	}
	return nil
}

// Kill ends the agent of a node in the last testbed.
func (x *Executor) Kill(node string) { x.pipe(node).Close() }

// Stop makes the agent of a node in the last testbed ignore all further calls, as
// SIGSTOP does.
func (x *Executor) Stop(node string) { x.pipe(node).stopped.Store(true) }

func (x *Executor) pipe(name string) *pipe {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.up.nodes {
		if n.name == name {
			return n.pipe
		}
	}
	panic("testbedtest: no node " + name)
}

// Layout implements testbed.Executor.
func (x *Executor) Layout(nodes int) (testbed.Layout, error) {
	cpus := x.CPUs
	if len(cpus) == 0 {
		cpus = []int{0, 1}
	}
	return testbed.PlanCPUs(cpus, nodes)
}

// Requires implements testbed.Executor.
func (x *Executor) Requires(*suite.Scenario, system.About) ([]string, error) { return nil, x.NoFabric }

// Up implements testbed.Executor.
func (x *Executor) Up(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	x.mu.Lock()
	tb := &Testbed{executor: x, number: 1}
	if x.up != nil {
		tb.number = x.up.number + 1
	}
	x.up = tb
	x.mu.Unlock()
	if err := x.do(Operation{Up: tb.number, Name: "Up", Args: spec}); err != nil {
		return nil, err
	}
	var err error
	if tb.layout, err = x.Layout(spec.Nodes); err != nil {
		return nil, err
	}
	for i := range spec.Nodes {
		n, err := tb.addNode(ctx, i, spec)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start the agent of node %s: %w", n.name, err), tb.Down(ctx))
		}
	}
	return tb, nil
}

// Testbed is a testbed of fake nodes. It is its own fabric.
type Testbed struct {
	executor *Executor
	number   int
	layout   testbed.Layout
	nodes    []*node
	traffic  traffic
	hosts    []string // names of the nodes, each on another machine; nil: a, b, … on one machine
	rate     float64  // payload that crosses the fabric while a program sends, bit/s; 0: Rate
}

// Nodes implements testbed.Testbed.
func (tb *Testbed) Nodes() (list []testbed.Node) {
	for _, n := range tb.nodes {
		list = append(list, n)
	}
	return list
}

// Layout implements testbed.Testbed.
func (tb *Testbed) Layout() testbed.Layout { return tb.layout }

// Fabric implements testbed.Testbed.
func (tb *Testbed) Fabric() testbed.Fabric { return tb }

// Settings implements testbed.Testbed.
func (tb *Testbed) Settings() (none space.Settings) { return none }

// Describe implements testbed.Fabric.
func (tb *Testbed) Describe() string { return "a fake fabric" }

// Clock implements testbed.Fabric.
func (tb *Testbed) Clock() (map[int]float64, error) { return nil, nil }

// Marks implements testbed.Fabric.
func (tb *Testbed) Marks() (map[string]testbed.Marks, error) { return nil, nil }

// Meter implements testbed.Fabric.
func (tb *Testbed) Meter() (*meter.Meter, error) { return nil, nil }

// Warnings implements testbed.Fabric.
func (tb *Testbed) Warnings() []string { return nil }

// Cut implements testbed.Fabric.
func (tb *Testbed) Cut() error { return tb.executor.do(Operation{Up: tb.number, Name: "Cut"}) }

// Down implements testbed.Testbed.
func (tb *Testbed) Down(ctx context.Context) error {
	return errors.Join(tb.executor.do(Operation{Up: tb.number, Name: "Down"}), tb.Release(ctx))
}

// Release implements testbed.Testbed.
func (tb *Testbed) Release(context.Context) error {
	var errs []error
	for _, n := range tb.nodes {
		lost := n.client.Lost() != nil
		if err := n.client.Close(); !lost {
			errs = append(errs, err)
		}
		n.pipe.Close()
	}
	return errors.Join(errs...)
}

// node is a fake compute node.
type node struct {
	index  int
	name   string
	cpus   []int
	mtu    int
	client *agent.Client
	hello  agent.Hello
	pipe   *pipe // the agent's end
}

func (tb *Testbed) addNode(ctx context.Context, i int, spec testbed.Spec) (*node, error) {
	near, far := net.Pipe()
	n := &node{index: i, name: string(rune('a' + i)), cpus: tb.layout.Nodes[i], mtu: spec.Fabric.MTU, pipe: &pipe{Conn: far}}
	if tb.hosts != nil {
		n.name = tb.hosts[i]
	}
	n.client = agent.NewClient(n.name, near)
	tb.nodes = append(tb.nodes, n)
	a := &fakeAgent{node: n, testbed: tb, hello: tb.executor.Hello, began: time.Now()}
	if a.hello.Protocol == 0 {
		a.hello.Protocol = agent.Protocol
	}
	a.hello.CPUs, a.hello.Boot = n.cpus, agent.Boot()
	if i < len(tb.executor.Ahead) {
		a.ahead = tb.executor.Ahead[i]
	}
	if i < len(tb.executor.Ahead) || tb.hosts != nil {
		a.hello.Boot = "of node " + n.name
	}
	server := rpc.NewServer()
	if err := server.RegisterName(agent.ServiceName, a); err != nil {
		return n, err
	}
	go server.ServeConn(n.pipe)
	var err error
	n.hello, err = n.client.Hello(ctx)
	return n, err
}

func (n *node) Name() string { return n.name }

func (n *node) CPUs() []int { return n.cpus }

func (n *node) Addr(version int) netip.Addr {
	if version == 6 {
		return netip.MustParseAddr(fmt.Sprintf("fd31::%d", n.index+1))
	}
	return netip.AddrFrom4([4]byte{172, 31, 0, byte(n.index + 1)})
}

func (n *node) Agent() *agent.Client { return n.client }

func (n *node) Hello() agent.Hello { return n.hello }

func (n *node) Attachment() agent.AttachArgs {
	return agent.AttachArgs{Index: n.index, SpaceBase: "fake-" + n.name, Fabric: []string{fabricDevice}, MTU: n.mtu, CPUs: n.cpus}
}
