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
	made bool         // and not undone
}

// prepareChanges makes what the changes of the workload need.
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
	s.changes.Lock()
	defer s.changes.Unlock()
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
	s.changes.of, s.changes.node = change, n
	return nil
}

// Change changes the node's network, or undoes the change. The reply is the time that this took.
func (s *Service) Change(undo bool, took *time.Duration) error {
	c := &s.changes
	c.Lock()
	defer c.Unlock()
	if c.node == nil {
		return errors.New("change the network: the system was attached without changes")
	}
	began := time.Now()
	defer func() { *took = time.Since(began) }()
	return c.set(!undo)
}

// set makes the change, or undoes it. Its programs run with normal priority, also while the agent's
// threads have a higher one.
func (c *changes) set(made bool) error {
	do := c.of.Undo
	if made {
		do, c.made = c.of.Make, true
	}
	err := netspace.OwnThread(func() error {
		priority.Lower()
		return do(c.node)
	})
	if err == nil {
		c.made = made
	}
	return err
}

// endChanges undoes a change that is still made, and removes the spare container.
func (s *Service) endChanges() (errs []error) {
	c := &s.changes
	c.Lock()
	defer c.Unlock()
	if c.made {
		errs = append(errs, c.set(false))
	}
	if spare := s.attached.Spare.Space; spare != nil {
		errs = append(errs, spare.Close(), space.Delete(spare.Name))
	}
	c.node, c.made = nil, false
	return errs
}

// Change changes the network of the node, or undoes the change. It returns the time that this took.
func (c *Client) Change(ctx context.Context, undo bool) (time.Duration, error) {
	return ask[time.Duration](ctx, c, "Change", undo)
}
