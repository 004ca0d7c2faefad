// Package dhcp answers the DHCP and DHCPv6 clients of a node's workloads, which are virtual machines,
// and containers that configure themselves. It also sends them router advertisements. A client gets the
// addresses that its port has in the desired state. So the server has no memory: another agent, or the
// same agent after a restart, gives the same answers. DNS queries to the network's DNS addresses go to a function.
//
// The eBPF programs leave the clients' packets to the sockets of this package (agent.h), two for
// each port. A port that sends more than the rate fills the queue of its own socket only.
package dhcp

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Limits of one port.
const (
	messages = 200      // a second
	burst    = 100      // messages
	queue    = 64 << 10 // bytes that wait in the socket, with the kernel's overhead
	waiting  = 64       // DNS queries that wait for an answer
)

// recent is the time for which a refused message is a problem.
const recent = 10 * time.Minute

// Port is a port whose workload gets answers.
type Port struct {
	Name    string
	Ifindex int // of its device on the node
	Lease
}

// Server answers the workloads of the ports of a node.
type Server struct {
	in    func(func() error) error // runs a function in the node's network namespace
	dns   func(l *Lease, query []byte, size int) []byte
	log   *slog.Logger
	mu    sync.Mutex
	ports map[string]*served
}

// New makes a server. in runs a function in the node's network namespace. dns returns the answer to a DNS
// query of a port, of at most size bytes; nil: none. Several goroutines call it.
func New(in func(func() error) error, dns func(l *Lease, query []byte, size int) []byte, log *slog.Logger) *Server {
	return &Server{in: in, dns: dns, log: log, ports: map[string]*served{}}
}

// Keep makes the ports with answers equal to ports. It returns an error for each port whose socket
// cannot be opened; the next call tries again.
func (s *Server) Keep(ports map[string]Port) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.ports {
		if want, ok := ports[name]; !ok || want.Ifindex != p.ifindex {
			p.close()
			delete(s.ports, name)
		}
	}
	var fresh []Port
	for name, want := range ports {
		if p := s.ports[name]; p == nil {
			fresh = append(fresh, want)
		} else {
			p.lease.Store(&want.Lease)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return s.in(func() (err error) {
		for _, want := range fresh {
			p, failed := s.serve(want)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("open a socket on the device of port %s for DHCP: %w", want.Name, failed))
				continue
			}
			s.ports[want.Name] = p
		}
		return err
	})
}

// Close ends the server.
func (s *Server) Close() { s.Keep(nil) }

// Counts calls each for all counters: the messages of a port by their result, a Reason or "answered".
func (s *Server) Counts(each func(port, result string, n uint64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.ports {
		for result := range p.counts {
			if n := p.counts[result].Load(); n > 0 {
				each(name, Reason(result).String(), n)
			}
		}
	}
}

// Refusals returns the texts of the last refused messages, by port. It leaves out ports whose last
// refusal is older than recent.
func (s *Server) Refusals() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for name, p := range s.ports {
		if last := p.last.Load(); last != nil && time.Since(last.at) < recent {
			all[name] = last.text
		}
	}
	return all
}
