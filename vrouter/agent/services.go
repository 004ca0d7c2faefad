package agent

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/service"
)

// renewPause is the minimum time between two attempts to write the services to new maps.
const renewPause = time.Second

// services are the services that the node's workloads reach.
type services struct {
	follow func(ctx context.Context, set func([]service.Service) error) // Options.Services; nil: none
	ruled  bool                                                         // Options.ServiceRules
	rules  netdev.ServiceRules

	mu    sync.Mutex
	all   []service.Service // nil: not known yet
	plane *netdev.Plane     // the data path that has them; nil: they were never written
	pause time.Time         // renewServices does not write them before
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

// setServices writes the services to the data path. With Options.ServiceRules it then writes the rules of the node's kernel.
func (a *agent) setServices(all []service.Service) error {
	a.gate.RLock()
	defer a.gate.RUnlock()
	if a.removed {
		return refuse(http.StatusServiceUnavailable, "the node has been removed")
	}
	if err := a.setPlaneServices(all); err != nil || !a.services.ruled {
		return err
	}
	return a.services.rules.Set(a.space, all)
}

// setPlaneServices writes the services to the data path, and keeps them for a later data path.
func (a *agent) setPlaneServices(all []service.Service) error {
	s := &a.services
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = all
	plane := a.reconciler.Plane()
	changes, err := plane.SetServices(slices.DeleteFunc(slices.Clone(all), func(s service.Service) bool { return s.RulesOnly }))
	if err != nil {
		return fmt.Errorf("write the services: %w", err)
	}
	s.plane = plane
	if changes.Updated+changes.Deleted > 0 {
		a.log.Debug("services changed", "updated", changes.Updated, "deleted", changes.Deleted)
	}
	return nil
}

// translated returns a packet as policies see it: with the backend that the data path has chosen, if it goes to a
// service.
func (s *services) translated(o opening, steps []datapath.TraceStep) opening {
	at := slices.IndexFunc(steps, func(s datapath.TraceStep) bool { return s.Kind == datapath.TraceService })
	if at < 0 {
		return o
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := service.Key{Address: o.destination, Port: o.port, Protocol: o.protocol}
	for _, one := range s.all {
		for _, b := range one.Backends {
			if one.Key == key && slices.ContainsFunc(steps[at:], func(s datapath.TraceStep) bool { return s.Address == b.Addr() }) && b.Port() == steps[at].Port {
				o.destination, o.port = b.Addr(), b.Port()
			}
		}
	}
	return o
}

// keepServiceRules writes the rules of services again if they are missing.
func (a *agent) keepServiceRules() {
	if !a.services.ruled || a.removed {
		return
	}
	switch changed, err := a.services.rules.Keep(a.space); {
	case err != nil:
		a.log.Error("cannot write the rules of services; the next check for drift tries again", "error", err)
	case changed:
		a.log.Warn("the rules of services were missing, and were written again")
	}
}

// renewServices writes the services again if their data path has been replaced. The loop calls it until it succeeds.
func (a *agent) renewServices() {
	s := &a.services
	s.mu.Lock()
	all, renewed := s.all, s.plane != nil && s.plane != a.reconciler.Plane()
	s.mu.Unlock()
	if now := time.Now(); renewed && !a.removed && now.After(s.pause) {
		if err := a.setPlaneServices(all); err != nil {
			s.pause = now.Add(renewPause)
			a.log.Error("cannot write the services to the new maps; trying again", "error", err)
		}
	}
}
