// Package agent runs a node. It reconciles the data path, the node's devices and
// the workloads' devices with a desired state, and serves the API of package api.
// It uses clock, files and kernel; packages model and fib have the pure logic.
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
	Version string       // of the program, for users
	Logger  *slog.Logger // nil: no log
}

// agent is a running node. Only the loop uses the loop's fields. Other goroutines
// read the view that the loop publishes.
type agent struct {
	config  Config
	version string
	log     *slog.Logger
	started time.Time
	space   *space
	current atomic.Pointer[inSpace] // the data path; replaced if its pins are lost
	kept    kept
	own     keptNode // node.json; used only by the loop once the loop runs
	shared  *shared
	drops   *dropRing
	limits  datapath.Limits // with the defaults filled in
	lock    *lock

	requests  chan func()
	coming    atomic.Int32 // requests whose changes are not committed yet
	view      atomic.Pointer[view]
	flowCount atomic.Int64 // flows after the last expireFlows
	gate      sync.RWMutex // readers of maps outside the loop hold it for reading; setting removed needs it for writing
	removed   bool         // the node has been removed

	// Fields of the loop.
	want       *desired            // nil: not known yet; the kernel's tables stay as they are
	unfit      error               // why the node cannot use the store's state
	goneAt     time.Time           // when the next silent node counts as gone; zero: no node is silent
	generation uint64              // version of want, incremented on each change
	wholeTook  time.Duration       // duration of the last complete pass
	followTook time.Duration       // duration of the last takeOver
	waiting    []func(unfit error) // catchUp calls them after the node has applied the store's changes
	gathered   <-chan time.Time    // fires when catchUp is due for gathered changes; nil: no changes are gathered
	freedAt    uint64              // generation at the last freeMemory
	neighbours *neighbours
	last       *pass            // the last pass
	written    datapath.Changes // entries written for changes of the desired state, since the start
	repairs    uint64
	pins       pins
	unfollow   func() // stops followDrops
	synced     time.Time
	retry      time.Duration // until the next pass after a failure
}

// Run runs the agent of one node until ctx ends, SIGTERM or SIGINT arrives, or the
// API stops it. Packets keep flowing afterwards, unless the API removed the node.
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
		return err // takeDown has removed the lock
	}
	return errors.Join(err, l.release())
}

// run opens files, namespace, store and data path, and serves.
func (a *agent) run(ctx context.Context) (err error) {
	a.kept = kept{a.config.StateDir, a.config.Node}
	a.kept.removePartialFiles()
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
	first, err := a.initialSlice(ctx)
	if err != nil {
		return err
	}
	real, err := a.openPlane()
	if err != nil {
		return err
	}
	return a.serve(ctx, end, first, real)
}

// openNode opens the node's network namespace and starts a thread in it.
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

// openPlane loads the data path, or reuses the pinned one.
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
