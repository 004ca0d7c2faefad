// Package dhcp answers the DHCP and DHCPv6 clients of a node's workloads: virtual machines, and
// containers that configure themselves. It also sends them router advertisements. A client gets the
// addresses that its port has in the desired state. The server stores no leases, so another agent, or the
// same agent after a restart, gives the same answers. The server passes DNS queries to a function.
//
// The eBPF programs let the clients' packets pass to the sockets of this package (agent.h), two for
// each port. A port that sends more than the rate fills only the queues of its own sockets.
package dhcp

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Limits of each socket of a port.
const (
	messageRate  = 200      // a second
	messageBurst = 100      // messages
	queueBytes   = 64 << 10 // SO_RCVBUF
)

// maxQueries is the maximum number of DNS queries of a port that wait for an answer.
const maxQueries = 64

// refusalAge is the age at which Refusals leaves out a refused message.
const refusalAge = 10 * time.Minute

// Config has the functions that a Server calls. They must be safe for concurrent use.
type Config struct {
	InNode func(func() error) error                      // runs a function in the node's network namespace
	Lease  func(port string) *Lease                      // returns the configuration of a port's workload; nil: the port has none
	DNS    func(l *Lease, query []byte, size int) []byte // returns the answer to a DNS query, of at most size bytes; nil: none
	Log    *slog.Logger
}

// Server answers the workloads of the ports of a node.
type Server struct {
	Config
	mu    sync.Mutex
	ports map[string]*servedPort
}

// New makes a server without ports.
func New(c Config) *Server { return &Server{Config: c, ports: map[string]*servedPort{}} }

// Serve makes the server answer exactly these ports: ifindexes of devices by port. It returns an error for
// each port whose sockets cannot be opened; the next call tries again.
func (s *Server) Serve(ifindexes map[string]int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.ports {
		if ifindex, ok := ifindexes[name]; !ok || ifindex != p.ifindex {
			p.close()
			delete(s.ports, name)
		}
	}
	if len(s.ports) == len(ifindexes) {
		return nil
	}
	return s.InNode(func() (err error) {
		for name, ifindex := range ifindexes {
			if s.ports[name] != nil {
				continue
			}
			p, failed := s.serve(name, ifindex)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("open sockets for DHCP on the device of port %s: %w", name, failed))
				continue
			}
			s.ports[name] = p
		}
		return err
	})
}

// Close ends the server.
func (s *Server) Close() { s.Serve(nil) }

// Counts calls each for all counters: the messages of a port by their result.
func (s *Server) Counts(each func(port, result string, n uint64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.ports {
		for result := range p.counts {
			if n := p.counts[result].Load(); n > 0 {
				each(name, Result(result).String(), n)
			}
		}
	}
}

// Refusals returns the texts of the last refused messages, by port. It leaves out ports whose last
// refusal is older than refusalAge.
func (s *Server) Refusals() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for name, p := range s.ports {
		if last := p.last.Load(); last != nil && time.Since(last.at) < refusalAge {
			all[name] = last.text
		}
	}
	return all
}

// Result is the result of a message: answered, or the reason why it gets no answer. A metric has results as labels.
type Result int

const (
	answered Result = iota
	malformed
	notARequest
	foreignMAC
	foreignAddress
	noAddress
	relayed
	otherServer
	declined
	results
)

var resultNames = [results]string{"answered", "malformed", "not_a_request", "foreign_mac", "foreign_address", "no_address", "relayed", "other_server", "declined"}

func (r Result) String() string { return resultNames[r] }

// refusal is the error of a message that gets no answer.
type refusal struct {
	result Result
	text   string
}

func (r *refusal) Error() string { return r.text }

func refused(result Result, format string, args ...any) error {
	return &refusal{result, fmt.Sprintf(format, args...)}
}
