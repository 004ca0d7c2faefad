package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/store"
)

// Alive is the record of a running agent.
type Alive struct {
	Instance string    `json:"instance"`       // id of the node's state directory; it differs between two nodes with one name
	Boot     string    `json:"boot,omitempty"` // id of the host's boot; "": unknown
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Since    time.Time `json:"since"`
	Stopped  bool      `json:"stopped,omitempty"` // the agent was stopped by a signal or command; the node still forwards
	Silent   []string  `json:"silent,omitempty"`  // ports of the node whose workloads do not answer, sorted
}

// TakenError says that another agent runs for the same node.
type TakenError struct {
	Node   string
	Holder Alive
	Lease  time.Duration
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("node %s already has an agent, process %d on host %s; stop that agent, or give this node another name. If host and agent are lost, wait %v until the lease ends", e.Node, e.Holder.PID, e.Holder.Host, e.Lease)
}

// Attend keeps the alive key of a node until ctx ends. The key then stays until
// its lease expires, so that other nodes do not notice a quick restart of the
// agent. Attend returns a *TakenError if another agent has the key, even if
// that agent got it while the store was unreachable. Attend calls held each
// time it has written the key.
func (f *Fleet) Attend(ctx context.Context, node string, me Alive, held func()) error {
	denied := false // ErrDenied has been logged
	var start int64
	if f.Look(ctx, func(v *View) { start = v.revision }) != nil {
		return nil // ctx has ended
	}
	for {
		err := f.attendOnce(ctx, node, me, func() {
			denied = false
			held()
			f.releaseLost(ctx, node, me, start)
		})
		var taken *TakenError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &taken):
			return err
		case errors.Is(err, store.ErrDenied):
			if !denied {
				f.log.Error("write this node's alive key: the store denies it; other nodes do not send packets to this node", "error", err)
			}
			denied = true
			if pause.For(ctx, lastRetry) != nil {
				return nil
			}
		case err != nil:
			f.setProblem(err)
			if pause.For(ctx, time.Second) != nil {
				return nil
			}
		}
	}
}

// attendOnce writes the alive key and returns when the key is lost or ctx ends.
func (f *Fleet) attendOnce(ctx context.Context, node string, me Alive, held func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lost, err := f.hold(ctx, node, me)
	if err != nil {
		return err
	}
	held()
	select {
	case <-lost:
		if ctx.Err() == nil {
			f.log.Warn("this node's alive key has expired or was deleted, or its watch has ended; other nodes may have removed their routes to it", "node", node)
		}
	case <-f.silentChanged: // write the key again
	case <-ctx.Done():
	}
	return nil
}

// SetSilent writes into the node's alive key that the workloads of some of its ports do not answer. Routes with other next
// hops then avoid these ports.
func (f *Fleet) SetSilent(ports []string) {
	f.silent.Store(&ports)
	pause.Wake(f.silentChanged)
}

// hold returns the problem of the store if the copy does not catch up after a conflict.
func (f *Fleet) hold(ctx context.Context, node string, me Alive) (lost <-chan struct{}, err error) {
	for attempt := 0; ; attempt++ {
		var revision int64
		var taken error
		if silent := f.silent.Load(); silent != nil {
			me.Silent = *silent
		}
		err = f.Look(ctx, func(v *View) { revision, taken = v.revisions[inAlive+node], f.Taken(v, node, me.Instance) })
		if err = errors.Join(err, taken, f.refused()); err != nil {
			return nil, err
		}
		lost, err = f.store.Hold(ctx, inAlive+node, encode(me), revision, f.absence.ttl())
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) {
			return lost, err
		}
		if problem := f.Health().Problem; problem != nil {
			return nil, problem
		}
		if err := f.catchUp(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// Leave deletes the alive key of a node at once.
func (f *Fleet) Leave(ctx context.Context, node string) error {
	_, err := f.commit(ctx, leaving(node))
	return err
}

func leaving(node string) store.Commit { return store.Commit{Delete: []string{inAlive + node}} }

// Taken returns a *TakenError if another instance has the node's alive key and still
// runs.
func (f *Fleet) Taken(v *View, node, instance string) error {
	if holder, there := v.alive[node]; there && holder.Instance != instance && !holder.Stopped {
		return &TakenError{node, holder, f.absence.ttl()}
	}
	return nil
}

// Stop writes into the alive key of a node that its agent stops. Routes with other next
// hops then avoid the node at once. The node still forwards, so its ports stay
// reachable. The key ends after its time to live.
func (f *Fleet) Stop(ctx context.Context, node, instance string) error {
	var me Alive
	var revision int64
	f.Peek(func(v *View) { me, revision = v.alive[node], v.revisions[inAlive+node] })
	if me.Instance != instance || f.Health().Problem != nil {
		return nil
	}
	me.Stopped = true
	ctx, end := context.WithCancel(ctx)
	defer end()
	_, err := f.store.Hold(ctx, inAlive+node, encode(me), revision, f.absence.ttl())
	return err
}

// Gone returns the silent nodes; the value is true if the node is also gone. next is the
// time until another node becomes silent or gone; 0: no node is missing.
func (f *Fleet) Gone() (gone map[string]bool, next time.Duration) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.view == nil {
		return nil, 0
	}
	return f.absence.gone(f.view, time.Now())
}
