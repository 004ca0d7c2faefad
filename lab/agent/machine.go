package agent

import (
	"context"

	"windtunnel/lab/meter"
	"windtunnel/lab/meter/foreign"
)

// WatchArgs list the CPUs and programs of the experiment on one machine. If several
// nodes share the machine, only one of their agents watches it.
type WatchArgs struct {
	Nodes      []int // CPUs of the nodes; foreign tasks are counted on these
	Taken      []int // all CPUs that the experiment uses
	Namespaces []uint32
	Processes  []int // PIDs of the agents and of the engine
}

// WatchReply says whether the agent can measure foreign CPU time.
type WatchReply struct {
	Blind string // why it cannot; "" if it can
}

// MachineReading has the CPU time of work outside the experiment.
type MachineReading struct {
	Foreign map[int]foreign.Usage // by CPU; nil if it cannot be measured
	Others  meter.Reading         // of the CPUs that the experiment does not use; without CPUs if it uses all
}

// NodeReading is a reading of all meters of a node. Machine is empty unless the
// node's agent watches the machine.
type NodeReading struct {
	Node    meter.Reading
	Machine MachineReading
}

// machineMeters has the meters for work outside the experiment.
type machineMeters struct {
	foreign *foreign.Meter // nil if the kernel does not allow it
	others  *meter.Meter   // nil if the experiment uses every CPU
}

// MachineWatch opens the meters for work outside the experiment. They stay open
// until the agent ends or MachineWatch is called again.
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

func (m *machineMeters) read() (r MachineReading, err error) {
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

func (m *machineMeters) close() {
	if m.foreign != nil {
		m.foreign.Close()
	}
	if m.others != nil {
		m.others.Close()
	}
	*m = machineMeters{}
}

// MachineWatch makes the agent measure work outside the experiment on its machine.
func (c *Client) MachineWatch(ctx context.Context, args WatchArgs) (WatchReply, error) {
	return ask[WatchReply](ctx, c, "MachineWatch", args)
}
