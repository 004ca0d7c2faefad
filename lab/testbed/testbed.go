// Package testbed describes compute nodes and the fabric that joins them. Executors make
// testbeds; each executor has a folder. The engine reaches a node only through its agent.
package testbed

import (
	"context"
	"net/netip"

	"windtunnel/lab/agent"
	"windtunnel/lab/delayline"
	"windtunnel/lab/meter"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
)

// Spec describes the testbed to make.
type Spec struct {
	ID     string // short; part of every name that the executor gives
	Nodes  int    // ≥ 2
	Fabric suite.Fabric
	Marks  bool // count the bytes on the fabric by DSCP, if the fabric is able to
}

// Marks has the number of bytes with each DSCP: of the outer IP header of each frame.
type Marks map[suite.DSCP]uint64

// Executor makes testbeds.
type Executor interface {
	// Layout returns the CPUs of a testbed with this number of nodes. The error says
	// why the executor cannot make such a testbed.
	Layout(nodes int) (Layout, error)
	// Requires lists the kernel features that a scenario's testbed needs, by their names
	// in lab/probe. about describes the scenario's system. The error says why the executor
	// cannot make the testbed.
	Requires(sc *suite.Scenario, about system.About) (features []string, err error)
	// Up makes a testbed. If it fails, it removes all that it has made.
	Up(ctx context.Context, spec Spec) (Testbed, error)
}

// Chooser is an executor for which the caller can choose the hosts of the nodes.
type Chooser interface {
	Executor
	// Between returns an executor of testbeds with two nodes: the named hosts, in this
	// order. Both executors share the hosts and their connections.
	Between(from, to string) (Executor, error)
}

// Testbed is nodes joined by a fabric.
type Testbed interface {
	Nodes() []Node
	Layout() Layout
	Fabric() Fabric
	// Settings returns the settings of devices and namespaces, for the run's record.
	Settings() space.Settings
	Down(ctx context.Context) error
	// Release ends the agents, but keeps namespaces and devices, for use by hand.
	Release(ctx context.Context) error
}

// Cluster is implemented by executors whose testbeds are in a Kubernetes cluster. They run
// the systems for which system.About.InCluster is true, and no others.
type Cluster interface{ Cluster() }

// Controlled is implemented by testbeds with a control plane that can run on the nodes' CPUs.
// Its CPU time is a figure apart, and no trial fails for it.
type Controlled interface {
	ControlPlane() []string // names of its programs
}

// Delaying is implemented by testbeds with delay lines, which hold the frames of links with a delay.
type Delaying interface {
	Delays() delayline.Reading // since the testbed was made
	LinePIDs() []int           // processes of the delay lines
}

// Furnished is implemented by testbeds whose endpoints exist before the system is
// attached, such as pods. The engine makes no containers there.
type Furnished interface {
	// Endpoints returns the sender and the receiver of a scenario whose system does not
	// run on the nodes themselves.
	Endpoints(sc *suite.Scenario, about system.About) (sender, receiver Endpoint, err error)
}

// Endpoint is an endpoint of a Furnished testbed.
type Endpoint struct {
	Node   int    // index of its node
	Name   string // unique on its node
	V4, V6 netip.Addr
	// Listen is the address on which the endpoint listens, if others reach it by V4 at
	// another address.
	Listen     netip.Addr
	Agent      *agent.Client    // runs in the endpoint, and starts the tools there
	Namespaces agent.Namespaces // of Agent
}

// Node is a compute node. Each node has separate CPUs, unless Layout.Shared is set.
type Node interface {
	Name() string
	CPUs() []int // the node's CPUs in the layout, different for each node. With Fabric.Unpinned, programs of other nodes run on them too
	// Addr is the node's address on the underlay; version is 4 or 6.
	Addr(version int) netip.Addr
	// Agent runs on the node, in its network namespace and on its CPUs.
	Agent() *agent.Client
	// Hello returns the agent's description of itself and of the node.
	Hello() agent.Hello
	// Attachment returns arguments for the agent's method Attach. The caller adds
	// the system and its containers.
	Attachment() agent.AttachArgs
}

// Fabric is the engine's interface to the underlay.
type Fabric interface {
	// Describe returns a sentence about the fabric, for the report.
	Describe() string
	// Clock returns the CPU seconds that the fabric has used so far, by CPU; nil if
	// they are not known.
	Clock() (map[int]float64, error)
	// Meter opens a meter for the fabric's ports; nil if the fabric has no ports.
	Meter() (*meter.Meter, error)
	// Marks returns the bytes that each node, by its name, has sent so far, with all headers;
	// nil if the fabric does not read the DSCP of its frames.
	Marks() (map[string]Marks, error)
	// Cut takes the carrier from the last link at all its ends, for good. The fabric has
	// a team of links.
	Cut() error
	// Warnings are doubts that hold for every trial on this fabric.
	Warnings() []string
}
