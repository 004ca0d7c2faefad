package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"windtunnel/vrouter/store"
)

// Alive is what a node's agent says of itself while it is there.
type Alive struct {
	Instance string    `json:"instance"` // of the node's state directory: two with one name are told apart by it
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Since    time.Time `json:"since"`
}

// TakenError is why an agent may not be a node: another one is.
type TakenError struct {
	Node   string
	Holder Alive
	Lease  time.Duration
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("node %s has an agent already, process %d on host %s; stop that one, or give this node another name. If that host is gone for good, wait %v until its lease is over", e.Node, e.Holder.PID, e.Holder.Host, e.Lease)
}

// Attend keeps a node known as alive until ctx ends; it leaves the key to its
// lease then, so that an agent that is only started anew is not missed. It
// returns a *TakenError at once where another agent is the node, also when that
// one came while the store was out of reach. held is called when the node is
// known as alive, each time anew.
func (f *Fleet) Attend(ctx context.Context, node string, me Alive, held func()) error {
	for {
		lost, err := f.hold(ctx, node, me)
		var taken *TakenError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &taken):
			return err
		case err != nil:
			f.trouble(err)
			if !sleep(ctx, time.Second) {
				return nil
			}
			continue
		}
		held()
		select {
		case <-lost:
			f.log.Warn("this node's lease is over; the others may have dropped its routes", "node", node)
		case <-ctx.Done():
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *Fleet) hold(ctx context.Context, node string, me Alive) (lost <-chan struct{}, err error) {
	var revision int64
	var taken error
	err = f.Look(ctx, func(v *View) { revision, taken = v.revisions[inAlive+node], f.Taken(v, node, me.Instance) })
	if err != nil {
		return nil, err
	}
	if taken != nil {
		return nil, taken
	}
	lost, err = f.store.Hold(ctx, inAlive+node, encode(me), revision, f.absence.lease)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		if err := f.catchUp(ctx, 0); err != nil {
			return nil, err
		}
		return f.hold(ctx, node, me)
	}
	return lost, err
}

// Leave makes it known that a node's agent is gone for good, without waiting for
// its lease.
func (f *Fleet) Leave(ctx context.Context, node string) error {
	_, err := f.store.Commit(ctx, store.Commit{Delete: []string{inAlive + node}})
	return err
}

// Taken is a *TakenError where another instance's agent is the node.
func (f *Fleet) Taken(v *View, node, instance string) error {
	if holder, there := v.alive[node]; there && holder.Instance != instance {
		return &TakenError{node, holder, f.absence.lease}
	}
	return nil
}

// Gone are the nodes that count as gone now, and how long until another one
// does; 0: none is missing.
func (f *Fleet) Gone() (gone map[string]bool, next time.Duration) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.view == nil {
		return nil, 0
	}
	return f.absence.gone(f.view, time.Now())
}
