package netdev

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/datapath"
)

// Plane is the data path. Its methods that have an ifindex, and Retire, must be called in the node's network namespace,
// as a pass does, because an ifindex belongs to a namespace. Attached, Trace and Remove enter the namespace.
type Plane struct {
	*datapath.Datapath
	space *Space
}

// Programs has a node's data path and its pins.
type Programs struct {
	config   config.Config
	log      *slog.Logger
	space    *Space
	current  atomic.Pointer[Plane] // Renew replaces it
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

var checksums = map[config.Switch]datapath.Checksums{config.Auto: datapath.ChecksumsAuto, config.On: datapath.ChecksumsOn, config.Off: datapath.ChecksumsOff}

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
			Pins: pins.Dir, Limits: p.config.Limits.Limits, Logger: p.log,
			NoTCX: p.config.TCX == config.Off, NoXDP: p.config.XDP == config.Off,
			Times:     datapath.FlowTimes{Idle: p.config.FlowIdle, Unanswered: p.config.FlowUnanswered, Closed: p.config.FlowClosed},
			Checksums: checksums[p.config.UDPChecksum],
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
	p.current.Store(&Plane{d, p.space})
	p.Unfollow = p.followDrops(d)
	return nil
}

// Plane is the data path.
func (p *Programs) Plane() *Plane { return p.current.Load() }

// Close closes the data path; packets keep flowing.
func (p *Programs) Close() error {
	p.Unfollow()
	return p.Plane().Close()
}

// followDrops reports dropped packets until stop is called.
func (p *Programs) followDrops(from *datapath.Datapath) (stop func()) {
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

func (p *Plane) Attached() (all []datapath.Attachment, err error) {
	err = p.space.Do(func() error {
		all, err = p.Datapath.Attached()
		return err
	})
	return all, err
}

func (p *Plane) Trace(ifindex int, frame []byte) (steps []datapath.TraceStep, verdict int32, err error) {
	err = p.space.Do(func() error {
		steps, verdict, err = p.Datapath.Trace(ifindex, frame)
		return err
	})
	return steps, verdict, err
}

func (p *Plane) Remove() error { return p.space.Do(p.Datapath.Remove) }
