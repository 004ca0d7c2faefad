package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"windtunnel/internal/netspace"
	"windtunnel/lab/priority"
	"windtunnel/lab/space"
	"windtunnel/lab/system"
)

// changes are the changes of the node's network while traffic passes. It has a separate lock, because
// a change can take longer than the engine waits for a reading of the meters.
type changes struct {
	sync.Mutex
	of   system.Change
	node *system.Node // nil: no changes
}

// prepareChanges prepares the node for the changes of the workload.
func (s *Service) prepareChanges(args AttachArgs, n *system.Node) error {
	if args.Change == "" {
		return nil
	}
	change, err := system.ChangeOf(s.system, args.Change)
	if err != nil {
		return err
	}
	for node, c := range args.Spares {
		if c.Name != "" {
			n.Spares = append(n.Spares, system.NodeEndpoint{Node: node, Name: c.Name, V4: c.V4, V6: c.V6, MAC: c.MAC})
		}
	}
	if args.Index < len(args.Spares) && args.Spares[args.Index].Name != "" {
		c := args.Spares[args.Index]
		sp, err := space.Create(args.SpaceBase + "-" + c.Name)
		if err != nil {
			return err
		}
		n.Spare = system.Endpoint{Name: c.Name, Space: sp, V4: c.V4, V6: c.V6, MAC: c.MAC}
		if err := sp.Workloads(); err != nil {
			return err
		}
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	s.changes.of, s.changes.node = change, n
	return nil
}

// Change changes the node's network, or undoes the change. The reply is the time that this took. While
// the agent meters, its threads have a high priority. The thread that makes the change, and the programs that it starts, have the normal one.
func (s *Service) Change(undo bool, took *time.Duration) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	n, do := s.changes.node, s.changes.of.Make
	if undo {
		do = s.changes.of.Undo
	}
	if n == nil {
		return errors.New("change the network: the system was attached without changes")
	}
	return netspace.OwnThread(func() error {
		priority.Lower()
		defer priority.CalmSession()()
		began := time.Now()
		defer func() { *took = time.Since(began) }()
		return do(n)
	})
}

// endChanges waits for the end of a change. Then no more are possible.
func (s *Service) endChanges() {
	s.changes.Lock()
	defer s.changes.Unlock()
	s.changes.node = nil
}

// Change changes the network of the node, or undoes the change. It returns the time that this took.
func (c *Client) Change(ctx context.Context, undo bool) (time.Duration, error) {
	return ask[time.Duration](ctx, c, "Change", undo)
}
