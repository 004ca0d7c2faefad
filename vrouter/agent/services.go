package agent

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/service"
)

// services are the services that the node's workloads reach.
type services struct {
	follow func(ctx context.Context, set func([]service.Service) error) // Options.Services; nil: none

	mu    sync.Mutex
	all   []service.Service // nil: not known yet
	plane *netdev.Plane     // the data path that has them
}

// followServices follows the services until ctx ends. Then the channel is closed.
func (a *agent) followServices(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if a.services.follow != nil {
			a.services.follow(ctx, a.setServices)
		}
	}()
	return ended
}

// setServices writes the services to the data path. It keeps them for a data path that replaces it.
func (a *agent) setServices(all []service.Service) error {
	a.gate.RLock()
	defer a.gate.RUnlock()
	if a.removed {
		return refuse(http.StatusServiceUnavailable, "the node has been removed")
	}
	s := &a.services
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.plane = all, a.reconciler.Plane()
	changes, err := s.plane.SetServices(all)
	if err != nil {
		s.plane = nil
		return fmt.Errorf("write the services: %w", err)
	}
	if changes.Updated+changes.Deleted > 0 {
		a.log.Debug("services changed", "updated", changes.Updated, "deleted", changes.Deleted)
	}
	return nil
}

// renewServices writes the services again if their data path has been replaced.
func (a *agent) renewServices() {
	s := &a.services
	s.mu.Lock()
	all, renewed := s.all, s.plane != nil && s.plane != a.reconciler.Plane()
	s.mu.Unlock()
	if renewed && !a.removed {
		if err := a.setServices(all); err != nil {
			a.log.Error("services", "error", err)
		}
	}
}
