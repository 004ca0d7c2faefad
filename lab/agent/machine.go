package agent

import (
	"context"

	"windtunnel/lab/meter"
	"windtunnel/lab/meter/foreign"
)

// WatchArgs describe the experiment to the agent that watches a machine. Several
// nodes may share the machine; one of their agents watches it.
type WatchArgs struct {
	Nodes      []int // CPUs of the nodes: foreign tasks count there
	Taken      []int // CPUs with a part in the experiment
	Namespaces []uint32
	Processes  []int // beside the agent
}

// WatchReply says what cannot be watched.
type WatchReply struct {
	Blind string // why foreign CPU time is not known; empty where it is
}

// MachineReading is a reading of what runs outside the experiment.
type MachineReading struct {
	Foreign map[int]foreign.Usage // by CPU; nil where it is not known
	Others  meter.Reading         // of the CPUs without a part; without CPUs where there are none
}

// NodeReading is a full reading of a node, and of its machine where the node's
// agent watches that.
type NodeReading struct {
	Node    meter.Reading
	Machine MachineReading
}

// machine meters what runs outside the experiment.
type machine struct {
	foreign *foreign.Meter // nil where the kernel does not allow it
	others  *meter.Meter   // nil where every CPU has a part
}

// MachineWatch begins to watch the machine until the agent ends. It replaces an
// earlier watch.
func (s *Service) MachineWatch(args WatchArgs, reply *WatchReply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.close()
	var err error
	if s.machine.others, err = meter.NewOthers(args.Taken); err != nil {
		return err
	}
	m, err := foreign.Open(args.Nodes)
	if err != nil {
		reply.Blind = err.Error()
		return nil
	}
	s.machine.foreign = m
	return m.Allow(args.Namespaces, args.Processes)
}

func (m *machine) read() (r MachineReading, err error) {
	if m.foreign != nil {
		if r.Foreign, err = m.foreign.Read(); err != nil {
			return r, err
		}
	}
	if m.others != nil {
		r.Others, err = m.others.Read()
	}
	return r, err
}

func (m *machine) close() {
	if m.foreign != nil {
		m.foreign.Close()
	}
	if m.others != nil {
		m.others.Close()
	}
	*m = machine{}
}

// MachineWatch begins to watch the machine that the node runs on.
func (c *Client) MachineWatch(ctx context.Context, args WatchArgs) (WatchReply, error) {
	return ask[WatchReply](ctx, c, "MachineWatch", args)
}
