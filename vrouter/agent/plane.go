package agent

import (
	"context"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
)

// plane is what forwards packets: *datapath.Datapath, whose methods' comments
// hold here.
type plane interface {
	Apply(fib.Tables) (datapath.Changes, error)
	Dump() (fib.Tables, error)

	AttachVif(ifindex int) error
	AttachVifOfMany(ifindex int) error
	AttachFabric(ifindex int, noXDP string) (datapath.Fabric, error)
	GuardFabric(ifindex int) error
	Detach(ifindex int) error
	Attached() ([]datapath.Attachment, error)

	VifStats() (map[uint32]datapath.VifStats, error)
	VRFStats() (map[uint32]datapath.VRFStats, error)
	Drops() (map[datapath.DropKey]uint64, error)
	Outcomes() (datapath.Outcomes, error)
	LearnedMTUs() (map[uint32]uint32, error)
	Flows(func(datapath.FlowKey, datapath.Flow) bool) error
	ExpireFlows() (removed, left int, err error)
	DropLog(context.Context, func(datapath.DropEvent)) error
	Trace(ifindex int, frame []byte) ([]datapath.TraceStep, int32, error)

	Close() error
	Remove() error
}

// inSpace calls what names devices by number on a thread in the node's network
// namespace: the numbers are that namespace's.
type inSpace struct {
	plane
	space *space
}

// plane is the data path.
func (a *agent) plane() plane { return a.current.Load() }

// usePlane makes a data path the agent's.
func (a *agent) usePlane(real plane) {
	if a.unfollow != nil {
		a.unfollow()
	}
	a.current.Store(&inSpace{real, a.space})
	a.unfollow = a.followDrops(real)
}

// closePlane lets go of the data path; packets flow on.
func (a *agent) closePlane() error {
	a.unfollow()
	return a.plane().Close()
}

func (p inSpace) AttachVif(ifindex int) error {
	return p.space.do(func() error { return p.plane.AttachVif(ifindex) })
}

func (p inSpace) AttachVifOfMany(ifindex int) error {
	return p.space.do(func() error { return p.plane.AttachVifOfMany(ifindex) })
}

func (p inSpace) GuardFabric(ifindex int) error {
	return p.space.do(func() error { return p.plane.GuardFabric(ifindex) })
}

func (p inSpace) AttachFabric(ifindex int, noXDP string) (f datapath.Fabric, err error) {
	err = p.space.do(func() error {
		f, err = p.plane.AttachFabric(ifindex, noXDP)
		return err
	})
	return f, err
}

func (p inSpace) Detach(ifindex int) error {
	return p.space.do(func() error { return p.plane.Detach(ifindex) })
}

func (p inSpace) Attached() (all []datapath.Attachment, err error) {
	err = p.space.do(func() error {
		all, err = p.plane.Attached()
		return err
	})
	return all, err
}

// Apply looks at what is attached, to know when older maps are of no use.
func (p inSpace) Apply(t fib.Tables) (c datapath.Changes, err error) {
	err = p.space.do(func() error {
		c, err = p.plane.Apply(t)
		return err
	})
	return c, err
}

func (p inSpace) Trace(ifindex int, frame []byte) (steps []datapath.TraceStep, verdict int32, err error) {
	err = p.space.do(func() error {
		steps, verdict, err = p.plane.Trace(ifindex, frame)
		return err
	})
	return steps, verdict, err
}

func (p inSpace) Remove() error { return p.space.do(p.plane.Remove) }
