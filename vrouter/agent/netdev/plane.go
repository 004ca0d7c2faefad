package netdev

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
)

// Plane is the data path. *datapath.Datapath implements it, and documents the methods.
type Plane interface {
	Apply(fib.Tables) (datapath.Changes, error)
	Update(before, after fib.Tables) (datapath.Changes, error)
	Differs(fib.Tables) (map[datapath.Entry]bool, error)
	Dump() (fib.Tables, error)

	AttachVif(ifindex int) error
	AttachVifNow(ifindex int) error
	AttachNetkit(ifindex int) error
	AttachFabric(ifindex int, noXDP string) (datapath.Fabric, error)
	GuardFabric(ifindex int) error
	Detach(ifindex int) error
	Attached() ([]datapath.Attachment, error)

	VifStats() (map[uint32]datapath.VifStats, error)
	VRFStats() (map[uint32]datapath.VRFStats, error)
	Drops() (map[datapath.DropKey]uint64, error)
	Fallbacks() (map[datapath.FallbackKey]uint64, error)
	Outcomes() (datapath.Outcomes, error)
	LearnedMTUs() (map[uint32]uint32, error)
	Flows(func(datapath.FlowKey, datapath.Flow) bool) error
	ExpireFlows() (removed, left int, err error)
	NearQuota() (bool, error)
	DropLog(context.Context, func(datapath.DropEvent)) error
	Trace(ifindex int, frame []byte) ([]datapath.TraceStep, int32, error)

	Close() error
	Remove() error
}

// inSpace calls methods that have an ifindex on a thread in the node's network namespace,
// because an ifindex belongs to a namespace.
type inSpace struct {
	Plane
	space *Space
}

// Programs has a node's data path and its pins.
type Programs struct {
	config   config.Config
	log      *slog.Logger
	space    *Space
	current  atomic.Pointer[inSpace] // Renew replaces it
	Pins     Pins
	dropped  func(datapath.DropEvent) // called for each dropped packet
	Unfollow func()                   // stops followDrops
}

// OpenPrograms loads the data path, or reuses the pinned one. It calls dropped for
// each dropped packet.
func OpenPrograms(c config.Config, log *slog.Logger, s *Space, dropped func(datapath.DropEvent)) (*Programs, error) {
	p := &Programs{config: c, log: log, space: s, dropped: dropped}
	return p, p.Renew()
}

// Renew opens a new data path. Goroutines that read the old maps can finish: the
// kernel frees a map when the last reader closes it.
func (p *Programs) Renew() error {
	pins, err := openPins(p.config)
	if err != nil {
		return fmt.Errorf("node %s: %w", p.config.Node, err)
	}
	var d *datapath.Datapath
	err = p.space.Do(func() (err error) {
		d, err = datapath.Open(datapath.Options{
			Pins: pins.Dir, Limits: p.config.Limits.Datapath(), Logger: p.log,
			NoTCX: p.config.TCX == config.Off, NoXDP: p.config.XDP == config.Off,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("node %s: %w", p.config.Node, err)
	}
	pins.note()
	p.Pins = pins
	if p.Unfollow != nil {
		p.Unfollow()
	}
	p.current.Store(&inSpace{d, p.space})
	p.Unfollow = p.followDrops(d)
	return nil
}

// Plane is the data path.
func (p *Programs) Plane() Plane { return p.current.Load() }

// Close closes the data path; packets keep flowing.
func (p *Programs) Close() error {
	p.Unfollow()
	return p.Plane().Close()
}

// followDrops reports dropped packets until stop is called.
func (p *Programs) followDrops(from Plane) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := from.DropLog(ctx, p.dropped); err != nil {
			p.log.Error("the log of dropped packets has stopped; their counters continue", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (p inSpace) AttachVif(ifindex int) error {
	return p.space.Do(func() error { return p.Plane.AttachVif(ifindex) })
}

func (p inSpace) AttachVifNow(ifindex int) error {
	return p.space.Do(func() error { return p.Plane.AttachVifNow(ifindex) })
}

func (p inSpace) AttachNetkit(ifindex int) error {
	return p.space.Do(func() error { return p.Plane.AttachNetkit(ifindex) })
}

func (p inSpace) GuardFabric(ifindex int) error {
	return p.space.Do(func() error { return p.Plane.GuardFabric(ifindex) })
}

func (p inSpace) AttachFabric(ifindex int, noXDP string) (f datapath.Fabric, err error) {
	err = p.space.Do(func() error {
		f, err = p.Plane.AttachFabric(ifindex, noXDP)
		return err
	})
	return f, err
}

func (p inSpace) Detach(ifindex int) error {
	return p.space.Do(func() error { return p.Plane.Detach(ifindex) })
}

func (p inSpace) Attached() (all []datapath.Attachment, err error) {
	err = p.space.Do(func() error {
		all, err = p.Plane.Attached()
		return err
	})
	return all, err
}

// Apply runs in the namespace, because it lists the attached programs. It needs them to
// find older maps that no program uses.
func (p inSpace) Apply(t fib.Tables) (c datapath.Changes, err error) {
	err = p.space.Do(func() error {
		c, err = p.Plane.Apply(t)
		return err
	})
	return c, err
}

func (p inSpace) Update(before, after fib.Tables) (c datapath.Changes, err error) {
	err = p.space.Do(func() error {
		c, err = p.Plane.Update(before, after)
		return err
	})
	return c, err
}

func (p inSpace) Trace(ifindex int, frame []byte) (steps []datapath.TraceStep, verdict int32, err error) {
	err = p.space.Do(func() error {
		steps, verdict, err = p.Plane.Trace(ifindex, frame)
		return err
	})
	return steps, verdict, err
}

func (p inSpace) Remove() error { return p.space.Do(p.Plane.Remove) }
