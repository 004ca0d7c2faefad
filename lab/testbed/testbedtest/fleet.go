package testbedtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"

	"windtunnel/lab/agent"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
)

// Fleet is many fake hosts. As with hosts that are reached by SSH, the engine has a
// connection to each host, and starts an agent on two of them for each trial.
type Fleet struct {
	// Rate returns the payload that crosses the fabric between two hosts, bit/s; nil:
	// the constant Rate.
	Rate func(from, to string) float64
	// Began is called when a testbed of two hosts is made; may be nil.
	Began func(from, to string)

	executor Executor
	hosts    map[string]*fleetHost

	mu   sync.Mutex
	most int // largest number of testbeds that had a host at the same time
}

// fleetHost is a fake host.
type fleetHost struct {
	name   string
	client *agent.Client
	far    net.Conn // the host's end

	// The fleet's mutex guards these.
	gone  bool
	inUse int
	nodes map[*node]bool
}

// NewFleet makes the hosts and connects to them. The caller must close the fleet.
func NewFleet(hosts []string) (*Fleet, error) {
	f := &Fleet{executor: Executor{forget: true}, hosts: map[string]*fleetHost{}}
	for _, name := range hosts {
		near, far := net.Pipe()
		server := rpc.NewServer()
		if err := server.RegisterName(agent.ServiceName, hostService{}); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		go server.ServeConn(far)
		f.hosts[name] = &fleetHost{name: name, client: agent.NewClient(name, near), far: far, nodes: map[*node]bool{}}
	}
	return f, nil
}

// hostService answers the calls that keep a connection to a host open.
type hostService struct{}

// Ping answers at once.
func (hostService) Ping(struct{}, *struct{}) error { return nil }

// Close ends the connections.
func (f *Fleet) Close() error {
	var errs []error
	for _, h := range f.hosts {
		lost := h.client.Lost() != nil
		if err := h.client.Close(); !lost && !f.isGone(h) {
			errs = append(errs, err)
		}
		h.far.Close()
	}
	return errors.Join(errs...)
}

func (f *Fleet) isGone(h *fleetHost) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return h.gone
}

// Vanish ends all connections to a host, and no new one succeeds.
func (f *Fleet) Vanish(host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[host]
	h.gone = true
	h.far.Close()
	for n := range h.nodes {
		n.pipe.Close()
	}
}

// Most returns the largest number of testbeds that had one host at the same time. In a
// correct tournament it is 1.
func (f *Fleet) Most() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

// Between implements testbed.Chooser.
func (f *Fleet) Between(from, to string) (testbed.Executor, error) {
	p := &pairOfFleet{fleet: f}
	for _, name := range []string{from, to} {
		h := f.hosts[name]
		if h == nil {
			return nil, fmt.Errorf("the fleet has no host %s", name)
		}
		p.hosts = append(p.hosts, h)
	}
	return p, nil
}

// Layout implements testbed.Executor.
func (f *Fleet) Layout(int) (testbed.Layout, error) { return pairLayout, nil }

// Requires implements testbed.Executor.
func (f *Fleet) Requires(*suite.Scenario, system.About) ([]string, error) { return nil, nil }

// Up returns an error: a testbed has two hosts, and Between chooses them.
func (f *Fleet) Up(context.Context, testbed.Spec) (testbed.Testbed, error) {
	return nil, errors.New("choose two hosts of the fleet with Between")
}

// pairLayout has the CPU of each host. The hosts are different machines.
var pairLayout = testbed.Layout{Nodes: [][]int{{0}, {0}}}

// pairOfFleet makes testbeds of two hosts.
type pairOfFleet struct {
	fleet *Fleet
	hosts []*fleetHost
}

// Layout implements testbed.Executor.
func (p *pairOfFleet) Layout(int) (testbed.Layout, error) { return pairLayout, nil }

// Requires implements testbed.Executor.
func (p *pairOfFleet) Requires(*suite.Scenario, system.About) ([]string, error) { return nil, nil }

// Up implements testbed.Executor.
func (p *pairOfFleet) Up(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	names := []string{p.hosts[0].name, p.hosts[1].name}
	for _, h := range p.hosts {
		if p.fleet.isGone(h) {
			return nil, fmt.Errorf("host %s does not answer", h.name)
		}
		if err := h.client.Call(ctx, agent.ServiceName+".Ping", struct{}{}, &struct{}{}); err != nil {
			return nil, err
		}
	}
	if p.fleet.Began != nil {
		p.fleet.Began(names[0], names[1])
	}
	tb := &pairTestbed{Testbed: &Testbed{executor: &p.fleet.executor, layout: pairLayout, hosts: names}, pair: p}
	if p.fleet.Rate != nil {
		tb.rate = p.fleet.Rate(names[0], names[1])
	}
	p.use(1)
	for i := range p.hosts {
		n, err := tb.addNode(ctx, i, spec)
		if err == nil {
			err = p.add(i, n)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start the agent of host %s: %w", names[i], err), tb.Down(ctx))
		}
	}
	return tb, nil
}

// use adds to the number of testbeds that have the hosts.
func (p *pairOfFleet) use(change int) {
	f := p.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range p.hosts {
		h.inUse += change
		f.most = max(f.most, h.inUse)
	}
}

// add adds a node to a host, so that it ends with the host.
func (p *pairOfFleet) add(i int, n *node) error {
	f := p.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.hosts[i].gone {
		return errors.New("the host does not answer")
	}
	p.hosts[i].nodes[n] = true
	return nil
}

// pairTestbed is a testbed of two hosts.
type pairTestbed struct {
	*Testbed
	pair *pairOfFleet
}

// Down implements testbed.Testbed.
func (tb *pairTestbed) Down(ctx context.Context) error {
	err := tb.Testbed.Down(ctx)
	tb.pair.fleet.mu.Lock()
	for i, n := range tb.nodes {
		delete(tb.pair.hosts[i].nodes, n)
	}
	tb.pair.fleet.mu.Unlock()
	tb.pair.use(-1)
	return err
}
