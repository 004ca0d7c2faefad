package netdev

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/datapath"
)

// Plane is the data path. It calls methods that have an ifindex on a thread in the node's network
// namespace, because an ifindex belongs to a namespace.
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

// in runs a method of the data path in the namespace.
func in[T any](s *Space, method func() (T, error)) (result T, err error) {
	err = s.Do(func() error {
		result, err = method()
		return err
	})
	return result, err
}

func (p *Plane) AttachVif(ifindex int) error {
	return p.space.Do(func() error { return p.Datapath.AttachVif(ifindex) })
}

func (p *Plane) AttachVifNow(ifindex int) error {
	return p.space.Do(func() error { return p.Datapath.AttachVifNow(ifindex) })
}

func (p *Plane) AttachNetkit(ifindex int) error {
	return p.space.Do(func() error { return p.Datapath.AttachNetkit(ifindex) })
}

func (p *Plane) GuardFabric(ifindex int) error {
	return p.space.Do(func() error { return p.Datapath.GuardFabric(ifindex) })
}

func (p *Plane) AttachFabric(ifindex int, noXDP string) (datapath.Fabric, error) {
	return in(p.space, func() (datapath.Fabric, error) { return p.Datapath.AttachFabric(ifindex, noXDP) })
}

func (p *Plane) Detach(ifindex int) error {
	return p.space.Do(func() error { return p.Datapath.Detach(ifindex) })
}

func (p *Plane) Attached() ([]datapath.Attachment, error) { return in(p.space, p.Datapath.Attached) }

func (p *Plane) Trace(ifindex int, frame []byte) (steps []datapath.TraceStep, verdict int32, err error) {
	err = p.space.Do(func() error {
		steps, verdict, err = p.Datapath.Trace(ifindex, frame)
		return err
	})
	return steps, verdict, err
}

func (p *Plane) Retire() error { return p.space.Do(p.Datapath.Retire) }

func (p *Plane) Remove() error { return p.space.Do(p.Datapath.Remove) }
