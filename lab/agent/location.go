package agent

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"windtunnel/lab/space"
)

// location is where an endpoint runs: in a namespace of this node's kernel, or in a
// VM. An agent inside the VM executes the calls for it.
type location struct {
	space *space.Space
	guest *guest // nil if space is set
}

// locate returns the location of an endpoint; "" means the node.
func (s *Service) locate(endpoint string) (location, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if endpoint == "" {
		return location{space: s.node}, nil
	}
	if sp, ok := s.containers[endpoint]; ok {
		return location{space: sp}, nil
	}
	if g, ok := s.guests[endpoint]; ok {
		return location{guest: g}, nil
	}
	return location{}, fmt.Errorf("endpoint %q is not on this node", endpoint)
}

// running is a program that the agent started on the node or in a guest.
type running interface {
	follow(from int, wait time.Duration) (Event, error)
	output() (OutputReply, error)
	// Signal sends a signal to the program and its children.
	Signal(syscall.Signal) error
	// Kill kills the program without waiting. A program in a guest ends with the
	// guest.
	Kill()
	// PID returns the PID on the node; 0 for a program in a guest.
	PID() int
}

// remote is a program in a guest.
type remote struct {
	guest *guest
	id    int // number of the process at the guest's agent
}

func (r remote) follow(from int, wait time.Duration) (Event, error) {
	return ask[Event](context.Background(), r.guest.client, "Follow", FollowArgs{r.id, from, wait})
}

func (r remote) output() (OutputReply, error) {
	return ask[OutputReply](context.Background(), r.guest.client, "Output", r.id)
}

func (r remote) Signal(s syscall.Signal) error {
	return r.guest.client.call(context.Background(), "Signal", SignalArgs{r.id, int(s)}, &struct{}{})
}

func (remote) Kill()    {}
func (remote) PID() int { return 0 }
