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
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"windtunnel/vrouter/datapath"
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
	kept    kept
	own     keptNode // what is kept of the node; the loop's own once that runs
	shared  *shared
	drops   *dropRing
	limits  datapath.Limits // with the defaults filled in
	lock    *lock

	requests chan func()
	coming   atomic.Int32 // requests whose changes are not in the store yet
	view     atomic.Pointer[view]
	gate     sync.RWMutex // held by who reads maps beside the loop, and to set removed
	removed  bool         // everything was taken down: nothing to come back to

	// The loop's own.
	want       *desired            // nil: nobody knows yet, and the kernel keeps what it has
	unfit      error               // why the store's state is not the desired one
	goneAt     time.Time           // when a node that is missing counts as gone; zero: none is
	generation uint64              // of want, counts up
	wholeTook  time.Duration       // of the last pass that looked at everything
	followTook time.Duration       // to make the store's state the node's, the last time
	waiting    []func(unfit error) // to be answered once the node follows the store
	gathered   <-chan time.Time    // when the node follows the store for those; nil: nobody waits
	tidied     uint64              // the generation after which memory was given back
	neighbours *neighbours
	last       *pass            // what the last pass came to
	written    datapath.Changes // by passes after changes of the desired state, since the start
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
func (a *agent) run(ctx context.Context) (err error) {
	a.kept = kept{a.config.StateDir, a.config.Node}
	a.kept.sweep()
	if a.own, err = a.kept.loadNode(); err != nil {
		return err
	}
	if a.space, err = openNode(a.config); err != nil {
		return err
	}
	defer a.space.close()
	ctx, end := context.WithCancel(ctx)
	if err := a.joinStore(ctx); err != nil {
		end()
		return err
	}
	defer func() {
		end()
		err = errors.Join(err, a.leaveStore())
	}()
	first, err := a.firstSlice(ctx)
	if err != nil {
		return err
	}
	real, err := a.openPlane()
	if err != nil {
		return err
	}
	return a.serve(ctx, end, first, real)
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
