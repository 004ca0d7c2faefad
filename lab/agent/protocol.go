// Package agent is the program on a node. It starts the tools, makes containers,
// attaches the system under test and reads the meters. It works in the node's
// network namespace and on the node's CPUs. It answers net/rpc calls on its standard
// input and output, which can be any kind of pipe. It opens no port.
package agent

import (
	"net"
	"net/netip"
	"time"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
)

// ServiceName is the agent's service name in net/rpc.
const ServiceName = "Agent"

// Protocol is the version of the agent's calls and of their arguments. Increase it
// with every change that an older or newer agent would misread.
const Protocol = 6

// Hello describes an agent and its node.
type Hello struct {
	Protocol int
	Version  string // of the windtunnel program
	PID      int
	CPUs     []int  // that the agent and the programs that it starts may use
	Kernel   string // release
	// Boot is the boot ID of the node's kernel. Nodes with the same boot ID share
	// clock and processes.
	Boot string
}

// AttachArgs describe the system to attach on the node.
type AttachArgs struct {
	System     string
	Index      int
	SpaceBase  string // containers' namespaces are named SpaceBase-NAME
	Fabric     []string
	Team       []string // NICs below Fabric[0], if links are bonded
	Underlay   []netip.Addr
	MTU        int
	CPUs       []int
	Unpinned   bool // the nodes share CPUs, so a VM's virtual CPUs are not pinned to CPUs
	Steer      bool
	Endpoint   suite.Endpoint // kind and settings of every container: a namespace or a VM
	Programs   []string       // paths of the tools that will run in VMs
	Containers []Container
	Everywhere [][]Container // containers of every node, by node index
	Change     suite.Change  // the kind of change that calls of Change make; "": none
	Spares     []Container   // by node index: the container that joins and leaves the network; its name is "" if there is none
}

// Container describes a container to make on the node. If AttachArgs.Endpoint is a
// VM, it describes a VM.
type Container struct {
	Name   string // empty: no container, but a virtual NIC of the node itself
	V4, V6 netip.Prefix
	MAC    net.HardwareAddr
	// Network is the inode of the container's network namespace if the container exists
	// already, such as a pod; else 0. The agent then uses that namespace and never deletes it.
	Network uint32
}

// Attached is the result of Attach.
type Attached struct {
	Devices  []system.Device
	Settings space.Settings
	Warnings []string // warnings that concern every figure of this system
}

// StartArgs start one program.
type StartArgs struct {
	Endpoint string // name of the container; "" for the node
	Argv     []string
	Env      []string
}

// Started is the reply to Start.
type Started struct {
	Process int    // number of the process
	Missing string // why the program was not found; "" if it was started
	PID     int    // in the agent's PID namespace; 0 for a program in a VM
}

// Event is the progress of a process since From.
type Event struct {
	Lines  []Line
	Next   int // index for the following call
	Exited bool
	Exit   int // −1 if a signal ended it
}

// Line is one line of a process's output.
type Line struct {
	Err  bool // on standard error
	Text string
}

// FollowArgs wait for news of a process.
type FollowArgs struct {
	Process int
	From    int
	Wait    time.Duration
}

// SignalArgs send a signal to a process and its children.
type SignalArgs struct {
	Process int
	Signal  int
}

// OutputReply is the complete output of a process.
type OutputReply struct {
	Stdout, Stderr string
	Truncated      bool
}

// ListenArgs wait until a port listens in an endpoint's namespace.
type ListenArgs struct {
	Endpoint string
	Port     uint16
	UDP      bool
	Wait     time.Duration
}

// ReachArgs prove that an address can be reached from an endpoint.
type ReachArgs struct {
	Endpoint string
	Address  netip.Addr
	Port     uint16 // port of AnswerProof at the other side
	MTU      int    // of the endpoint's device
	Bytes    int    // of TCP each way
	Wait     time.Duration
	NoEcho   bool // the address answers no echo requests: test TCP only
}
