package remote

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"windtunnel/lab/agent"
	"windtunnel/lab/meter"
	"windtunnel/lab/parallel"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// Network is a testbed of nodes on machines that are joined by their existing network. It is its
// own fabric.
type Network[N Member] struct {
	List     []N
	CPUs     testbed.Layout
	Name     string // in sentences, such as "the network of a cluster"
	MTU      int
	Offloads string // says whether the lab changed the offloads of the devices
}

// Member is a node of a Network. It embeds a Node.
type Member interface {
	testbed.Node
	// Common returns the embedded Node.
	Common() *Node
	// Start starts its agents, and sets Main and Settings of the Node.
	Start(ctx context.Context) error
	// Stop ends its agents.
	Stop(ctx context.Context) error
}

// Node is the part of a node that is the same in all networks.
type Node struct {
	ID       string           // its name
	Data     []netip.Addr     // its addresses in the network
	Args     agent.AttachArgs // with its CPUs and its device; Network.Start completes them
	Main     *Agent           // on the node itself
	Settings space.Settings   // for the run's record
}

// Common implements Member.
func (n *Node) Common() *Node { return n }

func (n *Node) Name() string { return n.ID }

func (n *Node) CPUs() []int { return n.Args.CPUs }

func (n *Node) Addr(version int) netip.Addr { return Address(n.Data, version) }

func (n *Node) Agent() *agent.Client { return n.Main.Client }

func (n *Node) Hello() agent.Hello { return n.Main.Hello }

func (n *Node) Attachment() agent.AttachArgs { return n.Args }

// Start starts the nodes. each calls a function for all of them. If a node does not start, Start ends
// all.
func (w *Network[N]) Start(ctx context.Context, each func([]N, func(int, N) error) error) error {
	for i, n := range w.List {
		args := &n.Common().Args
		args.Index, args.MTU = i, w.MTU
		for _, other := range w.List {
			args.Underlay = append(args.Underlay, other.Addr(4))
		}
	}
	err := each(w.List, func(_ int, n N) error { return n.Start(ctx) })
	if err != nil {
		err = errors.Join(err, w.Down(context.WithoutCancel(ctx)))
	}
	return err
}

// Nodes implements testbed.Testbed.
func (w *Network[N]) Nodes() (list []testbed.Node) {
	for _, n := range w.List {
		list = append(list, n)
	}
	return list
}

// Layout implements testbed.Testbed.
func (w *Network[N]) Layout() testbed.Layout { return w.CPUs }

// Fabric implements testbed.Testbed.
func (w *Network[N]) Fabric() testbed.Fabric { return w }

// Describe implements testbed.Fabric.
func (w *Network[N]) Describe() string {
	var devices []string
	for _, n := range w.List {
		devices = append(devices, n.Name()+" "+n.Common().Args.Fabric[0])
	}
	return fmt.Sprintf("%s (%s); MTU %d; %s", w.Name, strings.Join(devices, ", "), w.MTU, w.Offloads)
}

// Clock implements testbed.Fabric.
func (w *Network[N]) Clock() (map[int]float64, error) { return nil, nil }

// Marks implements testbed.Fabric.
func (w *Network[N]) Marks() (map[string]testbed.Marks, error) { return nil, nil }

// Meter implements testbed.Fabric.
func (w *Network[N]) Meter() (*meter.Meter, error) { return nil, nil }

// Cut implements testbed.Fabric.
func (w *Network[N]) Cut() error { return fmt.Errorf("the lab does not cut links of %s", w.Name) }

// Warnings implements testbed.Fabric.
func (w *Network[N]) Warnings() []string {
	if w.CPUs.Shared {
		return []string{"nodes of this testbed are on one machine and share CPUs: their CPU figures cannot be told apart"}
	}
	return nil
}

// Settings implements testbed.Testbed.
func (w *Network[N]) Settings() (all space.Settings) {
	for _, n := range w.List {
		all.Add(n.Name(), n.Common().Settings)
	}
	return all
}

// Down implements testbed.Testbed. Namespaces and pods stay until the executor is closed: a NIC
// that changes its namespace negotiates its link again.
func (w *Network[N]) Down(ctx context.Context) error {
	return parallel.Each(w.List, func(_ int, n N) error { return n.Stop(ctx) })
}

// Release implements testbed.Testbed.
func (w *Network[N]) Release(ctx context.Context) error { return w.Down(ctx) }

// Offers returns an error if a scenario's fabric has what no existing network offers. network is
// the name of the network.
func Offers(f suite.Fabric, network string) error {
	for _, lack := range []struct {
		asked bool
		what  string
	}{
		{f.RxChecksum != suite.RxChecksumAll, "checksums that NICs verify"}, {f.Rate > 0, "a rate"}, {f.Delay > 0, "a delay"}, {f.Loss > 0, "a loss"}, {f.Links > 1, "parallel links"}, {f.Cut > 0, "a link that is cut"},
		{f.Queues > 1, "a number of queues"}, {f.Steering != suite.ByFlow, "a choice of queues"}, {f.MovingQueues, "queues that move"}, {f.CPUShare > 0, "a share of CPU time"}, {f.Unpinned, "nodes that are not pinned"},
	} {
		if lack.asked {
			return fmt.Errorf("its fabric has %s, which %s does not offer", lack.what, network)
		}
	}
	return nil
}

// Address returns the first address of an IP version; not valid if there is none.
func Address(list []netip.Addr, version int) netip.Addr {
	for _, a := range list {
		if a.Is4() == (version == 4) {
			return a
		}
	}
	return netip.Addr{}
}
