// Package agent runs a node: it keeps the data path, the node's devices and the
// workloads' equal to a desired state, and serves the API of package api. It is
// what knows time, files and the kernel; what it decides by is in packages
// model and fib.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Options of Run that are not the node's configuration.
type Options struct {
	Version string       // of the program, for people
	Logger  *slog.Logger // nil: no log
}

// agent is a running node. What the loop owns only the loop touches; the others
// read the view that it publishes.
type agent struct {
	config  Config
	version string
	log     *slog.Logger
	started time.Time
	space   *space
	current atomic.Pointer[inSpace] // the data path; another one when its pins were lost
	store   store
	drops   *dropRing
	limits  datapath.Limits // with the defaults filled in
	lock    *lock

	requests chan func()
	view     atomic.Pointer[view]
	gate     sync.RWMutex // held by who reads maps beside the loop, and to set removed
	removed  bool         // everything was taken down: nothing to come back to

	// The loop's own.
	want       *desired
	generation uint64 // of want, counts up
	tidied     uint64 // the generation after which memory was given back
	neighbours *neighbours
	last       *pass // what the last pass came to
	repairs    uint64
	pins       pins
	unfollow   func() // stops following the data path's dropped packets
	synced     time.Time
	retry      time.Duration // until the next pass after a failure
}

// Run is the agent of one node until ctx or a SIGTERM or SIGINT ends it, or a
// request to its API. Packets flow on then, unless removal was asked for.
func Run(ctx context.Context, c Config, o Options) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l, err := takeLock(c)
	if err != nil {
		return err
	}
	a := &agent{
		config: c, version: o.Version, log: o.Logger.With("node", c.Node), started: time.Now(),
		limits: c.Limits.datapath().WithDefaults(), lock: l,
	}
	err = a.run(ctx)
	if a.removed {
		return err // with everything else the lock was given up
	}
	return errors.Join(err, l.release())
}

// run opens what the agent needs, in the order in which it is needed.
func (a *agent) run(ctx context.Context) error {
	a.store = store{a.config.StateDir, a.config.Node}
	want, err := a.loadDesired()
	if err != nil {
		return err
	}
	if a.space, err = openNode(a.config); err != nil {
		return err
	}
	defer a.space.close()
	real, err := a.openPlane()
	if err != nil {
		return err
	}
	return a.serve(ctx, want, real)
}

// openNode opens the node's network namespace and stays in it.
func openNode(c Config) (*space, error) {
	s, err := openSpace(c.Netns)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", c.Node, err)
	}
	if err := s.stay(); err != nil {
		s.close()
		return nil, fmt.Errorf("node %s: %w", c.Node, err)
	}
	return s, nil
}

// openPlane loads or adopts the data path.
func (a *agent) openPlane() (plane, error) {
	pins, err := openPins(a.config)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", a.config.Node, err)
	}
	var d *datapath.Datapath
	err = a.space.do(func() (err error) {
		d, err = datapath.Open(datapath.Options{
			Pins: pins.dir, Limits: a.config.Limits.datapath(), Logger: a.log,
			NoTCX: a.config.TCX == Off, NoXDP: a.config.XDP == Off,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", a.config.Node, err)
	}
	pins.note()
	a.pins = pins
	return d, nil
}

// loadDesired returns what the agent worked to when it ended, or at its first
// start the configured state.
func (a *agent) loadDesired() (*desired, error) {
	a.store.sweep()
	ports, err := a.store.loadPorts()
	if err != nil {
		return nil, err
	}
	kept, err := a.store.loadState()
	if err != nil {
		return nil, err
	}
	if kept != nil {
		want, err := newDesired(a.config.Node, kept.State, ports.Ports, ports.IDs)
		if err == nil {
			return want, nil
		}
		return nil, unreadable(a.store.statePath(), err)
	}
	state, err := a.firstState()
	if err != nil {
		return nil, err
	}
	return newDesired(a.config.Node, state, nil, ports.IDs)
}

// firstState reads the configured state file; without one nothing is wanted.
func (a *agent) firstState() (model.State, error) {
	if a.config.State == "" {
		return model.State{}, nil
	}
	text, err := os.ReadFile(a.config.State)
	if err != nil {
		return model.State{}, fmt.Errorf("read the state to begin with: %w", err)
	}
	state, err := model.Parse(a.config.State, text)
	if err != nil {
		return model.State{}, err
	}
	if err := state.Validate(); err != nil {
		return model.State{}, fmt.Errorf("the state to begin with, %s: %w", a.config.State, err)
	}
	d, err := newDesired(a.config.Node, state, nil, &fib.IDs{})
	if err == nil && !d.hasNode() {
		err = noSuchNode(a.config.Node, state)
	}
	if err != nil {
		return model.State{}, fmt.Errorf("the state to begin with, %s: %w", a.config.State, err)
	}
	return state, a.store.saveState(state)
}
