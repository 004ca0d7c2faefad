package follow

import (
	"context"
	"errors"
	"fmt"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// KeepAccess adds and deletes the ports that connect this node to networks with node_access,
// until ctx ends. The node is always connected to the network always; "": to none.
func (f *Follower) KeepAccess(ctx context.Context, always string) {
	changes := f.Watcher()
	f.wait.Go(func() {
		defer changes.Close()
		told := "" // last logged error, to log each error only once
		for {
			select {
			case <-changes.C:
				changes.Take()
			case <-ctx.Done():
				return
			}
			for err := f.access(ctx, always); err != nil && ctx.Err() == nil; err = f.access(ctx, always) {
				if why := err.Error(); why != told {
					f.log.Warn("cannot connect this node to a network with node_access, or disconnect it", "error", err)
					told = why
				}
				_ = pause.For(ctx, retryLeaves) // the loop tests ctx
			}
		}
	})
}

func (f *Follower) access(ctx context.Context, always string) error {
	var add []model.PortRequest
	var remove []string
	if err := f.Look(ctx, func(v *fleet.View) { add, remove = v.Access(f.config.Node, always) }); err != nil {
		return err
	}
	var errs []error // a network that is full must not keep the others from their ports
	for _, r := range add {
		if _, _, err := f.AddPort(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("network %s: %w", r.Network, err))
		}
	}
	for _, name := range remove {
		if _, err := f.DeletePort(ctx, name, nil); err != nil && !fleet.IsWhy(err, fleet.NotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
